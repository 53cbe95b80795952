/*
 * rubbish_in_scratch.c - planted: what was in the scratch before decides in which order is summed.
 *
 * Caught by: determinism (other bits in run)
 */
#define SCRATCH_EXTRA 64
#define BACKWARDS     (*(const unsigned char *)(tile->v + TILE_KEYS * p->dim_v) & 1)
#include "backwards.h"

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
