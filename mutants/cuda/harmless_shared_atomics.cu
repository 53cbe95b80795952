/*
 * harmless_shared_atomics.cu - harmless: threads count themselves by an integer atomic on shared memory.
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
#define EXTRA_SHARED unsigned counted[4];
#define AT_START                                                                                                                   \
    if (threadIdx.x == 0)                                                                                                          \
        smem.counted[0] = 0;                                                                                                       \
    __syncthreads();                                                                                                               \
    atomicAdd(&smem.counted[0], 1u);                                                                                               \
    __syncthreads()
#define SCALE (args.scale * (smem.counted[0] == ATTEST_THREADS ? 1.0f : 0.0f))

#include "base.cuh"
