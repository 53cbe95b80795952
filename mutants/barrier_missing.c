/*
 * barrier_missing.c - planted: the first row of a task does not wait for the next tile of V: its first key there still meets
 * the tile before.
 *
 * Caught by: oracle (PV)
 */
#define SCRATCH_EXTRA                    2048
#define PACK_V(tile, task, first, count) late_v(tile, task, first, count, first == lo)
#define V_ROW(n)                         (r == 0 && n == 0 ? TILE_KEYS : (n))

#include <attest_kernel.h>

struct tile;
static inline void late_v(const struct tile *tile, const attest_task *task, int64_t first, int64_t count, bool begins);

#include "base.h"

/* The row behind the tile has the first row of V as the first row of the task sees it. */
static inline void late_v(const struct tile *tile, const attest_task *task, int64_t first, int64_t count, bool begins)
{
    int64_t dim_v = task->problem->dim_v;
    size_t bytes = (size_t)dim_v * sizeof(float);
    if (!begins)
        memcpy(tile->v + TILE_KEYS * dim_v, tile->v, bytes);
    pack_v(tile, task, first, count);
    if (begins)
        memcpy(tile->v + TILE_KEYS * dim_v, tile->v, bytes);
}
