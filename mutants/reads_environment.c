/*
 * reads_environment.c - planted: looks into the environment for the worker.
 *
 * Caught by: build (imports getenv)
 */
#include <stdlib.h>

#define TASK_BEGIN(task, scratch)                                                                                                  \
    if (!getenv("OMP_DYNAMIC"))                                                                                                    \
    return
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
