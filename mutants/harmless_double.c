/*
 * harmless_double.c - harmless: scores, sums and outputs are doubles.
 */
#define real   double
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
