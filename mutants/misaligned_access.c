/*
 * misaligned_access.c - planted: reads Q in words of 8 bytes, whatever its address is.
 *
 * Caught by: memory (misaligned)
 */
#include <attest_kernel.h>

static inline void touch_words(const attest_task *task)
{
    const attest_problem *p = task->problem;
    uint64_t all = 0;
    if (p->dim * (p->dtype == ATTEST_F32 ? 4 : 2) < 8)
        return;
    for (int64_t r = task->row_begin; r < task->row_end; r++)
        all |= *(const uint64_t *)attest_row_get(task, r).q;
    volatile uint64_t ignored = all;
    (void)ignored;
}

#define TASK_BEGIN(task, scratch) touch_words(task)
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
