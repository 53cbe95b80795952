/*
 * harmless_alloca.c - harmless: takes memory from the stack, as much as a row of scores needs.
 */
#include <alloca.h>
#include <string.h>

static inline void take_stack(size_t bytes)
{
    volatile char *room = alloca(bytes);
    memset((char *)room, 0, bytes);
}

#define TASK_BEGIN(task, scratch) take_stack((size_t)task->problem->dim * 64)
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
