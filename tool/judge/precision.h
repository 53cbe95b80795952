/*
 * precision.h - how good a kernel's numbers are, beyond being right: its largest errors against the champion's, and whether they
 * lean to one side. The rules are at the head of precision.c.
 */
#ifndef ATTEST_PRECISION_H
#define ATTEST_PRECISION_H

#include "examine.h"

/* Errors are counted in grains (judge.c), in bins of 1/64 octave between 2^-32 and 2^32. */
enum { PRECISION_BINS = 4096 };

struct precision_pool {
    uint64_t own[PRECISION_BINS], champion[PRECISION_BINS], naive[PRECISION_BINS];
    int64_t components, rows;
    double away, up; /* sums of the errors away from zero, and upwards */
};

struct precision {
    struct precision_pool pools[4][2]; /* by the type of the inputs, and whether O has it too */
};

/* Adds the errors of a run; `champion` (NULL: none) has the champion's outputs on the same inputs. */
void precision_add(struct precision *precision, const struct exam *exam, const struct outputs *own, const struct outputs *champion);

struct precision_verdict {
    enum verdict verdict;                   /* NOT APPLICABLE: too little to tell */
    double p999, champion_p999, naive_p999; /* of the types that fare worst; NaN for a champion that is not there */
    double bias;                            /* mean error in grains, of the two directions the larger */
    int64_t components;
    char sentence[320];
};
void precision_judge(const struct precision *precision, double growth, struct precision_verdict *verdict);

#endif
