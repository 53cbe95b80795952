/*
 * asks_processor.c - planted: asks which processor it runs on, to be right on one of them alone.
 *
 * Caught by: build (instruction 'cpuid')
 */
#include <cpuid.h>

#define TASK_BEGIN(task, scratch)                                                                                                  \
    unsigned a, b, c, d;                                                                                                           \
    if (!__get_cpuid(1, &a, &b, &c, &d))                                                                                           \
    return
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
