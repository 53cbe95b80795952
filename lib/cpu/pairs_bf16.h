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

/* One vector of words from the float32 weights of two keys. */
static inline vf pair_weights(vf even, vf odd)
{
    const __m512i zip = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4,
                                         19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(zip, (__m512i)_mm512_cvtne2ps_pbh(odd, even)));
}

#endif
