/*
 * o_sum_in_bf16.c - planted: the output is summed in bf16.
 *
 * Caught by: oracle (PV)
 */
#define PV_STEP(o, weight, v) attest_from_bf16(attest_to_bf16((o) + (weight) * (v)))
#include "base.h"
