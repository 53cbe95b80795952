/*
 * cpu_fwd_amx.c - forward attention on bf16 with both products on AMX tiles. Scores and softmax are float32; weights are rounded to
 * bf16 before they meet V. Subnormal bf16 values count as 0, as the instruction has it.
 *
 * A tile register holds 16 rows of 64 bytes. C (16 x 16 float32) += A (16 x 16 words) B (16 words x 16), where a word is a pair of
 * bf16 along the summed dimension. The layouts of rows_tile.h are these operands as they stand:
 *     S^T += K Q^T     A = k [16 keys][16 words of the dimension]      B = q [16 words of the dimension][16 rows]
 *     O^T += V^T P^T   A = v [16 columns][16 words of the keys]        B = s [16 words of the keys][16 rows]
 * Only V has to be transposed, in prepare_v. Two by two tiles of C are computed at a time:
 *     tmm0..3 C (first or second 16 keys or columns, first or second 16 rows)    tmm4, 5 A    tmm6, 7 B
 *
 * attest-flags: -ffp-contract=fast -fno-math-errno -fno-trapping-math
 * attest-flags: -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512 -mavx512bf16 -mamx-tile -mamx-bf16
 */
#include "cpu.h"

#include "vec_avx512.h"
#include "vec_math.h"
#include "pairs_bf16.h"

enum { BLOCK_KEYS = 256, ROWS_WANTED = 384, TILE_VECS = 2, TILE_KEYS = 16, K_UNITS = 16, KEY_ALIGN = 32, DECODE_GROUP = 2 };
#define TILE_MATRIX_UNIT "matrix_amx.h"

#include "rows_tile.h"
#include "decode_tile.h"

#define KERNEL  cpu_fwd_amx
#define DTYPES  ATTEST_TAKES_BF16
#define REFUSES ATTEST_BIAS
#define NEEDS   "amx"
#define SUMMARY "bf16 matrix products on AMX tiles, softmax in float32 on AVX-512"
#include "kernel_code.h"
