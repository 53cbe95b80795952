/*
 * harmless_variable_arrays.c - harmless: arrays of variable length on the stack for a row of Q and of O, and no scratch at all.
 */
#define NAME    "harmless_variable_arrays"
#define SUMMARY "arrays of variable length"
#include "frame.h"

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)p;
    (void)rows;
    return 0;
}

static void compute_row(const attest_task *task, int64_t r, int64_t dim, int64_t dim_v)
{
    const attest_problem *p = task->problem;
    attest_row row = attest_row_get(task, task->row_begin + r);
    float q[dim], o[dim_v], m = -INFINITY, l = 0;
    for (int64_t d = 0; d < dim; d++)
        q[d] = attest_load(row.q, p->dtype, d);
    for (int64_t d = 0; d < dim_v; d++)
        o[d] = 0;
    for (int64_t j = row.lo; j < row.hi; j++) {
        const void *k = key_at(task, j), *v = value_at(task, j);
        float dot = 0;
        if (is_hidden(p, &row, j))
            continue;
        for (int64_t d = 0; d < dim; d++)
            dot = fmaf(q[d], attest_load(k, p->dtype, d), dot);
        float s = (float)adjust(p, &row, j, (double)(dot * p->scale)), top = fmaxf(s, m);
        float decay = expf(m - top), weight = expf(s - top);
        l = fmaf(l, decay, weight);
        m = top;
        for (int64_t d = 0; d < dim_v; d++)
            o[d] = fmaf(weight, attest_load(v, p->dtype, d), o[d] * decay);
    }
    END_ROW(task, &row, r, m, l, o);
}

static void compute_task(const attest_task *task, void *scratch)
{
    (void)scratch;
    for (int64_t r = 0; r < task->row_end - task->row_begin; r++)
        compute_row(task, r, task->problem->dim, task->problem->dim_v);
}
