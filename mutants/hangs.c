/*
 * hangs.c - planted: never comes back from a problem of 37 keys.
 *
 * Caught by: correctness (did not end)
 */
#include <stdint.h>

/* Waits for a change that nobody makes. */
static inline void wait_for_others(int64_t keys)
{
    for (volatile int64_t left = keys; left == 37;)
        ;
}

#define TASK_BEGIN(task, scratch) wait_for_others(task->problem->seq_kv)
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
