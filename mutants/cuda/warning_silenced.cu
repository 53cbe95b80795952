/*
 * warning_silenced.cu - planted: a warning of the compiler is silenced by a pragma that a macro makes.
 *
 * Caught by: build (#pragma nv_diag_suppress 177)
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
#define SILENT(number) _Pragma(number)
SILENT("nv_diag_suppress 177")
static __device__ int rows_of_a_warp()
{
    return 16;
}

#include "base.cuh"
