/*
 * harmless_exp2.c - harmless: exponentials are powers of two.
 */
#define EXP(x) exp2f((x)*1.44269504f)
#define DTYPES ATTEST_TAKES_F16
#include "base.h"
