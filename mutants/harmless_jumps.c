/*
 * harmless_jumps.c - harmless: written with labels and jumps, a state machine instead of loops.
 */
#define NAME    "harmless_jumps"
#define SUMMARY "labels and jumps"
#include "frame.h"

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)p->dim_v * sizeof(float);
}

static void compute_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    float *o = scratch, m, l, dot, s, top, decay, weight;
    int64_t r = -1, j, d;
    const void *k, *v;
    attest_row row;

next_row:
    if (__builtin_expect(++r == task->row_end - task->row_begin, 0))
        return;
    row = attest_row_get(task, task->row_begin + r);
    m = -INFINITY;
    l = 0;
    j = row.lo - 1;
    d = 0;
clear:
    if (d < p->dim_v) {
        o[d++] = 0;
        goto clear;
    }
next_key:
    if (__builtin_expect(++j >= row.hi, 0))
        goto end_of_row;
    if (is_hidden(p, &row, j))
        goto next_key;
    k = key_at(task, j);
    v = value_at(task, j);
    dot = 0;
    d = 0;
product:
    if (__builtin_expect(d < p->dim, 1)) {
        dot += attest_load(row.q, p->dtype, d) * attest_load(k, p->dtype, d);
        d++;
        goto product;
    }
    s = (float)adjust(p, &row, j, (double)(dot * p->scale));
    if (!(s <= m))
        goto new_top;
    decay = 1;
    top = m;
    goto weigh;
new_top:
    top = s;
    decay = expf(m - top);
weigh:
    weight = expf(s - top);
    l = l * decay + weight;
    m = top;
    d = 0;
add:
    if (d < p->dim_v) {
        o[d] = o[d] * decay + weight * attest_load(v, p->dtype, d);
        d++;
        goto add;
    }
    goto next_key;
end_of_row:
    END_ROW(task, &row, r, m, l, o);
    goto next_row;
}
