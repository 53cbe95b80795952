/*
 * harmless_both_prepared.c - harmless: k and V are made double once for all tasks of a head, by prepare, K with its keys next to each other.
 */
#define NAME         "harmless_both_prepared"
#define SUMMARY      "K and V prepared in double"
#define SHARED_BYTES shared_bytes
#define PREPARE_TASK prepare_task
#define ROWS_WANTED  24
#include <attest_kernel.h>

static size_t shared_bytes(const attest_problem *p)
{
    return (size_t)(p->seq_kv * (p->dim + p->dim_v)) * sizeof(double);
}

/* K as [dim][seq_kv], then V as [seq_kv][dim_v]. */
static void prepare_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    double *k = task->shared, *v = k + p->seq_kv * p->dim;
    (void)scratch;
    for (int64_t j = task->key_begin; j < task->key_end; j++) {
        const void *at, *at_v;
        attest_key_pointers(task, false, j, 1, &at);
        attest_key_pointers(task, true, j, 1, &at_v);
        for (int64_t d = 0; d < p->dim; d++)
            k[d * p->seq_kv + j] = (double)attest_load(at, p->dtype, d);
        for (int64_t d = 0; d < p->dim_v; d++)
            v[j * p->dim_v + d] = (double)attest_load(at_v, p->dtype, d);
    }
}

#include "frame.h"

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)p->dim_v * sizeof(double);
}

static void compute_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    bool prepared = task->q_count * (p->heads_q / p->heads_kv) > ATTEST_PREPARE_ROWS;
    const double *k = task->shared, *v = k + p->seq_kv * p->dim;
    double *o = scratch;
    for (int64_t r = 0; r < task->row_end - task->row_begin; r++) {
        attest_row row = attest_row_get(task, task->row_begin + r);
        double m = -INFINITY, l = 0;
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] = 0;
        for (int64_t j = row.lo; j < row.hi; j++) {
            double dot = 0;
            if (is_hidden(p, &row, j))
                continue;
            for (int64_t d = 0; d < p->dim; d++)
                dot += (double)attest_load(row.q, p->dtype, d) *
                       (prepared ? k[d * p->seq_kv + j] : (double)attest_load(key_at(task, j), p->dtype, d));
            double s = adjust(p, &row, j, dot * p->scale), top = s > m ? s : m, decay = exp(m - top), weight = exp(s - top);
            l = l * decay + weight;
            m = top;
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] =
                    o[d] * decay + weight * (prepared ? v[j * p->dim_v + d] : (double)attest_load(value_at(task, j), p->dtype, d));
        }
        END_ROW(task, &row, r, m, l, o);
    }
}
