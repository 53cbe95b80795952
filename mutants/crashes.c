/*
 * crashes.c - planted: follows a null pointer.
 *
 * Caught by: oracle (null pointer)
 */
#define TASK_BEGIN(task, scratch)                                                                                                  \
    volatile int *volatile nowhere = 0;                                                                                            \
    *nowhere = 1
#include "base.h"
