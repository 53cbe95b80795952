/*
 * FlashAttention for Hopper: products by warpgroups (wgmma), K and V brought by bulk tensor copies, and warps with different parts to
 * play.
 *
 * attest-cuda: name      = cuda_fwd_sm90
 * attest-cuda: summary   = wgmma on tiles that bulk tensor copies bring, one warp for the copies, warpgroups taking turns
 * attest-cuda: archs     = sm_90a
 * attest-cuda: dtypes    = f16 bf16
 * attest-cuda: dims      = 64 96 128 192 256
 * attest-cuda: padding   = yes
 * attest-cuda: tile_q    = 128
 * attest-cuda: tile_q [d64] = 192
 * attest-cuda: tile_kv   = 128
 * attest-cuda: tile_kv [d192] = 96
 * attest-cuda: tile_kv [d256] = 80
 * attest-cuda: stages    = 2
 * attest-cuda: threads   = 2 * tile_q + 128
 * attest-cuda: shared    = 2 * up(dim, 64) * (2 * tile_q + 2 * stages * tile_kv) + 128
 * attest-cuda: shared [d192] = 2 * up(dim, 64) * (tile_q + 2 * stages * tile_kv) + 128
 * attest-cuda: shared [d256] = 2 * up(dim, 64) * (tile_q + 2 * stages * tile_kv) + 128
 * attest-cuda: registers = min(168, 65536 / threads)
 * attest-cuda: launch    = persistent
 * attest-cuda: packs     = yes
 * attest-cuda: align     = 16
 * attest-cuda: map       = q rows tile_q columns 64 swizzle 128
 * attest-cuda: map       = k rows tile_kv columns 64 swizzle 128
 * attest-cuda: map       = v rows tile_kv columns 64 swizzle 128
 * attest-cuda: refuses   = alibi bias o=f32
 * attest-cuda: tensor    = gmma
 * attest-cuda: mma_qk    = 64 * tile_kv * 16 / 4
 * attest-cuda: mma_pv    = 64 * dim * 16 / 4
 *
 * Contract: f16 and bf16, O like Q; any dim and dim_v up to 256; tensors and strides in multiples of 16 bytes; full, causal, windows,
 * softcap, sinks, LSE, packed and padded sequences, and pages that hold whole blocks of keys or blocks that hold whole pages. No ALiBi
 * and no bias.
 *
 * Algorithm, for a tile of TILE_Q rows and blocks of TILE_KV keys, each warpgroup for its 64 rows:
 *
 *     S = Q K[0]^T;  P, m, l = softmax(S)
 *     for block 1 ...:
 *         S = Q K[block]^T and O += P V[block - 1], both under way
 *         wait for S;  m', l', P' = softmax(S), while O is still under way
 *         wait for O;  O *= 2^(m - m')
 *     O += P V[last];  O /= l;  LSE = m + log(l)
 *
 * Parts. Warpgroup 0 gives its registers away, and one thread of it makes all copies, tile after tile, as far ahead as there is room.
 * Warpgroups 1 .. GROUPS compute. They take turns in beginning their products, so that while one works on its softmax the tensor
 * cores work for another. Blocks are persistent: while the last rows of a tile are written, what the next one needs is on its way.
 *
 * Shared memory. Matrices are slabs of 64 columns (ptx_sm90.cuh has their layout), slab after slab.
 *
 *     Q[SLABS][TILE_Q][64]   K[STAGES][SLABS][TILE_KV][64]   V[STAGES][SLABS][TILE_KV][64]   O[SLABS][TILE_Q][64]   barriers
 *
 * O has a place of its own where there is room, else that of Q.
 *
 *     barrier        arrives                              waits
 *     Q_FULL         the copies of a tile's Q             warpgroups, before the first product
 *     Q_FREE         every warp, after the last product with K (if O lies in Q's place: after O is written)      copying thread
 *     K_FULL[stage]  the copies of a block of K           warpgroups
 *     K_FREE[stage]  every warp, after S                  copying thread
 *     V_FULL[stage]  the copies of a block of V           warpgroups
 *     V_FREE[stage]  every warp, after O                  copying thread
 *
 * What a warpgroup does with its rows is in attention_sm90.cuh.
 */
#define KEYS    ATTEST_TILE_KV
#define CLUSTER 1
#include "attention_sm90.cuh"

constexpr int STAGES = ATTEST_STAGES, GROUPS = TILE_Q / GROUP_Q;
constexpr bool OWN_O = D <= 128;
constexpr int SHARED_Q = 0, SHARED_K = Q_BYTES, SHARED_V = SHARED_K + STAGES * KV_BYTES, SHARED_END = SHARED_V + STAGES * KV_BYTES;
constexpr int SHARED_O = OWN_O ? SHARED_END : SHARED_Q, SHARED_BARRIERS = SHARED_END + (OWN_O ? Q_BYTES : 0);
constexpr int SHARED_BYTES = SHARED_BARRIERS + 128;
constexpr int Q_FULL = SHARED_BARRIERS, Q_FREE = Q_FULL + 8, K_FULL = Q_FREE + 8, K_FREE = K_FULL + 8 * STAGES,
              V_FULL = K_FREE + 8 * STAGES, V_FREE = V_FULL + 8 * STAGES;
constexpr int COMPUTING_WARPS = GROUPS * 4;
// A block has what it was launched with, which is 128 or 168 registers a thread, and no more: asking for more waits for ever.
constexpr int LAUNCH_REGISTERS = 65536 / THREADS / 8 * 8;
constexpr int COPYING_REGISTERS = GROUPS == 3 ? 32 : 24, COMPUTING_REGISTERS = GROUPS == 3 ? 160 : 240;

static_assert(GROUPS * GROUP_Q == TILE_Q && THREADS == (GROUPS + 1) * GROUP_THREADS && (GROUPS == 2 || GROUPS == 3), "warpgroups");
static_assert(COPYING_REGISTERS + GROUPS * COMPUTING_REGISTERS <= (GROUPS + 1) * LAUNCH_REGISTERS, "there are enough registers");
static_assert(V_FREE + 8 * STAGES <= SHARED_BYTES && SHARED_BYTES <= 227 * 1024, "there is room");

ATTEST_CUDA_FACTS(SHARED_BYTES);

/* ---- what there is to do ---- */

// A tile, and the blocks of keys that it goes through: first .. first + count.
struct Work {
    attest_tile tile;
    attest_span keys; // that some row of the tile sees
    int first, count; // blocks
    bool there;
};

// The tiles of a block, one after the other. Those that may see most keys come first, and heads come in groups whose K and V stay in
// the L2 cache together. Every other round goes backward, which evens out what blocks get.
__device__ inline int tile_of_round(int round)
{
    const int blocks = (int)gridDim.x, block = (int)blockIdx.x;
    return round * blocks + (round % 2 ? blocks - 1 - block : block);
}

// An index from args.tiles on is no tile.
__device__ inline Work work_get(const attest_cuda_args &args, int index)
{
    constexpr float L2_BYTES = 24 << 20;
    const float head_bytes = (float)(args.seq_kv + zero_here()) * (float)(args.dim + args.dim_v) * 2 + 1;
    const int heads = args.batch * args.slots, together = (int)fminf(fmaxf(__fdividef(L2_BYTES, head_bytes), 1), (float)heads);
    const int tile = min(index, args.tiles - 1), set = attest_divide(tile, together * args.tiles_q), first = set * together,
              rest = tile - first * args.tiles_q, count = min(together, heads - first), row = attest_divide(rest, count),
              head = first + rest - row * count, batch = attest_divide(head, args.slots);
    Work work;
    work.tile = attest_tile_of(args, batch, head - batch * args.slots, args.tiles_q - 1 - row);
    work.there = index < args.tiles && work.tile.row_begin < work.tile.row_end;
    work.keys = attest_tile_visible(args, work.tile);
    work.first = work.keys.begin / KEYS;
    work.count = work.there && work.keys.end > work.keys.begin ? (work.keys.end - 1) / KEYS - work.first + 1 : 0;
    return work;
}

// Whether a tile uses the place of Q: for Q, or where O has no place of its own for the zeros of a tile without keys.
__device__ inline bool takes_q(const Work &work)
{
    return work.count > 0 || (!OWN_O && work.there);
}

// A place in a ring of STAGES buffers, and the parity of the barriers there.
struct Ring {
    int stage;
    uint32_t parity;
};

__device__ inline void advance(Ring &ring)
{
    if (++ring.stage == STAGES) {
        ring.stage = 0;
        ring.parity ^= 1;
    }
}

/* ---- copies ---- */

__device__ inline void copy_all(const attest_cuda_args &args, const attest_cuda_maps &maps, uint32_t base)
{
    Ring ring = {0, 1};
    uint32_t q_parity = 1;
    for (int round = 0; round * (int)gridDim.x < args.tiles; round++) {
        const Work work = work_get(args, tile_of_round(round));
        if (!takes_q(work))
            continue;
        barrier_wait(base + Q_FREE, q_parity);
        q_parity ^= 1;
        if (work.count == 0) {
            barrier_arrive(base + Q_FULL);
            continue;
        }
        copy_rows(args, &maps.map[0], work.tile, base + SHARED_Q, base + Q_FULL);
#pragma unroll 1
        for (int block = work.first; block < work.first + work.count; block++, advance(ring)) {
            barrier_wait(base + K_FREE + 8 * ring.stage, ring.parity);
            copy_keys(args, &maps.map[1], work.tile, base + SHARED_K + ring.stage * KV_BYTES, base + K_FULL + 8 * ring.stage,
                      block * KEYS, work.keys.end);
            barrier_wait(base + V_FREE + 8 * ring.stage, ring.parity);
            copy_keys(args, &maps.map[2], work.tile, base + SHARED_V + ring.stage * KV_BYTES, base + V_FULL + 8 * ring.stage,
                      block * KEYS, work.keys.end);
        }
    }
}

/* ---- computing ---- */

// One arrival for a warp.
__device__ inline void warp_arrive(uint32_t barrier)
{
    if (threadIdx.x % 32 == 0)
        barrier_arrive(barrier);
}

// Warpgroups begin their products in turn: group 0 once the last group has let it.
__device__ inline void turn_wait(int group)
{
    named_barrier(1 + group, 2 * GROUP_THREADS);
}

__device__ inline void turn_pass(int group)
{
    named_barrier_arrive(1 + (group + 1) % GROUPS, 2 * GROUP_THREADS);
}

// A barrier for the threads of a group alone.
__device__ inline int own_barrier(int group)
{
    return 1 + GROUPS + group;
}

// O is normalised and written, through shared memory, so that whole chunks are written; and LSE.
__device__ inline void write_rows(const attest_cuda_args &args, const attest_tile &tile, const Rows &rows, const Output &O,
                                  uint32_t base, int group)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const int r = row_here(tile.row_begin + group * GROUP_Q);
    const float upper = finish_row(args, tile, r, rows.m[0], rows.l[0], lane % 4 == 0),
                lower = finish_row(args, tile, r + 8, rows.m[1], rows.l[1], lane % 4 == 0);
    const uint32_t o_at = base + SHARED_O + (group * GROUP_Q + warp * 16) * PITCH;
#pragma unroll
    for (int step = 0; step < D / 16; step++) {
        const float *o = O + step * 8;
        const uint32_t pairs[4] = {pack(o[0] * upper, o[1] * upper), pack(o[2] * lower, o[3] * lower),
                                   pack(o[4] * upper, o[5] * upper), pack(o[6] * lower, o[7] * lower)};
        store_matrix_x4(o_at + step / 4 * Q_SLAB + lane % 16 * PITCH + (((step % 4 * 2 + lane / 16) ^ lane % 8) << 4), pairs);
    }
    __syncwarp(); // a warp's rows are its own: others need not wait
    constexpr int CHUNKS = D / 8;
#pragma unroll 4
    for (int index = lane; index < 16 * CHUNKS; index += 32) {
        const int row = index / CHUNKS, chunk = index % CHUNKS;
        const uint4 value = load_shared_16(o_at + chunk / 8 * Q_SLAB + row * PITCH + ((chunk % 8 ^ row % 8) << 4));
        const uint32_t pairs[4] = {value.x, value.y, value.z, value.w};
        write_chunk(args, tile, tile.row_begin + group * GROUP_Q + warp * 16 + row, chunk, pairs);
    }
    __syncwarp(); // all of it has been read, and the next tile's may come
}

// One tile, for a warpgroup.
__device__ inline void compute_tile(const attest_cuda_args &args, int round, const Work &work, uint32_t base, int group,
                                    Ring &k_ring, Ring &v_ring, uint32_t &q_parity)
{
    const attest_tile &tile = work.tile;
    const float c = needs_modifying(args) ? 1 : args.scale * LOG2_E;
    const int first_row = tile.row_begin + group * GROUP_Q;
    const attest_span all = seen_by_all(args, tile, first_row);
    Rows rows;
    Output O;
    rows_begin(rows, O);
    if (takes_q(work)) {
        barrier_wait(base + Q_FULL, q_parity);
        q_parity ^= 1;
    }
    if (work.count > 0) {
        const uint32_t q_at = base + SHARED_Q + group * GROUP_Q * PITCH;
        Scores S;
        Weights P;
        float carry[2];
        barrier_wait(base + K_FULL + 8 * k_ring.stage, k_ring.parity);
        wgmma_fence();
        begin_qk(S, q_at, base + SHARED_K + k_ring.stage * KV_BYTES);
        wgmma_wait<0>();
        settle(S);
        warp_arrive(base + K_FREE + 8 * k_ring.stage);
        advance(k_ring);
        weigh(args, tile.sequence, all, first_row, S, rows, carry, c, work.first * KEYS);
        round_weights(P, S);

#pragma unroll 1
        for (int block = work.first + 1; block < work.first + work.count; block++) {
            const uint32_t v_at = base + SHARED_V + v_ring.stage * KV_BYTES;
            barrier_wait(base + K_FULL + 8 * k_ring.stage, k_ring.parity);
            turn_wait(group);
            wgmma_fence();
            begin_qk(S, q_at, base + SHARED_K + k_ring.stage * KV_BYTES);
            barrier_wait(base + V_FULL + 8 * v_ring.stage, v_ring.parity);
            blank_unseen(args, tile.sequence, v_at, (block - 1) * KEYS, own_barrier(group));
            begin_pv(O, P, v_at);
            turn_pass(group);
            wgmma_wait<1>();
            settle(S);
            warp_arrive(base + K_FREE + 8 * k_ring.stage);
            advance(k_ring);
            weigh(args, tile.sequence, all, first_row, S, rows, carry, c, block * KEYS);
            pin(rows.l[0] + rows.l[1]); // the weights, before O is waited for
            wgmma_wait<0>();
            settle(O);
            warp_arrive(base + V_FREE + 8 * v_ring.stage);
            advance(v_ring);
            round_weights(P, S);
            rescale(O, carry);
        }
        if (OWN_O)
            warp_arrive(base + Q_FREE);
        const uint32_t v_at = base + SHARED_V + v_ring.stage * KV_BYTES;
        barrier_wait(base + V_FULL + 8 * v_ring.stage, v_ring.parity);
        blank_unseen(args, tile.sequence, v_at, (work.first + work.count - 1) * KEYS, own_barrier(group));
        wgmma_fence();
        begin_pv(O, P, v_at);
        wgmma_wait<0>();
        settle(O);
        warp_arrive(base + V_FREE + 8 * v_ring.stage);
        advance(v_ring);
        if (!OWN_O)
            named_barrier(own_barrier(group), GROUP_THREADS); // the warpgroup has read Q, whose place O takes
    }
    rows_end(rows, c);
    // Where O takes most registers, what only the end needs is worked out again there.
    write_rows(args, D > 192 ? work_get(args, tile_of_round(round + zero_here())).tile : tile, rows, O, base, group);
    if (!OWN_O) {
        proxy_fence(); // O has been written by threads where a copy will write Q
        warp_arrive(base + Q_FREE);
    }
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1)
    attest_kernel(const __grid_constant__ attest_cuda_args args, const __grid_constant__ attest_cuda_maps maps)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    const uint32_t base = shared_address(shared);
    if (threadIdx.x == 0) {
        for (int i = 0; i < 3; i++)
            map_prefetch(&maps.map[i]);
        barrier_init(base + Q_FULL, 1);
        barrier_init(base + Q_FREE, COMPUTING_WARPS);
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(base + K_FULL + 8 * stage, 1);
            barrier_init(base + K_FREE + 8 * stage, COMPUTING_WARPS);
            barrier_init(base + V_FULL + 8 * stage, 1);
            barrier_init(base + V_FREE + 8 * stage, COMPUTING_WARPS);
        }
        barrier_init_fence();
    }
    __syncthreads(); // the barriers are there

    const int group = attest_uniform(threadIdx.x / GROUP_THREADS) - 1;
    if (group < 0) {
        registers_less<COPYING_REGISTERS>();
        if (threadIdx.x == 0)
            copy_all(args, maps, base);
    } else {
        registers_more<COMPUTING_REGISTERS>();
        Ring k_ring = {0, 0}, v_ring = {0, 0};
        uint32_t q_parity = 0;
        if (group == GROUPS - 1)
            turn_pass(group);
        for (int round = 0; round * (int)gridDim.x < args.tiles; round++) {
            const Work work = work_get(args, tile_of_round(round));
            if (work.there)
                compute_tile(args, round, work, base, group, k_ring, v_ring, q_parity);
        }
        if (group == 0)
            turn_wait(group);
    }
}
