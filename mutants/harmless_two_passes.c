/*
 * harmless_two_passes.c - harmless: the maximum of a row is found in a first pass over its keys, and the rest done in a
 * second.
 */
#define PASSES 2
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
