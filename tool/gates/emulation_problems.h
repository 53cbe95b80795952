/*
 * emulation_problems.h - the problems of the emulation gate, of two kinds that share its time: rows of the covering array over all
 * fields (problem_fields.def) in sizes next to the tiles of an image, and larger ones that let rings of stages and persistent grids
 * go round.
 */
#ifndef ATTEST_EMULATION_PROBLEMS_H
#define ATTEST_EMULATION_PROBLEMS_H

#include "data/contents.h"
#include "theory/covering.h"
#include "cuda_emulation.h"

struct proof;

/* Of the orders that threads and copies can have, so many are run for a problem of the covering array. */
enum { EMULATION_COVERING_ORDERS = 2 };

enum emulation_kind { EMULATION_COVERING, EMULATION_TELLING, EMULATION_KINDS };

struct emulation_problem {
    enum emulation_kind kind;
    attest_problem problem;
    bool far;    /* the outermost dimension of each tensor is EXECUTOR_FAR elements apart where the kernel sees it */
    bool filled; /* its contents are asked for; else the usual */
    struct contents contents;
    int group, device;        /* images, compute capability */
    int orders;               /* in which it is run */
    uint64_t seed;            /* of the inputs */
    int row[COVERING_FIELDS]; /* of the covering array */
};

struct emulation_problems;

/* NULL if there is no memory. `emulation` is prepared, and both outlive it. */
struct emulation_problems *emulation_problems_make(const struct proof *proof, const struct cuda_emulation *emulation);
void emulation_problems_free(struct emulation_problems *problems);

/* The next problem of a kind that the manifest takes; false if there are no more. */
bool emulation_problems_next(struct emulation_problems *problems, enum emulation_kind kind, struct emulation_problem *next);

/* Counts a row of the covering array as covered: those of its fields that showed (visible_fields.h). */
void emulation_problems_mark(struct emulation_problems *problems, const struct emulation_problem *run,
                             const bool observed[COVERING_FIELDS]);

/* Larger problems that were not taken yet. */
int emulation_problems_left(const struct emulation_problems *problems);

#endif
