/*
 * mapping_left.c - planted: maps memory in every task, and leaves it there without ever touching it.
 *
 * Caught by: build and oracle (imports mmap + left memory mapped)
 */
#include <stddef.h>
#include <sys/mman.h>

static inline void map_memory(void)
{
    void *volatile memory = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)memory;
}

#define TASK_BEGIN(task, scratch) map_memory()
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
