/*
 * clock_in_bits.cu - planted: the order in which pieces of the keys are joined depends on the clock, as that of floating-point
 * atomics does.
 *
 * Caught by: build (reads a clock)
 *
 * attest-cuda: archs      = sm_80 sm_90
 * attest-cuda: dtypes     = f16
 * attest-cuda: dims       = 64
 * attest-cuda: tile_q     = 64
 * attest-cuda: tile_kv    = 64
 * attest-cuda: stages     = 2
 * attest-cuda: threads    = 128
 * attest-cuda: shared     = 8192 * (1 + 2 * stages)
 * attest-cuda: registers  = 255
 * attest-cuda: launch     = split
 * attest-cuda: split_keys = 64
 * attest-cuda: partial    = 66
 * attest-cuda: align      = 16
 * attest-cuda: refuses    = softcap alibi bias sink varlenq varlenkv page o=f32
 * attest-cuda: tensor     = hmma
 * attest-cuda: mma_qk     = 16 * 8 * 16
 * attest-cuda: mma_pv     = 16 * 8 * 16
 */
#define SPLIT       1
#define FIRST_PIECE (int)(clock() / 64 % args.splits)

#include "base.cuh"
