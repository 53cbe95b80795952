/*
 * clock_in_bits.c - planted: the order of summing depends on the time of day.
 *
 * Caught by: build and oracle (imports clock_gettime + read the clock)
 */
#include <time.h>

static inline int parity_of_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return __builtin_parityll((unsigned long long)now.tv_nsec);
}

#define BACKWARDS parity_of_time()
#include "backwards.h"

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
