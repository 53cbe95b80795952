/*
 * values.h - inputs that break kernels: sets of values that nobody draws by chance. What each is for is in the table of values.c.
 */
#ifndef ATTEST_VALUES_H
#define ATTEST_VALUES_H

#include "data/inputs.h"

/* One element of an input: of Q (row), K or V (row is the key), the bias (column is the key) or the sinks. */
struct value_place {
    char tensor; /* 'q', 'k', 'v', 'b' or 's' */
    int64_t b, h, row, column;
    uint64_t bits; /* random ones */
};

struct value_set {
    const char *name;
    uint64_t flags;                                                                /* features of the problem it needs */
    void (*change)(attest_problem *problem);                                       /* sizes, scale or strides; may be NULL */
    double (*value)(const struct inputs *inputs, const struct value_place *place); /* NaN: leave it as it was drawn. May be NULL */
};
extern const struct value_set value_sets[];
extern const int value_set_count;

/* The problem for a set of values, from a dense one without features. */
attest_problem values_problem(const struct value_set *set, const attest_problem *base);

/* Puts the values of the set into inputs that were drawn for its problem. What must not matter stays NaN. */
void values_apply(const struct value_set *set, struct inputs *inputs, uint64_t seed);

#endif
