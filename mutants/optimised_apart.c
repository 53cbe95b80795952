/*
 * optimised_apart.c - planted: compiles a function with other flags than it declares.
 *
 * Caught by: build (attribute optimize)
 */
__attribute__((optimize("fast-math"))) static float half(float x)
{
    return x / 2;
}

#define TASK_BEGIN(task, scratch)                                                                                                  \
    volatile float ignored = half(1);                                                                                              \
    (void)ignored
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
