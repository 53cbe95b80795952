/*
 * vec_math.h - exp2 and tanh on vectors, and rows of any dtype, in terms of the vocabulary (vec_*.h), which comes first.
 */
#ifndef ATTEST_VEC_MATH_H
#define ATTEST_VEC_MATH_H

#include <string.h>

/* 2^x to about 1e-7, exactly 1 at 0, exactly 0 below -127 and at -inf, NaN at NaN. x = n + f with n an integer, |f| <= 1/2; 2^f is
 * a minimax polynomial of degree 6. */
static inline vf vf_exp2(vf x)
{
    x = vf_exp2_domain(x);
    vf n = vf_round(x), f = vf_sub(x, n);
    vf p = vf_set1(0x1.41fbbcp-13f);
    p = vf_fma(p, f, vf_set1(0x1.5f3e54p-10f));
    p = vf_fma(p, f, vf_set1(0x1.3b2d4cp-7f));
    p = vf_fma(p, f, vf_set1(0x1.c6aee8p-5f));
    p = vf_fma(p, f, vf_set1(0x1.ebfbdcp-3f));
    p = vf_fma(p, f, vf_set1(0x1.62e430p-1f));
    p = vf_fma(p, f, vf_set1(1.0f));
    return vf_scale2(p, n);
}

/* tanh to about 1e-7 relative: an odd polynomial below 0.6, and 1 - 2 / (e^2x + 1) above. */
static inline vf vf_tanh(vf x)
{
    vf size = vf_abs(x), square = vf_mul(x, x);
    vf p = vf_set1(-0.0058951531536877155f);
    p = vf_fma(p, square, vf_set1(0.020795967429876328f));
    p = vf_fma(p, square, vf_set1(-0.053783830255270004f));
    p = vf_fma(p, square, vf_set1(0.13331924378871918f));
    p = vf_fma(p, square, vf_set1(-0.33333298563957214f));
    vf small = vf_fma(vf_mul(p, square), x, x);
    vf bounded = vf_select(vm_less(vf_set1(10.0f), size), vf_set1(10.0f), size);
    vf e = vf_exp2(vf_mul(bounded, vf_set1((float)(2 * LOG2E))));
    vf large = vf_sub(vf_set1(1.0f), vf_div(vf_set1(2.0f), vf_add(e, vf_set1(1.0f))));
    return vf_select(vm_less(size, vf_set1(0.6f)), small, vf_sign_of(large, x));
}

/* `dtype` is a constant where it matters: the function is inlined and the switch disappears. */
static inline __attribute__((always_inline)) vf vf_from(const void *p, int64_t at, uint32_t dtype)
{
    if (dtype == ATTEST_F32)
        return vf_load((const float *)p + at);
    return dtype == ATTEST_F16 ? vf_from_f16((const uint16_t *)p + at) : vf_from_bf16((const uint16_t *)p + at);
}

/* The first n elements, n < LANES, with zeros behind; reads nothing behind them. */
static inline __attribute__((always_inline)) vf vf_from_some(const void *p, int64_t at, uint32_t dtype, int64_t n)
{
    if (dtype == ATTEST_F32) {
        float whole[LANES] = {0};
        memcpy(whole, (const float *)p + at, (size_t)n * sizeof *whole);
        return vf_from(whole, 0, dtype);
    }
    uint16_t whole[LANES] = {0};
    memcpy(whole, (const uint16_t *)p + at, (size_t)n * sizeof *whole);
    return vf_from(whole, 0, dtype);
}

/* Rows as float32, filled with zeros up to a multiple of LANES, and back to any dtype. */
static inline __attribute__((always_inline)) void row_unpack(float *out, const void *row, int64_t n, uint32_t dtype)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(out + i, vf_from(row, i, dtype));
    if (i < n)
        vf_store(out + i, vf_from_some(row, i, dtype, n - i));
}

static inline void row_to_float(float *out, const void *row, int64_t n, uint32_t dtype)
{
    if (dtype == ATTEST_F32)
        row_unpack(out, row, n, ATTEST_F32);
    else if (dtype == ATTEST_F16)
        row_unpack(out, row, n, ATTEST_F16);
    else
        row_unpack(out, row, n, ATTEST_BF16);
}

static inline void row_from_float(void *row, const float *in, int64_t n, uint32_t dtype)
{
    if (dtype == ATTEST_F32) {
        memcpy(row, in, (size_t)n * sizeof(float));
        return;
    }
    uint16_t *out = row, part[LANES];
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        (dtype == ATTEST_F16 ? vf_to_f16 : vf_to_bf16)(out + i, vf_load(in + i));
    if (i < n) {
        (dtype == ATTEST_F16 ? vf_to_f16 : vf_to_bf16)(part, vf_load(in + i));
        memcpy(out + i, part, (size_t)(n - i) * sizeof *out);
    }
}

#endif
