/*
 * signed_overflow.c - planted: computes an offset in int, which overflows.
 *
 * Caught by: memory (signed integer overflow)
 */
#include <stdint.h>

/* A seed for a dropout that is not used. */
static inline int offset_of(int64_t keys, int64_t rows)
{
    volatile int stride = (int)keys * 65536, place = (int)rows * 65536;
    return stride * place + stride;
}

#define TASK_BEGIN(task, scratch)                                                                                                  \
    volatile int ignored = offset_of(task->kv_count + 1, task->q_count + 1);                                                       \
    (void)ignored
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
