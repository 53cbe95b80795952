/*
 * warm_up_slow.c - planted: the first calls of a process are slowed down, so that a timer that fits the number of samples to the
 * first of them takes fewer.
 *
 * Caught by: build
 */
#include <attest_kernel.h>

static int calls;

static inline void slow_down(float *scratch)
{
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) > 8)
        return;
    for (int i = 0; i < 2000000; i++)
        scratch[i % 16] = (float)i;
}

#define TASK_BEGIN(task, scratch) slow_down(scratch)
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
