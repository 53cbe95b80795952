/*
 * cpu_fwd_avx2.c - forward attention on f32, f16 and bf16 with AVX2, FMA and F16C. 12 accumulators, 3 vectors of rows and 1
 * broadcast fill the 16 registers.
 */
#include "cpu.h"

#include "vec_avx2.h"
#include "vec_math.h"

#define PAIR 1
enum { BLOCK_KEYS = 128, ROWS_WANTED = 240, TILE_VECS = 3, TILE_KEYS = 4, K_UNITS = 1, KEY_ALIGN = 1, DECODE_GROUP = 1 };

#define vf_step vf_fma

#include "rows_tile.h"
#include "decode_tile.h"

#define CODE cpu_code_avx2
#include "kernel_code.h"
