/*
 * softmax_without_max.c - planted: weights are exp(s) without the maximum taken away, which is right until a score is large.
 *
 * Caught by: oracle (P)
 */
#define MAX_NEXT(m, tile_max) ((void)(tile_max), 0)
#define DTYPES                ATTEST_TAKES_F32
#include "base.h"
