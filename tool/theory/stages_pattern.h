/*
 * stages_pattern.h - which places are wrong, in words: "from key 64 on", "rows 8 to 15 of every 16", "head 1".
 */
#ifndef ATTEST_STAGES_PATTERN_H
#define ATTEST_STAGES_PATTERN_H

#include "judge/judge.h"

enum { CELL_RIGHT, CELL_WRONG, CELL_UNKNOWN }; /* unknown: nothing can be said of this place */

/* A table of cells: rows at `rows`, columns numbered by `columns` (NULL: 0, 1, 2 ...). */
struct cells {
    unsigned char *cell; /* [row_count][column_count] */
    const struct place *rows;
    int64_t row_count;
    const int64_t *columns;
    int64_t column_count;
    const char *row_word, *column_word; /* "row", and "key" or "column" */
};

/* What is wrong about the table. */
struct pattern {
    int64_t wrong, known; /* cells */
    int64_t first;        /* the first wrong row of the table; -1 if there is none */
    int64_t column;       /* the number of the first wrong column in it */
    int64_t boundary;     /* the key that wrong keys begin at, if they are a range; else 0 */
    char text[128];       /* "everywhere", "rows from 64 on, keys 3 of every 8" ... */
};

struct pattern pattern_find(const struct cells *cells);

#endif
