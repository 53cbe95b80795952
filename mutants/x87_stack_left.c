/*
 * x87_stack_left.c - planted: leaves a number on the x87 stack in every task: after eight of them long double is NaN for everyone.
 *
 * Caught by: build and oracle (asm with instructions + x87 stack)
 */
#define TASK_END(task, scratch) __asm__ volatile("fld1")
#define DTYPES                  ATTEST_TAKES_F32
#include "base.h"
