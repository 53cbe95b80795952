/*
 * flush_to_zero_left.c - planted: turns flush-to-zero and denormals-are-zero on, which makes it faster on small numbers, and leaves them on.
 *
 * Caught by: build and oracle (instruction 'stmxcsr + flush-to-zero or denormals-are-zero is on)
 */
#include <immintrin.h>

#define TASK_BEGIN(task, scratch) _mm_setcsr(_mm_getcsr() | 0x8040)
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
