/*
 * cpu_fwd_avx512bf16.c - forward attention on bf16 with AVX512-BF16: each multiply-add takes a pair of bf16. Scores and softmax
 * are float32; weights are rounded to bf16 before they meet V. Subnormal bf16 values count as 0, as the instruction has it.
 *
 * attest-flags: -ffp-contract=fast -fno-math-errno -fno-trapping-math
 * attest-flags: -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512 -mavx512bf16
 */
#include "cpu.h"

#include "vec_avx512.h"
#include "vec_math.h"
#include "pairs_bf16.h"

enum { BLOCK_KEYS = 128, ROWS_WANTED = 240, TILE_VECS = 3, TILE_KEYS = 8, K_UNITS = 1, KEY_ALIGN = 2, DECODE_GROUP = 2 };

#include "rows_tile.h"
#include "decode_tile.h"

#define KERNEL  cpu_fwd_avx512bf16
#define DTYPES  ATTEST_TAKES_BF16
#define REFUSES ATTEST_BIAS
#define NEEDS   "avx512bf16"
#define SUMMARY "bf16 pair products on AVX-512, softmax in float32"
#include "kernel_code.h"
