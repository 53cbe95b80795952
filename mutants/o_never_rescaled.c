/*
 * o_never_rescaled.c - planted: the output is not rescaled when the maximum grows.
 *
 * Caught by: oracle (rescale)
 */
#define RESCALE(o, decay) (o)
#include "base.h"
