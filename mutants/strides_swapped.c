/*
 * strides_swapped.c - planted: K is read as if rows and heads lay the other way round, [row, head, column], whatever the
 * strides say.
 *
 * Caught by: oracle (S)
 */
#include <attest_kernel.h>

static inline void swapped_pointers(const attest_task *task, bool is_v, int64_t first, int64_t count, const void **out)
{
    const attest_problem *p = task->problem;
    attest_key_pointers(task, is_v, first, count, out);
    if (is_v || attest_has(p, ATTEST_PAGED | ATTEST_VARLEN_KV))
        return;
    for (int64_t n = 0; n < count; n++)
        out[n] = attest_element(task->tensors->k,
                                task->batch * p->stride_k[0] + ((first + n) * p->heads_kv + task->head_kv) * p->dim, p->dtype);
}

#define KEY_POINTERS(task, is_v, first, count, out) swapped_pointers(task, is_v, first, count, out)
#include "base.h"
