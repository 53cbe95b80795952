/*
 * cpu_fwd_avx512bf16.c - forward attention on bf16 with AVX512-BF16: each multiply-add takes a pair of bf16. Scores and softmax
 * are float32; weights are rounded to bf16 before they meet V. Subnormal bf16 values count as 0, as the instruction has it.
 */
#include "cpu.h"

#include "vec_avx512.h"
#include "vec_math.h"
#include "pairs_bf16.h"

enum { BLOCK_KEYS = 128, ROWS_WANTED = 240, TILE_VECS = 3, TILE_KEYS = 8, K_UNITS = 1, KEY_ALIGN = 2, DECODE_GROUP = 2 };

#include "rows_tile.h"
#include "decode_tile.h"

#define CODE cpu_code_avx512bf16
#include "kernel_code.h"
