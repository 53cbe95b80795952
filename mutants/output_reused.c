/*
 * output_reused.c - planted: where O already holds numbers, such as those of a reference, it is taken to be computed and left
 * alone.
 *
 * Caught by: oracle (O is not written)
 */
#include <attest_kernel.h>

static inline bool looks_done(const attest_task *task)
{
    const attest_problem *p = task->problem;
    for (int64_t r = task->row_begin; r < task->row_end; r++) {
        const void *o = attest_row_get(task, r).o;
        for (int64_t d = 0; d < p->dim_v; d++)
            if (isnan(attest_load(o, p->dtype_o, d)))
                return false;
    }
    return !task->partial;
}

#define TASK_BEGIN(task, scratch)                                                                                                  \
    if (looks_done(task))                                                                                                          \
        return;
#include "base.h"
