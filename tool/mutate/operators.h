/*
 * operators.h - mutation operators: all single edits of a source that one of them can make.
 */
#ifndef ATTEST_OPERATORS_H
#define ATTEST_OPERATORS_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes begin .. end of a source become `text`. */
struct edit {
    size_t begin, end;
    char *text;
    int operator_index;
};

struct edits {
    struct edit *list;
    int count, room;
};

struct mutation_operator {
    const char *name, *class, *text;
};
extern const struct mutation_operator mutation_operators[];
extern const int mutation_operator_count;

/* The classes, in the order of the table; NULL behind the last. */
const char *mutation_class(int n);

struct edits_options {
    const char *vocabulary; /* text whose names may be put in; NULL: the source itself */
    const char *fixed;      /* names that are free to be tuned, separated by spaces: numbers given to them stay. NULL: none */
    bool cuda;              /* barriers and their like too */
};

/* All edits of the source, each once, in the order of the table and then of the text. False if memory ran out. */
bool edits_find(struct edits *edits, const char *text, size_t size, const struct edits_options *options);
void edits_free(struct edits *edits);

/* The source with the edit made; to be freed. NULL if memory ran out. */
char *edit_apply(const struct edit *edit, const char *text, size_t size);

#endif
