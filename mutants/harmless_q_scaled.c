/*
 * harmless_q_scaled.c - harmless: the scale is multiplied into Q once, when it is packed.
 */
#define PACK_Q(value, p, r, d) ((value) * (p)->scale)
#define SCALE(p)               1
#define DTYPES                 ATTEST_TAKES_F32
#include "base.h"
