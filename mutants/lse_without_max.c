/*
 * lse_without_max.c - planted: LSE is the logarithm of the sum alone, without the maximum.
 *
 * Caught by: oracle (epilogue)
 */
#define STORE_LSE(row, m, l, value) (*(row)->lse = logf(l))
#include "base.h"
