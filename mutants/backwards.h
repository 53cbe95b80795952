/*
 * backwards.h - for the mutants whose bits depend on what they must not depend on: where BACKWARDS is true the weights of a tile
 * are summed from the last key to the first, which is as right as the other way round, and has other bits. Included before base.h.
 */
#include <attest_kernel.h>

static inline float sum_backwards(const float *weights, const bool *seen, int64_t count)
{
    float sum = 0;
    for (int64_t n = count - 1; n >= 0; n--)
        if (seen[n])
            sum += weights[n];
    return sum;
}

#define TILE_SUM(weights, seen, m) (BACKWARDS ? sum_backwards(weights, seen, TILE_KEYS) : tile_sum(weights, seen))
