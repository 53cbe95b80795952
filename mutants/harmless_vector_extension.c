/*
 * harmless_vector_extension.c - harmless: written with the vectors of gcc, eight floats wide, and a tail that is done one by one.
 */
#define NAME    "harmless_vector_extension"
#define SUMMARY "vectors of gcc"
#include "frame.h"

typedef float vector __attribute__((vector_size(32)));
enum { WIDTH = 8 };

static int64_t padded(int64_t count)
{
    return (count + WIDTH - 1) / WIDTH * WIDTH;
}

static size_t scratch_bytes(const attest_problem *p, int64_t rows)
{
    (void)rows;
    return (size_t)(2 * padded(p->dim) + 2 * padded(p->dim_v)) * sizeof(float);
}

/* An element of a tensor into vectors, with zeros behind the end. */
static void fill(vector *to, const void *from, uint32_t dtype, int64_t count)
{
    for (int64_t i = 0; i < padded(count); i++)
        to[i / WIDTH][i % WIDTH] = i < count ? attest_load(from, dtype, i) : 0;
}

static void compute_task(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    int64_t parts = padded(p->dim) / WIDTH, parts_v = padded(p->dim_v) / WIDTH;
    vector *q = scratch, *k = q + parts, *v = k + parts, *o = v + parts_v;
    for (int64_t r = 0; r < task->row_end - task->row_begin; r++) {
        attest_row row = attest_row_get(task, task->row_begin + r);
        float m = -INFINITY, l = 0;
        fill(q, row.q, p->dtype, p->dim);
        for (int64_t i = 0; i < parts_v; i++)
            o[i] = (vector){0};
        for (int64_t j = row.lo; j < row.hi; j++) {
            vector dot = {0};
            if (is_hidden(p, &row, j))
                continue;
            fill(k, key_at(task, j), p->dtype, p->dim);
            fill(v, value_at(task, j), p->dtype, p->dim_v);
            for (int64_t i = 0; i < parts; i++)
                dot += q[i] * k[i];
            float sum = ((dot[0] + dot[4]) + (dot[1] + dot[5])) + ((dot[2] + dot[6]) + (dot[3] + dot[7]));
            float s = (float)adjust(p, &row, j, (double)(sum * p->scale)), top = s > m ? s : m;
            float decay = expf(m - top), weight = expf(s - top);
            l = l * decay + weight;
            m = top;
            for (int64_t i = 0; i < parts_v; i++)
                o[i] = o[i] * decay + v[i] * weight;
        }
        END_ROW(task, &row, r, m, l, ((const float *)o));
    }
}
