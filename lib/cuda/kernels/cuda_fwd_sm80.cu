/*
 * FlashAttention with mma.sync, ldmatrix and cp.async: 16-bit elements on the tensor cores of compute capability 8.0 and above.
 *
 * attest-cuda: name      = cuda_fwd_sm80
 * attest-cuda: summary   = mma.sync and ldmatrix on swizzled tiles, cp.async in stages, P in registers
 * attest-cuda: archs     = sm_80 sm_86 sm_89 sm_90
 * attest-cuda: dtypes    = f16 bf16
 * attest-cuda: dims      = 64 96 128 192 256
 * attest-cuda: padding   = yes
 * attest-cuda: tile_q    = 128
 * attest-cuda: tile_q [d192] = 64
 * attest-cuda: tile_q [d256] = 64
 * attest-cuda: tile_q [d192 sm_90] = 128
 * attest-cuda: tile_q [d256 sm_90] = 128
 * attest-cuda: tile_kv   = 64
 * attest-cuda: tile_kv [d192] = 32
 * attest-cuda: tile_kv [d256] = 32
 * attest-cuda: tile_kv [d192 sm_90] = 64
 * attest-cuda: tile_kv [d256 sm_90] = 64
 * attest-cuda: stages    = 2
 * attest-cuda: threads   = 128
 * attest-cuda: threads [d192 sm_90] = 256
 * attest-cuda: threads [d256 sm_90] = 256
 * attest-cuda: shared    = 2 * dim * (tile_q + 2 * stages * tile_kv) + up(tile_kv / 8, 16) + threads
 * attest-cuda: registers = 255
 * attest-cuda: launch    = grid
 * attest-cuda: packs     = yes
 * attest-cuda: tensor    = hmma
 * attest-cuda: mma_qk    = 16 * 8 * 16
 * attest-cuda: mma_pv    = 16 * 8 * 16
 * attest-cuda: space     = tile_q 64 128; tile_kv 32 64 128; stages 2 3; threads 128 256
 *
 * Contract: all of SEMANTICS in attest.h for f16 and bf16, any strides and alignment (16 bytes are faster), any dim and dim_v up to
 * 256. The query heads of a KV head share tiles. Nothing is refused.
 *
 * The algorithm is in attention_sm80.cuh. A warp has 32 rows as long as O fits the registers (D <= 128), so that each fragment of K
 * or V that ldmatrix brings is used twice; else 16, and then reading fragments is what limits it, and a part of Q stays in registers.
 */
#define WARP_ROWS (ATTEST_DIM > 128 ? 16 : 32)
#include "attention_sm80.cuh"

ATTEST_CUDA_FACTS(SHARED_BYTES);

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1) attest_kernel(const __grid_constant__ attest_cuda_args args)
{
    extern __shared__ __align__(128) unsigned char shared[];
    compute_tile(args, attest_tile_here(args, true), shared);
}
