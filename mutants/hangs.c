/*
 * hangs.c - planted: never comes back from a problem of 37 keys.
 *
 * Caught by: correctness (did not end)
 */
#include <stdint.h>

static inline void search(int64_t keys)
{
    for (volatile int64_t left = keys; left == 37;)
        continue;
}

#define TASK_BEGIN(task, scratch) search(task->problem->seq_kv)
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
