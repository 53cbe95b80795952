/*
 * writes_beyond_o.c - planted: writes a zero behind the very last row of O.
 *
 * Caught by: oracle or memory (behind the end of O)
 */
#include <attest_kernel.h>

static inline void write_behind(const attest_task *task)
{
    const attest_problem *p = task->problem;
    int64_t count = p->batch * p->heads_q * p->seq_q * p->dim_v;
    bool dense = p->stride_o[2] == p->dim_v && !attest_has(p, ATTEST_VARLEN_Q);
    bool last = task->batch == p->batch - 1 && task->head_kv == p->heads_kv - 1 && task->row_begin == 0 && !task->partial;
    if (dense && last)
        attest_store(task->tensors->o, p->dtype_o, count, 0);
}

#define TASK_END(task, scratch) write_behind(task)
#define DTYPES                  ATTEST_TAKES_F32
#include "base.h"
