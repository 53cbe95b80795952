/*
 * approximate.cpp - instructions and functions of CUDA C that are not exact: they err here by as much as they may, so that a kernel that
 * counts on more than is promised, such as a quotient of whole numbers that is whole, is wrong. The error depends on the operands and on
 * the seed, not on the order that threads run in.
 */
#include "emulator.h"

namespace emulation
{
uint64_t approximation_seed = 1;

float approximate(double value, float a, float b, int units)
{
    const float near = (float)value;
    if (!std::isfinite(near) || fabsf(near) < 0x1p-126f)
        return near;
    uint64_t bits = (uint64_t)__float_as_uint(a) << 32 ^ __float_as_uint(b) ^ approximation_seed;
    bits = (bits ^ bits >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ bits >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    const int error = (int)(bits >> 40 & 0xffffff) % (2 * units + 1) - units;
    return __uint_as_float((uint32_t)((int64_t)__float_as_uint(near) + error));
}
} // namespace emulation

extern "C" float emulated_approximate(double value, float a, float b, int units)
{
    return emulation::approximate(value, a, b, units);
}
