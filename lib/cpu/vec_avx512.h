/*
 * vec_avx512.h - the vector vocabulary for AVX-512 (F, BW, DQ, VL), 16 floats a vector. See vec_scalar.h for what each word means.
 */
#ifndef ATTEST_VEC_H
#define ATTEST_VEC_H

#include <immintrin.h>
#include <stdint.h>

enum { LANES = 16 };

/* One word of the vocabulary, one line. */
/* clang-format off */
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

static inline vf vf_zero(void) { return _mm512_setzero_ps(); }
static inline vf vf_set1(float x) { return _mm512_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vf_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vf_abs(vf a) { return _mm512_abs_ps(a); }
static inline vf vf_round(vf a) { return _mm512_roundscale_ps(a, 8); }
/* Lanes below 2^-126 are kept out of the instruction, which is slow where the result is subnormal; so a may be NaN there. */
static inline vf vf_scale2(vf a, vf n) { return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(n, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ), a, n); }

static inline vf vf_exp2_domain(vf x) { return x; }

static inline vi vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
static inline vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
static inline vi vi_iota(void) { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vf vf_from_int(vi a) { return _mm512_cvtepi32_ps(a); }

static inline vm vm_greater(vi a, vi b) { return _mm512_cmpgt_epi32_mask(a, b); }
static inline vm vm_less(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline vm vm_equal(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline vm vm_or(vm a, vm b) { return (vm)(a | b); }
static inline int vm_all(vm a) { return a == 0xffff; }
static inline vf vf_select(vm m, vf yes, vf no) { return _mm512_mask_blend_ps(m, no, yes); }
static inline vf vf_sign_of(vf magnitude, vf sign)
{
    return _mm512_or_ps(magnitude, _mm512_and_ps(sign, _mm512_set1_ps(-0.0f)));
}

static inline vf vf_from_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
static inline vf vf_from_bf16(const uint16_t *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
static inline void vf_to_f16(uint16_t *p, vf x)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline __m256i vf_bf16_bits(vf x)
{
    __m512i bits = _mm512_castps_si512(x);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_blend_epi32(nan, rounded, quiet), 16));
}
static inline void vf_to_bf16(uint16_t *p, vf x) { _mm256_storeu_si256((__m256i *)p, vf_bf16_bits(x)); }

static inline float vf_sum(vf x) { return _mm512_reduce_add_ps(x); }
static inline float vf_top(vf x) { return _mm512_reduce_max_ps(x); }

/* 512 to 256 bits by adding halves, then a 4 x 4 transpose-and-add on 128-bit lanes. */
static inline void vf_sum4(float *out, vf a, vf b, vf c, vf d)
{
    __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    __m512 abcd = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(abcd), _mm512_extractf32x8_ps(abcd, 1));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
}

static inline __attribute__((always_inline)) void vf_transpose(vf r[LANES])
{
    vf t[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) { /* pairs of rows */
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) { /* 4 x 4 blocks within 128-bit lanes */
        r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* lanes: column i of block (b, lane) goes to (lane, b) */
        vf ab_even = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88), ab_odd = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        vf cd_even = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88), cd_odd = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
        t[i] = _mm512_shuffle_f32x4(ab_even, cd_even, 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(ab_odd, cd_odd, 0x88);
        t[i + 8] = _mm512_shuffle_f32x4(ab_even, cd_even, 0xdd);
        t[i + 12] = _mm512_shuffle_f32x4(ab_odd, cd_odd, 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        r[i] = t[i];
}
/* clang-format on */

#endif
