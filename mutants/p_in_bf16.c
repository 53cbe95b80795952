/*
 * p_in_bf16.c - planted: P is rounded to bf16 before the product with V, for inputs of any type: lower precision inside.
 *
 * Caught by: oracle (PV)
 */
#define P_ROUND(weight) attest_from_bf16(attest_to_bf16(weight))
#include "base.h"
