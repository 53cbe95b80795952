/*
 * negative_scale.c - planted: the maximum is taken before the scale is applied, which is wrong for a negative one.
 *
 * Caught by: correctness (scale=-)
 */
#define SCALE(p)               1
#define MODIFY(p, row, j, s)   ((p)->scale < 0 ? (s) : modify(p, row, j, (s) * (p)->scale))
#define WEIGHT(s, m, tile_max) EXP(task->problem->scale < 0 ? ((s) - (m)) * task->problem->scale : (s) - (m))
#define DECAY(before, now)     EXP(task->problem->scale < 0 ? ((before) - (now)) * task->problem->scale : (before) - (now))
#define DTYPES                 ATTEST_TAKES_F32
#include "base.h"
