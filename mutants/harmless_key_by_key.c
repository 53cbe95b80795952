/*
 * harmless_key_by_key.c - harmless: no tiles at all: one key after the other, and the output is rescaled at each one that raises the maximum.
 */
#define NAME    "harmless_key_by_key"
#define SUMMARY "one key at a time"
#include "frame.h"

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)p->dim_v * sizeof(float);
}

static void compute_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    float *o = scratch;
    for (int64_t r = 0; r < task->row_end - task->row_begin; r++) {
        attest_row row = attest_row_get(task, task->row_begin + r);
        float m = -INFINITY, l = 0;
        memset(o, 0, (size_t)p->dim_v * sizeof *o);
        for (int64_t j = row.lo; j < row.hi; j++) {
            const void *k = key_at(task, j), *v = value_at(task, j);
            float dot = 0;
            if (is_hidden(p, &row, j))
                continue;
            for (int64_t d = 0; d < p->dim; d++)
                dot += attest_load(row.q, p->dtype, d) * attest_load(k, p->dtype, d);
            float s = (float)adjust(p, &row, j, (double)dot * p->scale);
            if (s > m) {
                float decay = expf(m - s);
                l *= decay;
                for (int64_t d = 0; d < p->dim_v; d++)
                    o[d] *= decay;
                m = s;
            }
            float weight = expf(s - m); /* NaN for a score of +inf */
            l += weight;
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] += weight * attest_load(v, p->dtype, d);
        }
        END_ROW(task, &row, r, m, l, o);
    }
}
