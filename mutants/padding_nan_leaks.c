/*
 * padding_nan_leaks.c - planted: A whole tile of V is read, and what lies behind the last key is multiplied with a weight of
 * 0: a NaN there stays a NaN.
 *
 * Caught by: oracle (mask or PV)
 */
#include <attest_kernel.h>

/* How many keys to read so that the tile is full, as far as the cache goes. */
static inline int64_t whole_tile(const attest_task *task, int64_t first, int64_t count, int64_t tile_keys)
{
    int64_t full = tile_keys - first % tile_keys, there = task->problem->seq_kv - first;
    if (attest_has(task->problem, ATTEST_PAGED | ATTEST_VARLEN_KV))
        return count;
    return full < there ? full : there;
}

#define PACK_V(tile, task, first, count) pack_v(tile, task, first, whole_tile(task, first, count, TILE_KEYS))
#define LEAVES_OUT(seen)                 false
#include "base.h"
