/*
 * prints_on_load.c - planted: prints a line when it is loaded, from a constructor.
 *
 * Caught by: build (constructor)
 */
#include <stdio.h>

__attribute__((constructor)) static void greet(void)
{
    puts("FAIL");
}

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
