/*
 * kernel_constants.h - the numbers that a kernel compares with: where it may change its ways. The correctness gate (constant_problems.c)
 * and the emulation gate (emulation_problems.c) draw problems on both sides of each, so that a threshold that nobody thought of is met.
 */
#ifndef ATTEST_KERNEL_CONSTANTS_H
#define ATTEST_KERNEL_CONSTANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_WHOLE_CONSTANTS = 160, MOST_REAL_CONSTANTS = 96 };

struct kernel_constants {
    int64_t whole[MOST_WHOLE_CONSTANTS]; /* from 2 on; those of comparisons first */
    int whole_count;
    int compared;                    /* of `whole`: of comparisons */
    float real[MOST_REAL_CONSTANTS]; /* positive; of the read-only data that scalar instructions name */
    int real_count;
};

/* Reads the machine code of an image that elf_image.h reads. False, with the reason, if that cannot be done; there are no constants then. */
bool kernel_constants_of_image(const char *path, struct kernel_constants *constants, char *why, size_t why_size);

/* Reads the preprocessed text of a source: the whole numbers in lines that the compiler's line markers place in its folder. */
void kernel_constants_of_text(const char *text, size_t size, const char *source, struct kernel_constants *constants);

/* Adds those of another image of the same kernel. */
void kernel_constants_add(struct kernel_constants *constants, const struct kernel_constants *more);

#endif
