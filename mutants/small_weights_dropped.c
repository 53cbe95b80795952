/*
 * small_weights_dropped.c - planted: approximate: weights less than e^-9 of the largest are taken for 0.
 *
 * Caught by: oracle (P)
 */
#define WEIGHT(s, m, tile_max) ((s) < (m)-9 ? 0 : EXP((s) - (m)))
#define DTYPES                 ATTEST_TAKES_F32
#include "base.h"
