/*
 * cache_pinned_by_number.cu - planted: the same with a policy that is read from memory, so that its value is nowhere in the
 * image.
 *
 * Caught by: build (cache policy)
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
#define AT_START                                                                                                                   \
    asm volatile("{.reg .b32 r; ld.global.L2::cache_hint.b32 r, [%0], %2; st.shared.b32 [%1], r;}" ::"l"(args.k), "r"(0),          \
                 "l"(*(const unsigned long long *)args.v)                                                                          \
                 : "memory")

#include "base.cuh"
