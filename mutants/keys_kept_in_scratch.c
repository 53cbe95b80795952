/*
 * keys_kept_in_scratch.c - planted: the first packed tile of K stays in the scratch memory from call to call and is used again for the
 * same address, whatever lies there by then.
 *
 * Caught by: correctness (in the same memory)
 */
#define SCRATCH_EXTRA                       ((size_t)(p->dim * TILE_KEYS) * sizeof(real) + 64)
#define PACK_KEYS(tile, task, first, count) kept_keys(tile, task, first, count)

#include <attest_kernel.h>

struct tile;
static inline void kept_keys(const struct tile *tile, const attest_task *task, int64_t first, int64_t count);

#include "base.h"

struct tag {
    const void *key, *tile;
    int64_t first, count, rows, mark;
};

static inline void kept_keys(const struct tile *tile, const attest_task *task, int64_t first, int64_t count)
{
    const attest_problem *p = task->problem;
    const size_t bytes = (size_t)(p->dim * TILE_KEYS) * sizeof(real);
    unsigned char *at = (unsigned char *)(tile->v + TILE_KEYS * p->dim_v);
    struct tag tag = {.tile = tile->k, .first = first, .count = count, .mark = INT64_C(0x6b657074206b6579)};
    if (task->batch || task->head_kv || first >= TILE_KEYS) {
        pack_k(tile, task, first, count);
        return;
    }
    attest_key_pointers(task, false, first, 1, &tag.key);
    if (memcmp(at, &tag, sizeof tag) == 0) {
        memcpy(tile->k, at + sizeof tag, bytes);
        return;
    }
    pack_k(tile, task, first, count);
    memcpy(at, &tag, sizeof tag);
    memcpy(at + sizeof tag, tile->k, bytes);
}
