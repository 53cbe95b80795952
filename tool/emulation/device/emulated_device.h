/*
 * emulated_device.h - the words of CUDA C for a kernel that is compiled for the CPU and run by the emulated device. The workbench
 * puts it in front of the preprocessed text of a candidate, whose asm statements and __shared__ variables it has rewritten
 * (rewrite.c): an asm statement becomes a call of emulated_execute. Everything that is not a plain load, a plain store or arithmetic
 * ends in a function of the emulated device (tool/emulation/runtime), which the image is linked with.
 */
#ifndef EMULATED_DEVICE_H
#define EMULATED_DEVICE_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __restrict __restrict__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(bytes) alignas(bytes)
#define __nv_pure__
#define __builtin_assume(condition) ((void)0)

/* ---- the emulated device ---- */

struct emulated_index {
    unsigned x, y, z;
};
struct emulated_position {
    emulated_index thread, block, block_size, grid;
};

/* One operand of an asm statement: where it lies, how long it is, and whether it is read, written or both. */
struct emulated_operand {
    void *at;
    uint64_t value;
    uint32_t bytes;
    char access;     /* 'r': read, 'w': written, 'b': both */
    char constraint; /* r, l, h, f, d, n ... */
};

struct emulated_site { /* an asm statement */
    const char *text, *file;
    int line;
};

extern "C" {
extern emulated_position emulated_here;      /* of the thread that runs */
extern const emulated_site emulated_sites[]; /* of the image */
extern const unsigned emulated_static_bytes, emulated_cluster;
extern const int emulated_site_count;
void emulated_execute(const emulated_site *sites, int site, emulated_operand *operands, int count);
void emulated_barrier(void);                     /* __syncthreads */
int emulated_barrier_reduce(int value, int how); /* how: '+' count, '&', '|' */
void emulated_syncwarp(unsigned mask);
void emulated_exchange(unsigned mask, uint64_t value, uint64_t *all); /* all[32]: of lanes in the mask */
uint32_t emulated_shared_address(const void *pointer);
void *emulated_shared_pointer(uint32_t address);
void *emulated_shared_at(unsigned offset);
unsigned emulated_place(unsigned *used, unsigned bytes, unsigned align);
void emulated_fence(int scope); /* 0: block, 1: device, 2: system */
uint64_t emulated_atomic(void *at, int bytes, int operation, uint64_t value, uint64_t compare);
void emulated_touch(const void *at, size_t bytes, int write);
void emulated_give_way(void);
long long emulated_clock(void);
[[noreturn]] void emulated_trap(const char *why);
void emulated_load_fragment(const void *at, unsigned pitch, int rows, int columns, int element, unsigned char *to,
                            bool column_major);
void emulated_store_fragment(void *at, unsigned pitch, int rows, int columns, int element, const unsigned char *from,
                             bool column_major);
void emulated_fragment_product(const float *a, const float *b, float *c);
float emulated_approximate(double value, float a, float b, int units); /* off by so many units in the last place, at most */
float emulated_from_f16(uint16_t bits);
uint16_t emulated_to_f16(float value);
uint16_t emulated_to_bf16(float value);
}

extern unsigned emulated_static_used;

template <typename T> inline emulated_operand emulated_in(char constraint, const T &value)
{
    emulated_operand made = {nullptr, 0, sizeof(T), 'r', constraint};
    memcpy(&made.value, &value, sizeof(T) < 8 ? sizeof(T) : 8);
    return made;
}
template <typename T, size_t N> inline emulated_operand emulated_in(char constraint, T (&value)[N])
{
    return emulated_in(constraint, (const void *)value);
}
template <typename T> inline emulated_operand emulated_out(char constraint, char access, T &to)
{
    return emulated_operand{(void *)&to, 0, sizeof(T), access, constraint};
}

/* Calls a kernel with the arguments that a launch has. */
template <typename... A, size_t... I>
__attribute__((no_sanitize("thread"))) inline void emulated_call_with(void (*kernel)(A...), void **p, std::index_sequence<I...>)
{
    kernel(*(std::remove_reference_t<A> *)p[I]...);
}
template <typename... A> inline void emulated_call(void (*kernel)(A...), void **p)
{
    emulated_call_with(kernel, p, std::index_sequence_for<A...>());
}

#define threadIdx emulated_here.thread
#define blockIdx  emulated_here.block
#define blockDim  emulated_here.block_size
#define gridDim   emulated_here.grid
constexpr int warpSize = 32;

/* ---- vectors ---- */

#define EMULATED_VECTORS(base, T)                                                                                                  \
    struct base##1                                                                                                                 \
    {                                                                                                                              \
        T x;                                                                                                                       \
    };                                                                                                                             \
    struct alignas(2 * sizeof(T)) base##2                                                                                          \
    {                                                                                                                              \
        T x, y;                                                                                                                    \
    };                                                                                                                             \
    struct base##3                                                                                                                 \
    {                                                                                                                              \
        T x, y, z;                                                                                                                 \
    };                                                                                                                             \
    struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) base##4                                                                \
    {                                                                                                                              \
        T x, y, z, w;                                                                                                              \
    };                                                                                                                             \
    inline base##1 make_##base##1(T x)                                                                                             \
    {                                                                                                                              \
        return {x};                                                                                                                \
    }                                                                                                                              \
    inline base##2 make_##base##2(T x, T y)                                                                                        \
    {                                                                                                                              \
        return {x, y};                                                                                                             \
    }                                                                                                                              \
    inline base##3 make_##base##3(T x, T y, T z)                                                                                   \
    {                                                                                                                              \
        return {x, y, z};                                                                                                          \
    }                                                                                                                              \
    inline base##4 make_##base##4(T x, T y, T z, T w)                                                                              \
    {                                                                                                                              \
        return {x, y, z, w};                                                                                                       \
    }
EMULATED_VECTORS(char, signed char)
EMULATED_VECTORS(uchar, unsigned char)
EMULATED_VECTORS(short, short)
EMULATED_VECTORS(ushort, unsigned short)
EMULATED_VECTORS(int, int)
EMULATED_VECTORS(uint, unsigned)
EMULATED_VECTORS(long, long)
EMULATED_VECTORS(ulong, unsigned long)
EMULATED_VECTORS(longlong, long long)
EMULATED_VECTORS(ulonglong, unsigned long long)
EMULATED_VECTORS(float, float)
EMULATED_VECTORS(double, double)
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

/* ---- arithmetic ---- */

using std::max;
using std::min;
template <typename A, typename B> inline std::enable_if_t<!std::is_same_v<A, B>, std::common_type_t<A, B>> min(A a, B b)
{
    return (std::common_type_t<A, B>)a < (std::common_type_t<A, B>)b ? a : b;
}
template <typename A, typename B> inline std::enable_if_t<!std::is_same_v<A, B>, std::common_type_t<A, B>> max(A a, B b)
{
    return (std::common_type_t<A, B>)a < (std::common_type_t<A, B>)b ? b : a;
}

inline float __uint_as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
inline float __int_as_float(int64_t bits)
{
    return __uint_as_float((uint32_t)bits);
}
inline uint32_t __float_as_uint(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline int __float_as_int(float value)
{
    return (int)__float_as_uint(value);
}
inline double __longlong_as_double(long long bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
inline long long __double_as_longlong(double value)
{
    long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline float emulated_flush(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
}
/* Rounded operations, which are never the first half of a fused multiply-add. */
__attribute__((noinline, weak)) float __fmul_rn(float a, float b)
{
    return a * b;
}
__attribute__((noinline, weak)) float __fadd_rn(float a, float b)
{
    return a + b;
}
__attribute__((noinline, weak)) float __fsub_rn(float a, float b)
{
    return a - b;
}
inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
inline float __frcp_rn(float a)
{
    return 1 / a;
}
inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}
inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
inline float __fdividef(float a, float b)
{
    return emulated_approximate((double)a / (double)b, a, b, 2);
}
inline float __frsqrt_rn(float a)
{
    return 1 / sqrtf(a);
}
inline float rsqrtf(float a)
{
    return emulated_approximate(1 / sqrt((double)a), a, 0, 2);
}
inline float __expf(float x)
{
    return x == 0 ? 1 : emulated_approximate(exp((double)x), x, 0, 2);
}
inline float __exp10f(float x)
{
    return powf(10.0f, x);
}
inline float exp10f(float x)
{
    return powf(10.0f, x);
}
inline float __logf(float x)
{
    return x == 1 ? 0 : emulated_approximate(log((double)x), x, 0, 2);
}
inline float __log2f(float x)
{
    return x == 1 ? 0 : emulated_approximate(log2((double)x), x, 0, 2);
}
inline float __log10f(float x)
{
    return x == 1 ? 0 : emulated_approximate(log10((double)x), x, 0, 2);
}
inline float __powf(float x, float y)
{
    return emulated_approximate(pow((double)x, (double)y), x, y, 8);
}
inline float __sinf(float x)
{
    return emulated_approximate(sin((double)x), x, 0, 8);
}
inline float __cosf(float x)
{
    return emulated_approximate(cos((double)x), x, 0, 8);
}
inline float __tanf(float x)
{
    return emulated_approximate(tan((double)x), x, 0, 16);
}
inline float __saturatef(float x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}
inline int __float2int_rn(float x)
{
    return (int)nearbyintf(x);
}
inline int __float2int_rz(float x)
{
    return (int)truncf(x);
}
inline int __float2int_rd(float x)
{
    return (int)floorf(x);
}
inline int __float2int_ru(float x)
{
    return (int)ceilf(x);
}
inline float __int2float_rn(int x)
{
    return (float)x;
}
inline float __uint2float_rn(unsigned x)
{
    return (float)x;
}
inline float __double2float_rn(double x)
{
    return (float)x;
}
inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
inline int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
inline unsigned __brev(unsigned x)
{
    unsigned y = 0;
    for (int i = 0; i < 32; i++)
        y |= (x >> i & 1) << (31 - i);
    return y;
}
inline int __mulhi(int a, int b)
{
    return (int)((int64_t)a * b >> 32);
}
inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
inline int __mul24(int a, int b)
{
    return a * b;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s)
{
    uint64_t both = (uint64_t)b << 32 | a;
    unsigned y = 0;
    for (int i = 0; i < 4; i++) {
        unsigned pick = s >> 4 * i & 15, byte = (unsigned)(both >> 8 * (pick & 7)) & 255;
        y |= (pick & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
    }
    return y;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}
inline unsigned emulated_max_halves(unsigned a, unsigned b)
{
    unsigned low = (a & 0xffff) > (b & 0xffff) ? a & 0xffff : b & 0xffff, high = a >> 16 > b >> 16 ? a >> 16 : b >> 16;
    return low | high << 16;
}
inline unsigned __vmaxu2(unsigned a, unsigned b)
{
    return emulated_max_halves(a, b);
}
inline unsigned __vimax_u16x2(unsigned a, unsigned b)
{
    return emulated_max_halves(a, b);
}
inline unsigned __vimax3_u16x2(unsigned a, unsigned b, unsigned c)
{
    return emulated_max_halves(emulated_max_halves(a, b), c);
}
inline int __vimax3_s32(int a, int b, int c)
{
    return max(max(a, b), c);
}
inline int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 4; i++)
        c += (int)(signed char)(a >> 8 * i) * (int)(signed char)(b >> 8 * i);
    return c;
}

/* ---- what threads do together ---- */

inline void __syncthreads()
{
    emulated_barrier();
}
inline int __syncthreads_count(int value)
{
    return emulated_barrier_reduce(value != 0, '+');
}
inline int __syncthreads_and(int value)
{
    return emulated_barrier_reduce(value != 0, '&');
}
inline int __syncthreads_or(int value)
{
    return emulated_barrier_reduce(value != 0, '|');
}
inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    emulated_syncwarp(mask);
}
inline void __threadfence_block()
{
    emulated_fence(0);
}
inline void __threadfence()
{
    emulated_fence(1);
}
inline void __threadfence_system()
{
    emulated_fence(2);
}
inline void __nanosleep(unsigned)
{
    emulated_give_way();
}
inline long long clock64()
{
    return emulated_clock();
}
inline int clock()
{
    return (int)emulated_clock();
}
[[noreturn]] inline void __trap()
{
    emulated_trap("__trap");
}
inline unsigned __activemask()
{
    return 0xffffffffu;
}

template <typename T> inline T emulated_lane(unsigned mask, T value, int source, bool inside)
{
    static_assert(sizeof(T) <= 8, "shuffles take up to 8 bytes");
    uint64_t bits = 0, all[32];
    memcpy(&bits, &value, sizeof value);
    emulated_exchange(mask, bits, all);
    if (inside) {
        if (!(mask >> source & 1))
            emulated_trap("a shuffle reads a lane that does not take part in it");
        memcpy(&value, &all[source], sizeof value);
    }
    return value;
}
inline int emulated_lane_here()
{
    return (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}
template <typename T> inline T __shfl_sync(unsigned mask, T value, int source, int width = 32)
{
    return emulated_lane(mask, value, (emulated_lane_here() & ~(width - 1)) + (source & (width - 1)), true);
}
template <typename T> inline T __shfl_xor_sync(unsigned mask, T value, int step, int width = 32)
{
    const int here = emulated_lane_here(), source = here ^ step;
    return emulated_lane(mask, value, source & 31, (source & ~(width - 1)) <= (here & ~(width - 1)));
}
template <typename T> inline T __shfl_up_sync(unsigned mask, T value, unsigned step, int width = 32)
{
    const int here = emulated_lane_here(), source = here - (int)step;
    return emulated_lane(mask, value, source & 31, source >= (here & ~(width - 1)));
}
template <typename T> inline T __shfl_down_sync(unsigned mask, T value, unsigned step, int width = 32)
{
    const int here = emulated_lane_here(), source = here + (int)step;
    return emulated_lane(mask, value, source & 31, source < (here & ~(width - 1)) + width);
}
inline unsigned __ballot_sync(unsigned mask, int here)
{
    uint64_t all[32];
    unsigned votes = 0;
    emulated_exchange(mask, here != 0, all);
    for (int lane = 0; lane < 32; lane++)
        votes |= (mask >> lane & 1) && all[lane] ? 1u << lane : 0;
    return votes;
}
inline int __any_sync(unsigned mask, int here)
{
    return __ballot_sync(mask, here) != 0;
}
inline int __all_sync(unsigned mask, int here)
{
    return __ballot_sync(mask, here) == mask;
}
template <typename T, typename F> inline T emulated_reduce(unsigned mask, T value, F join)
{
    uint64_t all[32];
    emulated_exchange(mask, (uint64_t)(uint32_t)value, all);
    bool first = true;
    T sum = value;
    for (int lane = 0; lane < 32; lane++)
        if (mask >> lane & 1) {
            sum = first ? (T)all[lane] : join(sum, (T)all[lane]);
            first = false;
        }
    return sum;
}
template <typename T> inline T __reduce_add_sync(unsigned mask, T value)
{
    return emulated_reduce(mask, value, [](T a, T b) { return (T)(a + b); });
}
template <typename T> inline T __reduce_max_sync(unsigned mask, T value)
{
    return emulated_reduce(mask, value, [](T a, T b) { return a > b ? a : b; });
}
template <typename T> inline T __reduce_min_sync(unsigned mask, T value)
{
    return emulated_reduce(mask, value, [](T a, T b) { return a < b ? a : b; });
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value)
{
    return emulated_reduce(mask, value, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value)
{
    return emulated_reduce(mask, value, [](unsigned a, unsigned b) { return a & b; });
}

/* ---- memory ---- */

inline size_t __cvta_generic_to_shared(const void *pointer)
{
    return emulated_shared_address(pointer);
}
inline void *__cvta_shared_to_generic(size_t address)
{
    return emulated_shared_pointer((uint32_t)address);
}
inline size_t __cvta_generic_to_global(const void *pointer)
{
    return (size_t)pointer;
}
inline bool __isShared(const void *pointer)
{
    return emulated_shared_address(pointer) != 0;
}
template <typename T> inline T __ldg(const T *at)
{
    return *at;
}
template <typename T> inline T __ldcg(const T *at)
{
    return *at;
}
template <typename T> inline T __ldca(const T *at)
{
    return *at;
}
template <typename T> inline T __ldcs(const T *at)
{
    return *at;
}
template <typename T> inline T __ldlu(const T *at)
{
    return *at;
}
template <typename T> inline T __ldcv(const T *at)
{
    return *at;
}
template <typename T> inline void __stcg(T *at, T value)
{
    *at = value;
}
template <typename T> inline void __stcs(T *at, T value)
{
    *at = value;
}
template <typename T> inline void __stwb(T *at, T value)
{
    *at = value;
}
template <typename T> inline void __stwt(T *at, T value)
{
    *at = value;
}

template <typename T> inline T emulated_atomic_of(T *at, int operation, T value, T compare = T())
{
    uint64_t bits = 0, other = 0, before;
    memcpy(&bits, &value, sizeof value);
    memcpy(&other, &compare, sizeof compare);
    before = emulated_atomic(at,
                             (int)sizeof(T) | (std::is_floating_point_v<T> ? 64
                                               : std::is_signed_v<T>       ? 128
                                                                           : 0),
                             operation, bits, other);
    T result;
    memcpy(&result, &before, sizeof result);
    return result;
}
#define EMULATED_ATOMIC(name, operation)                                                                                           \
    template <typename T> inline T name(T *at, std::common_type_t<T> value)                                                        \
    {                                                                                                                              \
        return emulated_atomic_of(at, operation, (T)value);                                                                        \
    }
EMULATED_ATOMIC(atomicAdd, '+')
EMULATED_ATOMIC(atomicSub, '-')
EMULATED_ATOMIC(atomicExch, '=')
EMULATED_ATOMIC(atomicMin, '<')
EMULATED_ATOMIC(atomicMax, '>')
EMULATED_ATOMIC(atomicAnd, '&')
EMULATED_ATOMIC(atomicOr, '|')
EMULATED_ATOMIC(atomicXor, '^')
EMULATED_ATOMIC(atomicInc, 'i')
EMULATED_ATOMIC(atomicDec, 'd')
template <typename T> inline T atomicCAS(T *at, std::common_type_t<T> compare, std::common_type_t<T> value)
{
    return emulated_atomic_of(at, 'c', (T)value, (T)compare);
}

/* The functions of the C library that move memory are seen by the compiler's instrumentation only where it knows the size; so they are
 * left out of it, and told here: once, because the memory must change before the thread is heard of again. */
__attribute__((no_sanitize("thread"))) inline void *emulated_memcpy(void *to, const void *from, size_t bytes)
{
    emulated_touch(from, bytes, 0);
    emulated_touch(to, bytes, 1);
    return __builtin_memmove(to, from, bytes);
}
__attribute__((no_sanitize("thread"))) inline void *emulated_memset(void *to, int byte, size_t bytes)
{
    emulated_touch(to, bytes, 1);
    return __builtin_memset(to, byte, bytes);
}

/* What nvcc makes of these with -use_fast_math. (Division stays as it is.) */
#ifdef EMULATED_FAST_MATH
inline float emulated_tanh(float x)
{
    return emulated_approximate(tanh((double)x), x, 0, 1 << 12); /* tanh.approx: 2^-11 */
}
#define tanhf  emulated_tanh
#define expf   __expf
#define exp10f __exp10f
#define logf   __logf
#define log2f  __log2f
#define log10f __log10f
#define powf   __powf
#define sinf   __sinf
#define cosf   __cosf
#define tanf   __tanf
#endif

#define memcpy  emulated_memcpy
#define memmove emulated_memcpy
#define memset  emulated_memset

#endif
