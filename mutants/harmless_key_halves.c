/*
 * harmless_key_halves.c - harmless: the keys of a row are halved until eight are left, and the parts joined as a tree.
 */
#define NAME        "harmless_key_halves"
#define SUMMARY     "recursion over halves of the keys"
#define ROWS_WANTED 16
#include "frame.h"

enum { LEAF = 8, MOST_DEPTH = 40 };

/* What some keys give: maximum, sum, and dim_v numbers of output in the part of scratch that belongs to the depth. */
struct part {
    float m, l;
};

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)(p->dim_v * MOST_DEPTH) * sizeof(float);
}

static struct part leaf(const attest_task *task, const attest_row *row, int64_t from, int64_t to, float *o)
{
    const attest_problem *p = task->problem;
    float s[LEAF];
    struct part part = {-INFINITY, 0};
    for (int64_t j = from; j < to; j++) {
        const void *k = key_at(task, j);
        float dot = 0;
        for (int64_t d = 0; d < p->dim; d++)
            dot += attest_load(row->q, p->dtype, d) * attest_load(k, p->dtype, d);
        s[j - from] = (float)adjust(p, row, j, (double)(dot * p->scale));
        if (!is_hidden(p, row, j) && s[j - from] > part.m)
            part.m = s[j - from];
    }
    for (int64_t d = 0; d < p->dim_v; d++)
        o[d] = 0;
    for (int64_t j = from; j < to; j++) {
        const void *v = value_at(task, j);
        if (is_hidden(p, row, j))
            continue;
        float weight = expf(s[j - from] - part.m);
        part.l += weight;
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] += weight * attest_load(v, p->dtype, d);
    }
    return part;
}

/* The result lies in the first dim_v numbers of `o`; what is behind them belongs to the deeper ones. */
static struct part halves(const attest_task *task, const attest_row *row, int64_t from, int64_t to, float *o)
{
    int64_t dim_v = task->problem->dim_v;
    if (to - from <= LEAF)
        return leaf(task, row, from, to, o);
    int64_t middle = from + (to - from) / 2;
    struct part left = halves(task, row, from, middle, o), right = halves(task, row, middle, to, o + dim_v);
    struct part both = {left.m > right.m ? left.m : right.m, 0};
    float share_left = left.l == 0 ? 0 : expf(left.m - both.m), share_right = right.l == 0 ? 0 : expf(right.m - both.m);
    both.l = left.l * share_left + right.l * share_right;
    for (int64_t d = 0; d < dim_v; d++)
        o[d] = o[d] * share_left + o[dim_v + d] * share_right;
    return both;
}

static void compute_task(const attest_task *task, void *scratch)
{
    float *o = scratch;
    for (int64_t r = 0; r < task->row_end - task->row_begin; r++) {
        attest_row row = attest_row_get(task, task->row_begin + r);
        struct part part = halves(task, &row, row.lo, row.hi, o);
        END_ROW(task, &row, r, part.m, part.l, o);
    }
}
