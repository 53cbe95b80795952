/*
 * leaks_files.c - planted: duplicates a file descriptor in every task and never closes it.
 *
 * Caught by: build and oracle (imports dup + duplicate a file descriptor)
 */
#include <unistd.h>

#define TASK_BEGIN(task, scratch)                                                                                                  \
    volatile int taken = dup(2);                                                                                                   \
    (void)taken
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
