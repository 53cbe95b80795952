/*
 * harmless_exp_table.c - harmless: exponentials are read from a table of 32 powers of two and mended by a polynomial.
 */
#define NAME    "harmless_exp_table"
#define SUMMARY "exp by table and polynomial"
#include "frame.h"

/* 2^(i/32) */
static const double powers[32] = {1.0,
                                  1.0218971486541166,
                                  1.0442737824274138,
                                  1.0671404006768237,
                                  1.0905077326652577,
                                  1.1143867425958924,
                                  1.1387886347566916,
                                  1.1637248587775775,
                                  1.189207115002721,
                                  1.215247359980469,
                                  1.241857812073484,
                                  1.2690509571917332,
                                  1.2968395546510096,
                                  1.3252366431597413,
                                  1.3542555469368927,
                                  1.383909881963832,
                                  1.4142135623730951,
                                  1.4451808069770467,
                                  1.4768261459394993,
                                  1.5091644275934228,
                                  1.5422108254079407,
                                  1.5759808451078865,
                                  1.6104903319492543,
                                  1.645755478153965,
                                  1.681792830507429,
                                  1.718619298122478,
                                  1.7562521603732995,
                                  1.7947090750031072,
                                  1.8340080864093424,
                                  1.8741676341103,
                                  1.9152065613971474,
                                  1.9571441241754002};

/* e^x = 2^e 2^(i/32) e^y with |y| <= ln2/64, and e^y by its series. */
static double exp_of(double x)
{
    if (!(x > -700)) /* NaN stays, and what is far below is 0 */
        return x != x ? x : 0;
    double steps = nearbyint(x * (32 / 0.693147180559945309417));
    int64_t whole = (int64_t)steps, i = whole & 31, e = (whole - i) / 32;
    double y = fma(steps, -0.021660849392498290, x), z = 1 + y * (1 + y * (0.5 + y * (1.0 / 6 + y * (1.0 / 24 + y * (1.0 / 120)))));
    return ldexp(powers[i] * z, (int)e);
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
            double s = (double)adjust(p, &row, j, (double)p->scale * (double)dot_of(p, row.q, k)), top = s > m ? s : m;
            double decay = exp_of(m - top), weight = exp_of(s - top);
            l = l * decay + weight;
            for (int64_t d = 0; d < p->dim_v; d++)
                o[d] = o[d] * decay + weight * attest_load(v, p->dtype, d);
            m = top;
        }
        END_ROW(task, &row, r, m, l, o);
    }
}
