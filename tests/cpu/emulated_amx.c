/*
 * emulated_amx.c - the kernel of lib/cpu/cpu_fwd_amx.c with functions in place of the tile instructions, so that what it computes is seen
 * to be right on machines that have AVX512-BF16 but no AMX. tests/amx.t takes it through the gates.
 *
 * attest-flags: -ffp-contract=fast -fno-math-errno -fno-trapping-math
 * attest-flags: -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512 -mavx512bf16 -mavx512vbmi
 */
#include <attest_kernel.h>

#include <float.h>
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* Eight tiles of 16 rows of 64 bytes: words of two bf16, or float32. */
static _Thread_local uint32_t tile_register[8][16][16] __attribute__((aligned(64)));
static _Thread_local int is_configured;

static __attribute__((noinline)) void tile_loadconfig(const void *config)
{
    const uint8_t *byte = config;
    is_configured = byte[0] == 1; /* the one palette there is */
    memset(tile_register, 0, sizeof tile_register);
}

/* What is read from tiles before they are configured, or after they were given back, is NaN. */
static __attribute__((noinline)) void tile_release(void)
{
    is_configured = 0;
    memset(tile_register, 0xff, sizeof tile_register);
}

static __attribute__((noinline)) void tile_zero(int tile)
{
    memset(tile_register[tile], is_configured ? 0 : 0xff, sizeof *tile_register);
}

static __attribute__((noinline)) void tile_loadd(int tile, const void *base, size_t stride)
{
    for (size_t row = 0; row < 16 && is_configured; row++)
        memcpy(tile_register[tile][row], (const char *)base + row * stride, 64);
}

static __attribute__((noinline)) void tile_stored(int tile, void *base, size_t stride)
{
    for (size_t row = 0; row < 16; row++)
        memcpy((char *)base + row * stride, tile_register[tile][row], 64);
}

/* The instruction takes subnormal numbers for 0, and leaves none. */
static inline __m512 normal(__m512 x)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(FLT_MIN), _CMP_NLT_UQ), x);
}

static inline __m512 lower(__m512i words)
{
    return normal(_mm512_castsi512_ps(_mm512_slli_epi32(words, 16)));
}

static inline __m512 upper(__m512i words)
{
    return normal(_mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32((int)0xffff0000))));
}

/* C += A B, the lower halves of words and the upper ones each in a sum of its own. */
static __attribute__((noinline)) void tile_dpbf16ps(int c, int a, int b)
{
    for (int row = 0; row < 16; row++) {
        __m512 low = _mm512_setzero_ps(), high = low;
        for (int k = 0; k < 16; k++) {
            __m512i one = _mm512_set1_epi32((int)tile_register[a][row][k]), words = _mm512_load_si512(tile_register[b][k]);
            low = normal(_mm512_fmadd_ps(lower(one), lower(words), low));
            high = normal(_mm512_fmadd_ps(upper(one), upper(words), high));
        }
        __m512 sum = _mm512_add_ps(_mm512_load_ps(tile_register[c][row]), normal(_mm512_add_ps(low, high)));
        _mm512_store_ps(tile_register[c][row], normal(sum));
    }
}

/* Some of them are macros in the compiler's header, whose names are taken over. */
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig        tile_loadconfig
#define _tile_release           tile_release
#define _tile_zero(tile)        tile_zero(tile)
#define _tile_loadd(t, p, n)    tile_loadd(t, p, n)
#define _tile_stored(t, p, n)   tile_stored(t, p, n)
#define _tile_dpbf16ps(c, a, b) tile_dpbf16ps(c, a, b)

/* Its table says that it needs AMX; ours does not. */
#define attest_cpu_kernel_entry kernel_with_amx
static const attest_cpu_kernel *kernel_with_amx(void);
#include "../../lib/cpu/cpu_fwd_amx.c"
#undef attest_cpu_kernel_entry

const attest_cpu_kernel *attest_cpu_kernel_entry(void)
{
    static attest_cpu_kernel emulated;
    emulated = *kernel_with_amx();
    emulated.name = "emulated_amx";
    emulated.needs = "avx512bf16";
    return &emulated;
}
