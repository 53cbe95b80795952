/*
 * pairs_bf16.h - pairs of bf16 in 32-bit words for rows_tile.h with PAIR 2: what AVX512-BF16 and AMX multiply.
 */
#ifndef ATTEST_PAIRS_BF16_H
#define ATTEST_PAIRS_BF16_H

#define PAIR 2

static inline vf vf_step(vf a, vf b, vf c)
{
    return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
}

/* A row of n bf16 as words, with zeros up to a whole vector. */
static inline void copy_row(float *out, const uint16_t *row, int64_t n)
{
    for (int64_t d = 0; d < n; d += 2 * LANES) {
        __mmask32 some = n - d < 2 * LANES ? (__mmask32)((1u << (n - d)) - 1) : (__mmask32)0xffffffff;
        _mm512_storeu_si512(out + d / 2, _mm512_maskz_loadu_epi16(some, row + d));
    }
}

/* out[d] = (a[d], b[d]) for d < n, with zeros up to a whole vector. A row that is NULL counts as zeros. */
static inline void interleave_rows(float *out, const uint16_t *a, const uint16_t *b, int64_t n)
{
    for (int64_t d = 0; d < n; d += LANES) {
        __mmask16 some = n - d < LANES ? (__mmask16)((1u << (n - d)) - 1) : (__mmask16)0xffff;
        __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(a ? some : 0, a + d));
        __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(b ? some : 0, b + d));
        _mm512_storeu_si512(out + d, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
}

/* 2^x for x <= 0: exactly 1 at 0, exactly 0 below -126 and at -inf, NaN at NaN. Adding `magic` leaves x rounded to an integer, and
 * already biased, in the low bits of the sum; shifted up they are the exponent of the result. The polynomials are minimax: of
 * degree 5, to 9e-8, for sums that are seen in float32; of degree 3, to 1e-4, where all that is seen are weights rounded to 8 bits.
 */
static inline __attribute__((always_inline)) vf pair_exp2(vf x, const bool rough)
{
    const vf magic = vf_set1(0x1.8p23f + 127);
    vf n = vf_add(x, magic), f = vf_sub(x, vf_sub(n, magic)), p;
    if (rough) {
        p = vf_fma(vf_set1(0x1.c2a216p-5f), f, vf_set1(0x1.f00c4cp-3f));
        p = vf_fma(p, f, vf_set1(0x1.62f5fap-1f));
    } else {
        p = vf_fma(vf_set1(0x1.5bba14p-10f), f, vf_set1(0x1.3cea88p-7f));
        p = vf_fma(p, f, vf_set1(0x1.c6b752p-5f));
        p = vf_fma(p, f, vf_set1(0x1.ebf9bcp-3f));
        p = vf_fma(p, f, vf_set1(0x1.62e42ap-1f));
    }
    p = vf_fma(p, f, vf_set1(1.0f));
    vf power = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(n), 23));
    return _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(x, vf_set1(-126.0f), _CMP_NLT_UQ), p, power);
}

/* One vector of words from the float32 weights of two keys. */
static inline vf pair_weights(vf even, vf odd)
{
    const __m512i zip = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4,
                                         19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(zip, (__m512i)_mm512_cvtne2ps_pbh(odd, even)));
}

#endif
