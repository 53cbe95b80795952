/*
 * writes_gaps_of_o.c - planted: writes rows of O as wide as their stride, over the gap behind each.
 *
 * Caught by: memory (in a gap)
 */
#include <attest_kernel.h>

/* Where rows are the outermost stride of O, what lies between them belongs to nobody. */
static inline void fill_gap(const attest_task *task, const attest_row *row)
{
    const attest_problem *p = task->problem;
    if (p->stride_o[2] > p->dim_v && p->stride_o[1] >= p->stride_o[2] * p->seq_q)
        for (int64_t d = p->dim_v; d < p->stride_o[2]; d++)
            attest_store(row->o, p->dtype_o, d, 0);
}

#define ADJUST_ROW(task, row, r) fill_gap(task, row)
#define DTYPES                   ATTEST_TAKES_F32
#include "base.h"
