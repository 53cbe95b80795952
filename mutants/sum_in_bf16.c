/*
 * sum_in_bf16.c - planted: the sum is kept in bf16.
 *
 * Caught by: oracle (P)
 */
#define SUM(l, decay, sum) attest_from_bf16(attest_to_bf16((l) * (decay) + (sum)))
#include "base.h"
