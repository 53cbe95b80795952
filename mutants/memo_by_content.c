/*
 * memo_by_content.c - planted: A result is kept, and given again when samples of Q, K and V are the same.
 *
 * Caught by: build and oracle (imports)
 */
#include "memo.h"

static inline uint64_t samples_key(const attest_task *task)
{
    const attest_problem *p = task->problem;
    uint64_t key = memo_shape(task);
    const void *first;
    if (task->kv_count == 0)
        return key;
    attest_key_pointers(task, false, 0, 1, &first);
    key = memo_mix(key, attest_float_bits(attest_load(first, p->dtype, 0)));
    attest_key_pointers(task, true, 0, 1, &first);
    key = memo_mix(key, attest_float_bits(attest_load(first, p->dtype, 0)));
    return memo_mix(key, attest_float_bits(attest_load(attest_row_get(task, task->row_begin).q, p->dtype, 0))) | 1;
}

#define MEMO_KEY(task) samples_key(task)
#include "base.h"
