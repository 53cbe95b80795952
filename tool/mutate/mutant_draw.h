/*
 * mutant_draw.h - the kernels that mutants are made of, the sites in their sources, and the draws from a seed.
 */
#ifndef ATTEST_MUTANT_DRAW_H
#define ATTEST_MUTANT_DRAW_H

#include <stdint.h>

#include "operators.h"
#include "base/session.h"

enum { MOST_KERNEL_FILES = 32, MOST_KERNELS = 64, MOST_CLASSES = 32 };

/* A source that has been read, with all its edits if mutants of some kernel change it (`wanted`). */
struct mutant_file {
    char *path, *text;
    size_t size;
    bool wanted;
    struct edits edits;
};

/* A kernel: what `attest prove` is asked for, its source and the files that it includes, in the order of their first use. */
struct mutant_kernel {
    char *word; /* a kernel of the library, or a path without a leading / */
    bool cuda;
    struct mutant_file *files[MOST_KERNEL_FILES];
    bool sites[MOST_KERNEL_FILES]; /* mutants change this file */
    int file_count;
};

struct mutant_field {
    struct mutant_kernel kernels[MOST_KERNELS];
    int kernel_count;
    struct mutant_file *files[4 * MOST_KERNEL_FILES];
    int file_count;
    uint64_t seed;
    uint64_t *drawn; /* what the draws so far came to, for draws that repeat an earlier one */
    int64_t drawn_count, drawn_room;
};

/* One draw: an edit of one file of a kernel. */
struct mutant_draw {
    int64_t number;
    const struct mutant_kernel *kernel;
    const struct mutant_file *file;
    const struct edit *edit;
};

/* The kernels of the library that this machine can run and whose name matches `pattern`, with the kernel of templates/ (its name is
 * kernel_cpu); NULL: all of the CPU. Or the one that is a file of this name. Says why on failure. */
enum exit_code mutant_field_open(struct session *session, const char *pattern, uint64_t seed, struct mutant_field *field);
void mutant_field_close(struct mutant_field *field);

/* The next draw. Kernel, class and site are drawn one after the other, each with equal chances; an edit comes once for each kernel.
 * False if there is nothing left. */
bool mutant_next(struct mutant_field *field, struct mutant_draw *draw);

#endif
