/*
 * harmless_shipped_64.c - harmless: the library's portable kernel with blocks of 64 keys and tasks of 96 rows.
 *
 * attest-flags: -ffp-contract=fast -fno-math-errno -fno-trapping-math
 */
#include "../lib/cpu/cpu.h"

#include "../lib/cpu/vec_scalar.h"
#include "../lib/cpu/vec_math.h"

#define PAIR 1
enum { BLOCK_KEYS = 64, ROWS_WANTED = 96, TILE_VECS = 3, TILE_KEYS = 4, K_UNITS = 1, KEY_ALIGN = 1, DECODE_GROUP = 1 };

#define vf_step vf_fma

#include "../lib/cpu/rows_tile.h"
#include "../lib/cpu/decode_tile.h"

#define KERNEL  harmless_shipped_64
#define DTYPES  ATTEST_TAKES_F32
#define REFUSES 0
#define NEEDS   ""
#define SUMMARY "portable C, 12 rows by 4 keys at a time, blocks of 64 keys"
extern const attest_cpu_kernel KERNEL;
#include "../lib/cpu/kernel_code.h"
