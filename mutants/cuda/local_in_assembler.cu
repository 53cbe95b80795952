/*
 * local_in_assembler.cu - planted: assembler text writes local memory, where the next block finds it; there is no array, and
 * so no stack frame.
 *
 * Caught by: build (local memory)
 *
 * attest-cuda: archs     = sm_90
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
#define AT_START asm volatile("st.local.b32 [%0], %1;" ::"r"(args.batch), "r"(args.seq_kv) : "memory")

#include "base.cuh"
