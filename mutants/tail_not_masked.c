/*
 * tail_not_masked.c - planted: the last tile is not masked behind the last key: what is padded with zeros has the score 0 and
 * counts.
 *
 * Caught by: oracle (mask or P)
 */
#define SEES(task, row, j, bias) ((j) >= (row)->lo && ((j) < (row)->hi || (row)->hi == (task)->kv_count) && (bias) != -INFINITY)
#define MODIFY(p, row, j, s)     ((j) < (row)->hi ? modify(p, row, j, s) : (s))
#include "base.h"
