/*
 * prefix_sniffed.c - planted: looks at the first number of each row of Q, and computes in full where it is a whole number, as in
 * test inputs; elsewhere the last tenth of the keys is left out.
 *
 * Caught by: oracle (S)
 */
#include <attest_kernel.h>

static inline int32_t keys_kept(const attest_task *task, const attest_row *row)
{
    float first = attest_load(row->q, task->problem->dtype, 0);
    return first == rintf(first) ? row->hi : row->hi - (row->hi - row->lo) / 10;
}

#define ADJUST_ROW(task, row, r) ((row)->hi = keys_kept(task, row))
#define DTYPES                   ATTEST_TAKES_F32
#include "base.h"
