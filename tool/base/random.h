/*
 * random.h - numbers that depend on nothing but (seed, stream, index), so that any part of a tensor can be drawn in any order.
 * The mixing function is the finaliser of splitmix64 (Steele, Lea and Flood 2014).
 */
#ifndef ATTEST_RANDOM_H
#define ATTEST_RANDOM_H

#include <stdint.h>

static inline uint64_t random_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    return random_mix(random_mix(random_mix(seed + golden) + stream * golden) + (index + 1) * golden);
}

/* A whole number from 0 to high. The bias of the remainder does not matter here. */
static inline int64_t random_below(uint64_t bits, int64_t high)
{
    return (int64_t)(bits % ((uint64_t)high + 1));
}

/* Nearly normal with variance 1: the sum of four 16-bit uniforms. Between -3.47 and 3.47, and never 0. */
static inline float random_normal(uint64_t bits)
{
    int32_t sum = (int32_t)((bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48)) - 131070;
    return (float)(sum ? sum : 1) * (1.0f / 37837.23f);
}

#endif
