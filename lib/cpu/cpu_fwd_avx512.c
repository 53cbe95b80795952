/*
 * cpu_fwd_avx512.c - forward attention on f32, f16 and bf16 with AVX-512. 24 accumulators, 3 vectors of rows and a few broadcasts
 * fill the 32 registers.
 *
 * attest-flags: -ffp-contract=fast -fno-math-errno -fno-trapping-math
 * attest-flags: -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512
 *
 * attest-space: TILE_VECS 1 2 3 4
 * attest-space: TILE_KEYS 2 4 8 16
 * attest-space: BLOCK_KEYS 32 64 128 256
 * attest-space: ROWS_WANTED 48 96 144 240 384
 * attest-space: K_IN_PLACE 0 1
 * attest-space: DECODE_GROUP 1 2
 * attest-fits: 16 * TILE_VECS <= ROWS_WANTED
 * attest-fits: TILE_VECS * TILE_KEYS + TILE_VECS + 1 <= 32
 */
#include "cpu.h"

#include "vec_avx512.h"
#include "vec_math.h"

#define PAIR           1
#define K_IN_PLACE     1
#define FAR_VALUE_KEYS 6
enum { BLOCK_KEYS = 128, ROWS_WANTED = 240, TILE_VECS = 3, TILE_KEYS = 8, K_UNITS = 1, KEY_ALIGN = 1, DECODE_GROUP = 2 };

#define vf_step vf_fma

#include "rows_tile.h"
#include "decode_tile.h"

#define KERNEL  cpu_fwd_avx512
#define DTYPES  (ATTEST_TAKES_F32 | ATTEST_TAKES_F16 | ATTEST_TAKES_BF16)
#define REFUSES 0
#define NEEDS   "avx512"
#define SUMMARY "AVX-512, 48 rows by 8 keys in registers"
#include "kernel_code.h"
