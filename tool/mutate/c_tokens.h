/*
 * c_tokens.h - the tokens of a C or CUDA C source, with the brackets matched: what mutation operators work on.
 */
#ifndef ATTEST_C_TOKENS_H
#define ATTEST_C_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

enum token_kind {
    TOKEN_NAME,   /* identifiers and keywords */
    TOKEN_NUMBER, /* integers and floating-point numbers, with their suffixes */
    TOKEN_TEXT,   /* strings and characters */
    TOKEN_MARK    /* operators and punctuation, the longest that fits */
};

struct token {
    enum token_kind kind;
    size_t begin, end; /* bytes of the source */
    int partner;       /* of a bracket: the token that closes or opens it; else -1 */
    int parent;        /* the innermost bracket that is open here; -1: none */
    bool directive;    /* of the body of a #define: text that is no statement */
    bool frozen;       /* what no mutant changes: static assertions, attributes, assembler statements, prefetches */
};

struct tokens {
    const char *text;
    size_t size;
    struct token *list;
    int count;
};

/* Comments, continued lines, and preprocessor directives other than the bodies of #define are left out. False if memory ran out.
 * The text must outlive the tokens. */
bool tokens_read(struct tokens *tokens, const char *text, size_t size);
void tokens_free(struct tokens *tokens);

/* Whether token i is there and is spelled so. */
bool token_is(const struct tokens *tokens, int i, const char *spelling);
bool token_is_kind(const struct tokens *tokens, int i, enum token_kind kind);
size_t token_length(const struct tokens *tokens, int i);

#endif
