/*
 * compiler_flags.h - which flags a C kernel may ask for in its attest-flags lines: those that concern its own code, and neither the
 * compiler, nor warnings and sanitizers, nor other files.
 */
#ifndef ATTEST_COMPILER_FLAGS_H
#define ATTEST_COMPILER_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

/* False, with a sentence that names the flag, if one of the flags (separated by blanks) is not on the list. */
bool compiler_flags_check(const char *flags, char *why, size_t why_size);

#endif
