/*
 * cpu_fwd_scalar.c - forward attention on f32, f16 and bf16 in portable C, four floats a vector. The slow, always-right path: no
 * intrinsics, runs on every machine.
 *
 * attest-flags: -ffp-contract=fast -fno-math-errno -fno-trapping-math
 */
#include "cpu.h"

#include "vec_scalar.h"
#include "vec_math.h"

#define PAIR 1
enum { BLOCK_KEYS = 128, ROWS_WANTED = 240, TILE_VECS = 3, TILE_KEYS = 4, K_UNITS = 1, KEY_ALIGN = 1, DECODE_GROUP = 1 };

#define vf_step vf_fma

#include "rows_tile.h"
#include "decode_tile.h"

#define KERNEL  cpu_fwd_scalar
#define DTYPES  (ATTEST_TAKES_F32 | ATTEST_TAKES_F16 | ATTEST_TAKES_BF16)
#define REFUSES 0
#define NEEDS   ""
#define SUMMARY "portable C, 12 rows by 4 keys at a time"
#include "kernel_code.h"
