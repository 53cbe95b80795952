/*
 * not_normalised.c - planted: the output is not divided by the sum.
 *
 * Caught by: oracle (normalisation)
 */
#include <attest_kernel.h>

static inline attest_ending without_division(attest_ending ending)
{
    return (attest_ending){1, ending.lse};
}

#define ENDING(p, m, l, sink) without_division(attest_row_ending(p, (double)(m), l, sink))
#include "base.h"
