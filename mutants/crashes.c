/*
 * crashes.c - planted: follows a null pointer.
 *
 * Caught by: oracle (null pointer)
 */
static int *volatile nowhere;

#define TASK_BEGIN(task, scratch) (*nowhere = 1)
#include "base.h"
