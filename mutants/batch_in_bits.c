/*
 * batch_in_bits.c - planted: the order of summing depends on the number of the sequence in its batch.
 *
 * Caught by: determinism (computed alone)
 */
#define BACKWARDS (task->batch & 1)
#include "backwards.h"

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
