/*
 * direction_flag_left.c - planted: copies backwards, and leaves the direction flag set.
 *
 * Caught by: build and oracle (asm with instructions + direction flag)
 */
#define TASK_END(task, scratch) __asm__ volatile("std")
#define DTYPES                  ATTEST_TAKES_F32
#include "base.h"
