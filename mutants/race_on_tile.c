/*
 * race_on_tile.c - planted: all threads pack their keys into one buffer, without a barrier before they are used.
 *
 * Caught by: build and determinism (writable static storage + threads)
 */
#define PACK_KEYS(tile, task, first, count) shared_keys(tile, task, first, count)

#include <attest_kernel.h>

struct tile;
static inline void shared_keys(struct tile *tile, const attest_task *task, int64_t first, int64_t count);

#define DTYPES ATTEST_TAKES_F32
#include "base.h"

static float everybodys_keys[512 * TILE_KEYS];

/* The pause is what other work between packing and use would be. */
static inline void shared_keys(struct tile *tile, const attest_task *task, int64_t first, int64_t count)
{
    tile->k = everybodys_keys;
    pack_k(tile, task, first, count);
    for (volatile int left = 100000; left > 0; left--)
        ;
}
