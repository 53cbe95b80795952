/*
 * harmless_blocks_joined.c - harmless: each block of 16 keys keeps its own maximum, sum and output in a large scratch; all are joined at the end of the row.
 */
#define NAME        "harmless_blocks_joined"
#define SUMMARY     "blocks joined at the end"
#define ROWS_WANTED 7
#include "frame.h"

enum { BLOCK = 16 };

static int64_t most_blocks(const attest_problem *p)
{
    return p->seq_kv / BLOCK + 2;
}

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)(most_blocks(p) * (p->dim_v + 2) + p->dim_v) * sizeof(float);
}

/* Maximum, sum and output of a block, without regard to any other. */
static void one_block(const attest_task *task, const attest_row *row, int64_t from, int64_t to, float *m, float *l, float *o)
{
    const attest_problem *p = task->problem;
    float s[BLOCK];
    *m = -INFINITY;
    *l = 0;
    for (int64_t j = from; j < to; j++) {
        const void *k = key_at(task, j);
        float dot = 0;
        for (int64_t d = 0; d < p->dim; d++)
            dot += attest_load(row->q, p->dtype, d) * attest_load(k, p->dtype, d);
        s[j - from] = (float)adjust(p, row, j, (double)(dot * p->scale));
        if (!is_hidden(p, row, j) && s[j - from] > *m)
            *m = s[j - from];
    }
    for (int64_t d = 0; d < p->dim_v; d++)
        o[d] = 0;
    for (int64_t j = from; j < to; j++) {
        const void *v = value_at(task, j);
        if (is_hidden(p, row, j))
            continue;
        float weight = expf(s[j - from] - *m);
        *l += weight;
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] += weight * attest_load(v, p->dtype, d);
    }
}

static void compute_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    int64_t room = most_blocks(p);
    float *m = scratch, *l = m + room, *total = l + room, *o = total + p->dim_v;
    for (int64_t r = 0; r < task->row_end - task->row_begin; r++) {
        attest_row row = attest_row_get(task, task->row_begin + r);
        int64_t blocks = 0;
        float top = -INFINITY, sum = 0;
        for (int64_t from = row.lo; from < row.hi; blocks++) {
            int64_t end = (from / BLOCK + 1) * BLOCK, to = end < row.hi ? end : row.hi;
            one_block(task, &row, from, to, &m[blocks], &l[blocks], o + blocks * p->dim_v);
            from = to;
        }
        for (int64_t b = 0; b < blocks; b++)
            top = m[b] > top ? m[b] : top;
        for (int64_t d = 0; d < p->dim_v; d++)
            total[d] = 0;
        for (int64_t b = 0; b < blocks; b++) {
            float share = l[b] == 0 ? 0 : expf(m[b] - top);
            sum += share * l[b];
            for (int64_t d = 0; d < p->dim_v && l[b] != 0; d++)
                total[d] += share * o[b * p->dim_v + d];
        }
        END_ROW(task, &row, r, top, sum, total);
    }
}
