/*
 * divides_by_keys.c - planted: divides by the number of keys that a sequence may have, and that may be none.
 *
 * Caught by: memory (division by zero)
 */
#define TASK_BEGIN(task, scratch)                                                                                                  \
    volatile int64_t keys_per_tile = 1024 / task->problem->seq_kv;                                                                 \
    (void)keys_per_tile
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
