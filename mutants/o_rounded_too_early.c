/*
 * o_rounded_too_early.c - planted: O is rounded to the type of Q, even where a float32 is asked for.
 *
 * Caught by: correctness (less precise)
 */
#include <attest_kernel.h>

static inline float rounded(uint32_t dtype, float value)
{
    return dtype == ATTEST_F16    ? attest_from_f16(attest_to_f16(value))
           : dtype == ATTEST_BF16 ? attest_from_bf16(attest_to_bf16(value))
                                  : value;
}

#define STORE(row, type, d, value) attest_store((row)->o, type, d, rounded(p->dtype, value))
#include "base.h"
