/*
 * o_truncated.c - planted: A 16-bit O is cut off instead of rounded.
 *
 * Caught by: oracle (epilogue)
 */
#include <attest_kernel.h>

static inline void store_cut(void *o, uint32_t dtype, int64_t d, float value)
{
    uint32_t lost = dtype == ATTEST_BF16 ? 0xffffu : dtype == ATTEST_F16 ? 0x1fffu : 0;
    attest_store(o, dtype, d, attest_bits_float(attest_float_bits(value) & ~lost));
}

#define STORE(row, dtype, d, value) store_cut((row)->o, dtype, d, value)
#include "base.h"
