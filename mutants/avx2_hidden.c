/*
 * avx2_hidden.c - planted: uses AVX2 without saying so, and would stop on a machine that lacks it.
 *
 * Caught by: profile (instructions of avx2)
 */
#if defined(__x86_64__)
__attribute__((target("avx2"), noinline)) static void scale_fast(float *values)
{
    for (int i = 0; i < 64; i++)
        values[i] = values[i] * 0.5f + 1;
}
#else
#define scale_fast(values) ((void)(values))
#endif

#define TASK_BEGIN(task, scratch)                                                                                                  \
    float values[64] = {0};                                                                                                        \
    scale_fast(values);                                                                                                            \
    volatile float ignored = values[3];                                                                                            \
    (void)ignored
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
