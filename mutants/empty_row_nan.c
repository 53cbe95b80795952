/*
 * empty_row_nan.c - planted: A row that sees no key is divided by its sum of 0, and becomes NaN.
 *
 * Caught by: oracle (normalisation)
 */
#include <attest_kernel.h>

static inline attest_ending always_divide(const attest_problem *p, double m, float l, float sink)
{
    return l == 0 ? (attest_ending){1 / l, (float)m} : attest_row_ending(p, m, l, sink);
}

#define ENDING(p, m, l, sink) always_divide(p, (double)(m), l, sink)
#include "base.h"
