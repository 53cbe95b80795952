/*
 * v_row_shifted.c - planted: the weight of a key meets the V of the next key of its tile.
 *
 * Caught by: oracle (PV)
 */
#define V_ROW(n) ((n) + 1 < TILE_KEYS ? (n) + 1 : 0)
#include "base.h"
