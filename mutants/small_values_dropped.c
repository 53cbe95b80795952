/*
 * small_values_dropped.c - planted: approximate below a magnitude: values of V less than 1e-11 are taken for 0.
 *
 * Caught by: oracle (PV)
 */
#define PV_STEP(o, weight, v) (fabsf(v) < 1e-11f ? (o) : (o) + (weight) * (v))
#define DTYPES                ATTEST_TAKES_F32
#include "base.h"
