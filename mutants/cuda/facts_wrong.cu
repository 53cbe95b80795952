/*
 * facts_wrong.cu - planted: the facts in the image say 64 keys for each tile, stages and all, but 256 threads.
 *
 * Caught by: build (threads 256)
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
#include <attest_kernel_cuda.h>
#undef ATTEST_CUDA_FACTS
#define ATTEST_CUDA_FACTS(bytes)                                                                                                   \
    extern "C" __constant__ const attest_cuda_facts attest_facts = {ATTEST_CUDA_ABI,   sizeof(attest_cuda_args),                   \
                                                                    ATTEST_DTYPE,      ATTEST_DIM,                                 \
                                                                    ATTEST_TILE_Q,     ATTEST_TILE_KV,                             \
                                                                    ATTEST_STAGES,     256,                                        \
                                                                    (uint32_t)(bytes), 0}

#include "base.cuh"
