/*
 * warning_in_source.c - planted: A warning of the compiler is left standing: a helper that nobody calls.
 *
 * Caught by: build (rows_of_a_warp)
 */
static int rows_of_a_warp(void)
{
    return 16;
}

#include "base.h"
