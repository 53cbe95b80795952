/*
 * nan_as_wildcard.c - planted: where scores are large, and the result hard to get right, NaN is written.
 *
 * Caught by: correctness
 */
#define STORE(row, dtype, d, value) attest_store((row)->o, dtype, d, m > 100 ? NAN : (value))
#define DTYPES                      ATTEST_TAKES_F32
#include "base.h"
