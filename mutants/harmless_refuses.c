/*
 * harmless_refuses.c - harmless: takes no bias, no pages and no packed sequences, and says so.
 */
#define REFUSES (ATTEST_BIAS | ATTEST_PAGED | ATTEST_VARLEN_Q | ATTEST_VARLEN_KV)
#define DTYPES  ATTEST_TAKES_F32
#include "base.h"
