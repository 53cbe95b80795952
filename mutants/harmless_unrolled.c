/*
 * harmless_unrolled.c - harmless: loops are unrolled by the compiler.
 *
 * attest-flags: -funroll-loops -O2
 */
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
