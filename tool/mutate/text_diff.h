/*
 * text_diff.h - the unified diff of a text and the same text with one edit.
 */
#ifndef ATTEST_TEXT_DIFF_H
#define ATTEST_TEXT_DIFF_H

#include "operators.h"

/* With three lines of context; to be freed. NULL if memory ran out. */
char *text_diff(const char *path, const char *text, size_t size, const struct edit *edit);

/* The number of the line, counted from 1, in which byte `at` is. */
int text_line(const char *text, size_t at);

#endif
