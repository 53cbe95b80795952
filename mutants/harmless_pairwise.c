/*
 * harmless_pairwise.c - harmless: scores are summed in pairs, by halves of halves of the columns.
 */
#define NAME    "harmless_pairwise"
#define SUMMARY "pairwise sums"
#include "frame.h"

static float pairs(const attest_problem *p, const void *q, const void *k, int64_t from, int64_t to)
{
    if (to - from <= 4) {
        float sum = 0;
        for (int64_t d = from; d < to; d++)
            sum += attest_load(q, p->dtype, d) * attest_load(k, p->dtype, d);
        return sum;
    }
    int64_t middle = from + (to - from) / 2;
    return pairs(p, q, k, from, middle) + pairs(p, q, k, middle, to);
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
        float m = -INFINITY, l = 0;
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] = 0;
        for (int64_t j = row.lo; j < row.hi; j++) {
            const void *k = key_at(task, j), *v = value_at(task, j);
            if (is_hidden(p, &row, j))
                continue;
            float s = (float)adjust(p, &row, j, (double)p->scale * (double)pairs(p, row.q, k, 0, p->dim)), top = s > m ? s : m;
            float decay = expf(m - top), weight = expf(s - top);
            l = l * decay + weight;
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] = o[d] * decay + weight * attest_load(v, p->dtype, d);
            m = top;
        }
        END_ROW(task, &row, r, m, l, o);
    }
}
