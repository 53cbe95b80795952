/*
 * cuda_bf16.h - for the emulated device: bfloat16 and bfloat162, with conversions and the operations that kernels use most.
 */
#ifndef EMULATED_CUDA_BF16_H
#define EMULATED_CUDA_BF16_H

#include "emulated_device.h"

struct alignas(2) __nv_bfloat16_raw {
    uint16_t x;
};

struct alignas(2) __nv_bfloat16 {
    uint16_t bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x) {}
    __nv_bfloat16(float value) : bits(emulated_to_bf16(value)) {}
    __nv_bfloat16(double value) : bits(emulated_to_bf16((float)value)) {}
    __nv_bfloat16(int value) : bits(emulated_to_bf16((float)value)) {}
    __nv_bfloat16(unsigned value) : bits(emulated_to_bf16((float)value)) {}
    operator float() const { return __uint_as_float((uint32_t)bits << 16); }
    operator __nv_bfloat16_raw() const { return __nv_bfloat16_raw{bits}; }
};
typedef __nv_bfloat16 nv_bfloat16;
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
typedef __nv_bfloat162 nv_bfloat162;

inline __nv_bfloat16 __float2bfloat16(float value)
{
    return __nv_bfloat16(value);
}
inline __nv_bfloat16 __float2bfloat16_rn(float value)
{
    return __nv_bfloat16(value);
}
inline float __bfloat162float(__nv_bfloat16 value)
{
    return value;
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return __nv_bfloat162{__nv_bfloat16(x), __nv_bfloat16(y)};
}
inline __nv_bfloat162 __float2bfloat162_rn(float x)
{
    return __nv_bfloat162{__nv_bfloat16(x), __nv_bfloat16(x)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 v)
{
    return __nv_bfloat162{__nv_bfloat16(v.x), __nv_bfloat16(v.y)};
}
inline float2 __bfloat1622float2(__nv_bfloat162 v)
{
    return make_float2(v.x, v.y);
}
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return __nv_bfloat162{x, y};
}
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x)
{
    return __nv_bfloat162{x, x};
}
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return __nv_bfloat162{x, y};
}
inline float __low2float(__nv_bfloat162 v)
{
    return v.x;
}
inline float __high2float(__nv_bfloat162 v)
{
    return v.y;
}
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v)
{
    return v.x;
}
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v)
{
    return v.y;
}
inline uint16_t __bfloat16_as_ushort(__nv_bfloat16 v)
{
    return v.bits;
}
inline __nv_bfloat16 __ushort_as_bfloat16(uint16_t bits)
{
    return __nv_bfloat16(__nv_bfloat16_raw{bits});
}
inline __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16((float)a + (float)b);
}
inline __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16((float)a - (float)b);
}
inline __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16((float)a * (float)b);
}
inline __nv_bfloat16 __hdiv(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16((float)a / (float)b);
}
inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
    return __nv_bfloat16((float)((double)(float)a * (double)(float)b + (double)(float)c));
}
inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16(fmaxf(a, b));
}
inline __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16(fminf(a, b));
}
inline __nv_bfloat16 __hneg(__nv_bfloat16 a)
{
    return __ushort_as_bfloat16(a.bits ^ 0x8000);
}
inline __nv_bfloat162 __hadd2(__nv_bfloat162 a, __nv_bfloat162 b)
{
    return __nv_bfloat162{__hadd(a.x, b.x), __hadd(a.y, b.y)};
}
inline __nv_bfloat162 __hsub2(__nv_bfloat162 a, __nv_bfloat162 b)
{
    return __nv_bfloat162{__hsub(a.x, b.x), __hsub(a.y, b.y)};
}
inline __nv_bfloat162 __hmul2(__nv_bfloat162 a, __nv_bfloat162 b)
{
    return __nv_bfloat162{__hmul(a.x, b.x), __hmul(a.y, b.y)};
}
inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c)
{
    return __nv_bfloat162{__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
inline __nv_bfloat162 __hmax2(__nv_bfloat162 a, __nv_bfloat162 b)
{
    return __nv_bfloat162{__hmax(a.x, b.x), __hmax(a.y, b.y)};
}

#endif
