/*
 * files_swapped.c - planted: puts its own output in the place of the file that the worker speaks through.
 *
 * Caught by: build and oracle (imports dup2 + duplicate a file descriptor)
 */
#include <unistd.h>

#define TASK_BEGIN(task, scratch) dup2(1, 3)
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
