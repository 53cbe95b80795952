/*
 * harmless_neumaier.c - harmless: scores and the sum of weights are added up with compensation (Neumaier), in float.
 */
#define NAME    "harmless_neumaier"
#define SUMMARY "compensated sums"
#include "frame.h"

struct sum {
    float high, low;
};

static void add(struct sum *sum, float x)
{
    float total = sum->high + x;
    sum->low += fabsf(sum->high) >= fabsf(x) ? (sum->high - total) + x : (x - total) + sum->high;
    sum->high = total;
}

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
        float m = -INFINITY;
        struct sum l = {0, 0};
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] = 0;
        for (int64_t j = row.lo; j < row.hi; j++) {
            const void *k = key_at(task, j), *v = value_at(task, j);
            struct sum dot = {0, 0};
            if (is_hidden(p, &row, j))
                continue;
            for (int64_t d = 0; d < p->dim; d++)
                add(&dot, attest_load(row.q, p->dtype, d) * attest_load(k, p->dtype, d));
            /* where the sum is infinite or NaN the correction is NaN, and means nothing */
            float product = isfinite(dot.high) ? dot.high + dot.low : dot.high;
            float s = (float)adjust(p, &row, j, (double)(product * p->scale)), top = s > m ? s : m;
            float decay = expf(m - top), weight = expf(s - top);
            l.high *= decay;
            l.low *= decay;
            add(&l, weight);
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] = o[d] * decay + weight * attest_load(v, p->dtype, d);
            m = top;
        }
        END_ROW(task, &row, r, m, l.high + l.low, o);
    }
}
