/*
 * candidate.h - what is to be proven: a kernel of the library (by name), a C or CUDA source, or a built image.
 */
#ifndef ATTEST_CANDIDATE_H
#define ATTEST_CANDIDATE_H

#include "base/session.h"

enum candidate_kind {
    CANDIDATE_SHIPPED, /* cpu_fwd_f32_avx512: its source is lib/cpu/cpu_fwd_avx512.c, its dtype f32 */
    CANDIDATE_C,       /* my_kernel.c */
    CANDIDATE_SO,      /* my_kernel.so */
    CANDIDATE_CU,      /* my_kernel.cu */
    CANDIDATE_IMAGE    /* my_kernel.cubin or .ptx, with my_kernel.manifest beside it */
};

const char *candidate_kind_name(enum candidate_kind kind); /* "shipped", "c", "so", "cu", "image" */

struct candidate {
    enum candidate_kind kind;
    char *word;   /* as it was typed */
    char *name;   /* the kernel's name: key of its evidence. From the file's stem, or the shipped kernel's */
    char *source; /* path of the .c or .cu; NULL for a built image */
    char *image;  /* path of the .so, .cubin or .ptx that runs; NULL until the build gate has made it */
    bool cuda;
    uint32_t dtype; /* only problems of this dtype; 0: all that the kernel takes */
    json_t *facts;  /* for evidence: see candidate.c */
};

/* Reads the word and the source's manifest; builds nothing. On failure says why, with an exit code. */
enum exit_code candidate_open(struct session *session, const char *word, struct candidate *candidate);
void candidate_close(struct candidate *candidate);

/* The lines `attest-flags:` of a source, joined by spaces; "" if there are none. To be freed; NULL if the file cannot be read. */
char *candidate_flags(const char *source);

#endif
