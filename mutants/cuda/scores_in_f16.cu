/*
 * scores_in_f16.cu - planted: scores are rounded to f16.
 *
 * Caught by: oracle (S)
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
#define SCORES(s)                                                                                                                  \
    for (int n = 0; n < 32; n++)                                                                                                   \
    s[n / 4][n % 4] = attest_from_f16(attest_to_f16(s[n / 4][n % 4]))

#include "base.cuh"
