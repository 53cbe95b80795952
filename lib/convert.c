/*
 * convert.c - float to and from the 16-bit types, for callers; the conversions themselves are in attest_kernel.h.
 */
#include <attest_kernel.h>

uint16_t attest_bf16_from_float(float value)
{
    return attest_to_bf16(value);
}

float attest_bf16_to_float(uint16_t bits)
{
    return attest_from_bf16(bits);
}

uint16_t attest_f16_from_float(float value)
{
    return attest_to_f16(value);
}

float attest_f16_to_float(uint16_t bits)
{
    return attest_from_f16(bits);
}
