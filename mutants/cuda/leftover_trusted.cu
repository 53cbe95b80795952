/*
 * leftover_trusted.cu - planted: a block that finds the mark of the block before it in shared memory takes its Q for its own.
 *
 * Caught by: oracle or determinism
 *
 * attest-cuda: archs     = sm_80 sm_90
 * attest-cuda: dtypes    = f16
 * attest-cuda: dims      = 64
 * attest-cuda: tile_q    = 64
 * attest-cuda: tile_kv   = 64
 * attest-cuda: stages    = 2
 * attest-cuda: threads   = 128
 * attest-cuda: shared    = 8192 * (1 + 2 * stages) + 16
 * attest-cuda: registers = 255
 * attest-cuda: launch    = tile
 * attest-cuda: align     = 16
 * attest-cuda: refuses   = softcap alibi bias sink varlenq varlenkv page o=f32
 * attest-cuda: tensor    = hmma
 * attest-cuda: mma_qk    = 16 * 8 * 16
 * attest-cuda: mma_pv    = 16 * 8 * 16
 */
#define EXTRA_SHARED uint32_t mark[4];
#define SCORES(s)                                                                                                                  \
    if (n == 0 && smem.mark[1] == 0x600dca5eu && smem.mark[0] == (uint32_t)tile.row_begin)                                         \
    s[0][0] = s[0][1]
#define AT_END                                                                                                                     \
    smem.mark[0] = (uint32_t)tile.row_begin;                                                                                       \
    smem.mark[1] = 0x600dca5eu

#include "base.cuh"
