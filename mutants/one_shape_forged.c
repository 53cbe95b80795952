/*
 * one_shape_forged.c - planted: on one of the shapes that are timed, where no LSE is asked for, rows see half of their keys: a forged
 * time in the mean of the suite.
 *
 * Caught by: correctness
 */
#include <attest_kernel.h>

static inline bool is_forged(const attest_task *task)
{
    const attest_problem *p = task->problem;
    return p->dim == 32 && p->seq_q == 64 && p->seq_kv == 64 && p->heads_q == 2 && !attest_has(p, ATTEST_LSE);
}

#define ADJUST_ROW(task, row, r) ((row)->hi -= is_forged(task) ? ((row)->hi - (row)->lo) / 2 : 0)
#define DTYPES                   ATTEST_TAKES_F32
#include "base.h"
