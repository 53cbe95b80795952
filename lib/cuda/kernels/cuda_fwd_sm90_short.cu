/*
 * FlashAttention for Hopper where there are fewer tiles than multiprocessors: short tiles, whose keys are shared out to four warpgroups.
 *
 * attest-cuda: name       = cuda_fwd_sm90_short
 * attest-cuda: summary    = wgmma on tiles of 64 rows, their keys shared out to four warpgroups and brought by bulk tensor copies
 * attest-cuda: archs      = sm_90a
 * attest-cuda: dtypes     = f16 bf16
 * attest-cuda: dims       = 64 128
 * attest-cuda: padding    = yes
 * attest-cuda: tile_q     = 64
 * attest-cuda: tile_kv    = 32768 / dim
 * attest-cuda: threads    = 512
 * attest-cuda: shared     = 2 * dim * (tile_q + tile_kv) + 16 * dim * tile_q + 2048 + 256
 * attest-cuda: registers  = 128
 * attest-cuda: launch     = grid
 * attest-cuda: packs      = yes
 * attest-cuda: pdl        = yes
 * attest-cuda: tiles_most = 132
 * attest-cuda: align      = 16
 * attest-cuda: map        = q rows 64 columns 64 swizzle 128
 * attest-cuda: map        = k rows tile_kv / 4 columns 64 swizzle 128
 * attest-cuda: map        = v rows tile_kv / 4 columns 64 swizzle 128
 * attest-cuda: refuses    = alibi bias o=f32
 * attest-cuda: tensor     = gmma
 * attest-cuda: mma_qk     = 64 * (tile_kv / 4) * 16 / 4
 * attest-cuda: mma_pv     = 64 * dim * 16 / 4
 *
 * Contract: as cuda_fwd_sm90, any dim and dim_v up to 128; at most 132 tiles of 64 rows, one for each
 * multiprocessor of an H200.
 *
 * All that a tile needs is asked for at once, each warpgroup's keys by its first thread. Warpgroup g takes blocks g, g + 4 ... of the
 * keys, each by itself:
 *
 *     S = Q K^T; P, m, l = softmax(S); O = 2^(m - m') O + P V
 *
 * The first scores are computed by one warpgroup after the other, so that one is in its products while those before it are in their
 * exponentials. The product with V is begun when half of the weights are there. As soon as a block of K has been read, the copy of the
 * next one into its place begins; V likewise. In the end the warpgroups leave their O, m and l in shared memory, O where K was, and
 * each joins a quarter of the columns, in the order of the warpgroups.
 *
 * At this size time goes into latencies, one after the other, and not into arithmetic. So what is far away is asked for before anything
 * is computed, and problems without lengths, packed heads, LSE and the like run the same source compiled without them: what is left of
 * it is a third as long.
 *
 * A grid is launched before the one ahead of it has ended (pdl), and gets ready meanwhile.
 *
 * Shared memory: Q[SLABS][64][64], then for each warpgroup V[SLABS][KEYS][64] and K[SLABS][KEYS][64], in whose place O comes, by
 * threads; then m and l of every warpgroup's rows; then barriers.
 *
 *     barrier       arrives                            waits
 *     Q_FULL        the copy of Q                      all warpgroups
 *     K_FULL[g]     the copy of K for warpgroup g      warpgroup g
 *     V_FULL[g]     likewise
 *     LEFT[w]       the lanes of warp w of every       the same: they have the same rows
 *                   warpgroup, when O, m and l are there
 *
 * What a warpgroup does with its rows is in attention_sm90.cuh.
 */
#define GROUPS 4
#define KEYS   (ATTEST_TILE_KV / GROUPS)
#include "attention_sm90.cuh"

constexpr int PART_BYTES = GROUP_Q * D * 4, SHARE_BYTES = KV_BYTES + PART_BYTES; // V, and K or a part of O
constexpr int SHARED_Q = 0, SHARED_SHARES = Q_BYTES, SHARED_ENDS = SHARED_SHARES + GROUPS * SHARE_BYTES,
              SHARED_BARRIERS = SHARED_ENDS + GROUPS * GROUP_Q * 8, SHARED_BYTES = SHARED_BARRIERS + 256;
constexpr int Q_FULL = SHARED_BARRIERS, K_FULL = Q_FULL + 8, V_FULL = K_FULL + 8 * GROUPS, LEFT = V_FULL + 8 * GROUPS;
constexpr int OWN = D / 8 / GROUPS; // chunks of 8 columns of O that a warpgroup joins

static_assert(TILE_Q == GROUP_Q && THREADS == GROUPS * GROUP_THREADS, "a tile is the rows of one warpgroup");
static_assert(PART_BYTES >= KV_BYTES && OWN % 2 == 0 && SHARED_BYTES <= 227 * 1024, "there is room");

ATTEST_CUDA_FACTS(SHARED_BYTES);

/* ---- what there is to do, and where ---- */

// The tile of this block, and the blocks of keys that its rows see: first .. end.
struct Work {
    attest_tile tile;
    attest_span keys;
    int first, end;
};

// As attest_tile_here, but short where there are no lengths to be read: the first copies wait for it. The last tiles of a slot come
// first.
__device__ inline Work work_here(const attest_cuda_args &args)
{
    const attest_sequence whole = {0, args.seq_q, 0, args.seq_kv};
    Work work;
    attest_tile &tile = work.tile;
    tile.batch = blockIdx.z;
    tile.slot = tile.head_kv = blockIdx.y;
    tile.sequence = whole;
    if (args.flags & (ATTEST_VARLEN_Q | ATTEST_VARLEN_KV | ATTEST_KV_LENGTHS) || args.slots != args.heads_kv) {
        tile.sequence = attest_sequence_get(args, tile.batch);
        tile.head_kv = args.slots == args.heads_kv ? tile.slot : tile.slot * args.pack / (args.heads_q / args.heads_kv);
    }
    tile.row_begin = (gridDim.x - 1 - blockIdx.x) * TILE_Q;
    tile.row_end = min(tile.row_begin + TILE_Q, tile.sequence.q_count * args.pack);
    work.keys.begin = attest_row_visible(args, tile.sequence, row_in_sequence(args, tile.row_begin)).begin;
    work.keys.end = attest_row_visible(args, tile.sequence, row_in_sequence(args, tile.row_end - 1)).end;
    work.first = work.keys.begin / KEYS;
    work.end = work.keys.end > work.keys.begin ? (work.keys.end - 1) / KEYS + 1 : work.first;
    return work;
}

// A warpgroup's places, and their barriers.
struct Share {
    uint32_t k_at, v_at, k_full, v_full;
};

__device__ inline Share share_of(uint32_t base, int group)
{
    const uint32_t v_at = base + SHARED_SHARES + group * SHARE_BYTES;
    Share share = {v_at + KV_BYTES, v_at, base + K_FULL + 8 * group, base + V_FULL + 8 * group};
    return share;
}

// Chunk n of O of this thread's rows, as a warpgroup leaves it.
__device__ inline float4 *part_chunk(unsigned char *shared, int group, int n)
{
    return reinterpret_cast<float4 *>(shared + SHARED_SHARES + group * SHARE_BYTES + KV_BYTES) + n * GROUP_THREADS +
           threadIdx.x % GROUP_THREADS;
}

// m and l of it.
__device__ inline float2 *part_end(unsigned char *shared, int group, int row)
{
    return reinterpret_cast<float2 *>(shared + SHARED_ENDS) + group * GROUP_Q + row;
}

/* ---- a warpgroup's keys ---- */

// Q, and the first block of K and V: by the first thread of the warpgroup.
__device__ inline void copy_first(const attest_cuda_args &args, const attest_cuda_maps &maps, const Work &work, uint32_t base,
                                  int group)
{
    const Share share = share_of(base, group);
    const int block = work.first + group;
    if (group == 0) {
        barrier_init(base + Q_FULL, 1);
        for (int warp = 0; warp < GROUP_THREADS / 32; warp++)
            barrier_init(base + LEFT + 8 * warp, GROUPS * 32);
    }
    barrier_init(share.k_full, 1);
    barrier_init(share.v_full, 1);
    barrier_init_fence();
    grid_wait_previous(); // all that is read or written depends on what is asked for behind it
    if (group == 0)
        copy_rows(args, &maps.map[0], work.tile, base + SHARED_Q, base + Q_FULL);
    if (block < work.end) {
        copy_keys(args, &maps.map[1], work.tile, share.k_at, share.k_full, block * KEYS, work.keys.end);
        copy_keys(args, &maps.map[2], work.tile, share.v_at, share.v_full, block * KEYS, work.keys.end);
    }
}

// Block `block` into a place that the warpgroup has read.
__device__ inline void copy_next(const attest_cuda_args &args, const attest_tensor_map *map, const Work &work, uint32_t to,
                                 uint32_t full, int group, int block)
{
    named_barrier(1 + group, GROUP_THREADS); // the warpgroup has read it
    if (threadIdx.x % GROUP_THREADS == 0)
        copy_keys(args, map, work.tile, to, full, block * KEYS, work.keys.end);
    __syncwarp();
}

// Warpgroups take turns with their first scores.
__device__ inline void turn_wait(int group)
{
    if (group > 0)
        named_barrier(GROUPS + group, 2 * GROUP_THREADS);
}

__device__ inline void turn_pass(int group)
{
    named_barrier_arrive(GROUPS + group + 1, 2 * GROUP_THREADS);
}

// The weights of one half of the keys, as softmax() has them, rounded; and their sums.
template <int part> __device__ inline void weigh_half(Weights &P, const Scores &S, Rows &rows, const float (&base)[2], float c)
{
    constexpr int STEPS = KEYS / 16 / 2;
    float sum[2][2] = {{0, 0}, {0, 0}};
#pragma unroll
    for (int step = part * STEPS; step < (part + 1) * STEPS; step++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float x = exp2_fast(fmaf(S[step * 8 + i * 2], c, -base[i % 2])),
                        y = exp2_fast(fmaf(S[step * 8 + i * 2 + 1], c, -base[i % 2]));
            sum[i % 2][0] += x, sum[i % 2][1] += y;
            P[step][i] = pack(x, y);
        }
    rows.l[0] += sum[0][0] + sum[0][1], rows.l[1] += sum[1][0] + sum[1][1];
}

// O += P V of one half of the keys, begun.
template <int part> __device__ inline void begin_pv_half(Output &O, const Weights &P, uint32_t v_at)
{
    constexpr int STEPS = KEYS / 16 / 2;
    const uint64_t v = descriptor(v_at, KV_SLAB, 8 * PITCH);
    wgmma_fence();
#pragma unroll
    for (int step = part * STEPS; step < (part + 1) * STEPS; step++)
        wgmma_rs<D, true>(O, P[step], v + (step * 16 * PITCH >> 4), true);
    wgmma_commit();
}

// The blocks of a warpgroup: O, and m and l of its rows.
__device__ inline void attend(const attest_cuda_args &args, const attest_cuda_maps &maps, const Work &work, uint32_t base,
                              int group, float c, Rows &rows, Output &O)
{
    const attest_tile &tile = work.tile;
    const attest_span all = seen_by_all(args, tile, tile.row_begin), seen = seen_by_some(args, tile.sequence);
    const Share share = share_of(base, group);
    rows_begin(rows);
    output_begin(O);
    barrier_wait(base + Q_FULL, 0); // also without a key: a block must not end while a copy is on its way
    uint32_t parity = 0;
#pragma unroll 1
    for (int block = work.first + group; block < work.end; block += GROUPS, parity ^= 1) {
        const bool first = block < work.first + GROUPS;
        const int next = block + GROUPS;
        Scores S;
        Weights P;
        float carry[2], above[2];
        barrier_wait(share.k_full, parity);
        if (first)
            turn_wait(group);
        wgmma_fence();
        begin_qk(S, base + SHARED_Q, share.k_at);
        wgmma_wait<0>();
        settle(S);
        if (first && group + 1 < GROUPS && block + 1 < work.end)
            turn_pass(group);
        if (next < work.end)
            copy_next(args, &maps.map[1], work, share.k_at, share.k_full, group, next);
        if (needs_modifying(args))
            modify(args, S);
        if (block * KEYS < all.begin || block * KEYS + KEYS > all.end)
            hide(args, tile.sequence, S, row_here(tile.row_begin), block * KEYS);
        raise(S, rows, carry, above, c);
        rows.l[0] *= carry[0], rows.l[1] *= carry[1];
        if (!first)
            rescale(O, carry);
        weigh_half<0>(P, S, rows, above, c);
        barrier_wait(share.v_full, parity);
        blank(share.v_at, seen, block * KEYS, 1 + group);
        begin_pv_half<0>(O, P, share.v_at);
        weigh_half<1>(P, S, rows, above, c);
        begin_pv_half<1>(O, P, share.v_at);
        wgmma_wait<0>();
        settle(O);
        if (next < work.end) {
            proxy_fence(); // some of V may have been blanked
            copy_next(args, &maps.map[2], work, share.v_at, share.v_full, group, next);
        }
    }
    rows_end(rows, c);
}

/* ---- the end ---- */

// Leaves what the warpgroup has of its rows.
__device__ inline void leave(unsigned char *shared, int group, const Rows &rows, const Output &O)
{
#pragma unroll
    for (int n = 0; n < D / 8; n++)
        *part_chunk(shared, group, n) = make_float4(O[n * 4], O[n * 4 + 1], O[n * 4 + 2], O[n * 4 + 3]);
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (threadIdx.x % 4 == 0)
            *part_end(shared, group, row_here(half * 8)) = make_float2(rows.m[half], rows.l[half]);
}

// What each warpgroup's O of a row of the tile is to be multiplied with.
__device__ inline void weights_get(const attest_cuda_args &args, const attest_tile &tile, unsigned char *shared, int row,
                                   bool first_column, float (&weight)[GROUPS])
{
    float2 end[GROUPS];
    float most = minus_infinity(), l = 0;
#pragma unroll
    for (int from = 0; from < GROUPS; from++) {
        end[from] = *part_end(shared, from, row);
        most = fmaxf(most, end[from].x);
    }
    const float base = most == minus_infinity() ? 0 : most;
#pragma unroll
    for (int from = 0; from < GROUPS; from++) {
        weight[from] = exp2_fast(end[from].x - base);
        l += weight[from] * end[from].y;
    }
    const float factor = finish_row(args, tile, tile.row_begin + row, most, l, first_column);
#pragma unroll
    for (int from = 0; from < GROUPS; from++)
        weight[from] *= factor;
}

// The row that this thread writes chunks of.
__device__ inline int row_written(int first)
{
    return row_here(first) + threadIdx.x % 2 * 8;
}

// The warpgroup's chunks are joined, in the order of the warpgroups, and written.
__device__ inline void write_joined(const attest_cuda_args &args, const attest_tile &tile, unsigned char *shared, int group,
                                    uint16_t *to)
{
    float weight[2][GROUPS], o[OWN * 4];
#pragma unroll
    for (int half = 0; half < 2; half++)
        weights_get(args, tile, shared, row_here(half * 8), group == 0 && threadIdx.x % 4 == 0, weight[half]);
#pragma unroll
    for (int n = 0; n < OWN * 4; n++)
        o[n] = 0;
#pragma unroll
    for (int from = 0; from < GROUPS; from++)
#pragma unroll
        for (int n = 0; n < OWN; n++) {
            const float4 part = *part_chunk(shared, from, group * OWN + n);
            float *sum = o + n * 4;
            sum[0] = fmaf(weight[0][from], part.x, sum[0]), sum[1] = fmaf(weight[0][from], part.y, sum[1]);
            sum[2] = fmaf(weight[1][from], part.z, sum[2]), sum[3] = fmaf(weight[1][from], part.w, sum[3]);
        }
        // Four lanes have a pair of elements of each of four chunks, which are two of two rows: each lane gets a whole one.
#pragma unroll
    for (int n = 0; n < OWN; n += 2) {
        uint32_t pairs[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            pairs[i] = pack(o[n * 4 + i * 2], o[n * 4 + i * 2 + 1]);
        transpose_quad(pairs);
        if (to)
            write_chunk(args, to, group * OWN + n + threadIdx.x % 4 / 2, pairs);
    }
}

/* ---- a tile ---- */

__device__ __forceinline__ void compute_tile(const attest_cuda_args &args, const attest_cuda_maps &maps, unsigned char *shared)
{
    const uint32_t base = shared_address(shared);
    const int group = attest_uniform(threadIdx.x / GROUP_THREADS);
    const Work work = work_here(args);
    const attest_tile &tile = work.tile;
    if (tile.row_begin >= tile.row_end)
        return;
    if (threadIdx.x % GROUP_THREADS == 0)
        copy_first(args, maps, work, base, group);
    __syncthreads(); // the barriers are there
    const float c = needs_modifying(args) ? 1 : args.scale * LOG2_E;
    const int own_row = row_written(tile.row_begin);
    uint16_t *to = own_row < tile.row_end ? row_of_o(args, tile, own_row) : 0;

    Rows rows;
    Output O;
    attend(args, maps, work, base, group, c, rows, O);
    named_barrier(1 + group, GROUP_THREADS); // the warpgroup has read K
    leave(shared, group, rows, O);
    // Not a barrier for all threads: warpgroups have barriers of their own, and racecheck is confused by both. Every lane arrives for
    // itself: then racecheck, too, sees that what it wrote comes before what is read behind the barrier.
    const uint32_t left = base + LEFT + 8 * (threadIdx.x / 32 % 4);
    barrier_arrive(left);
    barrier_wait(left, 0); // all have left theirs
    write_joined(args, tile, shared, group, to);
}

// Tensor maps and arguments are far away when a block begins. Each warp waits for other arguments, so that they come side by side.
__device__ inline void fetch(const attest_cuda_args &args, const attest_cuda_maps &maps)
{
    const int warp = attest_uniform(threadIdx.x / 32);
    if (threadIdx.x % GROUP_THREADS == 0 && warp / 4 < 3)
        map_prefetch(&maps.map[warp / 4]);
    const size_t at = warp % 4 == 0   ? offsetof(attest_cuda_args, flags)
                      : warp % 4 == 1 ? offsetof(attest_cuda_args, pack)
                      : warp % 4 == 2 ? offsetof(attest_cuda_args, stride_o)
                                      : offsetof(attest_cuda_args, q);
    pin(*reinterpret_cast<const float *>(reinterpret_cast<const char *>(&args) + at));
}

// Whether the problem has nothing but masks by position.
__device__ inline bool is_plain(const attest_cuda_args &args)
{
    return !(args.flags & ~(ATTEST_CAUSAL | ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT | ATTEST_BOTTOM_RIGHT)) && args.pack == 1 &&
           args.slots == args.heads_kv && args.dim_v == D;
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1)
    attest_kernel(const __grid_constant__ attest_cuda_args args, const __grid_constant__ attest_cuda_maps maps)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    grid_allow_next();
    fetch(args, maps);
    if (!is_plain(args)) {
        grid_wait_previous();
        compute_tile(args, maps, shared);
        return;
    }
    attest_cuda_args plain = args; // what the compiler is to know
    plain.flags = args.flags & ATTEST_BOTTOM_RIGHT;
    plain.pack = 1;
    plain.slots = plain.heads_kv;
    plain.dim_v = D;
    compute_tile(plain, maps, shared);
}
