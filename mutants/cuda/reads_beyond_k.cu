/*
 * reads_beyond_k.cu - planted: reads the element behind the last row of K, and does nothing with it.
 *
 * Caught by: memory (Invalid __global__ read)
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
#define AT_END                                                                                                                     \
    asm volatile("{ .reg .b16 x; ld.volatile.global.b16 x, [%0]; }" ::"l"(                                                         \
        (const uint16_t *)args.k + last_of(args, args.stride_k, args.batch, args.heads_kv, args.seq_kv)))

#include <attest_kernel_cuda.h>

// The element behind the last row of a tensor.
__device__ inline int64_t last_of(const attest_cuda_args &args, const int64_t *stride, int batch, int heads, int rows)
{
    return (batch - 1) * stride[0] + (heads - 1) * stride[1] + (rows - 1) * stride[2] + args.dim;
}

#include "base.cuh"
