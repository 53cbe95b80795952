/*
 * matrix.h - the elements of the kernel as tensor_core.h takes them.
 */
#ifndef EMULATED_MATRIX_H
#define EMULATED_MATRIX_H

#include "emulation.h"
#include "tensor_core.h"

namespace emulation
{
inline float element_value(uint16_t bits)
{
#if ATTEST_DTYPE == 2
    static const std::vector<float> values = [] {
        std::vector<float> all(1 << 16);
        for (int n = 0; n < 1 << 16; n++)
            all[n] = attest_f16_to_float((uint16_t)n);
        return all;
    }();
    return values[bits];
#else
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
#endif
}
} // namespace emulation

#endif
