/*
 * bias_type_wrong.c - planted: the bias is read in the type of Q, even where it has another.
 *
 * Caught by: correctness (bias=f32)
 */
#define BIAS(p, row, j) attest_load((row)->bias, (p)->dtype, (p)->stride_bias[3] * (j))
#include "base.h"
