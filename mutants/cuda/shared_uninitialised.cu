/*
 * shared_uninitialised.cu - planted: a correction in shared memory is read before it is written: in the first tile it is what the
 * block before left there.
 *
 * Caught by: oracle or determinism
 *
 * attest-cuda: archs     = sm_80 sm_90
 * attest-cuda: dtypes    = f16
 * attest-cuda: dims      = 64
 * attest-cuda: tile_q    = 64
 * attest-cuda: tile_kv   = 64
 * attest-cuda: stages    = 2
 * attest-cuda: threads   = 128
 * attest-cuda: shared    = 8192 * (1 + 2 * stages) + 512
 * attest-cuda: registers = 255
 * attest-cuda: launch    = tile
 * attest-cuda: align     = 16
 * attest-cuda: refuses   = softcap alibi bias sink varlenq varlenkv page o=f32
 * attest-cuda: tensor    = hmma
 * attest-cuda: mma_qk    = 16 * 8 * 16
 * attest-cuda: mma_pv    = 16 * 8 * 16
 */
#define EXTRA_SHARED float correction[128];
#define SCORES(s)    s[0][0] += n == 0 ? smem.correction[threadIdx.x] : 0
#define VALUES(o)    smem.correction[threadIdx.x] = 1 + o[0][0]

#include "base.cuh"
