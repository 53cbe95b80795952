/*
 * covering.h - covering arrays of strength 3: rows of levels, one level a field, such that any three levels of three fields meet in
 * some row. Rows are made one at a time, and each covers as many triples that are still missing as a greedy search finds, so the first
 * rows cover most. What the fields mean is not known here.
 */
#ifndef ATTEST_COVERING_H
#define ATTEST_COVERING_H

#include <stdbool.h>
#include <stdint.h>

enum { COVERING_FIELDS = 48, COVERING_LEVELS = 24, COVERING_VERSION = 1 };

struct covering_space {
    int fields;
    int levels[COVERING_FIELDS];
    /* Whether two levels can be in one row. `data` is that of the space. */
    bool (*agree)(const void *data, int field_a, int level_a, int field_b, int level_b);
    const void *data;
    /* The least work of a level, as a logarithm; the sum over a row stays within `most`. */
    double work[COVERING_FIELDS][COVERING_LEVELS];
    double most;
    double usual; /* rows of more work are chosen where they gain more in proportion */
};

struct covering;

/* NULL if there is no memory. The same space and seed give the same rows. */
struct covering *covering_make(const struct covering_space *space, uint64_t seed);
void covering_free(struct covering *covering);

/* The next row: it has a triple that is not covered yet, unless all are; then it is a row at random. False if no row can be made. */
bool covering_next(struct covering *covering, int row[COVERING_FIELDS]);

/* Counts the triples of a row as covered: those of fields that `observed` has. */
void covering_mark(struct covering *covering, const int row[COVERING_FIELDS], const bool observed[COVERING_FIELDS]);

/* Two or three levels of different fields turned out not to be possible in one row: no row has them from here on. */
void covering_exclude(struct covering *covering, const int *fields, const int *levels, int count);

/* Triples in all, of those that cannot be in a row, and those covered. */
struct covering_count {
    int64_t triples, infeasible, covered;
};
struct covering_count covering_counts(const struct covering *covering);

/* Whether any three levels of different fields have met. */
bool covering_has(const struct covering *covering, int field_a, int level_a, int field_b, int level_b, int field_c, int level_c);

#endif
