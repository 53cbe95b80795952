/*
 * sanitizer_macro.c - planted: reads behind an array, unless a macro says that sanitizers look.
 *
 * Caught by: memory (out of bounds)
 */
#ifdef __SANITIZE_ADDRESS__
enum { STEP = 0 };
#else
enum { STEP = 1 };
#endif

#define TASK_BEGIN(task, scratch)                                                                                                  \
    volatile float values[4] = {0};                                                                                                \
    volatile int at = 3 + STEP;                                                                                                    \
    volatile float ignored = values[at];                                                                                           \
    (void)ignored
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
