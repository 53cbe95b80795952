/*
 * o_heads_swapped.c - planted: O of neighbouring heads is written to each other's place; LSE is not.
 *
 * Caught by: oracle (epilogue)
 */
#include <attest_kernel.h>

static inline void other_head(const attest_task *task, attest_row *row, int64_t r)
{
    const attest_problem *p = task->problem;
    int64_t group = p->heads_q / p->heads_kv, h = task->head_kv * group + r % group;
    if ((h ^ 1) < p->heads_q)
        row->o = (char *)row->o + ((h ^ 1) - h) * p->stride_o[1] * (p->dtype_o == ATTEST_F32 ? 4 : 2);
}

#define ADJUST_ROW(task, row, r) other_head(task, row, r)
#include "base.h"
