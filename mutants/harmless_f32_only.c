/*
 * harmless_f32_only.c - harmless: takes f32 alone.
 */
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
