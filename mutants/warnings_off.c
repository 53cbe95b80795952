/*
 * warnings_off.c - planted: turns a warning off by pragma.
 *
 * Caught by: build (#pragma GCC diagnostic)
 */
#pragma GCC diagnostic ignored "-Wunused-function"

static int rows_of_nobody(int rows)
{
    return rows;
}

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
