/*
 * harmless_tile_16.c - harmless: tiles of 16 keys.
 */
#define TILE_KEYS 16
#define DTYPES    ATTEST_TAKES_F16
#include "base.h"
