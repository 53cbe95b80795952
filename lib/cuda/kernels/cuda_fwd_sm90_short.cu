/*
 * FlashAttention for Hopper where there are fewer tiles than multiprocessors: two blocks share the keys of two tiles.
 *
 * attest-cuda: name       = cuda_fwd_sm90_short
 * attest-cuda: summary    = wgmma on pairs of tiles of 64 rows, their keys shared out to the two blocks of a cluster
 * attest-cuda: archs      = sm_90a
 * attest-cuda: dtypes     = f16 bf16
 * attest-cuda: dims       = 64 128
 * attest-cuda: padding    = yes
 * attest-cuda: tile_q     = 64
 * attest-cuda: tile_kv    = 128
 * attest-cuda: threads    = 256
 * attest-cuda: shared     = 8 * dim * tile_q + 8 * dim * tile_kv + 512 + 256
 * attest-cuda: registers  = 255
 * attest-cuda: registers [d64] = 128
 * attest-cuda: blocks_per_sm [d64] = 2
 * attest-cuda: launch     = grid
 * attest-cuda: packs      = yes
 * attest-cuda: pdl        = yes
 * attest-cuda: cluster    = 2
 * attest-cuda: tiles_most = 132
 * attest-cuda: align      = 16
 * attest-cuda: map        = q rows 64 columns 64 swizzle 128
 * attest-cuda: map        = k rows tile_kv columns 64 swizzle 128
 * attest-cuda: map        = v rows tile_kv columns 64 swizzle 128
 * attest-cuda: refuses    = alibi bias o=f32
 * attest-cuda: tensor     = gmma
 * attest-cuda: mma_qk     = 64 * tile_kv * 16 / 4
 * attest-cuda: mma_pv     = 64 * dim * 16 / 4
 *
 * Contract: as cuda_fwd_sm90, any dim and dim_v up to 128; at most 132 tiles of 64 rows, one for each multiprocessor of an H200.
 *
 * A cluster of two blocks has two tiles, and each block has one half of the keys that they see. Warpgroup g of both has the rows of tile g:
 *
 *     for each block of keys of this half:
 *         S = Q K^T; P, m, l = softmax(S); O = 2^(m - m') O + P V
 *
 * The product with V is begun when half of the weights are there. In the end each thread has two rows: it sends one to the other block,
 * joins the other one with what that sends, and writes it.
 *
 * At this size time goes into latencies, one after the other, and not into arithmetic:
 *
 * - All that there is room for is asked for at once, what is needed first before the rest. Two tiles in a cluster, and not one in each
 *   block, halve what a multiprocessor gets from the L2 cache, which is what limits how soon it is there.
 * - A grid is launched while the one ahead of it computes (pdl). At D 64 there is room for both on a multiprocessor: so it has everything
 *   ready, and its tensors in the L2 cache, when that ends. Nothing is read or written before. It is let in only when this one has
 *   asked for its own: then there are never three, and each multiprocessor gets one block of it.
 * - The second warpgroup begins its products when the first one begins its exponentials.
 * - What is sent goes as soon as it is there: m and l beside the last product.
 * - Problems without lengths, packed heads, LSE and the like run the same source compiled without them.
 *
 * Shared memory: Q[2][SLABS][64][64], K[PLACES][SLABS][KEYS][64], V[PLACES][SLABS][KEYS][64]; then what the other block sends: O by threads,
 * m and l by rows; then barriers; counts of warps that have read a place.
 *
 *     barrier         arrives                                  waits
 *     Q_FULL[g]       the copy of Q of tile g                  warpgroup g
 *     K_FULL[place]   a copy of K                              both warpgroups
 *     V_FULL[place]   a copy of V                              both warpgroups
 *     ENDED[w]        m and l that warp w of the other block   warp w: it has the same rows
 *                     sends
 *     SENT[w]         O that it sends                          likewise
 *
 * What a warpgroup does with its rows is in attention_sm90.cuh.
 */
#define KEYS ATTEST_TILE_KV
#include "attention_sm90.cuh"

constexpr int RANKS = 2, GROUPS = 2,
              PLACES = 2; // blocks of a cluster; warpgroups of a block; blocks of keys that there is room for
constexpr int WARPS = THREADS / 32, WARPS_OF_GROUP = GROUP_THREADS / 32;
constexpr int PART_BYTES = GROUP_Q * D / RANKS * 4, END_BYTES = GROUP_Q / RANKS * 8; // O, and m and l, that a warpgroup gets
constexpr int SHARED_Q = 0, SHARED_K = GROUPS * Q_BYTES, SHARED_V = SHARED_K + PLACES * KV_BYTES,
              SHARED_PARTS = SHARED_V + PLACES * KV_BYTES, SHARED_ENDS = SHARED_PARTS + GROUPS * PART_BYTES,
              SHARED_BARRIERS = SHARED_ENDS + GROUPS * END_BYTES, SHARED_BYTES = SHARED_BARRIERS + 256;
constexpr int Q_FULL = SHARED_BARRIERS, K_FULL = Q_FULL + 8 * GROUPS, V_FULL = K_FULL + 8 * PLACES, SENT = V_FULL + 8 * PLACES,
              ENDED = SENT + 8 * WARPS, READERS = ENDED + 8 * WARPS;
constexpr int TO_V = SHARED_V - SHARED_K, TO_V_FULL = V_FULL - K_FULL; // from K, and its barrier, to V in the same place
constexpr int TURN = 1 + GROUPS; // a named barrier; each warpgroup has one of its own before it
constexpr int BLOCKS_PER_SM = D == 64 ? 2 : 1;

static_assert(TILE_Q == GROUP_Q && THREADS == GROUPS * GROUP_THREADS, "a tile is the rows of one warpgroup");
static_assert(READERS + 4 * PLACES <= SHARED_BYTES && SHARED_BYTES <= 227 * 1024, "there is room");
static_assert(BLOCKS_PER_SM * (SHARED_BYTES + 1024) <= 228 * 1024, "also for the next grid");

ATTEST_CUDA_FACTS(SHARED_BYTES);

/* ---- what there is to do ---- */

// What the source is compiled for: any problem, or one with nothing but masks by position.
enum Kind { ANY, PLAIN };

// Whether what there is to do depends on memory that the grid ahead may have written.
__device__ inline bool reads_lengths(const attest_cuda_args &args)
{
    return args.flags & (ATTEST_VARLEN_Q | ATTEST_VARLEN_KV | ATTEST_KV_LENGTHS | ATTEST_PAGED);
}

// What a block has: the keys of its half, for the two tiles of the cluster.
struct Share {
    attest_tile tile[GROUPS]; // that differ in their rows alone
    attest_span keys;
};

// Tile `group`; an index that the compiler does not know would put both into memory.
__device__ inline attest_tile tile_of(const Share &share, int group)
{
    attest_tile tile = share.tile[0];
    if (group == 1)
        tile.row_begin = share.tile[1].row_begin, tile.row_end = share.tile[1].row_end;
    return tile;
}

__device__ inline bool has_rows(const attest_tile &tile)
{
    return tile.row_begin < tile.row_end;
}

// Keys that some row of the tile sees. It has rows.
__device__ inline attest_span seen_by_tile(const attest_cuda_args &args, const attest_tile &tile)
{
    attest_span seen = {attest_row_visible(args, tile.sequence, row_in_sequence(args, tile.row_begin)).begin,
                        attest_row_visible(args, tile.sequence, row_in_sequence(args, tile.row_end - 1)).end};
    return seen;
}

// Keys are shared out in halves of blocks; in whole ones where they may come in pages, or are modified.
template <Kind kind> constexpr int GRAIN = kind == PLAIN ? KEYS / 2 : KEYS;

// As work_here. With a window on the left the two tiles follow each other, so that they see the same keys; else the last one goes with
// the first one, the last but one with the second: with a causal mask all clusters then have the same work.
template <Kind kind> __device__ inline Share share_here(const attest_cuda_args &args, int rank)
{
    const attest_sequence whole = {0, args.seq_q, 0, args.seq_kv};
    const int pair = blockIdx.x / RANKS;
    const bool follow = args.window_left < ATTEST_CUDA_UNBOUNDED;
    const int later = gridDim.x - 1 - (follow ? 2 * pair : pair), sooner = follow ? later - 1 : pair;
    Share share;
    attest_tile tile;
    tile.batch = blockIdx.z;
    tile.slot = tile.head_kv = blockIdx.y;
    tile.sequence = whole;
    if (args.flags & (ATTEST_VARLEN_Q | ATTEST_VARLEN_KV | ATTEST_KV_LENGTHS) || args.slots != args.heads_kv) {
        tile.sequence = attest_sequence_get(args, tile.batch);
        tile.head_kv = args.slots == args.heads_kv ? tile.slot : tile.slot * args.pack / (args.heads_q / args.heads_kv);
    }
    attest_span seen = {ATTEST_CUDA_UNBOUNDED, 0};
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
        tile.row_begin = (group == 0 ? later : sooner) * TILE_Q;
        tile.row_end = min(tile.row_begin + TILE_Q, tile.sequence.q_count * args.pack);
        share.tile[group] = tile;
        if (has_rows(tile)) {
            const attest_span here = seen_by_tile(args, tile);
            seen.begin = min(seen.begin, here.begin), seen.end = max(seen.end, here.end);
        }
    }
    const int begin = seen.begin / GRAIN<kind> * GRAIN<kind>, end = max(begin, seen.end),
              middle = begin + ((end - begin + GRAIN<kind> - 1) / GRAIN<kind> + 1) / 2 * GRAIN<kind>;
    share.keys.begin = rank ? middle : begin;
    share.keys.end = rank ? max(middle, end) : min(middle, end);
    return share;
}

// The key behind the last one of the share that the warpgroup looks at.
__device__ inline int end_of_group(const attest_cuda_args &args, const Share &share, int group)
{
    const attest_tile tile = tile_of(share, group);
    return has_rows(tile) ? min(share.keys.end, seen_by_tile(args, tile).end) : share.keys.begin;
}

/* ---- copies ---- */

// Q of one of the tiles, as copy_rows has it, without a division where there is nothing to divide by; or only as far as the L2 cache.
template <bool ONLY_L2>
__device__ inline void copy_tile(const attest_cuda_args &args, const attest_tensor_map *map, const attest_tile &tile, uint32_t to,
                                 uint32_t barrier)
{
    const int row = tile.sequence.q_first + row_in_sequence(args, tile.row_begin),
              batch = attest_has(args, ATTEST_VARLEN_Q) ? 0 : tile.batch;
    if (!ONLY_L2)
        barrier_expect(barrier, Q_BYTES);
#pragma unroll
    for (int slab = 0; slab < SLABS; slab++)
        if (ONLY_L2)
            map_prefetch_5(map, slab * SLAB, 0, row, tile.slot, batch);
        else
            map_load_5(to + slab * Q_SLAB, map, barrier, slab * SLAB, 0, row, tile.slot, batch);
}

// What is asked for in the beginning, in the order in which it is needed: Q of both tiles, K and V of the first block of keys, then of
// the second. Warps 0 to 2 ask for two of these pieces each.
constexpr int PIECES = GROUPS + 2 * PLACES, ASKING = PIECES / 2;

template <int INDEX> constexpr int PIECE_N = INDEX < GROUPS ? INDEX : (INDEX - GROUPS) / 2; // which tile, or block of keys
template <int INDEX> constexpr bool PIECE_V = INDEX >= GROUPS && (INDEX - GROUPS) % 2;
template <int INDEX>
constexpr int PIECE_FULL = (INDEX < GROUPS   ? Q_FULL
                            : PIECE_V<INDEX> ? V_FULL
                                             : K_FULL) +
                           8 * PIECE_N<INDEX>; // its barrier

// For a piece, if it is there.
template <int INDEX, bool ONLY_L2>
__device__ inline void ask(const attest_cuda_args &args, const attest_cuda_maps &maps, const Share &share, uint32_t base)
{
    constexpr int N = PIECE_N<INDEX>;
    if (INDEX < GROUPS) {
        if (has_rows(share.tile[N]))
            copy_tile<ONLY_L2>(args, &maps.map[0], share.tile[N], base + SHARED_Q + N * Q_BYTES, base + PIECE_FULL<INDEX>);
        return;
    }
    const attest_tensor_map *map = &maps.map[PIECE_V<INDEX> ? 2 : 1];
    const int key = share.keys.begin + N * KEYS;
    if (key >= share.keys.end)
        return;
    if (!ONLY_L2)
        copy_keys(args, map, share.tile[0], base + (PIECE_V<INDEX> ? SHARED_V : SHARED_K) + N * KV_BYTES, base + PIECE_FULL<INDEX>,
                  key, share.keys.end);
    else
#pragma unroll
        for (int slab = 0; slab < SLABS; slab++)
            map_prefetch_4(map, slab * SLAB, key, share.tile[0].head_kv, share.tile[0].batch);
}

// For all that warp WARP asks for: by one lane.
template <int WARP>
__device__ inline void ask_first(const attest_cuda_args &args, const attest_cuda_maps &maps, const Share &share, uint32_t base)
{
    barrier_init(base + PIECE_FULL<WARP>, 1);
    barrier_init(base + PIECE_FULL<WARP + ASKING>, 1);
    barrier_init_fence();
    if (!reads_lengths(args)) {
        ask<WARP, true>(args, maps, share, base);
        ask<WARP + ASKING, true>(args, maps, share, base);
    }
    grid_wait_previous(); // all that is read or written depends on what is asked for behind it
    ask<WARP, false>(args, maps, share, base);
    ask<WARP + ASKING, false>(args, maps, share, base);
}

// Barriers, and all that there is room for.
__device__ inline void copy_first(const attest_cuda_args &args, const attest_cuda_maps &maps, const Share &share, uint32_t base,
                                  unsigned char *shared)
{
    const int warp = attest_uniform(threadIdx.x / 32);
    if (elect_one()) {
        barrier_init(base + SENT + 8 * warp, 1);
        barrier_init(base + ENDED + 8 * warp, 1);
        barrier_init_fence();
        barrier_expect(base + SENT + 8 * warp, PART_BYTES / WARPS_OF_GROUP);
        barrier_expect(base + ENDED + 8 * warp, END_BYTES / WARPS_OF_GROUP);
        if (warp >= WARPS - PLACES)
            *reinterpret_cast<int *>(shared + READERS + 4 * (WARPS - 1 - warp)) = 0;
    }
    __syncwarp();
    cluster_arrive_relaxed();
    if (elect_one()) {
        if (warp == 0)
            ask_first<0>(args, maps, share, base);
        if (warp == 1)
            ask_first<1>(args, maps, share, base);
        if (warp == 2)
            ask_first<2>(args, maps, share, base);
        if (warp == 0)
            grid_allow_next();
    }
    __syncwarp();
}

// For a warp that has read a block. The last one that has asks for the block that comes into its place.
__device__ inline void copy_next(const attest_cuda_args &args, const attest_cuda_maps &maps, const Share &share,
                                 unsigned char *shared, uint32_t base, int place, int first)
{
    const int next = first + KEYS * PLACES, all = has_rows(share.tile[0]) && has_rows(share.tile[1]) ? WARPS : WARPS_OF_GROUP;
    if (next >= share.keys.end)
        return;
    int *readers = reinterpret_cast<int *>(shared + READERS + 4 * place);
    if (threadIdx.x % 32 == 0) {
        __threadfence_block();
        if ((atomicAdd(readers, 1) & (all - 1)) == all - 1) {
            const uint32_t to = base + SHARED_K + place * KV_BYTES, full = base + K_FULL + 8 * place;
            __threadfence_block();
            copy_keys(args, &maps.map[1], share.tile[0], to, full, next, share.keys.end);
            copy_keys(args, &maps.map[2], share.tile[0], to + TO_V, full + TO_V_FULL, next, share.keys.end);
        }
    }
    __syncwarp();
}

/* ---- scores and weights, of a whole block of keys (PARTS = 2) or of its first half ---- */

constexpr int PART_KEYS = KEYS / 2, PART_STEPS = PART_KEYS / 16; // half a block of keys

template <int PARTS> using PartScores = float[PARTS * PART_KEYS / 2];
using PartWeights = uint32_t[PART_STEPS][4]; // of one half

// What a row does not see becomes -inf. `first` is the block's first key.
template <int COUNT>
__device__ inline void hide_part(const attest_cuda_args &args, const attest_sequence &sequence, float (&S)[COUNT], int r, int first)
{
    static_assert(COUNT <= 64, "a row's columns are the bits of a word");
    const int key = first + threadIdx.x % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const attest_span sees = attest_row_visible(args, sequence, row_in_sequence(args, r + half * 8));
        const uint32_t seen = columns_before(sees.end - key, 0) & ~columns_before(sees.begin - key, 0);
#pragma unroll
        for (int n = 0; n < COUNT / 2; n++)
            if (!(seen >> n & 1))
                S[n / 2 * 4 + half * 2 + n % 2] = minus_infinity();
    }
}

// The weights of one half of the keys, as softmax() has them, rounded; and their sums.
template <int part, int COUNT>
__device__ inline void weigh_part(PartWeights &P, const float (&S)[COUNT], Rows &rows, const float (&base)[2], float c)
{
    float sum[2][2] = {{0, 0}, {0, 0}};
#pragma unroll
    for (int step = 0; step < PART_STEPS; step++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int n = (part * PART_STEPS + step) * 8 + i * 2;
            const float x = exp2_fast(fmaf(S[n], c, -base[i % 2])), y = exp2_fast(fmaf(S[n + 1], c, -base[i % 2]));
            sum[i % 2][0] += x, sum[i % 2][1] += y;
            P[step][i] = pack(x, y);
        }
    rows.l[0] += sum[0][0] + sum[0][1], rows.l[1] += sum[1][0] + sum[1][1];
}

/* ---- what is sent: of a thread's two rows the one that the other block joins and writes ---- */

// Its m and l, in units of log2 from here on, and of the whole row.
__device__ inline void send_end(uint32_t base, int group, int rank, Rows &rows, float c)
{
    const int row = threadIdx.x % GROUP_THREADS / 4;
    rows_end(rows, c);
    if (threadIdx.x % 4 == 0)
        send_8(base + SHARED_ENDS + group * END_BYTES + row * 8, base + ENDED + 8 * (threadIdx.x / 32), 1 - rank,
               rank ? make_float2(rows.m[0], rows.l[0]) : make_float2(rows.m[1], rows.l[1]));
}

// Its O.
template <int RANK> __device__ inline void send_output_of(uint32_t to, uint32_t sent, const Output &O)
{
    constexpr int OTHER = 1 - RANK;
#pragma unroll
    for (int n = 0; n < D / 16; n++)
        send_16(to + n * GROUP_THREADS * 16, sent, OTHER,
                make_float4(O[n * 8 + OTHER * 2], O[n * 8 + OTHER * 2 + 1], O[n * 8 + OTHER * 2 + 4], O[n * 8 + OTHER * 2 + 5]));
}

__device__ inline void send_output(uint32_t base, int group, int rank, const Output &O)
{
    const uint32_t to = base + SHARED_PARTS + group * PART_BYTES + threadIdx.x % GROUP_THREADS * 16,
                   sent = base + SENT + 8 * (threadIdx.x / 32);
    if (rank == 0)
        send_output_of<0>(to, sent, O);
    else
        send_output_of<1>(to, sent, O);
}

/* ---- a warpgroup's keys ---- */

// What a warpgroup has to know.
struct Scene {
    const attest_cuda_args &args;
    const attest_cuda_maps &maps;
    const Share &share;
    const attest_tile &tile; // of this warpgroup
    unsigned char *shared;
    uint32_t base;
    int group, rank;
    int end;      // the key behind the last one of this warpgroup
    bool in_turn; // both warpgroups have keys
    float c;
};

// A block of keys, or the first half of one, which is in `place`.
template <Kind kind, int PARTS>
__device__ __forceinline__ void attend_block(const Scene &scene, int first, int place, uint32_t parity, Rows &rows, Output &O)
{
    const attest_cuda_args &args = scene.args;
    const attest_tile &tile = scene.tile;
    const uint32_t k_at = scene.base + SHARED_K + place * KV_BYTES, v_at = k_at + TO_V, full = scene.base + K_FULL + 8 * place;
    const attest_span all = seen_by_all(args, tile, tile.row_begin), seen = seen_by_some(args, tile.sequence, scene.share.keys.end);
    const bool blanks = seen.begin > first || seen.end<first + KEYS, more = first> scene.share.keys.begin;
    const float c = scene.c;
    float carry[2], above[2];
    PartScores<PARTS> S;
    PartWeights P[PARTS];
    barrier_wait(scene.base + Q_FULL + 8 * scene.group, 0);
    barrier_wait(full, parity);
    if (scene.in_turn && !more && scene.group == 1)
        named_barrier(TURN, THREADS); // the other one is about to begin its exponentials
    begin_scores<PARTS * PART_KEYS>(S, scene.base + SHARED_Q + scene.group * Q_BYTES, k_at);
    wgmma_wait<0>();
    settle(S);
    if constexpr (kind == ANY)
        if (needs_modifying(args))
            modify(args, S);
    if (first < all.begin || first + PARTS * PART_KEYS > all.end)
        hide_part(args, tile.sequence, S, row_here(tile.row_begin), first);
    raise(S, rows, carry, above, c);
    if (scene.in_turn && !more && scene.group == 0)
        named_barrier_arrive(TURN, THREADS);
    rows.l[0] *= carry[0], rows.l[1] *= carry[1];
    if (more)
        rescale(O, carry);
    weigh_part<0>(P[0], S, rows, above, c);
    barrier_wait(full + TO_V_FULL, parity);
    if (blanks)
        blank(v_at, seen, first, 1 + scene.group);
    begin_output(O, P[0], v_at, more);
    if constexpr (PARTS == 2) {
        weigh_part<1>(P[1], S, rows, above, c);
        begin_output(O, P[1], v_at + PART_KEYS * PITCH, true);
    }
    const bool last = first + KEYS >= scene.end;
    if (last)
        send_end(scene.base, scene.group, scene.rank, rows, c);
    wgmma_wait<0>();
    settle(O);
    if (last)
        send_output(scene.base, scene.group, scene.rank, O);
    if (blanks)
        proxy_fence(); // before a copy into its place
    if (PARTS == 2)
        copy_next(args, scene.maps, scene.share, scene.shared, scene.base, place, first);
}

template <Kind kind> __device__ inline void attend(const Scene &scene, Rows &rows, Output &O)
{
    const attest_span keys = scene.share.keys;
    rows_begin(rows);
    if (keys.begin >= scene.end) {
        output_begin(O);
        send_end(scene.base, scene.group, scene.rank, rows, scene.c);
        send_output(scene.base, scene.group, scene.rank, O);
        barrier_wait(scene.base + Q_FULL + 8 * scene.group, 0); // a block must not end while a copy is on its way
    }
    int first = keys.begin, place = 0;
    uint32_t parity = 0;
#pragma unroll 1
    for (; first + (kind == PLAIN ? PART_KEYS : 0) < scene.end; first += KEYS) {
        attend_block<kind, 2>(scene, first, place, parity, rows, O);
        parity ^= place, place ^= 1;
    }
    if constexpr (kind == PLAIN)
        if (first < scene.end)
            attend_block<kind, 1>(scene, first, place, parity, rows, O);
            // Places are to be filled again, too, when the half block has been read, and where blocks are for the other warpgroup alone: not
            // before they are there, so that nobody counts a block that comes into the place of one that is still being read.
#pragma unroll 1
    for (; first + KEYS * PLACES < keys.end; first += KEYS) {
        barrier_wait(scene.base + K_FULL + 8 * place, parity);
        copy_next(scene.args, scene.maps, scene.share, scene.shared, scene.base, place, first);
        parity ^= place, place ^= 1;
    }
}

/* ---- the end ---- */

// What a part with maximum m, in units of log2, weighs beside one with maximum `most`.
__device__ inline float weight_of(float m, float most)
{
    return exp2_fast(m - (most == minus_infinity() ? 0 : most));
}

// The row that block RANK of the cluster joins and writes.
template <int RANK>
__device__ inline void finish(const attest_cuda_args &args, const attest_tile &tile, unsigned char *shared, uint32_t base,
                              int group, const Rows &rows, const Output &O)
{
    const int thread = threadIdx.x % GROUP_THREADS, row = thread / 4; // of those that are sent
    const uint32_t part = SHARED_PARTS + group * PART_BYTES + thread * 16, end = SHARED_ENDS + group * END_BYTES + row * 8,
                   sent = base + SENT + 8 * (threadIdx.x / 32), ended = base + ENDED + 8 * (threadIdx.x / 32);
    const int r = row_here(tile.row_begin) + RANK * 8;
    uint16_t *const to = row_of_o(args, tile, r);
    barrier_wait(ended, 0);
    const float2 other_end = *reinterpret_cast<const float2 *>(shared + end);
    const float m = rows.m[RANK], most = fmaxf(m, other_end.x);
    float own = weight_of(m, most), other = weight_of(other_end.x, most);
    const float l = own * rows.l[RANK] + other * other_end.y;
    const float factor = finish_row(args, tile, r, most, l, threadIdx.x % 4 == 0);
    own *= factor, other *= factor;
    barrier_wait(sent, 0);
#pragma unroll
    for (int n = 0; n < D / 8; n += 4) { // four lanes have a pair of columns of each of four chunks; then each has a chunk
        uint32_t pairs[4];
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            const float4 left = *reinterpret_cast<const float4 *>(shared + part + (n + i) / 2 * GROUP_THREADS * 16);
            const float *const here = &O[(n + i) * 4 + RANK * 2];
            pairs[i] = pack(fmaf(other, left.x, own * here[0]), fmaf(other, left.y, own * here[1]));
            pairs[i + 1] = pack(fmaf(other, left.z, own * here[4]), fmaf(other, left.w, own * here[5]));
        }
        transpose_quad(pairs);
        const int chunk = n + threadIdx.x % 4;
        if (r >= tile.row_end)
            continue;
        if (chunk * 8 + 8 <= args.dim_v)
            store_16(to + chunk * 8, pairs);
        else
            write_chunk(args, to, chunk, pairs);
    }
}

/* ---- a tile ---- */

template <Kind kind>
__device__ __forceinline__ void compute_tile(const attest_cuda_args &args, const attest_cuda_maps &maps, unsigned char *shared)
{
    const uint32_t base = shared_address(shared);
    const int group = attest_uniform(threadIdx.x / GROUP_THREADS), rank = cluster_rank();
    const Share share = share_here<kind>(args, rank);
    const attest_tile tile = tile_of(share, group);
    if (!has_rows(share.tile[0]) && !has_rows(share.tile[1])) // for both blocks
        return;
    copy_first(args, maps, share, base, shared);
    __syncthreads(); // the barriers are there
    cluster_wait();  // those of the other block, too
    if (!has_rows(tile))
        return;
    const float c = kind == ANY && needs_modifying(args) ? 1 : args.scale * LOG2_E;

    Rows rows;
    Output O;
    const int end = end_of_group(args, share, group);
    const bool in_turn = min(end, end_of_group(args, share, 1 - group)) > share.keys.begin;
    const Scene scene = {args, maps, share, tile, shared, base, group, rank, end, in_turn, c};
    attend<kind>(scene, rows, O);
    if (rank == 0)
        finish<0>(args, tile, shared, base, group, rows, O);
    else
        finish<1>(args, tile, shared, base, group, rows, O);
}

// Tensor maps and arguments are far away when a block begins. Each warp waits for other arguments, so that they come side by side.
__device__ inline void fetch(const attest_cuda_args &args, const attest_cuda_maps &maps)
{
    const int warp = attest_uniform(threadIdx.x / 32);
    if (threadIdx.x % 32 == 0 && warp < 3)
        map_prefetch(&maps.map[warp]);
    const size_t at = warp % 4 == 0   ? offsetof(attest_cuda_args, flags)
                      : warp % 4 == 1 ? offsetof(attest_cuda_args, pack)
                      : warp % 4 == 2 ? offsetof(attest_cuda_args, stride_o)
                                      : offsetof(attest_cuda_args, q);
    pin(*reinterpret_cast<const float *>(reinterpret_cast<const char *>(&args) + at));
}

extern "C" __global__ void __cluster_dims__(RANKS, 1, 1) __launch_bounds__(ATTEST_THREADS, BLOCKS_PER_SM)
    attest_kernel(const __grid_constant__ attest_cuda_args args, const __grid_constant__ attest_cuda_maps maps)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    fetch(args, maps);
    if (!is_plain(args)) {
        if (reads_lengths(args))
            grid_wait_previous();
        compute_tile<ANY>(args, maps, shared);
        return;
    }
    const attest_cuda_args plain = plain_args(args);
    compute_tile<PLAIN>(plain, maps, shared);
}
