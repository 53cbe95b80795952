/*
 * hangs.c - planted: never comes back from a sequence of 37 keys.
 *
 * Caught by: correctness (did not end)
 */
#define TASK_BEGIN(task, scratch)                                                                                                  \
    for (volatile int64_t keys = task->kv_count; keys == 37;)                                                                      \
    ((void)0)
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
