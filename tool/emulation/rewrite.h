/*
 * rewrite.h - makes the preprocessed text of a CUDA kernel one that a C++ compiler for the CPU takes, together with
 * device/emulated_device.h: asm statements become calls of the emulated device, variables in shared memory become references to it.
 */
#ifndef ATTEST_REWRITE_H
#define ATTEST_REWRITE_H

#include <stdbool.h>
#include <stddef.h>

/* The new text, to be freed; NULL with a sentence, which begins with FILE:LINE, if there is something that cannot be emulated. Text of
 * system headers stays as it is. */
char *rewrite_kernel(const char *text, size_t size, char *why, size_t why_size);

#endif
