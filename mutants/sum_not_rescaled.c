/*
 * sum_not_rescaled.c - planted: the sum is not rescaled when the maximum grows.
 *
 * Caught by: oracle (rescale)
 */
#define SUM(l, decay, sum) ((l) + (sum))
#include "base.h"
