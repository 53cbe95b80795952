/*
 * audit.h - checks of the evidence: does a statement agree with itself, and are the files here those that were proven?
 */
#ifndef ATTEST_AUDIT_H
#define ATTEST_AUDIT_H

#include "base/session.h"

/* What is asked for more than once: the image that a source gives here, and the compiler. Zeros to begin with. */
struct audit {
    const char *evidence;
    const json_t *statements; /* see statements_load */
    json_t *images;           /* {source: digest of the image it gives here, "" if it does not compile} */
    char compiler[256];       /* "" until it was asked */
    char cuda_compiler[256];  /* likewise */
    int artefacts, omitted;   /* counted by audit_statement */
};
void audit_free(struct audit *audit);

/* Adds a sentence to `findings`, an array, for each thing in a statement that contradicts another: digests, artefacts, the
 * decision, the verdict on speed. The entry is one of statements_load without a "problem". */
void audit_statement(struct audit *audit, const json_t *entry, json_t *findings);

/* Likewise for each source of a record that is not in the tree: those of a kernel of the library must be relative paths, and no path may
 * lead above the folder that the kernel was proven in. */
void audit_paths(const json_t *record, json_t *findings);

/* How the files here compare with those of a record. The sentence says what differs. */
enum sameness {
    SAME_SOURCES, /* every file and flag is the same */
    SAME_IMAGE,   /* files differ, but the compiler of the record makes the same image of them */
    CHANGED,
    NOT_HERE /* the source, or the image that was proven, is not in this tree */
};
/* "nvcc release 13.0, V13.0.88", or "" if there is none. */
void audit_cuda_compiler(char *text, size_t size);

enum sameness audit_sources(struct audit *audit, const json_t *record, char *why, size_t why_size);

/* What a new record of a kernel can continue: the newest entry about it on this device class that is of the sources here, unless it was
 * rejected. Then `combined` gets its record with all results, a new reference. NULL if there is none, and the sentence says why. */
const json_t *continuation_base(struct audit *audit, const char *kernel, const char *device, const char *word, json_t **combined,
                                char *why, size_t why_size);

#endif
