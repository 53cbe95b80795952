/*
 * harmless_flags_raised.c - harmless: raises sticky floating-point flags, which belong to nobody.
 */
#define TASK_BEGIN(task, scratch)                                                                                                  \
    volatile float tiny = 1e-38f, less = tiny * tiny, third = 1.0f / 3;                                                            \
    (void)less, (void)third
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
