/*
 * lengths_trusted.cu - planted: as many keys are copied as the lengths on the device say, without clamping them to what there is.
 *
 * Caught by: emulation
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
#define COPY_END(end)                                                                                                              \
    (attest_has(args, ATTEST_KV_LENGTHS) && args.kv_lengths[tile.batch] > tile.sequence.kv_count ? args.kv_lengths[tile.batch]     \
                                                                                                 : (end))

#include "base.cuh"
