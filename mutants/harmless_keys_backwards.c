/*
 * harmless_keys_backwards.c - harmless: keys are taken from the last to the first, in blocks of 24, each block joined as a whole.
 */
#define NAME        "harmless_keys_backwards"
#define SUMMARY     "keys from the last to the first"
#define ROWS_WANTED 40
#include "frame.h"

enum { BLOCK = 24 };

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)(p->dim_v + p->dim) * sizeof(float);
}

static void compute_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    float *o = scratch, *q = o + p->dim_v;
    for (int64_t r = task->row_end - task->row_begin; r-- > 0;) {
        attest_row row = attest_row_get(task, task->row_begin + r);
        float m = -INFINITY, l = 0;
        for (int64_t d = 0; d < p->dim; d++)
            q[d] = attest_load(row.q, p->dtype, d);
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] = 0;
        for (int64_t end = row.hi; end > row.lo; end -= BLOCK) {
            int64_t begin = end - BLOCK > row.lo ? end - BLOCK : row.lo, count = end - begin;
            const void *k[BLOCK], *v[BLOCK];
            float s[BLOCK], top = m;
            attest_key_pointers(task, false, begin, count, k);
            attest_key_pointers(task, true, begin, count, v);
            for (int64_t n = count; n-- > 0;) {
                float dot = 0;
                for (int64_t d = p->dim; d-- > 0;)
                    dot += q[d] * attest_load(k[n], p->dtype, d);
                s[n] = (float)adjust(p, &row, begin + n, (double)(dot * p->scale));
                if (!is_hidden(p, &row, begin + n) && s[n] > top)
                    top = s[n];
            }
            float decay = m == -INFINITY ? 0 : expf(m - top);
            l *= decay;
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] *= decay;
            for (int64_t n = count; n-- > 0;) {
                if (is_hidden(p, &row, begin + n))
                    continue;
                float weight = expf(s[n] - top);
                l += weight;
                for (int64_t d = 0; d < p->dim_v; d++)
                    o[d] += weight * attest_load(v[n], p->dtype, d);
            }
            m = top;
        }
        END_ROW(task, &row, r, m, l, o);
    }
}
