/*
 * harmless_lazy_rescale.c - harmless: the maximum is left alone until it grows by more than 8, and rescaling with it.
 */
#define MAX_NEXT(m, tile_max) ((tile_max) > (m) + 8 || (m) == -INFINITY ? ((m) > (tile_max) ? (m) : (tile_max)) : (m))
#define DTYPES                ATTEST_TAKES_F32
#include "base.h"
