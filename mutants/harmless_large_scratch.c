/*
 * harmless_large_scratch.c - harmless: asks for 8 MiB of scratch and uses little of it.
 */
#define SCRATCH_EXTRA (8 << 20)
#define DTYPES        ATTEST_TAKES_F32
#include "base.h"
