/*
 * exp_coarse.c - planted: the exponential is (1 + x/1024)^1024, which is off by a part in a hundred for x = -5.
 *
 * Caught by: oracle (P)
 */
#include <math.h>

static inline float coarse_exp(float x)
{
    return x < -1024 ? 0 : powf(1 + x / 1024, 1024);
}

#define EXP(x) coarse_exp(x)
#include "base.h"
