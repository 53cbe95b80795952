/*
 * resolver_runs.c - planted: an indirect function, whose resolver runs when the image is loaded.
 *
 * Caught by: build (attribute ifunc)
 */
static float half_of(float x)
{
    return x / 2;
}

static float (*choose_half(void))(float)
{
    return half_of;
}

static float half(float x) __attribute__((ifunc("choose_half")));

#define TASK_BEGIN(task, scratch)                                                                                                  \
    volatile float ignored = half(1);                                                                                              \
    (void)ignored
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
