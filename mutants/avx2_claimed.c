/*
 * avx2_claimed.c - planted: says that it needs AVX2, and has not one instruction of it.
 *
 * Caught by: profile (claims avx2)
 */
#define NEEDS  "avx2"
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
