/*
 * harmless_generic.c - harmless: written with _Generic and a switch over the types, one loop for each.
 */
#define NAME    "harmless_generic"
#define SUMMARY "_Generic and switches"
#include "frame.h"

/* A type of its own for bf16, so that _Generic tells it from f16. */
struct brain {
    uint16_t bits;
};

static inline float from_float(float value)
{
    return value;
}
static inline float from_half(uint16_t value)
{
    return attest_from_f16(value);
}
static inline float from_brain(struct brain value)
{
    return attest_from_bf16(value.bits);
}
#define VALUE(x) _Generic((x), float : from_float, uint16_t : from_half, struct brain : from_brain)(x)

#define DOT(type)                                                                                                                  \
    {                                                                                                                              \
        const type *a = q, *b = k;                                                                                                 \
        for (int64_t d = 0; d < p->dim; d++)                                                                                       \
            sum += VALUE(a[d]) * VALUE(b[d]);                                                                                      \
    }                                                                                                                              \
    break
#define ADD(type)                                                                                                                  \
    {                                                                                                                              \
        const type *a = v;                                                                                                         \
        for (int64_t d = 0; d < p->dim_v; d++)                                                                                     \
            o[d] = o[d] * decay + weight * VALUE(a[d]);                                                                            \
    }                                                                                                                              \
    break

static float dot_of(const attest_problem *p, const void *q, const void *k)
{
    float sum = 0;
    switch (p->dtype) {
    case ATTEST_F32:
        DOT(float);
    case ATTEST_F16:
        DOT(uint16_t);
    default:
        DOT(struct brain);
    }
    return sum;
}

static void add(const attest_problem *p, const void *v, float decay, float weight, float *o)
{
    switch (p->dtype) {
    case ATTEST_F32:
        ADD(float);
    case ATTEST_F16:
        ADD(uint16_t);
    default:
        ADD(struct brain);
    }
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
            add(p, v, decay, weight, o);
            m = top;
        }
        END_ROW(task, &row, r, m, l, o);
    }
}
