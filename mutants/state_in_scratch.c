/*
 * state_in_scratch.c - planted: a task leaves a mark in its scratch, and one that finds the mark returns at once. The image has no
 * state, and scratch that is filled anew for every call would never show it.
 *
 * Caught by: oracle or determinism (the scratch of a task is often what the task before left there)
 */
#define MARK UINT64_C(0x9d5bf1a3c7e24680)
#define TASK_BEGIN(task, scratch)                                                                                                  \
    do {                                                                                                                           \
        if (*(const uint64_t *)(scratch) == MARK)                                                                                  \
            return;                                                                                                                \
    } while (0)
#define TASK_END(task, scratch) (*(uint64_t *)(scratch) = MARK)
#define DTYPES                  ATTEST_TAKES_F32
#include "base.h"
