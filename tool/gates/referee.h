/*
 * referee.h - whether what was timed was also computed: the outputs of timed calls against each other and against the judge.
 */
#ifndef ATTEST_REFEREE_H
#define ATTEST_REFEREE_H

#include "run/executor.h"
#include "data/timed_inputs.h"

enum ruling {
    RULING_RIGHT,
    RULING_A_WRONG,
    RULING_B_WRONG,
    RULING_LACKING /* the referee could not do its work; nothing is said about the kernels */
};

/* Compares all of O and LSE of two kernels, which were computed from set `number` of the feed. Rows that differ by more than any
 * rounding could make them differ go to the oracle, which says who is wrong. `what` then has a sentence about the first one. */
enum ruling referee_compare(struct feed *feed, uint64_t number, attest_tensors a, attest_tensors b, char *what, size_t what_size);

/* The judge on some blocks of rows, with one thread: RIGHT, A_WRONG (for whoever made these outputs) or LACKING. With several
 * threads, which would still be spinning when the next call is timed on this processor. */
enum ruling referee_judge(struct feed *feed, uint64_t number, attest_tensors outputs, char *what, size_t what_size);
enum ruling referee_judge_with(int threads, struct feed *feed, uint64_t number, attest_tensors outputs, char *what,
                               size_t what_size);

/* Runs a kernel on the neighbours of a problem, one row or key more or less, and judges them. `checked` counts
 * those that the kernel took. */
enum ruling referee_neighbours(struct executor *executor, int threads, const attest_problem *problem, uint64_t seed, int *checked,
                               char *what, size_t what_size);

#endif
