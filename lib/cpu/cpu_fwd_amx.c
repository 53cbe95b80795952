/*
 * cpu_fwd_amx.c - forward attention on bf16 with both products on AMX tiles. Scores are float32; weights are rounded to bf16 before
 * they meet V, at decode to twice as many bits. Subnormal bf16 values count as 0, as the instruction has it. rows_amx.h and
 * decode_amx.h say how.
 *
 * Every processor with AMX has AVX512-VBMI as well; features.c asks for both.
 *
 * attest-flags: -ffp-contract=fast -fno-math-errno -fno-trapping-math
 * attest-flags: -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512 -mavx512bf16 -mavx512vbmi -mamx-tile -mamx-bf16
 */
#include "cpu.h"

#include "vec_avx512.h"
#include "vec_math.h"
#include "pairs_bf16.h"

/* At decode, where the tiles do not fit, four rows by 64 columns at a time, so that each value is widened once. */
#define DECODE_SLICE  4
#define DECODE_MATRIX "decode_amx.h"
enum { ROWS_WANTED = 512, DECODE_GROUP = 4 };

#include "rows_amx.h"
#include "decode_tile.h"

#define KERNEL      cpu_fwd_amx
#define DTYPES      ATTEST_TAKES_BF16
#define REFUSES     ATTEST_BIAS
#define NEEDS       "amx"
#define SUMMARY     "bf16 matrix products on AMX tiles, softmax on AVX-512"
#define PREPARE     prepare_keys
#define SHARED_SIZE prepared_size
#include "kernel_code.h"
