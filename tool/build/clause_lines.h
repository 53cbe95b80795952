/*
 * clause_lines.h - rewrites the preprocessed text of a source so that every clause has a line of its own: what stands between braces,
 * semicolons, and the operators that choose (? : && ||). Line numbers in debug information then name clauses.
 */
#ifndef ATTEST_CLAUSE_LINES_H
#define ATTEST_CLAUSE_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct clause {
    const char *file; /* as the preprocessor names it */
    int line;         /* there */
    bool is_own;      /* of the source itself and what it includes; not of the system or of attest's headers */
    size_t begin;     /* in the rewritten text */
};

struct clause_lines {
    char *text;
    size_t size;
    struct clause *clauses; /* line n of the text is clause n - 1 */
    int count, room;
    char **files;
    int file_count;
};

/* False if memory ran out. clause_lines_free in either case. */
bool clause_lines_make(struct clause_lines *lines, const char *preprocessed);
void clause_lines_free(struct clause_lines *lines);

/* The text of a clause, with single blanks, cut to the size. */
void clause_print(const struct clause_lines *lines, int clause, char *text, size_t size);

#endif
