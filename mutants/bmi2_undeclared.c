/*
 * bmi2_undeclared.c - planted: says that it needs AVX2, and has an instruction of BMI2, which is another feature.
 *
 * Caught by: profile (instruction pdep)
 *
 * attest-flags: -mavx2 -mbmi2
 */
#include <immintrin.h>
#include <stdint.h>

#define NEEDS "avx2"
#define TASK_BEGIN(task, scratch)                                                                                                  \
    volatile uint64_t ignored = _pdep_u64((uint64_t)task->q_count, 0x5555);                                                        \
    (void)ignored
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
