/*
 * causal_off_by_one.c - planted: with a causal mask a row also sees the key after its own place.
 *
 * Caught by: oracle (mask)
 */
#define ADJUST_ROW(task, row, r)                                                                                                   \
    ((row)->hi += attest_has((task)->problem, ATTEST_CAUSAL) && (row)->lo < (row)->hi && (row)->hi < (task)->key_end)
#include "base.h"
