/*
 * inputs_overwritten.c - planted: Q is scaled in place.
 *
 * Caught by: oracle (wrote to an input)
 */
#include <attest_kernel.h>

/* Scales the rows of the task; a scale of 1 is left for the scores. The pieces of a split would do it once each. */
static inline void scale_in_place(const attest_task *task)
{
    const attest_problem *p = task->problem;
    if (task->partial)
        return;
    for (int64_t r = task->row_begin; r < task->row_end; r++) {
        void *q = (void *)(uintptr_t)attest_row_get(task, r).q;
        for (int64_t d = 0; d < p->dim; d++)
            attest_store(q, p->dtype, d, attest_load(q, p->dtype, d) * p->scale);
    }
}

#define SCALE(p)                  1
#define TASK_BEGIN(task, scratch) scale_in_place(task)
#include "base.h"
