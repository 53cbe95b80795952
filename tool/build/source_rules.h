/*
 * source_rules.h - what the text of a C kernel may not have: means to make the compiler, its warnings or its sanitizers treat it
 * otherwise than they treat other code. Judged on the preprocessed text, which every image of the kernel is compiled from.
 */
#ifndef ATTEST_SOURCE_RULES_H
#define ATTEST_SOURCE_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* `system` is the folder of the compiler's own headers, beside those of the system. False, with a sentence that names file and line,
 * if the text breaks a rule. The files that it was made of are read as well. */
bool source_rules_check(const char *text, const char *system, char *why, size_t why_size);

#endif
