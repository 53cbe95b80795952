/*
 * attention_sm80_end.cuh - how rows end in the kernels of attention_sm80.cuh, which includes this file: the warps' shares of the keys are
 * joined, O is normalised and written, and LSE with it.
 */
#ifndef ATTEST_ATTENTION_SM80_END_CUH
#define ATTEST_ATTENTION_SM80_END_CUH

/* ---- joining shares ---- */

// The weight of a share whose maximum is m, beside one whose maximum is `most`.
__device__ inline float share(float m, float most, float unit)
{
    return m == minus_infinity() ? 0 : exp2_fast((m - most) * unit);
}

// A warp's share of its rows, for those that join them.
__device__ inline void leave_share(const Warp &warp, int count, float *shares, const Rows &rows, const Output &O)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = warp.q * WARP_ROWS + m * 16 + half * 8 + warp.lane / 4, column = warp.lane % 4 * 2;
            float *to = shares + (warp.kv * TILE_Q + row) * JOIN_PITCH;
            if (row >= count)
                continue;
#pragma unroll
            for (int n = 0; n < D / 8; n++)
                *reinterpret_cast<float2 *>(to + n * 8 + column) = make_float2(O[m][n][half * 2], O[m][n][half * 2 + 1]);
            if (column == 0)
                *reinterpret_cast<float2 *>(to + D) = make_float2(rows.m[m][half], rows.l[m][half]);
        }
}

/* ---- the end of a row ---- */

// What a row's O is to be multiplied with at its end; LSE is written. m is in the unit of unit_of().
__device__ inline float finish_row(const attest_cuda_args &args, const attest_tile &tile, int r, float m, float l)
{
    float factor = l == 0 ? 0 : reciprocal_fast(l);
    if (args.flags & (ATTEST_LSE | ATTEST_SINK)) {
        const Place place = place_get(args, tile, r);
        const int head = tile.slot * args.pack + place.head;
        const attest_ending ending = attest_row_ending(args, is_modified(args) ? m : m * LN_2, l, head);
        if (attest_has(args, ATTEST_SINK))
            factor = ending.factor;
        if (attest_has(args, ATTEST_LSE))
            args.lse[attest_row_offset(args, args.stride_lse, tile, head, place.i)] = ending.lse;
    }
    return factor;
}

// Where O goes.
struct Target {
    Strip strip;
    bool whole; // in chunks of 16 bytes
};

__device__ inline Target target_get(const attest_cuda_args &args, const attest_tile &tile)
{
    Target target = {strip_get(args, tile, args.stride_o),
                     args.dtype_o == ATTEST_DTYPE && args.dim_v % 8 == 0 && args.aligned & ATTEST_ALIGNED_O};
    return target;
}

// Four columns of a row of O.
__device__ inline void write_columns(const attest_cuda_args &args, const attest_tile &tile, const Target &target, int r, int column,
                                     float4 o)
{
    const int64_t at = offset_of(target.strip, place_get(args, tile, r)) + column;
    if (target.whole && column < args.dim_v) {
        *reinterpret_cast<uint2 *>((uint16_t *)args.o + at) = make_uint2(pack(o.x, o.y), pack(o.z, o.w));
        return;
    }
#pragma unroll 1
    for (int e = 0; e < 4 && column + e < args.dim_v; e++)
        attest_store(args.o, args.dtype_o, at + e, e == 0 ? o.x : e == 1 ? o.y : e == 2 ? o.z : o.w);
}

// Shares of rows, WARPS_KV > 1. All of a block leave theirs, and then the row that each of the first threads owns is weighed: what
// O of each share is to be multiplied with takes the place of its m. The weights of a row with its maximum and sum are what
// `finish` says. For all threads.
template <typename Finish>
__device__ inline void weigh_shares(const attest_cuda_args &args, const attest_tile &tile, const Warp &warp, float *shares,
                                    const Rows &rows, const Output &O, Finish finish)
{
    const int count = tile.row_end - tile.row_begin;
    const float unit = unit_of(args);
    __syncthreads(); // Q, K and V have been read
    leave_share(warp, count, shares, rows, O);
    __syncthreads();
    for (int row = threadIdx.x; row < count; row += THREADS) {
        float *first = shares + row * JOIN_PITCH + D, most = minus_infinity(), l = 0;
#pragma unroll
        for (int kv = 0; kv < WARPS_KV; kv++)
            most = fmaxf(most, first[kv * TILE_Q * JOIN_PITCH]);
#pragma unroll
        for (int kv = 0; kv < WARPS_KV; kv++)
            l += share(first[kv * TILE_Q * JOIN_PITCH], most, unit) * first[kv * TILE_Q * JOIN_PITCH + 1];
        const float factor = finish(row, most, l);
#pragma unroll
        for (int kv = 0; kv < WARPS_KV; kv++)
            first[kv * TILE_Q * JOIN_PITCH] = share(first[kv * TILE_Q * JOIN_PITCH], most, unit);
        first[1] = factor;
    }
    __syncthreads();
}

// Four columns of a row whose shares have been weighed.
__device__ inline float4 join_shares(const float *shares, int row, int column)
{
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int kv = 0; kv < WARPS_KV; kv++) {
        const float *of_row = shares + (kv * TILE_Q + row) * JOIN_PITCH, weight = of_row[D];
        const float4 o = *reinterpret_cast<const float4 *>(of_row + column);
        sum.x += weight * o.x, sum.y += weight * o.y;
        sum.z += weight * o.z, sum.w += weight * o.w;
    }
    const float factor = shares[row * JOIN_PITCH + D + 1];
    return make_float4(sum.x * factor, sum.y * factor, sum.z * factor, sum.w * factor);
}

// O and LSE of a tile whose keys were shared out, WARPS_KV > 1. For all threads. Loops here and below are not unrolled: what is done
// once has to be short, since its instructions have to be fetched from far.
__device__ inline void write_joined(const attest_cuda_args &args, const attest_tile &tile, const Warp &warp, unsigned char *shared,
                                    const Rows &rows, const Output &O)
{
    float *shares = reinterpret_cast<float *>(shared);
    weigh_shares(args, tile, warp, shares, rows, O,
                 [&](int row, float m, float l) { return finish_row(args, tile, tile.row_begin + row, m, l); });
    const Target target = target_get(args, tile);
    const int count = tile.row_end - tile.row_begin;
    if (target.whole && args.pack == 1 && args.dim_v == D && THREADS % (D / 4) == 0) { // rows lie a stride apart
        constexpr int ROWS = THREADS / (D / 4);                                        // that are written at a time
        const int first = threadIdx.x / (D / 4), column = threadIdx.x % (D / 4) * 4;
        uint16_t *to = (uint16_t *)args.o + target.strip.base + (tile.row_begin + first) * target.strip.row + column;
#pragma unroll 4
        for (int row = first; row < count; row += ROWS, to += ROWS * target.strip.row) {
            const float4 o = join_shares(shares, row, column);
            *reinterpret_cast<uint2 *>(to) = make_uint2(pack(o.x, o.y), pack(o.z, o.w));
        }
        return;
    }
#pragma unroll 1
    for (int index = threadIdx.x; index < count * (D / 4); index += THREADS) {
        const int row = index / (D / 4), column = index % (D / 4) * 4;
        write_columns(args, tile, target, tile.row_begin + row, column, join_shares(shares, row, column));
    }
}

// O and LSE of a warp's rows, WARPS_KV == 1. O goes through shared memory, where Q was, so that whole chunks are written.
__device__ inline void write_rows(const attest_cuda_args &args, const attest_tile &tile, const Warp &warp, unsigned char *shared,
                                  const Rows &rows, Output &O)
{
    unsigned char *own = shared + SHARED_Q + warp.q * WARP_ROWS * PITCH;
    float factor[M][2];
    __syncwarp();
    if (args.flags & (ATTEST_LSE | ATTEST_SINK)) {      // a lane for each row
        float2 *ends = reinterpret_cast<float2 *>(own); // m and l of each row, then the factor in the place of m
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                if (warp.lane % 4 == 0)
                    ends[m * 16 + half * 8 + warp.lane / 4] = make_float2(rows.m[m][half], rows.l[m][half]);
        __syncwarp();
        if (warp.lane < WARP_ROWS && warp.row + warp.lane < tile.row_end)
            ends[warp.lane].x = finish_row(args, tile, warp.row + warp.lane, ends[warp.lane].x, ends[warp.lane].y);
        __syncwarp();
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                factor[m][half] = ends[m * 16 + half * 8 + warp.lane / 4].x;
        __syncwarp();
    } else {
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                factor[m][half] = rows.l[m][half] == 0 ? 0 : reciprocal_fast(rows.l[m][half]);
    }

    const Target target = target_get(args, tile);
    if (!target.whole) {
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const Place place = place_get(args, tile, row_of(warp, m, half));
                const int64_t at = offset_of(target.strip, place) + warp.lane % 4 * 2;
#pragma unroll
                for (int n = 0; n < D / 8; n++)
#pragma unroll
                    for (int e = 0; e < 2; e++)
                        if (place.there && n * 8 + warp.lane % 4 * 2 + e < args.dim_v)
                            attest_store(args.o, args.dtype_o, at + n * 8 + e, O[m][n][half * 2 + e] * factor[m][half]);
            }
        return;
    }
    const uint32_t o_at = shared_address(own);
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int n = 0; n < D / 8; n++)
                store_shared_4(chunk_at(o_at, m * 16 + half * 8 + warp.lane / 4, n) + warp.lane % 4 * 4,
                               pack(O[m][n][half * 2] * factor[m][half], O[m][n][half * 2 + 1] * factor[m][half]));
    __syncwarp();
    if (args.pack == 1 && args.dim_v == D) { // rows lie a stride apart
        constexpr int ROWS = 32 / GROUP;     // that are written at a time
        const int row = warp.lane / GROUP, chunk = warp.lane % GROUP, count = tile.row_end - warp.row;
        uint16_t *to = (uint16_t *)args.o + target.strip.base + (warp.row + row) * target.strip.row + chunk * 8;
#pragma unroll
        for (int n = 0; n < WARP_ROWS / ROWS; n++, to += ROWS * target.strip.row) {
            uint4 chunks[CHUNKS / GROUP];
#pragma unroll
            for (int i = 0; i < CHUNKS / GROUP; i++)
                chunks[i] = load_shared_16(chunk_at(o_at, row + n * ROWS, chunk) + i * GROUP * 16);
#pragma unroll
            for (int i = 0; i < CHUNKS / GROUP; i++)
                if (row + n * ROWS < count)
                    *reinterpret_cast<uint4 *>(to + i * GROUP * 8) = chunks[i];
        }
        return;
    }
#pragma unroll 2
    for (int index = warp.lane; index < WARP_ROWS * CHUNKS; index += 32) {
        int row = index / CHUNKS, chunk = index % CHUNKS;
        const Place place = place_get(args, tile, warp.row + row);
        if (place.there && chunk * 8 < args.dim_v)
            *reinterpret_cast<uint4 *>((uint16_t *)args.o + offset_of(target.strip, place) + chunk * 8) =
                load_shared_16(chunk_at(o_at, row, chunk));
    }
}

__device__ inline Warp warp_get(const attest_tile &tile)
{
    int index = attest_uniform(threadIdx.x / 32);
    Warp warp = {(int)threadIdx.x % 32, index % WARPS_Q, index / WARPS_Q, 0};
    warp.row = tile.row_begin + warp.q * WARP_ROWS;
    return warp;
}

#endif
