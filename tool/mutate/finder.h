/*
 * finder.h - what the operators share while they look for sites. Private to the folder's operators*.c.
 */
#ifndef ATTEST_FINDER_H
#define ATTEST_FINDER_H

#include "c_tokens.h"
#include "operators.h"

struct finder {
    struct tokens tokens;
    const struct edits_options *options;
    struct edits *edits;
    int operator_index;
    bool failed; /* memory ran out */
};

/* Tokens first .. last become the text. */
void finder_emit(struct finder *finder, int first, int last, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Bytes begin .. end become the text. */
void finder_emit_bytes(struct finder *finder, size_t begin, size_t end, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The text of tokens first .. last, for "%.*s". */
#define SPELLED(finder, first, last)                                                                                               \
    (int)((finder)->tokens.list[last].end - (finder)->tokens.list[first].begin),                                                   \
        (finder)->tokens.text + (finder)->tokens.list[first].begin

bool finder_is(const struct finder *finder, int i, const char *spelling);
bool finder_is_one_of(const struct finder *finder, int i, const char *words); /* "if while for" */
bool finder_ends_operand(const struct finder *finder, int i);                 /* what a binary operator can follow */
bool finder_is_binary(const struct finder *finder, int i);
int operand_end(const struct finder *finder, int i);   /* the last token of the operand that begins at i; -1: none does */
int operand_begin(const struct finder *finder, int i); /* the first token of the operand that ends at i; -1: none does */

/* The last token (;) of the expression statement that begins at i, or -1. */
int statement_end(const struct finder *finder, int i);

/* Behind the argument that begins at i: the comma or the closing bracket. */
int argument_end(const struct finder *finder, int i);

/* Whether a call (a name and its bracket) begins at i, as a statement of its own or not. */
bool finder_is_call(const struct finder *finder, int i);

#define OPERATOR(name, class, text) void find_##name(struct finder *finder, int i);
#include "mutation_operators.def"
#undef OPERATOR

#endif
