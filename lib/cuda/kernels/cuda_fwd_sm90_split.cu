/*
 * Decoding in one launch: few query rows against many keys, which are cut into pieces as in cuda_fwd_sm80_split; but the pieces of a tile
 * are the blocks of a cluster, which send each other what they have. Keys come by bulk tensor copies.
 *
 * attest-cuda: name       = cuda_fwd_sm90_split
 * attest-cuda: summary    = pieces of the keys on mma.sync, brought by bulk tensor copies, query heads packed, joined in a cluster
 * attest-cuda: archs      = sm_90
 * attest-cuda: dtypes     = f16 bf16
 * attest-cuda: dims       = 64 96 128 192 256
 * attest-cuda: padding    = yes
 * attest-cuda: tile_q     = 16
 * attest-cuda: tile_kv    = 128
 * attest-cuda: tile_kv [d192] = 64
 * attest-cuda: tile_kv [d256] = 64
 * attest-cuda: stages     = 3
 * attest-cuda: stages [d64] = 6
 * attest-cuda: stages [d192] = 4
 * attest-cuda: threads    = 2 * tile_kv + 32
 * attest-cuda: shared     = 8 * dim * tile_q + 4 * stages * tile_kv * up(dim, 64) + 32 + up(24 * stages + 8, 16)
 * attest-cuda: registers  = 168
 * attest-cuda: registers [d192] = 255
 * attest-cuda: registers [d256] = 255
 * attest-cuda: launch     = joined
 * attest-cuda: packs      = yes
 * attest-cuda: cluster    = 16
 * attest-cuda: rows_most  = 64
 * attest-cuda: align      = 16
 * attest-cuda: map        = k rows tile_kv columns 64 swizzle 128
 * attest-cuda: map        = v rows tile_kv columns 64 swizzle 128
 * attest-cuda: refuses    = invariant
 * attest-cuda: tensor     = hmma
 * attest-cuda: mma_qk     = 16 * 8 * 16
 * attest-cuda: mma_pv     = 16 * 8 * 16
 *
 * Contract: all of SEMANTICS in attest.h for f16 and bf16, any dim and dim_v up to 256, up to 64 rows that share a KV head. Addresses and
 * strides are multiples of 16 bytes; pages go with blocks of tile_kv keys: one is a multiple of the other, and of 8. Not with
 * ATTEST_INVARIANT: how many pieces there are depends on the batch.
 *
 * The last warp copies K and V: all that there is room for, and from then on a block more whenever one has been read. A tile is one
 * fragment of 16 rows, and each of the other warps takes 16 keys of every block, by itself:
 *
 *     S = Q K^T; P, m, l = softmax(S); O = 2^(m - m') O + P V
 *
 * A tile of eight rows or less (one query row, and up to eight heads that share a KV head) leaves the lower half of the fragment free. P in 16
 * bits is most of the error; there goes what its rounding left of it, and the two halves of O are added in the end.
 *
 * In the end the warps leave their O, m and l where K and V were; all threads join them, four columns of a row each, in the order of the
 * warps. The blocks of the cluster share out the columns: each sends what it has of them to their owner, which waits for nothing but
 * these bytes, joins the pieces in their order, and writes. So nobody waits for a barrier of the whole cluster, except for one that is
 * arrived at in the beginning and waited for in the end: all have begun.
 *
 *     barrier        arrives                                         waits
 *     K_FULL[stage]  the copy of K                                   all warps but that
 *     V_FULL[stage]  the copy of V                                   likewise
 *     FREE[stage]    every warp, when it has read its keys           the warp that copies
 *     SENT           what the blocks of the cluster send             all but that warp, which join it
 *
 * Masks, modifiers and the softmax are those of attention_sm80.cuh.
 */
#define WARP_ROWS         16
#define COMPUTING_THREADS (ATTEST_THREADS - 32)
#include "attention_sm80.cuh"
#include "ptx_sm90.cuh"

// Shared memory: Q, as in attention_sm80.cuh; STAGES times K and V, in slabs of 64 columns (ptx_sm90.cuh has the layout of one); what
// hide() has to know; barriers; what the blocks of the cluster send this one.
constexpr int SLABS = (D + 63) / 64, SLAB_PITCH = 128, SLAB_BYTES = TILE_KV * SLAB_PITCH, KV_BYTES = SLABS * SLAB_BYTES;
constexpr int ITEMS = TILE_Q * D / 4; // of a tile: four columns of a row each
constexpr int RING = SHARED_Q + TILE_Q * PITCH, VIEW = RING + STAGES * 2 * KV_BYTES, K_FULL = VIEW + 32,
              V_FULL = K_FULL + STAGES * 8, FREE = V_FULL + STAGES * 8, SENT = FREE + STAGES * 8,
              SENT_O = (SENT + 8 + 15) / 16 * 16, SENT_ENDS = SENT_O + ITEMS * 16, BYTES = SENT_ENDS + ITEMS * 8;

static_assert(WARPS_Q == 1 && RING % 1024 == 0 && SLAB_BYTES % 1024 == 0, "the swizzle repeats every 1024 bytes");
static_assert(D / 4 >= 16, "each block of a cluster has columns to join");
static_assert(WARPS * TILE_Q * JOIN_PITCH * 4 <= STAGES * 2 * KV_BYTES, "the shares fit where K and V were");

ATTEST_CUDA_FACTS(BYTES);

/* ---- the tile ---- */

// What is done once has to be short and straight: its instructions have to be fetched from far. So what is seldom done is apart.
__device__ __noinline__ int divide_apart(int a, int b)
{
    return a / b;
}

__device__ inline attest_tile tile_here(const attest_cuda_args &args, int in_slot)
{
    attest_tile tile;
    tile.batch = blockIdx.z;
    tile.slot = tile.head_kv = blockIdx.y;
    if (__builtin_expect(args.slots != args.heads_kv, 0)) // never, while all heads that share a KV head are packed
        tile.head_kv = divide_apart(tile.slot * args.pack * args.heads_kv, args.heads_q);
    tile.sequence = attest_sequence_get(args, tile.batch);
    tile.row_begin = in_slot * TILE_Q;
    tile.row_end = min(tile.row_begin + TILE_Q, tile.sequence.q_count * args.pack);
    return tile;
}

// The rows of a tile, as rows of the sequence.
struct Ends {
    int first, last;
};

__device__ inline Ends ends_get(const attest_cuda_args &args, const attest_tile &tile)
{
    Ends ends = {0, tile.sequence.q_count - 1};
    if (__builtin_expect(tile.row_begin > 0, 0))
        ends.first = divide_apart(tile.row_begin, args.pack);
    if (__builtin_expect(tile.row_end < tile.sequence.q_count * args.pack, 0))
        ends.last = divide_apart(tile.row_end - 1, args.pack);
    return ends;
}

// As place_get.
__device__ inline Place place_here(const attest_cuda_args &args, const attest_tile &tile, int r)
{
    Place place = {r, 0, r < tile.row_end};
    if (tile.sequence.q_count > 1) {
        place.i = divide_apart(r, args.pack);
        place.head -= place.i * args.pack;
    }
    return place;
}

// Keys that some row of the tile sees, and that every row sees, among those of this block.
struct Keys {
    attest_span some, all;
};

__device__ inline Keys keys_get(const attest_cuda_args &args, const attest_tile &tile, const Ends &ends, int piece)
{
    const attest_span upper = attest_row_visible(args, tile.sequence, ends.first),
                      lower = attest_row_visible(args, tile.sequence, ends.last);
    Keys keys = {{upper.begin, lower.end}, {lower.begin, upper.end}};
    if (args.splits > 1) {
        keys.some.begin = max(keys.some.begin, piece * args.split_keys);
        keys.some.end = min(keys.some.end, (piece + 1) * args.split_keys);
    }
    return keys;
}

// Q, by all threads but those that copy keys.
__device__ inline void copy_rows(const attest_cuda_args &args, const attest_tile &tile, uint32_t to)
{
    const Strip strip = strip_get(args, tile, args.stride_q);
#pragma unroll 1
    for (int index = threadIdx.x; index < TILE_Q * CHUNKS; index += THREADS) {
        const int row = index / CHUNKS, chunk = index % CHUNKS, r = tile.row_begin + row;
        const Place place = place_here(args, tile, r);
        const int count = place.there ? min(max(args.dim - chunk * 8, 0), 8) : 0;
        cp_async_16(chunk_at(to, row, chunk), (const uint16_t *)args.q + (count ? offset_of(strip, place) + chunk * 8 : 0),
                    count * 2);
    }
}

/* ---- copies of keys: by one thread ---- */

// Keys first .. first + TILE_KV of K or V. Those from `end` on need not come.
__device__ inline void copy_slabs(const attest_cuda_args &args, const attest_tensor_map *map, const attest_tile &tile, uint32_t to,
                                  uint32_t barrier, int first, int end)
{
    if (!attest_has(args, ATTEST_PAGED)) {
        const int key = tile.sequence.kv_first + first, batch = attest_has(args, ATTEST_VARLEN_KV) ? 0 : tile.batch;
        barrier_expect(barrier, KV_BYTES);
#pragma unroll
        for (int slab = 0; slab < SLABS; slab++)
            map_load_4(to + slab * SLAB_BYTES, map, barrier, slab * 64, key, tile.head_kv, batch);
        return;
    }
    const int rows = min(args.page_size, TILE_KV), keys = min(end - first, TILE_KV);
    barrier_expect(barrier, (keys + rows - 1) / rows * rows * SLAB_PITCH * SLABS);
#pragma unroll 1
    for (int at = 0; at < keys; at += rows) {
        const int slot = (first + at) / args.page_size;
        const int page = attest_clamp(args.page_table[tile.batch * args.stride_page_table + slot], 0, args.page_count - 1);
#pragma unroll
        for (int slab = 0; slab < SLABS; slab++)
            map_load_4(to + at * SLAB_PITCH + slab * SLAB_BYTES, map, barrier, slab * 64, first + at - slot * args.page_size,
                       tile.head_kv, page);
    }
}

// All blocks of `keys`, as soon as there is room. By one thread.
__device__ inline void copy_all(const attest_cuda_args &args, const attest_cuda_maps &maps, const attest_tile &tile,
                                const attest_span &keys, uint32_t base)
{
    int stage = 0;
    uint32_t parity = 1; // at first there is room
#pragma unroll 1
    for (int first = keys.begin / TILE_KV * TILE_KV; first < keys.end; first += TILE_KV) {
        const uint32_t to = base + RING + stage * 2 * KV_BYTES;
        barrier_wait(base + FREE + stage * 8, parity);
        copy_slabs(args, &maps.map[0], tile, to, base + K_FULL + stage * 8, first, keys.end);
        copy_slabs(args, &maps.map[1], tile, to + KV_BYTES, base + V_FULL + stage * 8, first, keys.end);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        parity ^= stage == 0;
    }
}

/* ---- products ---- */

// From the address of chunk 0 or 1 to that of chunk 2 * pair or 2 * pair + 1 of the same row. `pair` is a constant.
__device__ inline uint32_t slab_pair(uint32_t at, int pair)
{
    return (at ^ (2 * pair % 8 << 4)) + 2 * pair / 8 * SLAB_BYTES;
}

__device__ inline uint32_t slab_at(uint32_t base, int row, int chunk)
{
    return base + row * SLAB_PITCH + ((chunk ^ row % 8) << 4);
}

constexpr bool KEEP_Q = D <= 128; // in registers

// As product_qk, in two chains of sums: they are what takes time.
__device__ inline void slab_qk(Scores<WARP_KV> &S, const uint32_t (&Q)[KEEP_Q ? D / 16 : 1][M][4], uint32_t q_at, uint32_t k_at)
{
    Scores<WARP_KV> odd;
#pragma unroll
    for (int n = 0; n < WARP_KV / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            S[0][n][e] = odd[0][n][e] = 0;
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        uint32_t now[4];
        if (!KEEP_Q)
            ldmatrix_x4(now, chunk_pair(q_at, k));
#pragma unroll
        for (int i = 0; i < 4 && KEEP_Q; i++)
            now[i] = Q[KEEP_Q ? k : 0][0][i];
#pragma unroll
        for (int n = 0; n < WARP_KV / 16; n++) {
            uint32_t K[4];
            ldmatrix_x4(K, slab_pair(k_at, k) + n * 16 * SLAB_PITCH);
            mma(k % 2 ? odd[0][2 * n] : S[0][2 * n], now, K[0], K[1]);
            mma(k % 2 ? odd[0][2 * n + 1] : S[0][2 * n + 1], now, K[2], K[3]);
        }
    }
#pragma unroll
    for (int n = 0; n < WARP_KV / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            S[0][n][e] += odd[0][n][e];
}

__device__ inline float from_16_bits(uint32_t bits)
{
    return ATTEST_DTYPE == ATTEST_F16 ? attest_from_f16(bits) : attest_from_bf16(bits);
}

// `few`: rows 8 to 15 are what is left of rows 0 to 7 once their weights are rounded.
__device__ inline void slab_pv(Output &O, const Scores<WARP_KV> &P, bool few, uint32_t v_at)
{
#pragma unroll
    for (int k = 0; k < WARP_KV / 16; k++) {
        uint32_t A[4];
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            const float(&p)[4] = P[0][2 * k + i / 2];
            A[i] = pack(p[0], p[1]);
            A[i + 1] = few ? pack(p[0] - from_16_bits(A[i] & 0xffff), p[1] - from_16_bits(A[i] >> 16)) : pack(p[2], p[3]);
        }
#pragma unroll
        for (int n = 0; n < D / 16; n++) {
            uint32_t V[4];
            ldmatrix_x4_transposed(V, slab_pair(v_at, n) + k * 16 * SLAB_PITCH);
            mma(O[0][2 * n], A, V[0], V[1]);
            mma(O[0][2 * n + 1], A, V[2], V[3]);
        }
    }
}

// S becomes P, and O and the rows follow the new maximum.
template <bool MODIFIED> __device__ inline void softmax(Scores<WARP_KV> &S, Rows &rows, Output &O, bool few, float c)
{
    Step step;
    const bool same = follow_maximum<WARP_KV, MODIFIED>(S, rows, step, c);
#pragma unroll
    for (int k = 0; k < WARP_KV / 16; k++)
        weigh<WARP_KV, MODIFIED>(S, step, c, k, 0, 1);
#pragma unroll
    for (int half = 0; half < 2; half++)
        rows.l[0][half] += step.sum[0][half];
    if (few)
        step.carry[0][1] = step.carry[0][0];
    if (!same)
        rescale(O, step.carry);
}

/* ---- keys without a weight ---- */

// V of a key without a weight may be NaN: it is made zero. `v` is where the warp's keys are. For whole warps.
__device__ inline void blank_key(uint32_t v, int key, int lane)
{
    if (lane < SLABS * 8)
        store_shared_16(slab_at(v, key, lane % 8) + lane / 8 * SLAB_BYTES, make_uint4(0, 0, 0, 0));
}

// A key that a bias of -inf hides from every row of the tile. All rows of the tile are the warp's.
__device__ inline void blank_hidden(const Scores<WARP_KV> &S, uint32_t v, int lane)
{
#pragma unroll
    for (int n = 0; n < WARP_KV / 8; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const bool any = S[0][n][e] != minus_infinity() || S[0][n][2 + e] != minus_infinity();
            const unsigned lanes = __ballot_sync(ALL_LANES, any);
#pragma unroll 1
            for (int pair = 0; pair < 4; pair++)
                if (!(lanes & 0x11111111u << pair))
                    blank_key(v, n * 8 + pair * 2 + e, lane);
        }
    __syncwarp();
}

/* ---- the keys of a block ---- */

// MODIFIED: scores need more than a scale. Cases are apart so that the one that matters most is short: instructions have to be fetched.
template <bool MODIFIED>
__device__ inline void attend_slabs(const attest_cuda_args &args, const attest_tile &tile, const Keys &keys, const Warp &warp,
                                    uint32_t base, Rows &rows, Output &O)
{
    const attest_span some = keys.some;
    const int begin = some.begin / TILE_KV * TILE_KV, blocks = (some.end - begin + TILE_KV - 1) / TILE_KV, lane = warp.lane;
    const uint32_t q_at = fragment_at(base + SHARED_Q, lane);
    const bool biased = MODIFIED && attest_has(args, ATTEST_BIAS), few = tile.row_end - tile.row_begin <= 8;
    const float c = MODIFIED ? 1 : args.scale * LOG2_E;
    uint32_t Q[KEEP_Q ? D / 16 : 1][M][4];
#pragma unroll
    for (int k = 0; k < (KEEP_Q ? D / 16 : 0); k++)
        ldmatrix_x4(Q[k][0], chunk_pair(q_at, k));

    int stage = 0;
    uint32_t parity = 0;
#pragma unroll 1
    for (int block = 0; block < blocks; block++) {
        const int first = begin + block * TILE_KV + warp.kv * WARP_KV;
        const uint32_t k = base + RING + stage * 2 * KV_BYTES + warp.kv * WARP_KV * SLAB_PITCH, v = k + KV_BYTES;
        barrier_wait(base + K_FULL + stage * 8, parity);
        if (first < some.end && (biased || first + WARP_KV > some.begin)) {
            Scores<WARP_KV> S;
            slab_qk(S, Q, q_at, slab_at(k, lane % 8 + lane / 16 * 8, lane / 8 % 2));
            if (MODIFIED)
                modify<WARP_KV>(args, tile, warp, S, first);
            if (__builtin_expect(first < keys.all.begin || first + WARP_KV > min(keys.all.end, some.end), 0))
                hide<WARP_KV>(args, base + VIEW, lane, S, first);
            barrier_wait(base + V_FULL + stage * 8, parity);
            if (biased)
                blank_hidden(S, v, lane);
            softmax<MODIFIED>(S, rows, O, few, c);
            if (__builtin_expect(first < some.begin || first + WARP_KV > some.end, 0)) {
#pragma unroll 1
                for (int key = 0; key < WARP_KV; key++)
                    if (first + key < some.begin || first + key >= some.end)
                        blank_key(v, key, lane);
                proxy_fence();
                __syncwarp();
            }
            slab_pv(O, S, few, slab_at(v, lane % 16, lane / 16));
        } else
            barrier_wait(base + V_FULL + stage * 8, parity); // nobody ends while copies are on their way
        if (biased)
            proxy_fence();
        __syncwarp();
        if (lane == 0)
            barrier_arrive(base + FREE + stage * 8);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        parity ^= stage == 0;
    }

    // Sums of whole rows, and maxima in the unit of unit_of().
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float &l = rows.l[0][half];
        l += __shfl_xor_sync(ALL_LANES, l, 1);
        l += __shfl_xor_sync(ALL_LANES, l, 2);
        rows.m[0][half] *= rows.m[0][half] == minus_infinity() ? 1 : c;
    }
    if (few)
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                O[0][n][e] += O[0][n][2 + e];
}

/* ---- joining ---- */

// Four columns of a row, of some of the keys: not yet divided by the sum. m is the maximum in the unit of unit_of().
struct Part {
    float m, l;
    float4 o;
};

// The sum of `count` parts, in their order.
template <int AT_ONCE, typename End, typename Columns>
__device__ inline Part join_parts(int count, float unit, End end_of, Columns columns_of)
{
    Part part = {minus_infinity(), 0, make_float4(0, 0, 0, 0)};
#pragma unroll 1
    for (int begin = 0; begin < count; begin += AT_ONCE) {
        float2 end[AT_ONCE];
        float4 o[AT_ONCE];
        float most = part.m;
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++) {
            const bool there = begin + n < count;
            end[n] = there ? end_of(begin + n) : make_float2(minus_infinity(), 0);
            o[n] = there ? columns_of(begin + n) : make_float4(0, 0, 0, 0);
        }
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++)
            most = fmaxf(most, end[n].x);
        const float carry = share(part.m, most, unit);
        part.m = most;
        part.l *= carry;
        part.o.x *= carry, part.o.y *= carry, part.o.z *= carry, part.o.w *= carry;
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++) {
            const float weight = share(end[n].x, most, unit);
            part.l += weight * end[n].y;
            part.o.x += weight * o[n].x, part.o.y += weight * o[n].y;
            part.o.z += weight * o[n].z, part.o.w += weight * o[n].w;
        }
    }
    return part;
}

// O and LSE of what is joined.
__device__ inline void write_part(const attest_cuda_args &args, const attest_tile &tile, int row, int column, const Part &part)
{
    float factor = part.l == 0 ? 0 : reciprocal_fast(part.l);
    if (args.flags & (ATTEST_LSE | ATTEST_SINK))
        factor = finish_row(args, tile, tile.row_begin + row, part.m, part.l); // every thread of a row writes the same LSE
    const Place place = place_here(args, tile, tile.row_begin + row);
    const int64_t at = offset_of(strip_get(args, tile, args.stride_o), place) + column;
    const float4 o = make_float4(part.o.x * factor, part.o.y * factor, part.o.z * factor, part.o.w * factor);
    if (args.dtype_o == ATTEST_DTYPE && column + 4 <= args.dim_v)
        *reinterpret_cast<uint2 *>((uint16_t *)args.o + at) = make_uint2(pack(o.x, o.y), pack(o.z, o.w));
    else
#pragma unroll 1
        for (int e = 0; e < 4 && column + e < args.dim_v; e++)
            attest_store(args.o, args.dtype_o, at + e, e == 0 ? o.x : e == 1 ? o.y : e == 2 ? o.z : o.w);
}

// The shares of the warps, four columns of a row by each thread: to be written, or sent to the block that joins them with those of the
// other pieces.
__device__ inline void join_warps(const attest_cuda_args &args, const attest_tile &tile, unsigned char *shared, int items,
                                  int piece, int shift)
{
    const uint32_t base = shared_address(shared);
    const float unit = unit_of(args);
#pragma unroll 1
    for (int index = threadIdx.x; index < items; index += THREADS) {
        const int row = index / (D / 4), column = index % (D / 4) * 4;
        const float *of_row = reinterpret_cast<const float *>(shared + RING) + row * JOIN_PITCH;
        const Part part = join_parts<WARPS>(
            WARPS, unit, [&](int w) { return *reinterpret_cast<const float2 *>(of_row + w * TILE_Q * JOIN_PITCH + D); },
            [&](int w) { return *reinterpret_cast<const float4 *>(of_row + w * TILE_Q * JOIN_PITCH + column); });
        if (args.splits == 1) {
            write_part(args, tile, row, column, part);
            continue;
        }
        const int to = index & (args.splits - 1), at = (index >> shift << shift) + piece;
        send_16(base + SENT_O + at * 16, base + SENT, to, part.o);
        send_8(base + SENT_ENDS + at * 8, base + SENT, to, make_float2(part.m, part.l));
    }
}

// This block's columns of all pieces. There are some for each block, so none ends while something is on its way to it.
__device__ inline void join_pieces(const attest_cuda_args &args, const attest_tile &tile, unsigned char *shared, int items,
                                   int piece, int shift)
{
    const float unit = unit_of(args);
    barrier_wait(shared_address(shared) + SENT, 0); // the pieces are there
#pragma unroll 1
    for (int index = (threadIdx.x << shift) + piece; index < items; index += THREADS << shift) {
        const int at = index - piece;
        const Part part = join_parts<8>(
            args.splits, unit, [&](int n) { return *reinterpret_cast<const float2 *>(shared + SENT_ENDS + (at + n) * 8); },
            [&](int n) { return *reinterpret_cast<const float4 *>(shared + SENT_O + (at + n) * 16); });
        write_part(args, tile, index / (D / 4), index % (D / 4) * 4, part);
    }
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1)
    attest_kernel(const __grid_constant__ attest_cuda_args args, const __grid_constant__ attest_cuda_maps maps)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    enum { READY = 1, READ = 2 }; // named barriers
    const uint32_t base = shared_address(shared);
    const int piece = cluster_rank(), shift = 31 - __clz(args.splits);
    const attest_tile tile = tile_here(args, blockIdx.x >> shift);
    if (tile.row_begin >= tile.row_end) // for the whole cluster
        return;
    const Ends ends = ends_get(args, tile);
    const Keys keys = keys_get(args, tile, ends, piece);
    const Warp warp = warp_get(tile);
    const int items = (tile.row_end - tile.row_begin) * (D / 4);
    if (warp.kv == WARPS) {
        if (elect_one()) {
#pragma unroll
            for (int stage = 0; stage < STAGES; stage++) {
                barrier_init(base + K_FULL + stage * 8, 1);
                barrier_init(base + V_FULL + stage * 8, 1);
                barrier_init(base + FREE + stage * 8, WARPS);
            }
            barrier_init(base + SENT, 1);
            barrier_expect(base + SENT, ((items - piece + args.splits - 1) >> shift) * args.splits * 24);
            barrier_init_fence();
        }
        __syncwarp();
        named_barrier_arrive(READY, ATTEST_THREADS);
        cluster_arrive_relaxed();
        if (elect_one())
            copy_all(args, maps, tile, keys.some, base);
        __syncwarp();
        cluster_wait();
        return;
    }
    cluster_arrive_relaxed();
    copy_rows(args, tile, base + SHARED_Q);
    cp_async_commit();
    if (threadIdx.x == 0) // as view_keep does
        store_shared_16(base + VIEW + 16, make_uint4(tile.sequence.q_count, tile.sequence.kv_count, tile.row_begin, keys.some.end));
    Rows rows;
    Output O;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        rows.m[0][half] = minus_infinity();
        rows.l[0][half] = 0;
    }
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            O[0][n][e] = 0;
    cp_async_wait<0>();
    named_barrier(READY, ATTEST_THREADS); // Q and the barriers

    if (is_modified(args))
        attend_slabs<true>(args, tile, keys, warp, base, rows, O);
    else
        attend_slabs<false>(args, tile, keys, warp, base, rows, O);

    named_barrier(READ, THREADS); // K and V have been read
    leave_share(warp, tile.row_end - tile.row_begin, reinterpret_cast<float *>(shared + RING), rows, O);
    cluster_wait(); // all blocks have begun
    named_barrier(READ, THREADS);
    join_warps(args, tile, shared, items, piece, shift);
    if (args.splits > 1)
        join_pieces(args, tile, shared, items, piece, shift);
}
