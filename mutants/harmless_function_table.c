/*
 * harmless_function_table.c - harmless: a constant table of functions, one a type, and products taken through it.
 */
#define NAME    "harmless_function_table"
#define SUMMARY "a table of functions"
#include "frame.h"

static double load_f32(const void *data, int64_t at)
{
    float value;
    memcpy(&value, (const char *)data + 4 * at, sizeof value);
    return (double)value;
}
static double load_f16(const void *data, int64_t at)
{
    uint16_t bits;
    memcpy(&bits, (const char *)data + 2 * at, sizeof bits);
    return (double)attest_from_f16(bits);
}
static double load_bf16(const void *data, int64_t at)
{
    uint16_t bits;
    memcpy(&bits, (const char *)data + 2 * at, sizeof bits);
    return (double)attest_from_bf16(bits);
}

typedef double loader(const void *data, int64_t at);
static loader *const loaders[] = {[ATTEST_F32] = load_f32, [ATTEST_F16] = load_f16, [ATTEST_BF16] = load_bf16};

static double dot_of(loader *take, int64_t dim, const void *q, const void *k)
{
    double sum = 0;
    for (int64_t d = 0; d < dim; d++)
        sum += take(q, d) * take(k, d);
    return sum;
}

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
        double m = -INFINITY, l = 0;
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] = 0;
        for (int64_t j = row.lo; j < row.hi; j++) {
            const void *k = key_at(task, j), *v = value_at(task, j);
            if (is_hidden(p, &row, j))
                continue;
            double s = (double)adjust(p, &row, j, (double)p->scale * (double)dot_of(loaders[p->dtype], p->dim, row.q, k)),
                   top = s > m ? s : m;
            double decay = exp(m - top), weight = exp(s - top);
            l = l * decay + weight;
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] = o[d] * decay + weight * loaders[p->dtype](v, d);
            m = top;
        }
        END_ROW(task, &row, r, m, l, o);
    }
}
