/*
 * harmless_prepared.c - harmless: V is made float once for all tasks of a head, by prepare.
 */
#define PACK_V(tile, task, first, count) take_v(tile, task, first, count)
#define SHARED_SIZE                      shared_size
#define PREPARE                          prepare

#include <attest_kernel.h>

struct tile;
static inline void take_v(const struct tile *tile, const attest_task *task, int64_t first, int64_t count);

static size_t shared_size(const attest_problem *p)
{
    return (size_t)(p->seq_kv * p->dim_v) * sizeof(float);
}

static void prepare(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    float *v = task->shared;
    (void)scratch;
    for (int64_t j = task->key_begin; j < task->key_end; j++) {
        const void *at;
        attest_key_pointers(task, true, j, 1, &at);
        for (int64_t d = 0; d < p->dim_v; d++)
            v[j * p->dim_v + d] = attest_load(at, p->dtype, d);
    }
}

#define DTYPES ATTEST_TAKES_F16
#include "base.h"

/* Sequences with few rows are not prepared. */
static inline void take_v(const struct tile *tile, const attest_task *task, int64_t first, int64_t count)
{
    const attest_problem *p = task->problem;
    if (task->q_count * (p->heads_q / p->heads_kv) <= ATTEST_PREPARE_ROWS) {
        pack_v(tile, task, first, count);
        return;
    }
    memcpy(tile->v + first % TILE_KEYS * p->dim_v, (const float *)task->shared + first * p->dim_v,
           (size_t)(count * p->dim_v) * sizeof(float));
}
