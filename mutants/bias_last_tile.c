/*
 * bias_last_tile.c - planted: the bias of the last tile of keys is left out.
 *
 * Caught by: oracle (S)
 */
#define BIAS(p, row, j)                                                                                                            \
    ((j) / TILE_KEYS == ((row)->hi - 1) / TILE_KEYS ? 0 : attest_load((row)->bias, (p)->dtype_bias, (p)->stride_bias[3] * (j)))
#include "base.h"
