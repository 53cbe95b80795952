/*
 * tile_max_for_p.c - planted: P is made with the maximum of its own tile, while sum and output are carried with the running
 * one.
 *
 * Caught by: oracle (P)
 */
#define WEIGHT(s, m, tile_max) EXP((s) - (tile_max))
#include "base.h"
