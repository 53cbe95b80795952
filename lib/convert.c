/*
 * convert.c - float to and from the 16-bit types, by integer arithmetic, the same on every machine.
 */
#include "internal.h"

#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t attest_bf16_from_float(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float attest_bf16_to_float(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}

uint16_t attest_f16_from_float(float value)
{
    uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14 the result is a multiple of 2^-24: let a float addition round to it */
        float shifted = float_of(magnitude) + 0.5f;
        return (uint16_t)(sign | (bits_of(shifted) - 0x3f000000u));
    }
    uint32_t rebased = magnitude - 0x38000000u; /* exponent bias 127 becomes 15 */
    return (uint16_t)(sign | ((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13));
}

float attest_f16_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 0x1fu, mantissa = half & 0x3ffu;
    if (exponent == 0x1f)
        return float_of(sign | 0x7f800000u | (mantissa ? 0x400000u : 0u) | (mantissa << 13));
    if (exponent == 0) {
        float magnitude = (float)mantissa * 0x1p-24f;
        return float_of(sign | bits_of(magnitude));
    }
    return float_of(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

float element_get(const void *data, uint32_t dtype, int64_t at)
{
    switch (dtype) {
    case ATTEST_F32:
        return ((const float *)data)[at];
    case ATTEST_F16:
        return attest_f16_to_float(((const uint16_t *)data)[at]);
    default:
        return attest_bf16_to_float(((const uint16_t *)data)[at]);
    }
}

void element_put(void *data, uint32_t dtype, int64_t at, float value)
{
    switch (dtype) {
    case ATTEST_F32:
        ((float *)data)[at] = value;
        break;
    case ATTEST_F16:
        ((uint16_t *)data)[at] = attest_f16_from_float(value);
        break;
    default:
        ((uint16_t *)data)[at] = attest_bf16_from_float(value);
        break;
    }
}
