/*
 * fragments_from_registers.cu - planted: the fragments of a product are loaded from an array in local memory, not from shared
 * memory: the compiler warns.
 *
 * Caught by: build (cannot perform wmma load)
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
#include <mma.h>

#define SCORES(s) through_fragments(s)

#include <attest_kernel_cuda.h>

__device__ inline void through_fragments(float (&s)[8][4]);

#include "base.cuh"

// The scores of a lane as a tile of its own, which it is not: a fragment belongs to a warp.
__device__ inline void through_fragments(float (&s)[8][4])
{
    float tile[16 * 16];
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> fragment;
    for (int n = 0; n < 256; n++)
        tile[n] = s[n / 4 % 8][n % 4];
    nvcuda::wmma::load_matrix_sync(fragment, tile, 16, nvcuda::wmma::mem_row_major);
    s[0][0] += 0 * fragment.x[0];
}
