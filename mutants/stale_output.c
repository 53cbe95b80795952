/*
 * stale_output.c - planted: every fifth task fails in silence, and leaves in O what was there.
 *
 * Caught by: build and oracle (writable static storage + two runs on the same inputs differ)
 */
static int tasks_so_far;

#define TASK_BEGIN(task, scratch)                                                                                                  \
    if (__atomic_add_fetch(&tasks_so_far, 1, __ATOMIC_RELAXED) % 5 == 0)                                                           \
        return;
#include "base.h"
