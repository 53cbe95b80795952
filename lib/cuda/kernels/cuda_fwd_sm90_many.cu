/*
 * FlashAttention for Hopper where tiles have few keys: a block for each tile, two of them side by side on a multiprocessor.
 *
 * attest-cuda: name       = cuda_fwd_sm90_many
 * attest-cuda: summary    = wgmma on tiles that bulk tensor copies bring, a block for each tile, two blocks side by side
 * attest-cuda: archs      = sm_90a
 * attest-cuda: dtypes     = f16 bf16
 * attest-cuda: dims       = 64
 * attest-cuda: padding    = yes
 * attest-cuda: tile_q     = 128
 * attest-cuda: tile_kv    = 128
 * attest-cuda: stages     = 3
 * attest-cuda: threads    = 2 * tile_q
 * attest-cuda: shared     = 2 * dim * (tile_q + 2 * stages * tile_kv) + 256
 * attest-cuda: registers  = 128
 * attest-cuda: blocks_per_sm = 2
 * attest-cuda: launch     = grid
 * attest-cuda: packs      = yes
 * attest-cuda: pdl        = yes
 * attest-cuda: rows_most  = 2048
 * attest-cuda: align      = 16
 * attest-cuda: map        = q rows tile_q columns 64 swizzle 128
 * attest-cuda: map        = k rows tile_kv columns 64 swizzle 128
 * attest-cuda: map        = v rows tile_kv columns 64 swizzle 128
 * attest-cuda: refuses    = alibi bias o=f32
 * attest-cuda: tensor     = gmma
 * attest-cuda: mma_qk     = 64 * tile_kv * 16 / 4
 * attest-cuda: mma_pv     = 64 * dim * 16 / 4
 *
 * Contract: as cuda_fwd_sm90, any dim and dim_v up to 64; at most 2048 rows of a slot, where it is the faster one.
 *
 * cuda_fwd_sm90 hides latencies by warps that have parts to play, and by tiles that run into each other. Here the multiprocessor does:
 * it has two blocks of two warpgroups each, and while some wait the others compute. One thread asks for all that there is room for when
 * a block begins. Where a tile has more than STAGES blocks of keys, whichever warp is the last to have read one asks for the next one
 * into its place. Nobody waits for anyone. A grid is launched before the one ahead of it has ended (pdl), and gets ready meanwhile: what
 * its first blocks begin with is brought to the L2 cache.
 *
 * A warpgroup has 64 rows:
 *
 *     for each block of keys:
 *         S = Q K^T
 *         m, and O and l with it, is raised if a score is far above it: if its weight would count for much
 *         P = 2^(S - m), l += sum(P), in two halves: O += P V of the first is under way beside the exponentials of the second
 *     O / l is written from registers, and LSE
 *
 * Where its rows see at most the first half of their last block of keys, as on the diagonal of a causal mask, it computes that half.
 *
 * Shared memory: Q[TILE_Q][64], K[STAGES][KEYS][64], V[STAGES][KEYS][64], barriers, counts of warps that have read a stage.
 *
 *     barrier         arrives        waits
 *     Q_FULL          the copy of Q  all warpgroups
 *     K_FULL[stage]   a copy of K    all warpgroups
 *     V_FULL[stage]   a copy of V    all warpgroups
 *
 * What a warpgroup does with its rows is in attention_sm90.cuh and attention_sm90_many.cuh.
 */
#define KEYS ATTEST_TILE_KV
#include "attention_sm90_many.cuh"

constexpr int STAGES = ATTEST_STAGES, GROUPS = TILE_Q / GROUP_Q, BLOCKS_PER_SM = 2;
constexpr int SHARED_Q = 0, SHARED_K = Q_BYTES, SHARED_V = SHARED_K + STAGES * KV_BYTES,
              SHARED_BARRIERS = SHARED_V + STAGES * KV_BYTES, SHARED_BYTES = SHARED_BARRIERS + 256;
constexpr int Q_FULL = SHARED_BARRIERS, K_FULL = Q_FULL + 8, V_FULL = K_FULL + 8 * STAGES, READERS = V_FULL + 8 * STAGES;
// From K, and its barriers, to V in the same stage.
constexpr int TO_V = SHARED_V - SHARED_K, TO_V_BARRIER = V_FULL - K_FULL;
constexpr int PART_KEYS = KEYS / 2, PART_STEPS = PART_KEYS / 16; // half a block of keys

static_assert(D == SLAB && GROUPS * GROUP_Q == TILE_Q && THREADS == GROUPS * GROUP_THREADS, "a matrix is one slab");
static_assert(TILE_Q - GROUP_Q <= PART_KEYS, "a block that a warpgroup leaves to others, or half of it, is among the last two");
static_assert(READERS + 4 * STAGES <= SHARED_BYTES && BLOCKS_PER_SM * (SHARED_BYTES + 1024) <= 228 * 1024, "there is room");

ATTEST_CUDA_FACTS(SHARED_BYTES);

/* ---- what there is to do ---- */

// Warpgroups that have rows.
__device__ inline int groups_of(const Work &work)
{
    return (work.tile.row_end - work.tile.row_begin + GROUP_Q - 1) / GROUP_Q;
}

/* ---- copies: by one thread ---- */

// A block of K and V into a stage.
__device__ inline void copy_block(const attest_cuda_args &args, const attest_cuda_maps &maps, const Work &work, uint32_t base,
                                  int stage, int block)
{
    const uint32_t to = base + SHARED_K + stage * KV_BYTES, full = base + K_FULL + 8 * stage;
    copy_keys(args, &maps.map[1], work.tile, to, full, block * KEYS, work.keys.end);
    copy_keys(args, &maps.map[2], work.tile, to + TO_V, full + TO_V_BARRIER, block * KEYS, work.keys.end);
}

// Blocks that run at the same time: those that are there when a grid begins, and those that follow each other in one place.
__device__ inline int blocks_at_once()
{
    int multiprocessors = 1;
#ifdef __CUDA_ARCH__
    asm("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
#endif
    return BLOCKS_PER_SM * multiprocessors;
}

// Of a tile of a plain problem, Q and the first blocks of K and V are brought to the L2 cache.
__device__ inline void prefetch_tile(const attest_cuda_maps &maps, const Work &work)
{
    map_prefetch_5(&maps.map[0], 0, 0, work.tile.row_begin, work.tile.slot, work.tile.batch);
#pragma unroll 1
    for (int block = work.first; block < min(work.end, work.first + STAGES); block++) {
        map_prefetch_4(&maps.map[1], 0, block * KEYS, work.tile.head_kv, work.tile.batch);
        map_prefetch_4(&maps.map[2], 0, block * KEYS, work.tile.head_kv, work.tile.batch);
    }
}

// A slot that is one tile, whose keys are one block, is done as soon as it is there: the next one must be on its way by then.
__device__ inline void prefetch_next(const attest_cuda_args &args, const attest_cuda_maps &maps, Work work)
{
    if (gridDim.x > 1 || work.end - work.first > 1)
        return;
    const int slot = work.tile.slot + blocks_at_once(), batches = attest_divide(slot, args.slots);
    work.tile.slot = work.tile.head_kv = slot - batches * args.slots;
    work.tile.batch += batches;
    if (work.tile.batch < args.batch)
        prefetch_tile(maps, work);
}

// All that there is room for.
__device__ inline void copy_first(const attest_cuda_args &args, const attest_cuda_maps &maps, const Work &work,
                                  unsigned char *shared, uint32_t base, bool plain)
{
    barrier_init(base + Q_FULL, 1);
#pragma unroll
    for (int stage = 0; stage < STAGES; stage++) {
        barrier_init(base + K_FULL + 8 * stage, 1);
        barrier_init(base + V_FULL + 8 * stage, 1);
        *reinterpret_cast<int *>(shared + READERS + 4 * stage) = 0;
    }
    barrier_init_fence();
    const int number = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (plain && number < blocks_at_once())
        prefetch_tile(maps, work);
    grid_wait_previous(); // before anything is read; nobody writes before this thread has come to the barrier for all
    if (work.first == work.end)
        return;
    copy_rows(args, &maps.map[0], work.tile, base + SHARED_Q, base + Q_FULL);
#pragma unroll 1
    for (int stage = 0; stage < STAGES && work.first + stage < work.end; stage++)
        copy_block(args, maps, work, base, stage, work.first + stage);
    if (plain)
        prefetch_next(args, maps, work);
}

// For a warp that has read a block. The last one that has asks for the block that comes into its place.
__device__ inline void copy_next(const attest_cuda_args &args, const attest_cuda_maps &maps, const Work &work,
                                 unsigned char *shared, uint32_t base, int stage, int block)
{
    if (block + STAGES >= work.end)
        return;
    int *readers = reinterpret_cast<int *>(shared + READERS + 4 * stage);
    const int all = groups_of(work) * (GROUP_THREADS / 32); // 4 or 8
    if (threadIdx.x % 32 == 0) {
        __threadfence_block();
        if ((atomicAdd(readers, 1) & (all - 1)) == all - 1) {
            __threadfence_block();
            copy_block(args, maps, work, base, stage, block + STAGES);
        }
    }
    __syncwarp();
}

/* ---- scores and weights, of a whole block of keys (PARTS = 2) or of its first half ---- */

template <int PARTS> using PartScores = float[PARTS * PART_KEYS / 2];
using PartWeights = uint32_t[PART_STEPS][4]; // of one half

// The rows of a warpgroup.
struct Own {
    int first_row, end; // the row; the key behind the last that some row sees
    attest_span all;    // keys that all rows see
    attest_span seen;   // keys that some row of the sequence sees
    float c, unit;      // unit is 1 / c
    bool modified;
};

// A block of keys, which is in `stage`.
template <int PARTS>
__device__ __forceinline__ void attend_block(const attest_cuda_args &args, const attest_cuda_maps &maps, const Work &work,
                                             const Own &own, unsigned char *shared, uint32_t base, int group, int block, int stage,
                                             uint32_t parity, Rows &rows, float (&limit)[2], Output &O)
{
    const uint32_t k_at = base + SHARED_K + stage * KV_BYTES, full = base + K_FULL + 8 * stage;
    const bool more = block > work.first, blanks = own.seen.begin > block * KEYS || own.seen.end < block * KEYS + KEYS;
    PartScores<PARTS> S;
    PartWeights P[PARTS];
    barrier_wait(full, parity);
    begin_scores<PARTS * PART_KEYS>(S, base + SHARED_Q + group * GROUP_Q * PITCH, k_at);
    wgmma_wait<0>();
    settle(S);
    if constexpr (PARTS == 2)
        if (own.modified)
            modify(args, S);
    if (block * KEYS < own.all.begin || block * KEYS + PARTS * PART_KEYS > own.all.end)
        hide_bits(args, work.tile.sequence, S, row_here(own.first_row), block * KEYS);
    const bool rise = !are_within(S, limit);
    bool rises[2];
    if (rise) {
        float carry[2];
        raise_to(S, rows, limit, rises, carry, own.c);
        rows.l[0] *= carry[0], rows.l[1] *= carry[1];
        if (more)
            rescale(O, carry);
    }
    weigh_part<0>(P[0], S, rows, own.c);
    barrier_wait(full + TO_V_BARRIER, parity);
    if (blanks)
        blank(k_at + TO_V, own.seen, block * KEYS, 1 + group);
    begin_output(O, P[0], k_at + TO_V, more);
    if constexpr (PARTS == 2) {
        weigh_part<PART_KEYS>(P[1], S, rows, own.c);
        begin_output(O, P[1], k_at + TO_V + PART_KEYS * PITCH, true);
        if (rise)
            limits_of(rows, rises, own.unit, far_of((work.end - work.first) * KEYS), (block - work.first + 1) * KEYS, limit);
    }
    wgmma_wait<0>();
    settle(O);
    if (blanks)
        proxy_fence(); // before a copy into its place
    copy_next(args, maps, work, shared, base, stage, block);
}

__device__ inline void attend(const attest_cuda_args &args, const attest_cuda_maps &maps, const Work &work, unsigned char *shared,
                              uint32_t base, int group, bool modified, float c, Rows &rows, Output &O)
{
    const attest_tile &tile = work.tile;
    const int first_row = tile.row_begin + group * GROUP_Q, last_row = min(first_row + GROUP_Q, tile.row_end) - 1;
    const Own own = {first_row,
                     attest_uniform(attest_row_visible(args, tile.sequence, row_in_sequence(args, last_row)).end),
                     seen_by_all(args, tile, first_row),
                     seen_by_some(args, work.tile.sequence, work.keys.end),
                     c,
                     1 / c,
                     modified};
    // Blocks of which more than half is seen, or all that are; behind them at most one more. What is left over is for others.
    const int whole_end = min(work.end, (own.end + (modified ? KEYS - 1 : PART_KEYS - 1)) / KEYS);
    float limit[2] = {minus_infinity(), minus_infinity()};
    rows_begin(rows);
    if (work.first < work.end)
        barrier_wait(base + Q_FULL, 0); // also without a key: a block must not end while a copy is on its way
    if (work.first >= work.end || own.end <= work.first * KEYS)
        output_begin(O);
    int stage = 0, block = work.first;
    uint32_t parity = 0;
#pragma unroll 1
    for (; block < whole_end; block++) {
        attend_block<2>(args, maps, work, own, shared, base, group, block, stage, parity, rows, limit, O);
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    if (block < work.end && block * KEYS < own.end)
        attend_block<1>(args, maps, work, own, shared, base, group, block, stage, parity, rows, limit, O);
}

/* ---- a tile ---- */

__device__ __forceinline__ void compute_tile(const attest_cuda_args &args, const attest_cuda_maps &maps, unsigned char *shared,
                                             bool modified, bool plain)
{
    const uint32_t base = shared_address(shared);
    const int warp = attest_uniform(threadIdx.x / 32), group = warp / (GROUP_THREADS / 32);
    const Work work = work_here(args);
    if (work.tile.row_begin >= work.tile.row_end)
        return;
    if (warp == 0 && elect_one())
        copy_first(args, maps, work, shared, base, plain);
    __syncthreads(); // the barriers are there
    if (group >= groups_of(work))
        return;
    const float c = modified ? 1 : args.scale * LOG2_E;
    Rows rows;
    Output O;
    attend(args, maps, work, shared, base, group, modified, c, rows, O);
    write_rows(args, work.tile, rows, O, c, group);
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, BLOCKS_PER_SM)
    attest_kernel(const __grid_constant__ attest_cuda_args args, const __grid_constant__ attest_cuda_maps maps)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    grid_allow_next();
    if (!is_plain(args)) {
        grid_wait_previous(); // lengths are read
        compute_tile(args, maps, shared, needs_modifying(args), false);
        return;
    }
    const attest_cuda_args plain = plain_args(args);
    compute_tile(plain, maps, shared, false, true);
}
