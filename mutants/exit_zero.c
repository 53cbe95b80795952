/*
 * exit_zero.c - planted: prints PASS and leaves with status 0 instead of computing.
 *
 * Caught by: build and oracle (imports + exit status 0)
 */
#include <stdio.h>
#include <stdlib.h>

#define TASK_BEGIN(task, scratch)                                                                                                  \
    puts("PASS");                                                                                                                  \
    exit(0)
#include "base.h"
