/*
 * stack_executable.c - planted: a nested function whose address is taken, which needs an executable stack.
 *
 * Caught by: build (executable stack)
 */
#include <attest_kernel.h>

static int64_t twice(int64_t (*function)(void))
{
    return 2 * function();
}

static int64_t rows_twice(const attest_task *task)
{
    int64_t rows(void)
    {
        return task->q_count;
    }
    int64_t (*volatile function)(void) = rows;
    return twice(function);
}

#define TASK_BEGIN(task, scratch)                                                                                                  \
    volatile int64_t ignored = rows_twice(task);                                                                                   \
    (void)ignored
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
