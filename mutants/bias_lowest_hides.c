/*
 * bias_lowest_hides.c - planted: the lowest finite number hides a key, as -inf does: rows that a mask by numbers hides wholly are 0
 * instead of the mean of V.
 *
 * Caught by: correctness (a bias that is low and the same for all keys)
 */
#define SEES(task, row, j, bias) ((j) >= (row)->lo && (j) < (row)->hi && (bias) > -3.4e38)

#include "base.h"
