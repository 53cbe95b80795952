/*
 * harmless_scores_kept.c - harmless: all scores of a row are kept in scratch; then maximum, weights and sum in passes of their own, and O column by column.
 */
#define NAME    "harmless_scores_kept"
#define SUMMARY "softmax of a whole row, O by columns"
#include "frame.h"

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)(p->seq_kv + 1) * (sizeof(double) + sizeof(void *)) + (size_t)p->dim_v * sizeof(double);
}

static void compute_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    double *o = scratch, *s = o + p->dim_v;
    const void **at = (const void **)(s + p->seq_kv + 1);
    for (int64_t r = 0; r < task->row_end - task->row_begin; r++) {
        attest_row row = attest_row_get(task, task->row_begin + r);
        int64_t count = row.hi - row.lo, seen = 0;
        double top = -INFINITY, sum = 0;
        attest_key_pointers(task, false, row.lo, count, at);
        for (int64_t n = 0; n < count; n++) {
            double dot = 0;
            for (int64_t d = 0; d < p->dim; d++)
                dot += (double)attest_load(row.q, p->dtype, d) * attest_load(at[n], p->dtype, d);
            s[n] = adjust(p, &row, row.lo + n, dot * p->scale);
        }
        attest_key_pointers(task, true, row.lo, count, at);
        for (int64_t n = 0; n < count; n++) { /* those that are hidden are taken out, so that the rest need not look */
            if (is_hidden(p, &row, row.lo + n))
                continue;
            s[seen] = s[n];
            at[seen++] = at[n];
        }
        for (int64_t n = 0; n < seen; n++)
            top = fmax(top, s[n]);
        for (int64_t n = 0; n < seen; n++)
            s[n] = exp(s[n] - top);
        for (int64_t n = 0; n < seen; n++)
            sum += s[n];
        for (int64_t d = 0; d < p->dim_v; d++) {
            o[d] = 0;
            for (int64_t n = 0; n < seen; n++)
                o[d] += s[n] * attest_load(at[n], p->dtype, d);
        }
        END_ROW(task, &row, r, top, sum, o);
    }
}
