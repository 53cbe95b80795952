/*
 * bias_low_hides.c - planted: a bias of -10000 and less hides a key, as -inf does: rows in which every key has one lose their answer.
 *
 * Caught by: correctness (bias=low)
 */
#define SEES(task, row, j, bias) ((j) >= (row)->lo && (j) < (row)->hi && (bias) > -9000)

#include "base.h"
