/*
 * capacity_in_bits.c - planted: sums are larger by a bit where there is room for more than 40 keys, however many there are: a sequence has
 * other bits in a larger cache.
 *
 * Caught by: determinism or correctness (computed alone)
 */
#define TILE_SUM(weights, seen, m) (tile_sum(weights, seen) * (p->seq_kv > 40 ? 1.0000001f : 1))

#include "base.h"
