/*
 * wgmma_operand_stored.cu - planted: while the wgmma that makes its scores is under way, a thread changes a byte of K and puts it back.
 * The results are right whenever the product reads before or after both stores, which is nearly always.
 *
 * Caught by: emulation (wgmma)
 *
 * attest-cuda: archs     = sm_90a
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
 * attest-cuda: tensor    = gmma
 * attest-cuda: mma_qk    = 64 * 64 * 16 / 4
 * attest-cuda: mma_pv    = 16 * 8 * 16
 */
#define WGMMA 1
#define WGMMA_WAIT                                                                                                                 \
    do {                                                                                                                           \
        volatile unsigned char *k = (volatile unsigned char *)smem.K[stage];                                                       \
        if (threadIdx.x == 0) {                                                                                                    \
            *k = *k ^ 64;                                                                                                          \
            *k = *k ^ 64;                                                                                                          \
        }                                                                                                                          \
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                                                             \
    } while (0)

#include "base.cuh"
