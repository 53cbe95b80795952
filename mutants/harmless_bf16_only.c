/*
 * harmless_bf16_only.c - harmless: takes bf16 alone, and rounds P to bf16 before the product with V, as hardware does.
 */
#define DTYPES          ATTEST_TAKES_BF16
#define P_ROUND(weight) attest_from_bf16(attest_to_bf16(weight))
#include "base.h"
