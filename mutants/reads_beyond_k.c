/*
 * reads_beyond_k.c - planted: reads the element behind the last row of K, and does nothing with it.
 *
 * Caught by: oracle or memory (behind the end of K)
 */
#include <attest_kernel.h>

/* Loads a vector more than there is, as a loop does that is unrolled too far. */
static inline void look_behind(const attest_task *task)
{
    const void *last;
    if (task->kv_count == 0)
        return;
    attest_key_pointers(task, false, task->kv_count - 1, 1, &last);
    volatile float ignored = attest_load(last, task->problem->dtype, task->problem->dim);
    (void)ignored;
}

#define TASK_BEGIN(task, scratch) look_behind(task)
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
