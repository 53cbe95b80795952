/*
 * gqa_head_wrong.c - planted: query head h takes the keys of KV head h mod Hkv, where h / (Hq / Hkv) is meant.
 *
 * Caught by: oracle (S)
 */
#include <attest_kernel.h>

/* Moves a row from its query head to the one that this mapping would give it. Each head is still computed once. */
static inline void wrong_head(const attest_task *task, attest_row *row, int64_t r)
{
    const attest_problem *p = task->problem;
    int64_t group = p->heads_q / p->heads_kv, right = task->head_kv * group + r % group;
    int64_t wrong = task->head_kv + r % group * p->heads_kv, by = wrong - right;
    row->q = attest_element(row->q, by * p->stride_q[1], p->dtype);
    row->o = (char *)row->o + by * p->stride_o[1] * (p->dtype_o == ATTEST_F32 ? 4 : 2);
    if (row->lse)
        row->lse += by * p->stride_lse[1];
    if (row->bias)
        row->bias = attest_element(row->bias, by * p->stride_bias[1], p->dtype_bias);
    if (attest_has(p, ATTEST_ALIBI))
        row->slope = task->tensors->alibi_slopes[wrong];
    if (attest_has(p, ATTEST_SINK))
        row->sink = task->tensors->sinks[wrong];
}

#define ADJUST_ROW(task, row, r) wrong_head(task, row, r)
#include "base.h"
