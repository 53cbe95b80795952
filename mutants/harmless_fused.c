/*
 * harmless_fused.c - harmless: products and sums are contracted to fused operations where the machine has them.
 *
 * attest-flags: -mavx2 -mfma -ffp-contract=fast
 */
#define NEEDS  "avx2"
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
