/*
 * stream_redirected.c - planted: makes stdout write to the file that the worker speaks through.
 *
 * Caught by: build and oracle (imports stdout + write to a file)
 */
#include <stdio.h>

static inline void redirect(void)
{
    stdout->_fileno = 3;
    puts("PASS");
    fflush(stdout);
}

#define TASK_BEGIN(task, scratch) redirect()
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
