/*
 * scale_dropped.c - planted: the factor 1/sqrt(D) is left out of the scores.
 *
 * Caught by: oracle (S)
 */
#define SCALE(p) 1
#include "base.h"
