/*
 * harmless_cluster.cu - harmless: clusters of two blocks, which wait for each other before they begin.
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
 * attest-cuda: launch    = grid
 * attest-cuda: align     = 16
 * attest-cuda: refuses   = softcap alibi bias sink varlenq varlenkv page o=f32
 * attest-cuda: tensor    = hmma
 * attest-cuda: mma_qk    = 16 * 8 * 16
 * attest-cuda: mma_pv    = 16 * 8 * 16
 * attest-cuda: cluster   = 2
 */
#define ATTRIBUTES        __cluster_dims__(2)
#define TILE_INDEX(block) (((int)blockIdx.z * args.slots + (int)blockIdx.y) * args.tiles_q + min((int)(block), args.tiles_q - 1))
#define AT_START          asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory")
#define WRITES_ROW(i)     ((i) < tile.row_end && (int)blockIdx.x < args.tiles_q)

#include "base.cuh"
