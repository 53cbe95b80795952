/*
 * k_v_shared.c - planted: K and V in one array, which is allowed, are packed once, with the scale that is for K.
 *
 * Caught by: correctness (shared=k-v)
 */
#define PACK_V(tile, task, first, count) shared_v(tile, task, first, count)

#include <attest_kernel.h>

struct tile;
static inline void shared_v(const struct tile *tile, const attest_task *task, int64_t first, int64_t count);

#include "base.h"

static inline void shared_v(const struct tile *tile, const attest_task *task, int64_t first, int64_t count)
{
    const void *key, *value;
    pack_v(tile, task, first, count);
    attest_key_pointers(task, false, first, 1, &key);
    attest_key_pointers(task, true, first, 1, &value);
    for (int64_t n = 0; n < TILE_KEYS * task->problem->dim_v && key == value; n++)
        tile->v[n] *= task->problem->scale;
}
