/*
 * mmx_left.c - planted: uses an MMX register, and does not say so to the x87 afterwards (emms).
 *
 * Caught by: build and oracle (asm with instructions + emms is missing)
 */
#include <mmintrin.h>

static inline void touch_mmx(void)
{
    volatile __m64 sum = _mm_add_pi16(_mm_set1_pi16(1), _mm_set1_pi16(2));
    (void)sum;
    __asm__ volatile("movq %0, %%mm0" : : "m"(sum));
}

#define TASK_END(task, scratch) touch_mmx()
#define DTYPES                  ATTEST_TAKES_F32
#include "base.h"
