/*
 * cuda_fp16.h - for the emulated device: half and half2, with conversions and the operations that kernels use most.
 */
#ifndef EMULATED_CUDA_FP16_H
#define EMULATED_CUDA_FP16_H

#include "emulated_device.h"

struct alignas(2) __half_raw {
    uint16_t x;
};

struct alignas(2) __half {
    uint16_t bits;
    __half() = default;
    __half(__half_raw raw) : bits(raw.x) {}
    __half(float value) : bits(emulated_to_f16(value)) {}
    __half(double value) : bits(emulated_to_f16((float)value)) {}
    __half(int value) : bits(emulated_to_f16((float)value)) {}
    __half(unsigned value) : bits(emulated_to_f16((float)value)) {}
    operator float() const { return emulated_from_f16(bits); }
    operator __half_raw() const { return __half_raw{bits}; }
};
typedef __half half;
struct alignas(4) __half2 {
    __half x, y;
};
typedef __half2 half2;

inline __half __float2half(float value)
{
    return __half(value);
}
inline __half __float2half_rn(float value)
{
    return __half(value);
}
inline float __half2float(__half value)
{
    return value;
}
inline __half2 __floats2half2_rn(float x, float y)
{
    return __half2{__half(x), __half(y)};
}
inline __half2 __float2half2_rn(float x)
{
    return __half2{__half(x), __half(x)};
}
inline __half2 __float22half2_rn(float2 v)
{
    return __half2{__half(v.x), __half(v.y)};
}
inline float2 __half22float2(__half2 v)
{
    return make_float2(v.x, v.y);
}
inline __half2 __halves2half2(__half x, __half y)
{
    return __half2{x, y};
}
inline __half2 __half2half2(__half x)
{
    return __half2{x, x};
}
inline __half2 make_half2(__half x, __half y)
{
    return __half2{x, y};
}
inline float __low2float(__half2 v)
{
    return v.x;
}
inline float __high2float(__half2 v)
{
    return v.y;
}
inline __half __low2half(__half2 v)
{
    return v.x;
}
inline __half __high2half(__half2 v)
{
    return v.y;
}
inline uint16_t __half_as_ushort(__half v)
{
    return v.bits;
}
inline __half __ushort_as_half(uint16_t bits)
{
    return __half(__half_raw{bits});
}
inline __half __hadd(__half a, __half b)
{
    return __half((float)a + (float)b);
}
inline __half __hsub(__half a, __half b)
{
    return __half((float)a - (float)b);
}
inline __half __hmul(__half a, __half b)
{
    return __half((float)a * (float)b);
}
inline __half __hdiv(__half a, __half b)
{
    return __half((float)a / (float)b);
}
inline __half __hfma(__half a, __half b, __half c)
{
    return __half((float)((double)(float)a * (double)(float)b + (double)(float)c));
}
inline __half __hmax(__half a, __half b)
{
    return __half(fmaxf(a, b));
}
inline __half __hmin(__half a, __half b)
{
    return __half(fminf(a, b));
}
inline __half __hneg(__half a)
{
    return __ushort_as_half(a.bits ^ 0x8000);
}
inline __half2 __hadd2(__half2 a, __half2 b)
{
    return __half2{__hadd(a.x, b.x), __hadd(a.y, b.y)};
}
inline __half2 __hsub2(__half2 a, __half2 b)
{
    return __half2{__hsub(a.x, b.x), __hsub(a.y, b.y)};
}
inline __half2 __hmul2(__half2 a, __half2 b)
{
    return __half2{__hmul(a.x, b.x), __hmul(a.y, b.y)};
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c)
{
    return __half2{__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
inline __half2 __hmax2(__half2 a, __half2 b)
{
    return __half2{__hmax(a.x, b.x), __hmax(a.y, b.y)};
}

#endif
