/*
 * round_21_wrong.cu - planted: with a persistent grid, a block leaves out the last key from its 21st tile on.
 *
 * Caught by: correctness
 *
 * attest-cuda: archs     = sm_80 sm_90
 * attest-cuda: dtypes    = f16
 * attest-cuda: dims      = 64
 * attest-cuda: tile_q    = 64
 * attest-cuda: tile_kv   = 64
 * attest-cuda: stages    = 2
 * attest-cuda: threads   = 128
 * attest-cuda: shared    = 8192 * (1 + 2 * stages)
 * attest-cuda: registers = 255
 * attest-cuda: launch    = persistent
 * attest-cuda: align     = 16
 * attest-cuda: refuses   = softcap alibi bias sink varlenq varlenkv page o=f32
 * attest-cuda: tensor    = hmma
 * attest-cuda: mma_qk    = 16 * 8 * 16
 * attest-cuda: mma_pv    = 16 * 8 * 16
 */
#define AT_START                                                                                                                   \
    int round = 0;                                                                                                                 \
    next_tile:                                                                                                                     \
    __syncthreads()
#define TILE_INDEX(block) ((block) + round * (int)gridDim.x)
#define AT_END                                                                                                                     \
    round++;                                                                                                                       \
    if (blockIdx.x + round * gridDim.x < args.tiles)                                                                               \
    goto next_tile
#define SPAN_END(end) (round >= 20 ? (end)-1 : (end))

#include "base.cuh"
