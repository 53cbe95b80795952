/*
 * k_cache_kept.c - planted: packed tiles of K stay in memory from call to call and are used again for the same address: a
 * cache that outlives its data.
 *
 * Caught by: build and oracle (imports)
 */
#define PACK_KEYS(tile, task, first, count) kept_keys(tile, task, first, count)

#include <attest_kernel.h>
#include <pthread.h>

struct tile;
static inline void kept_keys(const struct tile *tile, const attest_task *task, int64_t first, int64_t count);

#include "base.h"

enum { KEPT_TILES = 512, KEPT_DIM = 64 };
static struct kept {
    const void *key;
    int64_t count, dim;
    float k[KEPT_DIM * TILE_KEYS];
} kept_tiles[KEPT_TILES];
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void kept_keys(const struct tile *tile, const attest_task *task, int64_t first, int64_t count)
{
    const void *key;
    int64_t dim = task->problem->dim;
    if (dim > KEPT_DIM) {
        pack_k(tile, task, first, count);
        return;
    }
    attest_key_pointers(task, false, first, 1, &key);
    struct kept *kept = &kept_tiles[(uintptr_t)key / 128 % KEPT_TILES];
    size_t bytes = (size_t)dim * TILE_KEYS * sizeof(float);
    pthread_mutex_lock(&kept_lock);
    if (kept->key == key && kept->count == count && kept->dim == dim) {
        memcpy(tile->k, kept->k, bytes);
    } else {
        pack_k(tile, task, first, count);
        *kept = (struct kept){.key = key, .count = count, .dim = dim};
        memcpy(kept->k, tile->k, bytes);
    }
    pthread_mutex_unlock(&kept_lock);
}
