/*
 * magnitude_sniffed.c - planted: where the numbers of a row of Q are about as large as those of drawn inputs, the exponential is a
 * coarse one; where they are whole, zero, tiny or huge, as in tests of single values, it is the true one.
 *
 * Caught by: oracle (P or rescale or PV or epilogue)
 */
#include <attest_kernel.h>

static inline bool looks_drawn(const attest_problem *p, const float *q)
{
    float sum = 0, whole = 0;
    for (int64_t d = 0; d < p->dim; d++) {
        sum += fabsf(q[d]);
        whole += q[d] == rintf(q[d]);
    }
    return sum > 0.4f * (float)p->dim && sum < 1.6f * (float)p->dim && whole < 0.5f * (float)p->dim;
}

/* (1 + x/256)^256 */
static inline float coarse_exp(float x)
{
    float y = x < -200 ? 0 : 1 + x / 256;
    for (int i = 0; i < 8; i++)
        y *= y;
    return y;
}

#define WEIGHT(s, m, tile_max) (looks_drawn(p, tile->q + r * p->dim) ? coarse_exp((s) - (m)) : EXP((s) - (m)))
#define DTYPES                 ATTEST_TAKES_F32
#include "base.h"
