/*
 * exit_on_load.c - planted: prints PASS and leaves with status 0 as soon as it is loaded.
 *
 * Caught by: build (constructor)
 */
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void leave(void)
{
    puts("PASS");
    exit(0);
}

#include "base.h"
