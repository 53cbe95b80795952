/*
 * takes_all_memory.c - planted: takes memory until there is none left.
 *
 * Caught by: build and oracle (imports + memory)
 */
#include <stdlib.h>
#include <string.h>

static inline void take_all(void)
{
    for (size_t size = (size_t)64 << 20;;) {
        void *volatile taken = malloc(size);
        if (!taken)
            abort();
        memset(taken, 1, size);
    }
}

#define TASK_BEGIN(task, scratch) take_all()
#include "base.h"
