/*
 * harmless_kahan.c - harmless: the weights of a tile are summed with compensation (Kahan).
 */
#include <attest_kernel.h>

static inline float kahan_sum(const float *weights, const bool *seen, int64_t count)
{
    float sum = 0, lost = 0;
    for (int64_t n = 0; n < count; n++) {
        if (!seen[n])
            continue;
        float next = weights[n] - lost, total = sum + next;
        lost = (total - sum) - next;
        sum = total;
    }
    return sum;
}

#define TILE_SUM(weights, seen, m) kahan_sum(weights, seen, TILE_KEYS)
#define DTYPES                     ATTEST_TAKES_F32
#include "base.h"
