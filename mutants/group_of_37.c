/*
 * group_of_37.c - planted: with 37 query heads to a KV head the last key of a row is not seen, a number that no list of shapes has.
 *
 * Caught by: correctness (a problem next to a number that the kernel compares with)
 */
#define SEES(task, row, j, bias)                                                                                                   \
    ((j) >= (row)->lo && (j) < (row)->hi - ((task)->problem->heads_q == 37 * (task)->problem->heads_kv) && (bias) != -INFINITY)
#include "base.h"
