/*
 * q_lane_partial.c - planted: each fourth row holds only the first half of its Q, and sums over all of it: a lane with a part
 * of Q.
 *
 * Caught by: oracle (S)
 */
#define PACK_Q(value, p, r, d) ((r) % 4 == 3 && (d) >= (p)->dim / 2 ? 0 : (value))
#include "base.h"
