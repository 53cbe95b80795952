/*
 * museum_proof.h - the museum's kernels through the gates, like any other kernel.
 */
#ifndef ATTEST_MUSEUM_PROOF_H
#define ATTEST_MUSEUM_PROOF_H

#include "museum.h"

/* Leaves out what cannot be run here: without a GPU only those CUDA kernels are proven that the build gate has to reject, or that are
 * asked for by name, in emulation; without nvcc none. What is left out is counted, and never as right. */
void museum_leave_out(struct museum *museum);

/* Proves the chosen rows, some at once, and tells of each, in their order, when those before it are there. */
void museum_prove(struct museum *museum, void (*ended)(void *data, const struct mutant *mutant), void *data);

/* Whether the result of a gate says that the kernel cheats. */
bool museum_is_cheat(const json_t *gate);

/* The first gate that rejects the kernel, from gate number `first` on. A kernel that is not faster is not rejected for that. NULL if
 * none does. */
const json_t *museum_rejection(const json_t *record, int first);

#endif
