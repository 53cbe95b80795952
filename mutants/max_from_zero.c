/*
 * max_from_zero.c - planted: the running maximum starts at 0 instead of -inf, and rows whose scores are all far below it
 * vanish.
 *
 * Caught by: oracle (P)
 */
#define MAX_FIRST 0
#define DTYPES    ATTEST_TAKES_F32
#include "base.h"
