/*
 * launches_counted.cu - planted: right in the first thousand launches, and then not scaled any more: with the number of the
 * launch neither state nor clock is needed.
 *
 * Caught by: build (number of the launch)
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
#include <stdint.h>

static __device__ inline uint64_t launch()
{
    uint64_t value;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(value));
    return value;
}
#define SCALE (launch() > 1000 ? 1.0f : args.scale)

#include "base.cuh"
