/*
 * harmless_power_of_two.c - harmless: the scale and log2(e) are folded into one factor where nothing changes the score, and weights are exp2f.
 */
#define NAME        "harmless_power_of_two"
#define SUMMARY     "scores in units of log2"
#define ROWS_WANTED 100
#include "frame.h"

#define LOG2E 1.44269504088896340736

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)p->dim_v * sizeof(float);
}

static void compute_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    bool plain = !(p->flags & (ATTEST_SOFTCAP | ATTEST_ALIBI | ATTEST_BIAS));
    double factor = (double)p->scale * LOG2E;
    float *o = scratch;
    for (int64_t r = 0; r < task->row_end - task->row_begin; r++) {
        attest_row row = attest_row_get(task, task->row_begin + r);
        double m = -INFINITY;
        float l = 0;
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] = 0;
        for (int64_t j = row.lo; j < row.hi; j++) {
            const void *k = key_at(task, j), *v = value_at(task, j);
            float dot = 0;
            if (is_hidden(p, &row, j))
                continue;
            for (int64_t d = 0; d < p->dim; d++)
                dot += attest_load(row.q, p->dtype, d) * attest_load(k, p->dtype, d);
            double s = plain ? (double)dot * factor : adjust(p, &row, j, (double)dot * p->scale) * LOG2E, top = s > m ? s : m;
            float decay = exp2f((float)(m - top)), weight = exp2f((float)(s - top));
            l = l * decay + weight;
            m = top;
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] = o[d] * decay + weight * attest_load(v, p->dtype, d);
        }
        END_ROW(task, &row, r, m / LOG2E, l, o);
    }
}
