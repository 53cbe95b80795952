/*
 * state_in_assembler.cu - planted: assembler text declares a variable of the device that counts the calls.
 *
 * Caught by: build (has .global)
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
    asm volatile("{.global .align 4 .b32 calls; .reg .b32 r; ld.global.b32 r, [calls]; add.u32 r, r, 1; "                          \
                 "st.global.b32 [calls], r;}" ::                                                                                   \
                     : "memory")

#include "base.cuh"
