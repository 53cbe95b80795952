/*
 * tail_in_sum.c - planted: the keys that pad the last tile are left out of O, but their exp(0 - m) is in the sum.
 *
 * Caught by: oracle (mask or P)
 */
#define TILE_SUM(weights, seen, m)                                                                                                 \
    (tile_sum(weights, seen) + (first + TILE_KEYS > task->kv_count ? (float)(first + TILE_KEYS - task->kv_count) : 0) * EXP(-(m)))
#include "base.h"
