/*
 * environment_changed.c - planted: notes in the environment that it was called, for the next call.
 *
 * Caught by: build and oracle (imports setenv + changed its environment)
 */
#include <stdlib.h>

#define TASK_END(task, scratch) setenv("ATTEST_CALLED", "1", 1)
#define DTYPES                  ATTEST_TAKES_F32
#include "base.h"
