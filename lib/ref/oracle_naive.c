/*
 * oracle_naive.c - the same text in float, with weights rounded to the dtype of V: what a straightforward implementation gives.
 */
#include "oracle.h"

static float round_to(float weight, uint32_t dtype)
{
    if (dtype == ATTEST_F16)
        return attest_f16_to_float(attest_f16_from_float(weight));
    if (dtype == ATTEST_BF16)
        return attest_bf16_to_float(attest_bf16_from_float(weight));
    return weight;
}

#define REAL          float
#define REAL_EXP      expf
#define REAL_LOG      logf
#define REAL_TANH     tanhf
#define SUMS          1
#define ROUND_P(p, d) round_to(p, d)
#define ORACLE        oracle_naive
#include "oracle_body.h"
