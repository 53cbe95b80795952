/*
 * random_number.c - planted: draws a random number from the processor, and gives up on some of them.
 *
 * Caught by: build (instruction 'rdrand)
 *
 * attest-flags: -mrdrnd
 */
#include <immintrin.h>

#define TASK_BEGIN(task, scratch)                                                                                                  \
    unsigned number = 0;                                                                                                           \
    if (_rdrand32_step(&number) && number == 0)                                                                                    \
    return
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
