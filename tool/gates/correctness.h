/*
 * correctness.h - the correctness gate on anything that computes problems: a worker with a kernel in it, or, in tests, a function.
 */
#ifndef ATTEST_CORRECTNESS_H
#define ATTEST_CORRECTNESS_H

#include "gate.h"
#include "data/shape_variants.h"

struct correctness {
    struct subject subject;
    struct subject second; /* the same kernel in another worker, see cover_problems.h; run is NULL: there is none */
    struct taker taker;
    struct subject far;      /* the same kernel, for problems whose rows are to be EXECUTOR_FAR apart; run is NULL: there is none */
    struct subject champion; /* run is NULL: there is none */
    struct taker champion_taker;
    const struct problem_list *suite;
    const struct problem_list *timed; /* checked too, and so are their neighbours by one; may be NULL */
    int neighbours;
    int cover_rows;                           /* problems of the covering array, see cover_problems.h */
    int large_rounds;                         /* of large problems */
    int constant_problems;                    /* next to numbers that the kernel's code compares with, see cover_problems.h, */
    const struct kernel_constants *constants; /* which these are; NULL: they are not known */
    double growth;                            /* of the error, see precision.h */
    uint64_t seed;
    int threads;           /* of the judge */
    bool brief;            /* problems alone: no covering array, no values, no relations, no 2^31 elements */
    bool device;           /* see relations.h */
    const char *reproduce; /* command that does all this again */
};

/* Fills verdict, sentence and details of the result. */
void correctness_prove(const struct correctness *correctness, struct gate_result *result);

#endif
