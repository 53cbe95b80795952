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
 * attest-cuda: shared     = 2 * dim * tile_q + 4 * max(4 * dim * (tile_kv / 4), 4 * tile_q * (dim + 8)) + 2048 + 256
 * attest-cuda: registers  = 128
 * attest-cuda: launch     = grid
 * attest-cuda: packs      = yes
 * attest-cuda: tiles_most = 132
 * attest-cuda: cluster    = 2
 * attest-cuda: align      = 16
 * attest-cuda: map        = q rows 64 columns 64 swizzle 128
 * attest-cuda: map        = k rows tile_kv / 8 columns 64 swizzle 128
 * attest-cuda: map        = v rows tile_kv / 8 columns 64 swizzle 128
 * attest-cuda: refuses    = alibi bias o=f32
 * attest-cuda: tensor     = gmma
 * attest-cuda: mma_qk     = 64 * (tile_kv / 4) * 16 / 4
 * attest-cuda: mma_pv     = 64 * dim * 16 / 4
 *
 * Contract: as cuda_fwd_sm90, any dim and dim_v up to 128; at most 132 tiles of 64 rows, one for each
 * multiprocessor of an H200.
 *
 * All that a tile needs is asked for at once, and every warpgroup begins when its own keys are there. Warpgroup g takes blocks g, g + 4
 * ... of the keys, each by itself:
 *
 *     S = Q K^T; P, m, l = softmax(S); O = 2^(m - m') O + P V
 *
 * As soon as a block of K has been read, the copy of the next one into its place begins; V likewise. In the end the warpgroups leave
 * their O, m and l in shared memory, where K and V were, and all threads join them, in the order of the warpgroups.
 *
 * Two tiles of a head that follow each other are a cluster: each brings one half of every block of K and V, for both of them, because
 * with tiles this short the way from the L2 cache is what takes longest. So both go through the same blocks: those that a row of either
 * sees.
 *
 * Shared memory: Q[SLABS][64][64], then for each warpgroup K[SLABS][KEYS][64], V[SLABS][KEYS][64], in whose place O[64][D + 8] of floats
 * comes; then m and l of every warpgroup's rows; then barriers.
 *
 *     barrier       arrives                                                       waits
 *     Q_FULL        the copy of Q                                                 all warpgroups
 *     K_FULL[g]     the copies of both blocks of the cluster for warpgroup g      warpgroup g
 *     K_FREE[g]     warpgroup g of both blocks, when K has been read              the thread of warpgroup g that copies
 *     V_FULL[g], V_FREE[g] likewise
 *
 * What a warpgroup does with its rows is in attention_sm90.cuh.
 */
#define KEYS    (ATTEST_TILE_KV / 4)
#define CLUSTER 2
#include "attention_sm90.cuh"

constexpr int GROUPS = 4;
constexpr int JOIN_PITCH = D + 8; // floats; rows that are written together lie in different banks
constexpr int SHARE_BYTES = 2 * KV_BYTES > GROUP_Q *JOIN_PITCH * 4 ? 2 * KV_BYTES : GROUP_Q *JOIN_PITCH * 4;
constexpr int SHARED_Q = 0, SHARED_SHARES = Q_BYTES, SHARED_ENDS = SHARED_SHARES + GROUPS * SHARE_BYTES,
              SHARED_BARRIERS = SHARED_ENDS + GROUPS * GROUP_Q * 8, SHARED_BYTES = SHARED_BARRIERS + 256;
constexpr int Q_FULL = SHARED_BARRIERS, K_FULL = Q_FULL + 8, K_FREE = K_FULL + 8 * GROUPS, V_FULL = K_FREE + 8 * GROUPS,
              V_FREE = V_FULL + 8 * GROUPS;

static_assert(TILE_Q == GROUP_Q && THREADS == GROUPS * GROUP_THREADS, "a tile is the rows of one warpgroup");
static_assert(SHARE_BYTES % 1024 == 0 && SHARED_BYTES <= 227 * 1024, "there is room");

ATTEST_CUDA_FACTS(SHARED_BYTES);

// One row of a group's O, as the groups leave it.
__device__ inline float *share_row(unsigned char *shared, int group, int row)
{
    return reinterpret_cast<float *>(shared + SHARED_SHARES + group * SHARE_BYTES) + row * JOIN_PITCH;
}

// m and l of it.
__device__ inline float2 *share_end(unsigned char *shared, int group, int row)
{
    return reinterpret_cast<float2 *>(shared + SHARED_ENDS) + group * GROUP_Q + row;
}

// The next block of K or V, once nobody in the cluster reads the last one, which was the barriers' phase `parity`. For a warpgroup.
__device__ inline void copy_next(const attest_cuda_args &args, const attest_tensor_map *map, const attest_tile &tile, uint32_t to,
                                 uint32_t full, uint32_t free, uint32_t parity, int group, int first, int end)
{
    named_barrier(1 + group, GROUP_THREADS); // the warpgroup has read it
    if (threadIdx.x % GROUP_THREADS == 0) {
#pragma unroll
        for (int rank = 0; rank < CLUSTER; rank++)
            barrier_arrive_at(free, rank);
        barrier_wait(free, parity);
        copy_keys(args, map, tile, to, full, first, end);
    }
    __syncwarp();
}

// The blocks of a warpgroup among those of `keys`: O, and m and l of its rows.
__device__ inline void attend(const attest_cuda_args &args, const attest_cuda_maps &maps, const attest_tile &tile,
                              const attest_span &keys, uint32_t base, int group, float c, Rows &rows, Output &O)
{
    const attest_span all = seen_by_all(args, tile, tile.row_begin), seen = seen_by_some(args, tile.sequence);
    const bool modified = needs_modifying(args);
    const int end = keys.end > keys.begin ? (keys.end - 1) / KEYS + 1 : 0; // blocks
    const uint32_t k_at = base + SHARED_SHARES + group * SHARE_BYTES, v_at = k_at + KV_BYTES, k_full = base + K_FULL + 8 * group,
                   v_full = base + V_FULL + 8 * group, k_free = base + K_FREE + 8 * group, v_free = base + V_FREE + 8 * group;
    int block = keys.begin / KEYS + group;
    if (threadIdx.x % GROUP_THREADS == 0 && block < end) {
        copy_keys(args, &maps.map[1], tile, k_at, k_full, block * KEYS, keys.end);
        copy_keys(args, &maps.map[2], tile, v_at, v_full, block * KEYS, keys.end);
    }
    __syncwarp();
    rows_begin(rows);
    output_begin(O);
    barrier_wait(base + Q_FULL, 0); // also without a key: a block must not end while a copy is on its way
#pragma unroll 1
    for (uint32_t parity = 0; block < end; block += GROUPS, parity ^= 1) {
        const int next = (block + GROUPS) * KEYS; // key
        const bool more = block + GROUPS < end;
        Scores S;
        Weights P;
        float carry[2];
        barrier_wait(k_full, parity);
        wgmma_fence();
        begin_qk(S, base + SHARED_Q, k_at);
        wgmma_wait<0>();
        settle(S);
        if (more)
            copy_next(args, &maps.map[1], tile, k_at, k_full, k_free, parity, group, next, keys.end);
        weigh(args, modified, tile.sequence, all, tile.row_begin, S, rows, carry, c, block * KEYS);
        round_weights(P, S);
        rescale(O, carry);
        barrier_wait(v_full, parity);
        blank(v_at, seen, block * KEYS, 1 + group);
        wgmma_fence();
        begin_pv(O, P, v_at);
        wgmma_wait<0>();
        settle(O);
        if (more) {
            proxy_fence(); // some of V may have been blanked
            copy_next(args, &maps.map[2], tile, v_at, v_full, v_free, parity, group, next, keys.end);
        }
    }
    rows_end(rows, c);
}

// What a group has of its rows, for those that join them.
__device__ inline void leave_share(unsigned char *shared, int group, const Rows &rows, const Output &O)
{
    const int lane = threadIdx.x % 32, row = threadIdx.x % GROUP_THREADS / 32 * 16 + lane / 4, column = lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float *to = share_row(shared, group, row + half * 8) + column;
#pragma unroll
        for (int n = 0; n < D / 8; n++)
            *reinterpret_cast<float2 *>(to + n * 8) = make_float2(O[n * 4 + half * 2], O[n * 4 + half * 2 + 1]);
        if (column == 0)
            *share_end(shared, group, row + half * 8) = make_float2(rows.m[half], rows.l[half]);
    }
}

// Eight columns of a row are joined and written by each thread.
__device__ inline void write_joined(const attest_cuda_args &args, const attest_tile &tile, unsigned char *shared)
{
    constexpr int CHUNKS = D / 8;
#pragma unroll
    for (int index = threadIdx.x; index < GROUP_Q * CHUNKS; index += THREADS) {
        const int row = index / CHUNKS, chunk = index % CHUNKS;
        float m[GROUPS], l = 0, most = minus_infinity(), weight[GROUPS], o[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll
        for (int group = 0; group < GROUPS; group++) {
            m[group] = share_end(shared, group, row)->x;
            most = fmaxf(most, m[group]);
        }
#pragma unroll
        for (int group = 0; group < GROUPS; group++) {
            weight[group] = m[group] == minus_infinity() ? 0 : exp2_fast(m[group] - most);
            l += weight[group] * share_end(shared, group, row)->y;
        }
        const float factor = finish_row(args, tile, tile.row_begin + row, most, l, chunk == 0);
#pragma unroll
        for (int group = 0; group < GROUPS; group++) {
            const float *from = share_row(shared, group, row) + chunk * 8;
#pragma unroll
            for (int quarter = 0; quarter < 2; quarter++) {
                const float4 part = *reinterpret_cast<const float4 *>(from + quarter * 4);
                float *sum = o + quarter * 4, share = weight[group] * factor;
                sum[0] = fmaf(share, part.x, sum[0]), sum[1] = fmaf(share, part.y, sum[1]);
                sum[2] = fmaf(share, part.z, sum[2]), sum[3] = fmaf(share, part.w, sum[3]);
            }
        }
        const uint32_t pairs[4] = {pack(o[0], o[1]), pack(o[2], o[3]), pack(o[4], o[5]), pack(o[6], o[7])};
        if (tile.row_begin + row < tile.row_end)
            write_chunk(args, row_of_o(args, tile, tile.row_begin + row), chunk, pairs);
    }
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(ATTEST_THREADS, 1)
    attest_kernel(const __grid_constant__ attest_cuda_args args, const __grid_constant__ attest_cuda_maps maps)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    const uint32_t base = shared_address(shared);
    const attest_tile tile = attest_tile_here(args, true);
    attest_tile together = tile; // the rows of the cluster
    together.row_begin = tile.row_begin / (CLUSTER * TILE_Q) * (CLUSTER * TILE_Q);
    together.row_end = min(together.row_begin + CLUSTER * TILE_Q, tile.sequence.q_count * args.pack);
    if (together.row_begin >= together.row_end)
        return;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 3; i++)
            map_prefetch(&maps.map[i]);
        barrier_init(base + Q_FULL, 1);
        for (int group = 0; group < GROUPS; group++) {
            barrier_init(base + K_FULL + 8 * group, 1);
            barrier_init(base + K_FREE + 8 * group, CLUSTER);
            barrier_init(base + V_FULL + 8 * group, 1);
            barrier_init(base + V_FREE + 8 * group, CLUSTER);
        }
        barrier_init_fence();
        copy_rows(args, &maps.map[0], tile, base + SHARED_Q, base + Q_FULL);
    }
    __syncwarp();
    cluster_arrive();
    const attest_span keys = attest_tile_visible(args, together);
    const int group = attest_uniform(threadIdx.x / GROUP_THREADS);
    const float c = needs_modifying(args) ? 1 : args.scale * LOG2_E;
    cluster_wait(); // the barriers of both blocks are there

    Rows rows;
    Output O;
    attend(args, maps, tile, keys, base, group, c, rows, O);
    cluster_arrive();                        // no more copies come from here, nor are there any to come
    named_barrier(1 + group, GROUP_THREADS); // the warpgroup has read V
    leave_share(shared, group, rows, O);
    __syncthreads(); // all shares are there
    write_joined(args, tile, shared);
    cluster_wait();
}
