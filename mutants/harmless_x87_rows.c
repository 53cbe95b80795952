/*
 * harmless_x87_rows.c - harmless: rows one by one, all their scores kept, and everything from the products to the division in long double.
 */
#define NAME    "harmless_x87_rows"
#define SUMMARY "long double, row by row"
#include "frame.h"

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)(p->seq_kv + p->dim_v + 1) * sizeof(long double);
}

static void compute_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    long double *o = scratch, *weight = o + p->dim_v;
    for (int64_t r = 0; r < task->row_end - task->row_begin; r++) {
        attest_row row = attest_row_get(task, task->row_begin + r);
        long double top = -INFINITY, sum = 0;
        for (int64_t j = row.lo; j < row.hi; j++) {
            const void *k = key_at(task, j);
            long double s = 0;
            if (is_hidden(p, &row, j)) {
                weight[j - row.lo] = -INFINITY;
                continue;
            }
            for (int64_t d = 0; d < p->dim; d++)
                s += (long double)attest_load(row.q, p->dtype, d) * attest_load(k, p->dtype, d);
            s *= p->scale;
            if (attest_has(p, ATTEST_SOFTCAP))
                s = p->softcap * tanhl(s / p->softcap);
            s -= attest_has(p, ATTEST_ALIBI) ? row.slope * fabsl((long double)row.place - j) : 0;
            s += attest_has(p, ATTEST_BIAS) ? attest_load(row.bias, p->dtype_bias, p->stride_bias[3] * j) : 0;
            weight[j - row.lo] = s;
            top = s > top ? s : top;
        }
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] = 0;
        for (int64_t j = row.lo; j < row.hi; j++) {
            const void *v = value_at(task, j);
            if (is_hidden(p, &row, j))
                continue;
            long double share = expl(weight[j - row.lo] - top);
            sum += share;
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] += share * attest_load(v, p->dtype, d);
        }
        END_ROW(task, &row, r, top, sum, o);
    }
}
