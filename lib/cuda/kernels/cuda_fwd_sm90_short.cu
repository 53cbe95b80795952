/*
 * FlashAttention for Hopper where there are fewer tiles than multiprocessors: short tiles, whose keys are shared out to two warpgroups.
 *
 * attest-cuda: name       = cuda_fwd_sm90_short
 * attest-cuda: summary    = wgmma on tiles of 64 rows, their keys shared out to two warpgroups and brought by bulk tensor copies
 * attest-cuda: archs      = sm_90a
 * attest-cuda: dtypes     = f16 bf16
 * attest-cuda: dims       = 64 128
 * attest-cuda: padding    = yes
 * attest-cuda: tile_q     = 64
 * attest-cuda: tile_kv    = 32768 / dim
 * attest-cuda: threads    = 256
 * attest-cuda: shared     = 6 * dim * tile_q + 4 * dim * tile_kv + 1024 + 256
 * attest-cuda: registers  = 255
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
 * All that a tile needs is asked for at once, by one lane of each warp. The keys come in blocks, four at a time; of these, warpgroup g
 * takes blocks g and g + 2, each by itself, with an O, m and l of its own:
 *
 *     S = Q K^T; P, m, l = softmax(S); O = 2^(m - m') O + P V
 *
 * Scores of the second are begun before the softmax of the first, and neither waits for the other's. The product with V is begun when half
 * of the weights are there. As soon as a block of K has been read, the copy of the next one into its place begins; V likewise. In the
 * end a warpgroup joins its two O, leaves the columns that the other one is to write in shared memory, and joins and writes its own.
 *
 * At this size time goes into latencies, one after the other, and not into arithmetic. So what is far away is asked for before anything
 * is computed, and problems without lengths, packed heads, LSE and the like run the same source compiled without them, those whose keys
 * are all there at once without the loop, too: what is left of it is a third as long. And a grid is launched before the one ahead of it
 * has ended (pdl), so that it gets ready meanwhile; nothing is asked for, nor written, before that has ended.
 *
 * Shared memory: Q[SLABS][64][64], then for each share K[SLABS][KEYS][64] and V[SLABS][KEYS][64], then what each warpgroup leaves of O,
 * by threads; then m and l of its rows; then barriers.
 *
 *     barrier       arrives                                waits
 *     Q_FULL        the copy of Q                          all warpgroups
 *     K_FULL[n]     the copy of K of share n               warpgroup n % 2
 *     V_FULL[n]     likewise
 *     LEFT[w]       the lanes of warp w of both            the same: they have the same rows
 *                   warpgroups, when O, m and l are there
 *
 * What a warpgroup does with its rows is in attention_sm90.cuh.
 */
#define SHARES 4
#define KEYS   (ATTEST_TILE_KV / SHARES)
#include "attention_sm90.cuh"

constexpr int GROUPS = 2, EACH = SHARES / GROUPS; // warpgroups, and blocks of keys that each has at a time
constexpr int SHARE_BYTES = 2 * KV_BYTES, PART_BYTES = GROUP_Q * D / GROUPS * 4; // K and V; the columns of O that are left
constexpr int SHARED_Q = 0, SHARED_SHARES = Q_BYTES, SHARED_PARTS = SHARED_SHARES + SHARES * SHARE_BYTES,
              SHARED_ENDS = SHARED_PARTS + GROUPS * PART_BYTES, SHARED_BARRIERS = SHARED_ENDS + GROUPS * GROUP_Q * 8,
              SHARED_BYTES = SHARED_BARRIERS + 256;
constexpr int Q_FULL = SHARED_BARRIERS, K_FULL = Q_FULL + 8, V_FULL = K_FULL + 8 * SHARES, LEFT = V_FULL + 8 * SHARES;
constexpr int OWN = D / 8 / GROUPS; // chunks of 8 columns of O that a warpgroup joins

static_assert(TILE_Q == GROUP_Q && THREADS == GROUPS * GROUP_THREADS, "a tile is the rows of one warpgroup");
static_assert(OWN % 2 == 0 && SHARED_BYTES <= 227 * 1024, "there is room");

ATTEST_CUDA_FACTS(SHARED_BYTES);

/* ---- what there is to do, and where ---- */

// What the source is compiled for: any problem; one with nothing but masks by position; such a one whose keys are all there at once.
enum Kind { ANY, PLAIN, ONCE };

// Where a share's K and V come, and their barriers.
struct Share {
    uint32_t k_at, v_at, k_full, v_full;
};

__device__ inline Share share_of(uint32_t base, int index)
{
    const uint32_t k_at = base + SHARED_SHARES + index * SHARE_BYTES;
    Share share = {k_at, k_at + KV_BYTES, base + K_FULL + 8 * index, base + V_FULL + 8 * index};
    return share;
}

// Chunk n of those of this thread's rows that `group` leaves for the other.
__device__ inline float4 *part_chunk(unsigned char *shared, int group, int n)
{
    return reinterpret_cast<float4 *>(shared + SHARED_PARTS + group * PART_BYTES) + n * GROUP_THREADS + threadIdx.x % GROUP_THREADS;
}

// m and l of it.
__device__ inline float2 *part_end(unsigned char *shared, int group, int row)
{
    return reinterpret_cast<float2 *>(shared + SHARED_ENDS) + group * GROUP_Q + row;
}

/* ---- a warpgroup's keys ---- */

// As copy_rows, without a division where there is nothing to divide by.
__device__ inline void copy_tile(const attest_cuda_args &args, const attest_tensor_map *map, const attest_tile &tile, uint32_t to,
                                 uint32_t barrier)
{
    const int row = tile.sequence.q_first + row_in_sequence(args, tile.row_begin),
              batch = attest_has(args, ATTEST_VARLEN_Q) ? 0 : tile.batch;
    barrier_expect(barrier, Q_BYTES);
#pragma unroll
    for (int slab = 0; slab < SLABS; slab++)
        map_load_5(to + slab * Q_SLAB, map, barrier, slab * SLAB, 0, row, tile.slot, batch);
}

// Q, and the first blocks of K and V: one lane of each warp asks for a part of them.
__device__ inline void copy_first(const attest_cuda_args &args, const attest_cuda_maps &maps, const Work &work, uint32_t base)
{
    const int warp = attest_uniform(threadIdx.x / 32), index = warp % SHARES, block = work.first + index;
    const bool of_v = warp >= SHARES;
    const Share share = share_of(base, index);
    const uint32_t to = of_v ? share.v_at : share.k_at, full = of_v ? share.v_full : share.k_full;
    if (elect_one()) {
        barrier_init(full, 1);
        if (warp == SHARES)
            barrier_init(base + Q_FULL, 1);
        if (of_v)
            barrier_init(base + LEFT + 8 * index, GROUPS * 32);
        barrier_init_fence();
        grid_wait_previous(); // all that is read or written depends on what is asked for behind it
        if (warp == SHARES)
            copy_tile(args, &maps.map[0], work.tile, base + SHARED_Q, base + Q_FULL);
        if (block < work.end)
            copy_keys(args, &maps.map[of_v ? 2 : 1], work.tile, to, full, block * KEYS, work.keys.end);
    }
    __syncwarp();
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

// What a warpgroup has to know.
struct Scene {
    const attest_cuda_args &args;
    const attest_cuda_maps &maps;
    const Work &work;
    float c;
    int group;
};

// From scores that are there to a product with V that is begun.
template <Kind kind>
__device__ inline void attend_block(const Scene &scene, const Share &share, int block, uint32_t parity, Scores &S, Weights &P,
                                    Rows &rows, Output &O)
{
    const attest_cuda_args &args = scene.args;
    const attest_tile &tile = scene.work.tile;
    const int next = block + SHARES;
    const attest_span all = seen_by_all(args, tile, tile.row_begin), seen = seen_by_some(args, tile.sequence);
    float carry[2], above[2];
    if (kind != ONCE && next < scene.work.end)
        copy_next(args, &scene.maps.map[1], scene.work, share.k_at, share.k_full, scene.group, next);
    if (kind == ANY && needs_modifying(args))
        modify(args, S);
    if (block * KEYS < all.begin || block * KEYS + KEYS > all.end)
        hide(args, tile.sequence, S, row_here(tile.row_begin), block * KEYS);
    raise(S, rows, carry, above, scene.c);
    if (kind != ONCE) {
        rows.l[0] *= carry[0], rows.l[1] *= carry[1];
        if (block >= scene.work.first + SHARES)
            rescale(O, carry);
    }
    weigh_half<0>(P, S, rows, above, scene.c);
    if (kind == PLAIN)
        pin(rows.l[0]); // less at a time: registers do not do otherwise
    barrier_wait(share.v_full, parity);
    blank(share.v_at, seen, block * KEYS, 1 + scene.group);
    begin_pv_half<0>(O, P, share.v_at);
    weigh_half<1>(P, S, rows, above, scene.c);
    begin_pv_half<1>(O, P, share.v_at);
}

// The blocks of a warpgroup: two sets of O, m and l, each of its own blocks. Scores of both are begun at once where there are registers
// for that.
template <Kind kind>
__device__ inline void attend(const attest_cuda_args &args, const attest_cuda_maps &maps, const Work &work, uint32_t base,
                              int group, float c, Rows (&rows)[EACH], Output &O0, Output &O1)
{
    constexpr bool ahead = kind != ANY;
    const Scene scene = {args, maps, work, c, group};
    rows_begin(rows[0]), rows_begin(rows[1]);
    output_begin(O0), output_begin(O1);
    settle(O0), settle(O1); // zeros that stay where they are: otherwise they come between products, which are then done one by one
    barrier_wait(base + Q_FULL, 0); // also without a key: a block must not end while a copy is on its way
#pragma unroll 1
    for (int block = work.first + group; block < work.end; block = kind == ONCE ? work.end : block + SHARES) {
        const uint32_t parity = kind == ONCE ? 0 : (block - work.first) / SHARES % 2;
        const bool both = block + GROUPS < work.end;
        // The same in every round, but not so that the compiler keeps all addresses of products in registers.
        const uint32_t here = kind == ONCE ? base : base + (block > ATTEST_CUDA_UNBOUNDED ? 1024 : 0);
        const Share share0 = share_of(here, group), share1 = share_of(here, GROUPS + group);
        Scores S0, S1;
        Weights P0, P1;
        barrier_wait(share0.k_full, parity);
        wgmma_fence();
        begin_qk(S0, base + SHARED_Q, share0.k_at);
        if (!ahead)
            wgmma_wait<0>();
        else {
            if (both)
                barrier_wait(share1.k_full, parity);
            begin_qk(S1, base + SHARED_Q, share1.k_at); // of whatever is there, if there is no such block
            wgmma_wait<1>();
        }
        settle(S0);
        attend_block<kind>(scene, share0, block, parity, S0, P0, rows[0], O0);
        if (!ahead) {
            wgmma_wait<0>();
            settle(O0);
            if (both)
                barrier_wait(share1.k_full, parity);
            wgmma_fence();
            begin_qk(S1, base + SHARED_Q, share1.k_at);
            wgmma_wait<0>();
        } else
            wgmma_wait<2>();
        settle(S1);
        if (both)
            attend_block<kind>(scene, share1, block + GROUPS, parity, S1, P1, rows[1], O1);
        wgmma_wait<0>();
        settle(O0), settle(O1);
#pragma unroll
        for (int n = 0; n < EACH; n++) {
            const int next = block + n * GROUPS + SHARES;
            const Share &share = n ? share1 : share0;
            if (kind != ONCE && next < work.end) {
                proxy_fence(); // some of V may have been blanked
                copy_next(args, &maps.map[2], work, share.v_at, share.v_full, group, next);
            }
        }
    }
}

/* ---- the end ---- */

// What a part with maximum m, in units of log2, weighs beside one with maximum `most`.
__device__ inline float weight_of(float m, float most)
{
    return exp2_fast(m - (most == minus_infinity() ? 0 : most));
}

// Both sets become one, in rows[0] and O0; m is in units of log2.
template <Kind kind> __device__ inline void join_own(Rows (&rows)[EACH], Output &O0, const Output &O1, float c)
{
    float weight[EACH][2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float m[EACH], l = 0;
#pragma unroll
        for (int n = 0; n < EACH; n++)
            m[n] = kind == ANY && rows[n].m[half] == minus_infinity() ? rows[n].m[half] : __fmul_rn(rows[n].m[half], c);
        const float most = fmaxf(m[0], m[1]);
#pragma unroll
        for (int n = 0; n < EACH; n++) {
            weight[n][half] = weight_of(m[n], most);
            l = fmaf(weight[n][half], rows[n].l[half], l);
        }
        l += __shfl_xor_sync(ALL_LANES, l, 1);
        l += __shfl_xor_sync(ALL_LANES, l, 2);
        rows[0].m[half] = most, rows[0].l[half] = l;
    }
#pragma unroll
    for (int n = 0; n < D / 2; n++)
        O0[n] = fmaf(weight[1][n / 2 % 2], O1[n], weight[0][n / 2 % 2] * O0[n]);
}

// Leaves what the warpgroup has of the columns that the other one joins.
__device__ inline void leave(unsigned char *shared, int group, const Rows &rows, const Output &O)
{
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (threadIdx.x % 4 == 0)
            *part_end(shared, group, row_here(half * 8)) = make_float2(rows.m[half], rows.l[half]);
#pragma unroll
    for (int n = 0; n < OWN; n++) {
        const int low = n * 4, high = low + OWN * 4;
        *part_chunk(shared, group, n) = group ? make_float4(O[low], O[low + 1], O[low + 2], O[low + 3])
                                              : make_float4(O[high], O[high + 1], O[high + 2], O[high + 3]);
    }
}

// The row that this thread writes chunks of.
__device__ inline int row_written(int first)
{
    return row_here(first) + threadIdx.x % 2 * 8;
}

// The warpgroup's columns are joined with what the other one left of them, and written.
__device__ inline void write_joined(const attest_cuda_args &args, const attest_tile &tile, unsigned char *shared, int group,
                                    const Rows &rows, const Output &O, uint16_t *to)
{
    float own[2], other[2], o[OWN * 4];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = row_here(half * 8);
        const float2 end = *part_end(shared, 1 - group, row);
        const float m = rows.m[half], most = fmaxf(m, end.x);
        own[half] = weight_of(m, most);
        other[half] = weight_of(end.x, most);
        // Not fused: so it is the same for both warpgroups.
        const float l = __fmul_rn(own[half], rows.l[half]) + __fmul_rn(other[half], end.y);
        const float factor = finish_row(args, tile, tile.row_begin + row, most, l, group == 0 && threadIdx.x % 4 == 0);
        own[half] *= factor, other[half] *= factor;
    }
#pragma unroll
    for (int n = 0; n < OWN; n++) {
        const float4 part = *part_chunk(shared, 1 - group, n);
        const float left[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
            o[n * 4 + i] = fmaf(other[i / 2], left[i], own[i / 2] * (group ? O[(n + OWN) * 4 + i] : O[n * 4 + i]));
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

template <Kind kind>
__device__ __forceinline__ void compute_tile(const attest_cuda_args &args, const attest_cuda_maps &maps, unsigned char *shared)
{
    const uint32_t base = shared_address(shared);
    const int group = attest_uniform(threadIdx.x / GROUP_THREADS);
    const Work work = work_here(args);
    const attest_tile &tile = work.tile;
    if (tile.row_begin >= tile.row_end)
        return;
    copy_first(args, maps, work, base);
    __syncthreads(); // the barriers are there
    const float c = kind == ANY && needs_modifying(args) ? 1 : args.scale * LOG2_E;

    Rows rows[EACH];
    Output O0, O1;
    attend<kind>(args, maps, work, base, group, c, rows, O0, O1);
    join_own<kind>(rows, O0, O1, c);
    leave(shared, group, rows[0], O0);
    // Not a barrier for all threads: warpgroups have barriers of their own, and racecheck is confused by both. Every lane arrives for
    // itself: then racecheck, too, sees that what it wrote comes before what is read behind the barrier.
    const uint32_t left = base + LEFT + 8 * (threadIdx.x / 32 % 4);
    barrier_arrive(left);
    const int own_row = row_written(tile.row_begin);
    uint16_t *to = own_row < tile.row_end ? row_of_o(args, tile, own_row) : 0;
    barrier_wait(left, 0); // all have left theirs
    write_joined(args, tile, shared, group, rows[0], O0, to);
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

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1)
    attest_kernel(const __grid_constant__ attest_cuda_args args, const __grid_constant__ attest_cuda_maps maps)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    grid_allow_next();
    fetch(args, maps);
    if (!is_plain(args)) {
        grid_wait_previous();
        compute_tile<ANY>(args, maps, shared);
        return;
    }
    const attest_cuda_args plain = plain_args(args);
    if (args.seq_kv <= ATTEST_TILE_KV) // four blocks
        compute_tile<ONCE>(plain, maps, shared);
    else
        compute_tile<PLAIN>(plain, maps, shared);
}
