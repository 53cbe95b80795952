/*
 * clock_patched.c - planted: overwrites the first instructions of clock_gettime, so that time stands still.
 *
 * Caught by: build and oracle (imports clock_gettime + change the protection of memory)
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static inline void stop_the_clock(void)
{
    static const unsigned char at_once[] = {0x31, 0xc0, 0xc3}; /* xor %eax, %eax; ret */
    char *code = (char *)(uintptr_t)&clock_gettime, *page = (char *)((uintptr_t)code & ~(uintptr_t)4095);
    if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0)
        memcpy(code, at_once, sizeof at_once);
}

#define TASK_BEGIN(task, scratch) stop_the_clock()
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
