/*
 * cpu_fwd_avx2.c - forward attention on f32, f16 and bf16 with AVX2, FMA and F16C. 12 accumulators, 3 vectors of rows and 1
 * broadcast fill the 16 registers.
 *
 * attest-flags: -ffp-contract=fast -fno-math-errno -fno-trapping-math -mavx2 -mfma -mf16c
 *
 * attest-space: TILE_VECS 1 2 3 4
 * attest-space: TILE_KEYS 2 4 8
 * attest-space: BLOCK_KEYS 32 64 128 256
 * attest-space: ROWS_WANTED 24 48 96 144 240 384
 * attest-space: K_IN_PLACE 0 1
 * attest-space: DECODE_GROUP 1 2
 * attest-fits: 8 * TILE_VECS <= ROWS_WANTED
 * attest-fits: TILE_VECS * TILE_KEYS + TILE_VECS + 1 <= 16
 */
#include "cpu.h"

#include "vec_avx2.h"
#include "vec_math.h"

#define PAIR       1
#define K_IN_PLACE 1
enum { BLOCK_KEYS = 128, ROWS_WANTED = 240, TILE_VECS = 3, TILE_KEYS = 4, K_UNITS = 1, KEY_ALIGN = 1, DECODE_GROUP = 1 };

#define vf_step vf_fma

#include "rows_tile.h"
#include "decode_tile.h"

#define KERNEL  cpu_fwd_avx2
#define DTYPES  (ATTEST_TAKES_F32 | ATTEST_TAKES_F16 | ATTEST_TAKES_BF16)
#define REFUSES 0
#define NEEDS   "avx2"
#define SUMMARY "AVX2 and FMA, 24 rows by 4 keys in registers"
#include "kernel_code.h"
