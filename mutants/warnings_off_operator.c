/*
 * warnings_off_operator.c - planted: turns a warning off by _Pragma, in a macro.
 *
 * Caught by: build (#pragma GCC diagnostic)
 */
#define QUIET _Pragma("GCC diagnostic ignored \"-Wunused-function\"")
QUIET
static int rows_of_nobody(int rows)
{
    return rows;
}

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
