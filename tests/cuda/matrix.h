/*
 * matrix.h - what tensor cores do with 16-bit elements, for the emulation: the product of a step of 16, added to float32.
 *
 * Products are exact. They and the accumulator are brought to the largest exponent among them, cut off (toward zero) FRACTION bits
 * below it, summed exactly, and the sum is cut off to float32. That is what published measurements of an H100 say of every step of 16; it has not been measured here. With
 * EMULATED_SUMS=nearest in the environment sums are exact and rounded to the nearest instead; with EMULATED_SUMS=24/8 fewer bits are
 * kept, and 8 products are summed at a time, as older ones do: to tell what the cutting does.
 */
#ifndef EMULATED_MATRIX_H
#define EMULATED_MATRIX_H

#include "emulation.h"

namespace emulation
{
constexpr int STEP = 16, FRACTION = 25, MOST_COLUMNS = 256;

/* The kernel's elements. */
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

/* A row of A or a column of B: STEP elements, and where each begins. */
struct Line {
    double value[STEP];
    int exponent[STEP];
    bool finite, zero;
};

constexpr int NOTHING = -10000; /* the exponent of 0 */

inline int exponent_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value == 0 ? NOTHING : (int)(bits >> 52 & 0x7ff) - 1023; /* no 16-bit element or float is denormal as a double */
}

inline double power_of_2(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

inline void line_set(Line &line, int k, uint16_t bits)
{
    double value = (double)element_value(bits);
    if (k == 0)
        line.finite = line.zero = true;
    line.value[k] = value;
    line.exponent[k] = exponent_of(value);
    line.finite = line.finite && std::isfinite(value);
    line.zero = line.zero && value == 0;
}

inline float cut_to_float(double value)
{
    float rounded = (float)value;
    if (std::isfinite(rounded) && fabs((double)rounded) > fabs(value)) {
        uint32_t bits = bits_of(rounded) - 1;
        memcpy(&rounded, &bits, sizeof bits);
    }
    return rounded;
}

struct Cutting {
    int bits;    /* that are kept below the largest exponent; 0: all of them, and the sum is rounded to the nearest */
    int at_once; /* products that are summed */
};

inline const Cutting &cutting()
{
    static const Cutting chosen = [] {
        Cutting cut = {FRACTION, STEP};
        if (const char *asked = getenv("EMULATED_SUMS"))
            if (sscanf(asked, "%d/%d", &cut.bits, &cut.at_once) < 1)
                cut.bits = 0;
        return cut;
    }();
    return chosen;
}

/* Products first .. last - 1 and c. */
inline float cut_sum(const Line &a, const Line &b, int first, int last, float c)
{
    int top = exponent_of((double)c);
    for (int k = first; k < last; k++) {
        int exponent = a.exponent[k] + b.exponent[k];
        top = exponent > top ? exponent : top;
    }
    if (top <= NOTHING / 2)
        return c;
    double scale = power_of_2(cutting().bits - top);
    int64_t sum = (int64_t)((double)c * scale);
    for (int k = first; k < last; k++)
        sum += (int32_t)(a.value[k] * b.value[k] * scale); /* below 2^(bits + 2) */
    return cut_to_float((double)sum * power_of_2(top - cutting().bits));
}

inline float multiply_add(const Line &a, const Line &b, float c)
{
    if (!a.finite || !b.finite || !std::isfinite(c) || !cutting().bits) {
        double sum = (double)c;
        for (int k = 0; k < STEP; k++)
            sum += a.value[k] * b.value[k];
        return (float)sum;
    }
    if (a.zero || b.zero)
        return c;
    for (int k = 0; k < STEP; k += cutting().at_once)
        c = cut_sum(a, b, k, k + cutting().at_once, c);
    return c;
}
} // namespace emulation

#endif
