/*
 * harmless_tile_48.c - harmless: tiles of 48 keys.
 */
#define TILE_KEYS 48
#define DTYPES    ATTEST_TAKES_BF16
#include "base.h"
