/*
 * strategy.h - the built-in proposers: which point of a space to try next, from what was tried. Pure arithmetic: what they propose
 * depends on the space, the history and the seed alone.
 */
#ifndef ATTEST_STRATEGY_H
#define ATTEST_STRATEGY_H

#include "space.h"

enum strategy { STRATEGY_GRID, STRATEGY_RANDOM, STRATEGY_LOCAL, STRATEGY_EVOLUTION, STRATEGY_MODEL, STRATEGY_COUNT };
extern const char *const strategy_names[STRATEGY_COUNT]; /* "grid", "random", "local", "evolution", "model" */

/* One point that was tried. */
struct tried {
    struct point point;
    int trial;    /* its number, for the lineage */
    bool right;   /* it was right, and has a score */
    double score; /* a logarithm: more is faster */
};

struct proposal {
    struct point point;
    const char *origin; /* "grid", "random", "neighbour", "mutation", "crossover", "model" */
    int parents[2];     /* trials; -1: none */
};

/* False if every point that fits was tried. */
bool strategy_next(enum strategy strategy, const struct space *space, const struct tried *history, int count, uint64_t seed,
                   struct proposal *proposal);

/* surrogate_model.c: a Gaussian process over points. surrogate_fit is NULL without memory. */
struct surrogate;
struct surrogate *surrogate_fit(const struct space *space, const struct tried *history, int count);
void surrogate_predict(const struct surrogate *surrogate, const struct point *point, double *mean, double *deviation);
void surrogate_free(struct surrogate *surrogate);

#endif
