/*
 * far_strides.h - problems whose tensors have more than 2^31 and 2^32 elements between their ends, in memory that is small: what lies
 * next to each other in a file is mapped far apart. GUARD_FAR (executor.h) is the worker that does it.
 */
#ifndef ATTEST_FAR_STRIDES_H
#define ATTEST_FAR_STRIDES_H

#include "protocol.h"

/* How a tensor is spread: every `run` bytes of it lie `step` bytes apart. run 0: it lies as it is. */
struct far_spread {
    size_t run, step;
};

/* The problem as a kernel in such a worker sees it: of every tensor the largest stride of a dimension that has more than one element
 * becomes EXECUTOR_FAR elements, if it is a whole number of pages. */
attest_problem far_strides(const attest_problem *near, struct far_spread spreads[TENSORS_MOST]);

/* The bytes of addresses that a piece of a file takes. */
size_t far_reach(const struct piece *piece, struct far_spread spread);

/* Problems to be spread: rows, heads, sequences, pages, packed rows and columns of the bias outermost. */
enum { FAR_KINDS = 6 };
const char *far_name(int kind);

/* A problem of a kind. `few`: the memory between the elements is really there, as on a GPU. False if there is none for it. */
bool far_problem(int kind, uint32_t dtype, int64_t dim, bool few, uint64_t refused, attest_problem *near);

#endif
