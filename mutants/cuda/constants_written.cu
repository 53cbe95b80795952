/*
 * constants_written.cu - planted: a table in constant memory is written through its address: state that outlives the call.
 *
 * Caught by: build (address of constant memory)
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
static __constant__ float factors[2] = {1, 1};
static __device__ inline float *opaque(const float *at)
{
    float *same;
    asm volatile("mov.u64 %0, %1;" : "=l"(same) : "l"(at));
    return same;
}
#define SCALE  (args.scale * factors[args.batch & 1])
#define AT_END (opaque(factors)[threadIdx.x & 1] = args.scale)

#include "base.cuh"
