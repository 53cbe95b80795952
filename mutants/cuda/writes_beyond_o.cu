/*
 * writes_beyond_o.cu - planted: writes a zero behind the very last row of O.
 *
 * Caught by: memory (of O)
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
    if (blockIdx.x == 0 && threadIdx.x == 0)                                                                                       \
    ((uint16_t *)args.o)[last_of(args, args.stride_o, args.batch, args.heads_q, args.seq_q)] = 0

#include <attest_kernel_cuda.h>

// The element behind the last row of a tensor.
__device__ inline int64_t last_of(const attest_cuda_args &args, const int64_t *stride, int batch, int heads, int rows)
{
    return (batch - 1) * stride[0] + (heads - 1) * stride[1] + (rows - 1) * stride[2] + args.dim;
}

#include "base.cuh"
