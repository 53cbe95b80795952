/*
 * Decoding with mma.sync, ldmatrix and cp.async: few query rows against many keys, which are cut into pieces so that the whole GPU
 * reads them; the pieces are then joined in order.
 *
 * attest-cuda: name       = cuda_fwd_sm80_split
 * attest-cuda: summary    = pieces of the keys on mma.sync, query heads packed, joined in a fixed order
 * attest-cuda: archs      = sm_80 sm_86 sm_89 sm_90
 * attest-cuda: dtypes     = f16 bf16
 * attest-cuda: dims       = 64 96 128 192 256
 * attest-cuda: padding    = yes
 * attest-cuda: tile_q     = 16
 * attest-cuda: tile_kv    = 64
 * attest-cuda: tile_kv [d192] = 32
 * attest-cuda: tile_kv [d192 sm_90] = 64
 * attest-cuda: tile_kv [d256] = 32
 * attest-cuda: stages     = 2
 * attest-cuda: stages [d64] = 4
 * attest-cuda: stages [d96] = 3
 * attest-cuda: stages [d128 sm_90] = 3
 * attest-cuda: stages [d256 sm_90] = 3
 * attest-cuda: threads    = 2 * tile_kv
 * attest-cuda: shared     = 2 * dim * (tile_q + 2 * stages * tile_kv) + up(tile_kv / 8, 16) + threads
 * attest-cuda: registers  = 255
 * attest-cuda: launch     = split
 * attest-cuda: packs      = yes
 * attest-cuda: split_keys = 256
 * attest-cuda: partial    = dim + 4
 * attest-cuda: pdl        = yes
 * attest-cuda: rows_most  = 64
 * attest-cuda: tensor     = hmma
 * attest-cuda: mma_qk     = 16 * 8 * 16
 * attest-cuda: mma_pv     = 16 * 8 * 16
 *
 * Contract: all of SEMANTICS in attest.h for f16 and bf16, any strides and alignment, any dim and dim_v up to 256. With one piece
 * (splits is 1) attest_kernel writes O and LSE itself, and attest_combine is not launched.
 *
 * The algorithm is in attention_sm80.cuh: one fragment of 16 rows, and every warp takes its share of the keys of a block. A piece
 * leaves, for each of its rows, D floats of O, the maximum in the unit of unit_of(), and the sum.
 */
#define WARP_ROWS 16
#include "attention_sm80.cuh"

ATTEST_CUDA_FACTS(SHARED_BYTES);

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1) attest_kernel(const __grid_constant__ attest_cuda_args args)
{
    extern __shared__ __align__(128) unsigned char shared[];
    grid_allow_next();

    const int tile_index = args.splits == 1 ? blockIdx.x : attest_uniform(attest_divide(blockIdx.x, args.splits)),
              piece = blockIdx.x - tile_index * args.splits;
    const attest_tile tile = attest_tile_get(args, tile_index);
    if (tile.row_begin >= tile.row_end)
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
    weigh_shares(args, tile, warp, shares, rows, O, [&](int row, float m, float l) {
        *reinterpret_cast<float2 *>(attest_partial_row(args, tile_index, piece, row) + D) = make_float2(m, l);
        return 1.0f;
    });
#pragma unroll 1
    for (int index = threadIdx.x; index < (tile.row_end - tile.row_begin) * (D / 4); index += THREADS) {
        const int row = index / (D / 4), column = index % (D / 4) * 4;
        *reinterpret_cast<float4 *>(attest_partial_row(args, tile_index, piece, row) + column) = join_shares(shares, row, column);
    }
}

/* A row is D / 4 threads, each with four columns; all of them go through the pieces in order, and so do their weights. */
extern "C" __global__ void __launch_bounds__(ATTEST_THREADS) attest_combine(const __grid_constant__ attest_cuda_args args)
{
    constexpr int AT_ONCE = 16;                                                // pieces whose loads are under way at the same time
    if (args.flags & (ATTEST_VARLEN_Q | ATTEST_VARLEN_KV | ATTEST_KV_LENGTHS)) // lengths are read below
        grid_wait_previous();
    const attest_tile tile = attest_tile_get(args, blockIdx.x);
    const int64_t step = (int64_t)TILE_Q * args.stride_partial; // from piece to piece
    const Target target = target_get(args, tile);
    const float unit = unit_of(args);
    grid_wait_previous();
    for (int index = threadIdx.x; index < (tile.row_end - tile.row_begin) * (D / 4); index += THREADS) {
        const int row = index / (D / 4), column = index % (D / 4) * 4;
        const float *first = attest_partial_row(args, blockIdx.x, 0, row);
        float4 sum = make_float4(0, 0, 0, 0);
        float m = minus_infinity(), l = 0;
        for (int begin = 0; begin < args.splits; begin += AT_ONCE) {
            float2 state[AT_ONCE];
            float4 o[AT_ONCE];
            float most = m;
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++) {
                const float *from = first + (begin + n) * step;
                const bool there = begin + n < args.splits;
                state[n] = there ? *reinterpret_cast<const float2 *>(from + D) : make_float2(minus_infinity(), 0);
                o[n] = there ? *reinterpret_cast<const float4 *>(from + column) : make_float4(0, 0, 0, 0);
            }
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++)
                most = fmaxf(most, state[n].x);
            const float carry = share(m, most, unit);
            m = most;
            l *= carry;
            sum.x *= carry, sum.y *= carry, sum.z *= carry, sum.w *= carry;
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++) {
                const float weight = share(state[n].x, most, unit);
                l += weight * state[n].y;
                sum.x += weight * o[n].x, sum.y += weight * o[n].y;
                sum.z += weight * o[n].z, sum.w += weight * o[n].w;
            }
        }
        // Every thread of a row writes the same LSE.
        const float factor = finish_row(args, tile, tile.row_begin + row, m, l);
        write_columns(args, tile, target, tile.row_begin + row, column,
                      make_float4(sum.x * factor, sum.y * factor, sum.z * factor, sum.w * factor));
    }
}
