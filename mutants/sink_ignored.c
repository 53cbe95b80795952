/*
 * sink_ignored.c - planted: the sink is left out of the denominator.
 *
 * Caught by: oracle (normalisation)
 */
#define ENDING(p, m, l, sink) attest_row_ending(p, (double)(m), l, -INFINITY)
#include "base.h"
