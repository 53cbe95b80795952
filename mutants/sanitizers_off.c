/*
 * sanitizers_off.c - planted: turns sanitizers off for a function that reads behind its array.
 *
 * Caught by: build (attribute no_sanitize)
 */
__attribute__((no_sanitize("address", "undefined"))) static float read_behind(int at)
{
    volatile float values[4] = {0};
    return values[at];
}

#define TASK_BEGIN(task, scratch)                                                                                                  \
    volatile float ignored = read_behind((int)task->q_count % 4 + 1);                                                              \
    (void)ignored
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
