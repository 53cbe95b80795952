/*
 * harmless_avx2_intrinsics.c - harmless: written with the intrinsics of AVX2 and FMA, which it declares; sixteen keys at a time, their K turned round in scratch.
 *
 * attest-flags: -mavx2 -mfma
 */
#define NAME    "harmless_avx2_intrinsics"
#define SUMMARY "AVX2 intrinsics"
#define NEEDS   "avx2"
#include "frame.h"

#include <immintrin.h>

enum { KEYS = 16 };

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)(p->dim * KEYS + p->dim_v * (KEYS + 1)) * sizeof(float);
}

/* K as [dim][KEYS], V as [KEYS][dim_v]; keys that are not there are 0. */
static void pack(const attest_task *task, int64_t first, int64_t count, float *k, float *v)
{
    const attest_problem *p = task->problem;
    const void *at[KEYS], *at_v[KEYS];
    attest_key_pointers(task, false, first, count, at);
    attest_key_pointers(task, true, first, count, at_v);
    for (int64_t n = 0; n < KEYS; n++) {
        for (int64_t d = 0; d < p->dim; d++)
            k[d * KEYS + n] = n < count ? attest_load(at[n], p->dtype, d) : 0;
        for (int64_t d = 0; d < p->dim_v; d++)
            v[n * p->dim_v + d] = n < count ? attest_load(at_v[n], p->dtype, d) : 0;
    }
}

static void add_row(const float *v, int64_t dim_v, float weight, float *o)
{
    __m256 w = _mm256_set1_ps(weight);
    int64_t d = 0;
    for (; d + 8 <= dim_v; d += 8)
        _mm256_storeu_ps(o + d, _mm256_fmadd_ps(w, _mm256_loadu_ps(v + d), _mm256_loadu_ps(o + d)));
    for (; d < dim_v; d++)
        o[d] = fmaf(weight, v[d], o[d]);
}

static void compute_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    float *k = scratch, *v = k + p->dim * KEYS, *o = v + p->dim_v * KEYS;
    for (int64_t r = 0; r < task->row_end - task->row_begin; r++) {
        attest_row row = attest_row_get(task, task->row_begin + r);
        float m = -INFINITY, l = 0, s[KEYS];
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] = 0;
        for (int64_t first = row.lo; first < row.hi; first += KEYS) {
            int64_t count = row.hi - first < KEYS ? row.hi - first : KEYS;
            __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
            pack(task, first, count, k, v);
            for (int64_t d = 0; d < p->dim; d++) {
                __m256 q = _mm256_set1_ps(attest_load(row.q, p->dtype, d));
                low = _mm256_fmadd_ps(q, _mm256_loadu_ps(k + d * KEYS), low);
                high = _mm256_fmadd_ps(q, _mm256_loadu_ps(k + d * KEYS + 8), high);
            }
            _mm256_storeu_ps(s, low);
            _mm256_storeu_ps(s + 8, high);
            float top = m;
            for (int64_t n = 0; n < count; n++) {
                s[n] = (float)adjust(p, &row, first + n, (double)(s[n] * p->scale));
                if (!is_hidden(p, &row, first + n) && s[n] > top)
                    top = s[n];
            }
            float decay = m == -INFINITY ? 0 : expf(m - top);
            l *= decay;
            m = top;
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] *= decay;
            for (int64_t n = 0; n < count; n++) {
                if (is_hidden(p, &row, first + n))
                    continue;
                float weight = expf(s[n] - top);
                l += weight;
                add_row(v + n * p->dim_v, p->dim_v, weight, o);
            }
        }
        END_ROW(task, &row, r, m, l, o);
    }
}
