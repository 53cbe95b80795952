/*
 * writer.h - writes markup. In write_markup() the format is trusted and every %s is not: it is escaped, so that a string from a
 * record can be put into an element or a quoted attribute of HTML or XML without a thought.
 */
#ifndef ATTEST_WRITER_H
#define ATTEST_WRITER_H

#include <stdbool.h>
#include <stdio.h>

/* The format may have %s, %d, %lld, %zu, %f and %g with flags, width and precision, and %%. */
void write_markup(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Escapes & < > " and '. What XML does not allow (control characters, U+FFFE, U+FFFF, bytes that are not UTF-8) and what would
 * reorder the text around it (bidirectional controls) becomes U+FFFD. */
void write_escaped(FILE *out, const char *text);

/* The same for HTML, with places to break a line after _ : / , and = in long names. */
void write_breakable(FILE *out, const char *text);

#endif
