/*
 * avx2_hidden.c - planted: uses AVX2 without saying so, and would stop on a machine that lacks it.
 *
 * Caught by: profile (instructions of avx2)
 *
 * attest-flags: -mavx2
 */
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
