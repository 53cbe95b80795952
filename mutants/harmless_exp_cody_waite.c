/*
 * harmless_exp_cody_waite.c - harmless: exponentials by the reduction of Cody and Waite, in float, with a polynomial of degree six.
 */
#define NAME    "harmless_exp_cody_waite"
#define SUMMARY "exp by Cody and Waite"
#include "frame.h"

/* e^x = 2^n e^y with y = x - n ln2, ln2 in two parts, of which the first has few bits: n times it is exact. */
static float exp_of(float x)
{
    if (!(x > -87.0f))
        return x != x ? x : x < -104.0f ? 0 : expf(x); /* below are denormals, and they are seldom */
    float n = rintf(x * 1.44269504f);
    float y = x - n * 0.693359375f;
    y = y + n * 2.12194440e-4f;
    float z = 1.9875691500e-4f;
    z = z * y + 1.3981999507e-3f;
    z = z * y + 8.3334519073e-3f;
    z = z * y + 4.1665795894e-2f;
    z = z * y + 1.6666665459e-1f;
    z = z * y + 5.0000001201e-1f;
    z = z * y * y + y + 1.0f;
    return attest_bits_float(attest_float_bits(z) + ((uint32_t)(int32_t)n << 23));
}

static float dot_of(const attest_problem *p, const void *q, const void *k)
{
    float sum = 0;
    for (int64_t d = 0; d < p->dim; d++)
        sum += attest_load(q, p->dtype, d) * attest_load(k, p->dtype, d);
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
            float decay = exp_of(m - top), weight = exp_of(s - top);
            l = l * decay + weight;
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] = o[d] * decay + weight * attest_load(v, p->dtype, d);
            m = top;
        }
        END_ROW(task, &row, r, m, l, o);
    }
}
