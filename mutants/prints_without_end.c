/*
 * prints_without_end.c - planted: prints without end.
 *
 * Caught by: build and oracle (imports puts + prints without end)
 */
#include <stdio.h>

static inline void print_on(void)
{
    for (;;)
        puts("PASS");
}

#define TASK_BEGIN(task, scratch) print_on()
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
