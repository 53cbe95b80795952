/*
 * stack_overrun.c - planted: reads an array on the stack one place behind its end.
 *
 * Caught by: memory (out of bounds)
 */
#include <stdint.h>

/* The last place is asked for only in a problem of an ordinary size, where nobody looks. */
static inline float weight_of_lane(int64_t lane)
{
    volatile float weights[4] = {1, 1, 1, 1};
    volatile int64_t place = lane;
    return weights[place];
}

#define TASK_BEGIN(task, scratch)                                                                                                  \
    volatile float ignored = weight_of_lane(task->row_end - task->row_begin > 4 ? 4 : 0);                                          \
    (void)ignored
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
