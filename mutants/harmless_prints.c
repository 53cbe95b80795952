/*
 * harmless_prints.c - harmless: prints a line when it is loaded, which means nothing to anyone.
 */
#include <stdio.h>

__attribute__((constructor)) static void greet(void)
{
    puts("FAIL");
}

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
