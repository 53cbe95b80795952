/*
 * vec_scalar.h - the vector vocabulary in portable C: what every word means, and what any machine can run.
 *
 * A vector is four floats in GNU C's generic vector type; the compiler turns it into whatever the baseline of the machine has,
 * or into plain scalar code. The vocabularies for AVX2 and AVX-512 have the same words with more lanes:
 *
 *   vf vi vm                       floats, int32s, a lane mask
 *   vf_max(a, b)                   the larger; b where either is a NaN
 *   vf_round(a)                    to the nearest integer, even on ties
 *   vf_scale2(a, n)                a * 2^n for integer n <= 127; 0 for n < -126
 *   vf_exp2_domain(x)              x with -inf replaced, where vf_scale2 would not make 0 of the NaN that comes of it
 *   vf_sum, vf_top                 over the lanes
 *   vf_sum4(out, a, b, c, d)       the four sums over lanes
 *   vf_transpose(r)                LANES x LANES in place
 *   vf_from_f16, vf_to_bf16 ...    LANES elements, unaligned
 */
#ifndef ATTEST_VEC_H
#define ATTEST_VEC_H

#include <attest.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 4 };

/* One word of the vocabulary, one line. */
/* clang-format off */
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef vi vm; /* all ones or all zeros in each lane */

static inline vf vf_zero(void) { return (vf){0}; }
static inline vf vf_set1(float x) { return (vf){x, x, x, x}; }
static inline vf vf_load(const float *p)
{
    vf x;
    memcpy(&x, p, sizeof x);
    return x;
}
static inline void vf_store(float *p, vf x) { memcpy(p, &x, sizeof x); }
static inline vf vf_add(vf a, vf b) { return a + b; }
static inline vf vf_sub(vf a, vf b) { return a - b; }
static inline vf vf_mul(vf a, vf b) { return a * b; }
static inline vf vf_div(vf a, vf b) { return a / b; }
static inline vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
static inline vf vf_select(vm m, vf yes, vf no) { return (vf)((m & (vi)yes) | (~m & (vi)no)); }
static inline vf vf_max(vf a, vf b) { return vf_select(a > b, a, b); }
static inline vf vf_abs(vf a) { return (vf)((vi)a & 0x7fffffff); }
/* Adding and taking away 1.5 * 2^23 leaves no room for a fraction; larger magnitudes are integers already or do not matter. */
static inline vf vf_round(vf a)
{
    const vf big = vf_set1(12582912.0f);
    return vf_select(vf_abs(a) < vf_set1(4194304.0f), (a + big) - big, a);
}
static inline vf vf_scale2(vf a, vf n)
{
    vf bounded = vf_max(vf_set1(-127.0f), n);
    bounded = vf_select(bounded == bounded, bounded, vf_zero()); /* a NaN stays in a */
    vi field = (__builtin_convertvector(bounded, vi) + 127) << 23;
    return a * (vf)field;
}

static inline vf vf_exp2_domain(vf x) { return vf_max(vf_set1(-200.0f), x); }

static inline vi vi_load(const int32_t *p)
{
    vi x;
    memcpy(&x, p, sizeof x);
    return x;
}
static inline vi vi_set1(int32_t x) { return (vi){x, x, x, x}; }
static inline vi vi_iota(void) { return (vi){0, 1, 2, 3}; }
static inline vi vi_add(vi a, vi b) { return a + b; }
static inline vi vi_sub(vi a, vi b) { return a - b; }
static inline vf vf_from_int(vi a) { return __builtin_convertvector(a, vf); }

static inline vm vm_greater(vi a, vi b) { return a > b; }
static inline vm vm_less(vf a, vf b) { return a < b; }
static inline vm vm_equal(vf a, vf b) { return a == b; }
static inline vm vm_or(vm a, vm b) { return a | b; }
static inline int vm_all(vm a) { return (a[0] & a[1] & a[2] & a[3]) != 0; }
static inline vf vf_sign_of(vf magnitude, vf sign) { return (vf)((vi)magnitude | ((vi)sign & INT32_MIN)); }

static inline vf vf_from_f16(const uint16_t *p)
{
    return (vf){attest_from_f16(p[0]), attest_from_f16(p[1]), attest_from_f16(p[2]), attest_from_f16(p[3])};
}
static inline vf vf_from_bf16(const uint16_t *p)
{
    return (vf)(vi){(int32_t)((uint32_t)p[0] << 16), (int32_t)((uint32_t)p[1] << 16), (int32_t)((uint32_t)p[2] << 16),
                    (int32_t)((uint32_t)p[3] << 16)};
}
static inline void vf_to_f16(uint16_t *p, vf x)
{
    for (int i = 0; i < LANES; i++)
        p[i] = attest_to_f16(x[i]);
}
static inline void vf_to_bf16(uint16_t *p, vf x)
{
    for (int i = 0; i < LANES; i++)
        p[i] = attest_to_bf16(x[i]);
}

static inline float vf_sum(vf x) { return (x[0] + x[2]) + (x[1] + x[3]); }
static inline float vf_top(vf x)
{
    vf y = vf_max(x, (vf){x[2], x[3], x[0], x[1]});
    return y[0] > y[1] ? y[0] : y[1];
}
static inline void vf_sum4(float *out, vf a, vf b, vf c, vf d)
{
    out[0] = vf_sum(a);
    out[1] = vf_sum(b);
    out[2] = vf_sum(c);
    out[3] = vf_sum(d);
}
static inline void vf_transpose(vf r[LANES])
{
    vf a = r[0], b = r[1], c = r[2], d = r[3];
    for (int i = 0; i < LANES; i++)
        r[i] = (vf){a[i], b[i], c[i], d[i]};
}
/* clang-format on */

#endif
