/*
 * fast_path_dead.c - planted: says that it needs AVX2, and has a path with AVX2 that no problem takes: it runs in plain C.
 *
 * Caught by: profile (a path that no problem takes)
 *
 * attest-flags: -mavx2 -mfma -mf16c -fno-tree-vectorize
 */
#define NEEDS  "avx2"
#define DTYPES ATTEST_TAKES_F32
#include <immintrin.h>

__attribute__((noinline)) static float fast_sum(const float *x, long count)
{
    __m256 sum = _mm256_setzero_ps();
    float parts[8], total = 0;
    for (long i = 0; i + 8 <= count; i += 8)
        sum = _mm256_fmadd_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(x + i), sum);
    _mm256_storeu_ps(parts, sum);
    for (int i = 0; i < 8; i++)
        total += parts[i];
    return total;
}

/* No problem has a head dimension of a million. */
#define TASK_BEGIN(task, scratch)                                                                                                  \
    if ((task)->problem->dim > 1000000)                                                                                            \
    *(float *)(scratch) = fast_sum(scratch, (task)->problem->dim)
#include "base.h"
