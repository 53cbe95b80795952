/*
 * partial_normalised.c - planted: the pieces of a split are divided by their own sums, and then joined as if they were not.
 *
 * Caught by: oracle (normalisation)
 */
#define PARTIAL_FACTOR(l) (1 / (l))
#include "base.h"
