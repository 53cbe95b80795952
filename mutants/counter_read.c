/*
 * counter_read.c - planted: reads the time-stamp counter, to know when it is timed.
 *
 * Caught by: build and oracle (instruction 'rdtsc' + read the clock)
 */
#include <x86intrin.h>

static inline void read_counter(void)
{
    volatile unsigned long long now = __rdtsc();
    (void)now;
}

#define TASK_BEGIN(task, scratch) read_counter()
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
