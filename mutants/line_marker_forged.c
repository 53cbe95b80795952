/*
 * line_marker_forged.c - planted: says in a line marker that its text is that of a system header, where pragmas and warnings are not looked at.
 *
 * Caught by: build (a line marker)
 */
# 7 "/usr/include/math.h" 3
static int rows_of_nobody(int rows)
{
    return rows;
}

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
