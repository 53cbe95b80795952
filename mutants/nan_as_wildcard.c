/*
 * nan_as_wildcard.c - planted: where scores are very large, and the result hard to get right, NaN is written.
 *
 * Caught by: correctness (logits)
 */
#define STORE(row, dtype, d, value) attest_store((row)->o, dtype, d, m > 5000 ? NAN : (value))
#define DTYPES                      ATTEST_TAKES_F32
#include "base.h"
