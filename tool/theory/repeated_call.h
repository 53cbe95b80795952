/*
 * repeated_call.h - a kernel is a function of its inputs: what a call has left in the workspace and in O and LSE is nothing to the next
 * one, although their addresses, and most of the inputs, are the same.
 */
#ifndef ATTEST_REPEATED_CALL_H
#define ATTEST_REPEATED_CALL_H

#include "run/executor.h"

/* Has the subject, which has just computed `inputs` into `outputs`, compute them again after inputs of which a part that the seed draws
 * is another. False, with a sentence, if the bits are not the same. */
bool same_after_another(struct subject subject, const struct inputs *inputs, const struct outputs *outputs, uint64_t seed,
                        char *why, size_t why_size);

/* Has the subject compute one sequence of them alone, as a dense problem, for which the library promises the same bits, whatever the
 * capacity, the packing or the pages that it came from. False if they are not the same; `what` says where. `execution` says how the run
 * ended; EXECUTION_REFUSED: there is no such problem, or no memory. */
bool same_alone(struct subject subject, const struct inputs *inputs, const struct outputs *outputs, int64_t sequence,
                struct execution *execution, char *what, size_t what_size);

#endif
