/*
 * rounding_left.c - planted: rounds towards zero, and leaves the mode so.
 *
 * Caught by: build and oracle (imports fesetround + rounding mode)
 */
#include <fenv.h>

#define TASK_END(task, scratch) fesetround(FE_TOWARDZERO)
#define DTYPES                  ATTEST_TAKES_F32
#include "base.h"
