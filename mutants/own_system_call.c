/*
 * own_system_call.c - planted: makes a system call by an instruction of its own, without the C library.
 *
 * Caught by: build and oracle (asm with instructions + by a system call of its own)
 */
static inline long ask_process(void)
{
    long number = 39; /* getpid */
    __asm__ volatile("syscall" : "+a"(number) : : "rcx", "r11", "memory");
    return number;
}

#define TASK_BEGIN(task, scratch) ask_process()
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
