/*
 * out_of_range.h - lengths and page tables that the host cannot check, because they lie on the device: kernels clamp them to what the
 * problem allows, and read nothing outside of a tensor (attest.h).
 */
#ifndef ATTEST_OUT_OF_RANGE_H
#define ATTEST_OUT_OF_RANGE_H

#include "run/executor.h"

/* Has the subject, which has just computed `inputs` into `outputs`, compute them again with lengths beyond their range that clamp to what
 * they were, and with a page table of one sequence that has no page: the bits of the others stay the same. False, with a sentence, if not.
 * `execution` says how the run ended; EXECUTION_REFUSED: there is nothing to change. */
bool right_out_of_range(struct subject subject, const struct inputs *inputs, const struct outputs *outputs, uint64_t seed,
                        struct execution *execution, char *why, size_t why_size);

#endif
