/*
 * harmless_long_double.c - harmless: exponentials and products of P and V are computed in long double, on the x87.
 */
#include <math.h>

#define EXP(x)                ((real)expl((long double)(x)))
#define PV_STEP(o, weight, v) ((real)((long double)(o) + (long double)(weight) * (long double)(v)))
#define DTYPES                ATTEST_TAKES_F32
#include "base.h"
