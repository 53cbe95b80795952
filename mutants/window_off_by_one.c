/*
 * window_off_by_one.c - planted: A window to the left reaches one key too far.
 *
 * Caught by: oracle (mask)
 */
#define ADJUST_ROW(task, row, r)                                                                                                   \
    ((row)->lo -= attest_has((task)->problem, ATTEST_WINDOW_LEFT) && (row)->lo < (row)->hi && (row)->lo > (task)->key_begin)
#include "base.h"
