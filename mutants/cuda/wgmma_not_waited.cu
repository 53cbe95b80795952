/*
 * wgmma_not_waited.cu - planted: the kernel does not wait for the wgmma that makes its scores. Today's assembler puts a wait where
 * they are used, and says so in a remark, so that the results are right on a GPU; PTX promises nothing.
 *
 * Caught by: emulation (wgmma)
 *
 * attest-cuda: archs     = sm_90a
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
 * attest-cuda: tensor    = gmma
 * attest-cuda: mma_qk    = 64 * 64 * 16 / 4
 * attest-cuda: mma_pv    = 16 * 8 * 16
 */
#define WGMMA      1
#define WGMMA_WAIT ((void)0)

#include "base.cuh"
