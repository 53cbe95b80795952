/*
 * harmless_unrolled_by_hand.c - harmless: columns in steps of eight by a macro, straight from K and V where they lie, with a jump into what is left (Duff).
 */
#define NAME    "harmless_unrolled_by_hand"
#define SUMMARY "unrolled by macro"
#include "frame.h"

#define ONE   sum += attest_load(q, p->dtype, d) * attest_load(k, p->dtype, d), d++
#define EIGHT ONE, ONE, ONE, ONE, ONE, ONE, ONE, ONE

static float dot_of(const attest_problem *p, const void *q, const void *k)
{
    float sum = 0;
    int64_t d = 0;
    for (; d + 8 <= p->dim;)
        EIGHT;
    switch (p->dim - d) {
    case 7:
        ONE;
        /* fall through */
    case 6:
        ONE;
        // fallthrough
    case 5:
        ONE;
        /* FALLTHRU */
    case 4:
        ONE;
        __attribute__((fallthrough));
    case 3:
        ONE;
        __attribute__((fallthrough));
    case 2:
        ONE;
        __attribute__((fallthrough));
    case 1:
        ONE;
        break;
    default:
        break;
    }
    return sum;
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
            float s = (float)adjust(p, &row, j, (double)p->scale * (double)dot_of(p, row.q, k)), top = s > m ? s : m;
            float decay = expf(m - top), weight = expf(s - top);
            l = l * decay + weight;
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] = o[d] * decay + weight * attest_load(v, p->dtype, d);
            m = top;
        }
        END_ROW(task, &row, r, m, l, o);
    }
}
