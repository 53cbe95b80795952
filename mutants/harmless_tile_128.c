/*
 * harmless_tile_128.c - harmless: tiles of 128 keys.
 */
#define TILE_KEYS 128
#define DTYPES    ATTEST_TAKES_F32
#include "base.h"
