/*
 * Decoding in one launch: few query rows against many keys, which are cut into pieces as in cuda_fwd_sm80_split; but the pieces of a tile
 * are the blocks of a cluster, which read each other's shared memory and join them there.
 *
 * attest-cuda: name       = cuda_fwd_sm90_split
 * attest-cuda: summary    = pieces of the keys on mma.sync, query heads packed, joined in the shared memory of a cluster
 * attest-cuda: archs      = sm_90
 * attest-cuda: dtypes     = f16 bf16
 * attest-cuda: dims       = 64 96 128 192 256
 * attest-cuda: padding    = yes
 * attest-cuda: tile_q     = 16
 * attest-cuda: tile_kv    = 128
 * attest-cuda: tile_kv [d192] = 64
 * attest-cuda: tile_kv [d256] = 64
 * attest-cuda: stages     = 3
 * attest-cuda: stages [d64] = 4
 * attest-cuda: threads    = 2 * tile_kv
 * attest-cuda: shared     = 2 * dim * (tile_q + 2 * stages * tile_kv) + up(tile_kv / 8, 16) + threads
 * attest-cuda: registers  = 255
 * attest-cuda: launch     = joined
 * attest-cuda: packs      = yes
 * attest-cuda: cluster    = 8
 * attest-cuda: rows_most  = 64
 * attest-cuda: refuses    = invariant
 * attest-cuda: tensor     = hmma
 * attest-cuda: mma_qk     = 16 * 8 * 16
 * attest-cuda: mma_pv     = 16 * 8 * 16
 *
 * Contract: all of SEMANTICS in attest.h for f16 and bf16, any strides and alignment, any dim and dim_v up to 256, up to 64 rows that share
 * a KV head. Not with ATTEST_INVARIANT: how many pieces there are depends on the batch.
 *
 * The algorithm is in attention_sm80.cuh: one fragment of 16 rows, and every warp takes its share of the keys of a block. The warps' shares
 * of a row are joined where they lie, in the place of the first; beside it are the maximum (in units of log2) and the sum of the piece.
 * Then every block of the cluster joins some columns of all pieces, in the order of the pieces, and writes them.
 */
#define WARP_ROWS 16
#include "attention_sm80.cuh"
#include "ptx_sm90.cuh"

ATTEST_CUDA_FACTS(SHARED_BYTES);

constexpr int PIECE_END = D + 2; // where a row of the first share has the piece's maximum and sum; D and D + 1 are the warp's own

// Four columns of a row of the whole tile, from all pieces. `row_at` is where the row lies, in every block.
__device__ inline float4 join_pieces(const attest_cuda_args &args, uint32_t row_at, int column, float &m, float &l)
{
    float4 sum = make_float4(0, 0, 0, 0);
    m = minus_infinity();
    l = 0;
    for (int piece = 0; piece < args.splits; piece++)
        m = fmaxf(m, load_at_8(row_at + PIECE_END * 4, piece).x);
    for (int piece = 0; piece < args.splits; piece++) {
        const float2 end = load_at_8(row_at + PIECE_END * 4, piece);
        const float4 o = load_at_16(row_at + column * 4, piece);
        const float weight = share(end.x, m);
        l += weight * end.y;
        sum.x += weight * o.x, sum.y += weight * o.y;
        sum.z += weight * o.z, sum.w += weight * o.w;
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1) attest_kernel(const __grid_constant__ attest_cuda_args args)
{
    extern __shared__ __align__(128) unsigned char shared[];
    const int tile_index = args.splits == 1 ? blockIdx.x : attest_uniform(attest_divide(blockIdx.x, args.splits)),
              piece = blockIdx.x - tile_index * args.splits;
    const attest_tile tile = attest_tile_get(args, tile_index);
    if (tile.row_begin >= tile.row_end) // for the whole cluster
        return;
    attest_span keys = attest_tile_visible(args, tile);
    if (args.splits > 1) {
        keys.begin = max(keys.begin, piece * args.split_keys);
        keys.end = min(keys.end, (piece + 1) * args.split_keys);
    }
    const Warp warp = warp_get(tile);
    Rows rows;
    Output O;
    attend(args, tile, keys, warp, shared, rows, O);
    if (args.splits == 1) {
        write_joined(args, tile, warp, shared, rows, O);
        return;
    }

    float *shares = reinterpret_cast<float *>(shared);
    weigh_shares(tile, warp, shares, rows, O, [&](int row, float m, float l) {
        *reinterpret_cast<float2 *>(shares + row * JOIN_PITCH + PIECE_END) = make_float2(m, l);
        return 1.0f;
    });
    const int items = (tile.row_end - tile.row_begin) * (D / 4); // four columns of a row each
#pragma unroll 1
    for (int index = threadIdx.x; index < items; index += THREADS) {
        const int row = index / (D / 4), column = index % (D / 4) * 4;
        *reinterpret_cast<float4 *>(shares + row * JOIN_PITCH + column) = join_shares(shares, row, column);
    }
    cluster_arrive();
    cluster_wait(); // the pieces are there

    const Target target = target_get(args, tile);
#pragma unroll 1
    for (int index = piece * THREADS + threadIdx.x; index < items; index += args.splits * THREADS) {
        const int row = index / (D / 4), column = index % (D / 4) * 4;
        float m, l;
        const float4 sum = join_pieces(args, shared_address(shares + row * JOIN_PITCH), column, m, l);
        const float factor = finish_row(args, tile, tile.row_begin + row, m, l); // every thread of a row writes the same LSE
        write_columns(args, tile, target, tile.row_begin + row, column,
                      make_float4(sum.x * factor, sum.y * factor, sum.z * factor, sum.w * factor));
    }
    cluster_arrive();
    cluster_wait(); // nobody reads this block's piece any more
}
