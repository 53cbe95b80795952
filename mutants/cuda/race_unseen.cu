/*
 * race_unseen.cu - planted: one warp writes a word of shared memory that the others read without a barrier, and nothing comes of
 * it, here and now.
 *
 * Caught by: memory (race)
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
#define EXTRA_SHARED int rows[4];
#define SCORES(s)                                                                                                                  \
    smem.rows[warp] = lane == 0 ? n : smem.rows[warp];                                                                             \
    s[0][0] = smem.rows[(warp + 1) % 4] > 1 << 28 ? 0.0f : s[0][0]

#include "base.cuh"
