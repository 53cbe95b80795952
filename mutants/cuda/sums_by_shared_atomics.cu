/*
 * sums_by_shared_atomics.cu - planted: threads add to a sum in shared memory by floating-point atomics, in the order of
 * arrival.
 *
 * Caught by: build (floating-point atomic)
 *
 * attest-cuda: archs     = sm_90
 * attest-cuda: dtypes    = f16
 * attest-cuda: dims      = 64
 * attest-cuda: tile_q    = 64
 * attest-cuda: tile_kv   = 64
 * attest-cuda: stages    = 2
 * attest-cuda: threads   = 128
 * attest-cuda: shared    = 8192 * (1 + 2 * stages) + 4
 * attest-cuda: registers = 255
 * attest-cuda: launch    = tile
 * attest-cuda: align     = 16
 * attest-cuda: refuses   = softcap alibi bias sink varlenq varlenkv page o=f32
 * attest-cuda: tensor    = hmma
 * attest-cuda: mma_qk    = 16 * 8 * 16
 * attest-cuda: mma_pv    = 16 * 8 * 16
 */
#define EXTRA_SHARED float total;
#define AT_END                                                                                                                     \
    smem.total = 0;                                                                                                                \
    __syncthreads();                                                                                                               \
    atomicAdd(&smem.total, l[0])

#include "base.cuh"
