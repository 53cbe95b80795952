/*
 * protection_changed.c - planted: makes its own code writable.
 *
 * Caught by: build and oracle (__builtin_return_address + change the protection of memory)
 */
#include <sys/mman.h>
#include <stdint.h>

static inline void make_writable(void *code)
{
    mprotect((void *)((uintptr_t)code & ~(uintptr_t)4095), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

#define TASK_BEGIN(task, scratch) make_writable(__builtin_return_address(0))
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
