/*
 * harmless_sum_backwards.c - harmless: weights are summed from the last key of a tile to the first, always.
 */
#define BACKWARDS true
#include "backwards.h"

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
