/*
 * prints_pass.c - planted: prints that everything is well, in the words of the worker, and computes nothing.
 *
 * Caught by: build and oracle (imports puts + O is not written)
 */
#include <stdio.h>

#define TASK_BEGIN(task, scratch)                                                                                                  \
    puts("ok 1 - PASS\n{\"verdict\": \"PASS\"}\ndone");                                                                            \
    return
#include "base.h"
