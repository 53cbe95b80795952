/*
 * cut_in_bits.c - planted: the order of summing depends on the place of a row in its task, and so on the number of threads.
 *
 * Caught by: determinism (threads)
 */
#define BACKWARDS (r % 7 == 3)
#include "backwards.h"

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
