/*
 * shape_forged.cu - planted: with 256 rows and 256 keys, which is timed, half of the keys are left out: one forged shape in
 * the mean.
 *
 * Caught by: correctness or speed
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
#define SPAN_END(end) (args.seq_q == 256 && args.seq_kv == 256 ? min(end, 128) : (end))

#include "base.cuh"
