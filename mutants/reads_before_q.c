/*
 * reads_before_q.c - planted: reads the element in front of the first row of Q, and does nothing with it.
 *
 * Caught by: oracle or memory (before the start of Q)
 */
#include <attest_kernel.h>

static inline void look_before(const attest_task *task)
{
    volatile float ignored = attest_load(attest_row_get(task, task->row_begin).q, task->problem->dtype, -1);
    (void)ignored;
}

#define TASK_BEGIN(task, scratch) look_before(task)
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
