/*
 * o_sum_in_f16.cu - planted: the output is summed in f16: it is rounded after each tile of keys.
 *
 * Caught by: oracle (PV)
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
#define VALUES(o)                                                                                                                  \
    for (int n = 0; n < 32; n++)                                                                                                   \
    o[n / 4][n % 4] = attest_from_f16(attest_to_f16(o[n / 4][n % 4]))

#include "base.cuh"
