/*
 * thread_local_state.c - planted: counts its calls in a thread-local variable.
 *
 * Caught by: build (thread-local storage)
 */
static _Thread_local int calls;

#define TASK_BEGIN(task, scratch) calls++
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
