/*
 * lines_renamed.cu - planted: a pragma that silences a warning is said to be a line of the toolkit.
 *
 * Caught by: build (a directive that gives lines another name)
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
# 1 "/usr/local/cuda/include/cuda_runtime.h" 1 3
#pragma nv_diag_suppress 177
static __device__ int rows_of_a_warp()
{
    return 16;
}
# 2 "lines_renamed.cu" 2

#include "base.cuh"
