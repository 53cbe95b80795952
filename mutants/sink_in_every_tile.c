/*
 * sink_in_every_tile.c - planted: the sink joins the sum once for every tile of keys instead of once.
 *
 * Caught by: oracle (normalisation)
 */
#define TILE_SUM(weights, seen, m) (tile_sum(weights, seen) + (attest_has(p, ATTEST_SINK) ? EXP(tile->row[r].sink - (m)) : 0))
#define ENDING(p, m, l, sink)      attest_row_ending(p, (double)(m), l, (l) == 0 ? (sink) : -INFINITY)
#include "base.h"
