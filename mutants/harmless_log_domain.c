/*
 * harmless_log_domain.c - harmless: the running state is the logarithm of the sum and an output that is normalised at every key, in double.
 */
#define NAME    "harmless_log_domain"
#define SUMMARY "running logarithm of the sum"
#include "frame.h"

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)p->dim_v * sizeof(double);
}

static void compute_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    double *o = scratch;
    for (int64_t r = 0; r < task->row_end - task->row_begin; r++) {
        attest_row row = attest_row_get(task, task->row_begin + r);
        double top = -INFINITY,
               more = 0; /* the logarithm of the sum is top + more, apart because top may be as low as a number can be */
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] = 0;
        for (int64_t j = row.lo; j < row.hi; j++) {
            const void *k = key_at(task, j), *v = value_at(task, j);
            double dot = 0;
            if (is_hidden(p, &row, j))
                continue;
            for (int64_t d = 0; d < p->dim; d++)
                dot += (double)attest_load(row.q, p->dtype, d) * attest_load(k, p->dtype, d);
            double s = adjust(p, &row, j, dot * p->scale);
            double next = top > s ? top : s, begun = top == -INFINITY ? 0 : exp(top - next + more);
            double sum = log(begun + exp(s - next)); /* of e^(top + more) and e^s, less next */
            double keep = top == -INFINITY ? 0 : exp(top - next + more - sum), weight = exp(s - next - sum);
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] = o[d] * keep + weight * attest_load(v, p->dtype, d);
            top = next;
            more = sum;
        }
        /* In the terms of a row's end, whose output is not normalised yet. */
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] *= exp(more);
        END_ROW(task, &row, r, top, (top == -INFINITY ? 0 : top < INFINITY ? exp(more) : NAN), o);
    }
}
