/*
 * harmless_three_rows.c - harmless: three rows at a time in local variables, tasks of 3, 6 or 9 rows, and each key is loaded once for all three.
 */
#define NAME        "harmless_three_rows"
#define SUMMARY     "three rows at a time"
#define ROW_STEP    3
#define ROWS_WANTED 9
#include "frame.h"

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)(3 * p->dim_v + p->dim) * sizeof(float);
}

static void compute_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    float *o = scratch, *key = o + 3 * p->dim_v;
    for (int64_t first = task->row_begin; first < task->row_end; first += 3) {
        int64_t count = task->row_end - first < 3 ? task->row_end - first : 3, lo = INT64_MAX, hi = 0;
        attest_row row[3];
        float m[3], l[3];
        for (int64_t i = 0; i < count; i++) {
            row[i] = attest_row_get(task, first + i);
            m[i] = -INFINITY;
            l[i] = 0;
            lo = row[i].lo < row[i].hi && row[i].lo < lo ? row[i].lo : lo;
            hi = row[i].hi > hi ? row[i].hi : hi;
        }
        for (int64_t d = 0; d < 3 * p->dim_v; d++)
            o[d] = 0;
        for (int64_t j = lo; j < hi; j++) {
            const void *k = key_at(task, j), *v = value_at(task, j);
            for (int64_t d = 0; d < p->dim; d++)
                key[d] = attest_load(k, p->dtype, d);
            for (int64_t i = 0; i < count; i++) {
                float dot = 0;
                if (j < row[i].lo || j >= row[i].hi || is_hidden(p, &row[i], j))
                    continue;
                for (int64_t d = 0; d < p->dim; d++)
                    dot += attest_load(row[i].q, p->dtype, d) * key[d];
                float s = (float)adjust(p, &row[i], j, (double)(dot * p->scale)), top = s > m[i] ? s : m[i];
                float decay = expf(m[i] - top), weight = expf(s - top);
                l[i] = l[i] * decay + weight;
                m[i] = top;
                for (int64_t d = 0; d < p->dim_v; d++)
                    o[i * p->dim_v + d] = o[i * p->dim_v + d] * decay + weight * attest_load(v, p->dtype, d);
            }
        }
        for (int64_t i = 0; i < count; i++)
            END_ROW(task, &row[i], first - task->row_begin + i, m[i], l[i], o + i * p->dim_v);
    }
}
