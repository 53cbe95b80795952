/*
 * harmless_polling.cu - harmless: threads ask an mbarrier again and again, in a loop of their own, instead of waiting in the instruction.
 *
 * attest-cuda: archs     = sm_90
 * attest-cuda: dtypes    = f16
 * attest-cuda: dims      = 64
 * attest-cuda: tile_q    = 64
 * attest-cuda: tile_kv   = 64
 * attest-cuda: stages    = 2
 * attest-cuda: threads   = 128
 * attest-cuda: shared    = 9216 * (1 + 2 * stages) + 8 * stages
 * attest-cuda: registers = 255
 * attest-cuda: launch    = tile
 * attest-cuda: align     = 16
 * attest-cuda: refuses   = softcap alibi bias sink varlenq varlenkv page o=f32
 * attest-cuda: tensor    = hmma
 * attest-cuda: mma_qk    = 16 * 8 * 16
 * attest-cuda: mma_pv    = 16 * 8 * 16
 */
#define BULK                       1
#define BULK_WAIT(barrier, phase)  mbarrier_poll(barrier, phase)

#include "base.cuh"
