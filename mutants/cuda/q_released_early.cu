/*
 * q_released_early.cu - planted: a warp gives its buffer of Q back as soon as it has read its own part, and the next tile is
 * copied there while others still read.
 *
 * Caught by: oracle or memory
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
 * attest-cuda: launch    = tile
 * attest-cuda: align     = 16
 * attest-cuda: refuses   = softcap alibi bias sink varlenq varlenkv page o=f32
 * attest-cuda: tensor    = hmma
 * attest-cuda: mma_qk    = 16 * 8 * 16
 * attest-cuda: mma_pv    = 16 * 8 * 16
 */
#define Q_FRAGMENTS(q)                                                                                                             \
    for (int row = warp * 16 + 16 + lane; row < BLOCK; row += 32)                                                                  \
    *(uint4 *)(smem.Q + row * PITCH + SWIZZLE(row, 0) * 16) = make_uint4(q[0][0], 0, 0, 0)

#include "base.cuh"
