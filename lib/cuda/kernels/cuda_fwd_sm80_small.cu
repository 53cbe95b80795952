/*
 * FlashAttention with mma.sync for problems that are too small to fill a GPU: short tiles, and two warps for each row that share its
 * keys, so that every multiprocessor has a tile and eight warps to work on it.
 *
 * attest-cuda: name       = cuda_fwd_sm80_small
 * attest-cuda: summary    = mma.sync on short tiles, the keys of a row shared by two warps, for a tile a multiprocessor
 * attest-cuda: archs      = sm_80 sm_86 sm_89 sm_90
 * attest-cuda: dtypes     = f16 bf16
 * attest-cuda: dims       = 64 128
 * attest-cuda: padding    = yes
 * attest-cuda: tile_q     = 64
 * attest-cuda: tile_kv    = 8192 / dim
 * attest-cuda: tile_kv [sm_90] = 16384 / dim
 * attest-cuda: stages     = 2
 * attest-cuda: threads    = 256
 * attest-cuda: shared     = 2 * dim * (tile_q + 2 * stages * tile_kv) + up(tile_kv / 8, 16) + threads
 * attest-cuda: registers  = 255
 * attest-cuda: launch     = grid
 * attest-cuda: packs      = yes
 * attest-cuda: tiles_most = 132
 * attest-cuda: tensor     = hmma
 * attest-cuda: mma_qk     = 16 * 8 * 16
 * attest-cuda: mma_pv     = 16 * 8 * 16
 *
 * Contract: all of SEMANTICS in attest.h for f16 and bf16, any strides and alignment (16 bytes are faster), any dim and dim_v up to
 * 128; at most 132 tiles of 64 rows, which is one for each multiprocessor of an H200.
 *
 * The algorithm is in attention_sm80.cuh.
 */
#define WARP_ROWS 16
#include "attention_sm80.cuh"

ATTEST_CUDA_FACTS(SHARED_BYTES);

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1) attest_kernel(const __grid_constant__ attest_cuda_args args)
{
    extern __shared__ __align__(128) unsigned char shared[];
    compute_tile(args, attest_tile_here(args, true), shared);
}
