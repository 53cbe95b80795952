/*
 * leaks_memory.c - planted: takes 16 KiB for every task and never gives them back.
 *
 * Caught by: build and memory (imports malloc + leaks)
 */
#include <stdlib.h>
#include <string.h>

static inline void take(void)
{
    void *volatile taken = malloc(16384);
    if (taken)
        memset(taken, 1, 16384);
}

#define TASK_BEGIN(task, scratch) take()
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
