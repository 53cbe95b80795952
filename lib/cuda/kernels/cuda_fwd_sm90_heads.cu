/*
 * FlashAttention for Hopper where heads are wide and sequences short: blocks that go from tile to tile, with a warp that only copies, and
 * warpgroups that know nothing of each other.
 *
 * attest-cuda: name       = cuda_fwd_sm90_heads
 * attest-cuda: summary    = wgmma on tiles that bulk tensor copies bring, one warp for the copies, warpgroups each for itself
 * attest-cuda: archs      = sm_90a
 * attest-cuda: dtypes     = f16 bf16
 * attest-cuda: dims       = 96 128
 * attest-cuda: padding    = yes
 * attest-cuda: tile_q     = 128
 * attest-cuda: tile_kv    = 128
 * attest-cuda: stages     = 2
 * attest-cuda: threads    = 2 * tile_q + 32
 * attest-cuda: shared     = 2 * up(dim, 64) * (2 * tile_q + 2 * stages * tile_kv) + 768
 * attest-cuda: registers  = 168
 * attest-cuda: launch     = persistent
 * attest-cuda: packs      = yes
 * attest-cuda: pdl        = yes
 * attest-cuda: rows_most  = 1024
 * attest-cuda: align      = 16
 * attest-cuda: map        = q rows tile_q columns 64 swizzle 128
 * attest-cuda: map        = k rows tile_kv columns 64 swizzle 128
 * attest-cuda: map        = v rows tile_kv columns 64 swizzle 128
 * attest-cuda: refuses    = alibi bias varlenq varlenkv lens page o=f32
 * attest-cuda: tensor     = gmma
 * attest-cuda: mma_qk     = 64 * tile_kv * 16 / 4
 * attest-cuda: mma_pv     = 64 * dim * 16 / 4
 *
 * Contract: as cuda_fwd_sm90, any dim and dim_v up to 128; no lengths and no pages; at most 1024 rows of a slot, where it is the faster
 * one, or the more exact.
 *
 * The chain of cuda_fwd_sm90, in which scores of the next block are begun ahead of everything else and warpgroups take turns, pays where
 * it is long. Here a tile is one to eight blocks of keys, and what counts is that the next one is there when a warpgroup comes to it, and
 * that little is left to do between two tiles. A warp copies, tile after tile, as far ahead as there is room, and leaves a note of each
 * tile with all that the others would have to work out. A grid is launched before the one ahead of it has ended (pdl), and gets ready
 * meanwhile: what its first tiles begin with is brought to the L2 cache.
 *
 * A warpgroup has 64 rows:
 *
 *     for each tile, for each block of keys:
 *         S = Q K^T
 *         m, and O and l with it, is raised if a score is far above it: if its weight would count for much
 *         P = 2^(S - m), l += sum(P), in two parts: O += P V of the first is under way beside the exponentials of the second
 *     O / l is written from registers, and LSE
 *
 * Of a block of keys whose end its rows do not see, it computes the first 64 or 96 keys if they are enough.
 *
 * Shared memory: Q[Q_STAGES][2][TILE_Q][64], K[STAGES][2][KEYS][64], V[STAGES][2][KEYS][64], notes, barriers.
 *
 *     barrier         arrives                                             waits
 *     Q_FULL[stage]   the copies of a tile's Q; the note of it is there   warpgroups
 *     K_FULL[stage]   the copies of a block of K                          warpgroups
 *     V_FULL[stage]   the copies of a block of V                          warpgroups
 *     ... + TO_FREE   every warp, when it has read that                   copying thread
 *
 * What a warpgroup does with its rows is in attention_sm90.cuh and attention_sm90_many.cuh.
 */
#define KEYS ATTEST_TILE_KV
#include "attention_sm90_many.cuh"

constexpr int STAGES = ATTEST_STAGES, Q_STAGES = 2, GROUPS = TILE_Q / GROUP_Q, COMPUTING_WARPS = GROUPS * GROUP_THREADS / 32;
// A tile's note is read until its O is written. When the copying thread writes that of four tiles on, the next but one has been read.
constexpr int NOTES = 4, NOTE_BYTES = 128;
constexpr int SHARED_Q = 0, SHARED_K = Q_STAGES * Q_BYTES, SHARED_V = SHARED_K + STAGES * KV_BYTES,
              SHARED_NOTES = SHARED_V + STAGES * KV_BYTES, SHARED_BARRIERS = SHARED_NOTES + NOTES * NOTE_BYTES,
              SHARED_BYTES = SHARED_BARRIERS + 256;
constexpr int Q_FULL = SHARED_BARRIERS, K_FULL = Q_FULL + 8 * Q_STAGES, V_FULL = K_FULL + 8 * STAGES,
              BARRIERS = Q_STAGES + 2 * STAGES;
// From a barrier that says "full" to that which says "free"; from K, and its barriers, to V in the same stage.
constexpr int TO_FREE = 8 * BARRIERS, TO_V = SHARED_V - SHARED_K, TO_V_BARRIER = V_FULL - K_FULL;
constexpr int FIRST_PART = 64; // keys

static_assert(GROUPS * GROUP_Q == TILE_Q && THREADS == (COMPUTING_WARPS + 1) * 32, "warpgroups, and a warp that copies");
static_assert(2 * TO_FREE <= 256 && SHARED_BYTES <= 227 * 1024, "there is room");

ATTEST_CUDA_FACTS(SHARED_BYTES);

/* ---- what there is to do ---- */

// What the copying thread knows of a tile: blocks of keys first .. end, and for each warpgroup which keys all its rows see, and the key
// behind the last that some row sees, 0 if it has no rows.
struct Note {
    attest_tile tile;
    int first, end;
    int blanks; // 1 if there are keys in the tile's blocks that no row of the sequence sees
    attest_span all[GROUPS];
    int own_end[GROUPS];
};
static_assert(sizeof(Note) <= NOTE_BYTES, "a note has its place");

__device__ inline Note &note_of(unsigned char *shared, int number)
{
    return *reinterpret_cast<Note *>(shared + SHARED_NOTES + number % NOTES * NOTE_BYTES);
}

// Tile `index` of all. With a causal mask the tiles of a slot differ, and a block would get the same of them in every round: so each round
// begins with another.
__device__ inline attest_tile tile_get(const attest_cuda_args &args, int index)
{
    const int tiles = args.tiles_q, number = tiles == 1 ? index : attest_divide(index, tiles); // of the slot
    const int batch = attest_divide(number, args.slots), turned = index - number * tiles + attest_divide(number * tiles, gridDim.x);
    return attest_tile_of(args, batch, number - batch * args.slots, turned - attest_divide(turned, tiles) * tiles);
}

__device__ inline void note_write(const attest_cuda_args &args, Note &note, int index)
{
    const attest_tile tile = tile_get(args, index);
    const attest_span keys = attest_tile_visible(args, tile), seen = seen_by_some(args, tile.sequence);
    note.tile = tile;
    note.first = keys.begin / KEYS;
    note.end = keys.end > keys.begin ? (keys.end - 1) / KEYS + 1 : note.first;
    note.blanks = seen.begin > note.first * KEYS || seen.end < note.end * KEYS;
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
        const int first_row = tile.row_begin + group * GROUP_Q, last_row = min(first_row + GROUP_Q, tile.row_end) - 1;
        note.all[group] = seen_by_all(args, tile, first_row);
        note.own_end[group] =
            first_row < tile.row_end ? attest_row_visible(args, tile.sequence, row_in_sequence(args, last_row)).end : 0;
    }
}

/* ---- copies: by one thread ---- */

// A place in a ring of buffers and of their barriers.
template <int COUNT> struct Ring {
    int stage;
    uint32_t parity;

    __device__ inline void advance()
    {
        if (++stage == COUNT) {
            stage = 0;
            parity ^= 1;
        }
    }
};

// Of a tile, Q and the first blocks of K and V are brought to the L2 cache.
__device__ inline void prefetch_tile(const attest_cuda_args &args, const attest_cuda_maps &maps, const Note &note)
{
    const attest_tile &tile = note.tile;
#pragma unroll
    for (int slab = 0; slab < SLABS; slab++)
        map_prefetch_5(&maps.map[0], slab * SLAB, 0, row_in_sequence(args, tile.row_begin), tile.slot, tile.batch);
#pragma unroll 1
    for (int block = note.first; block < min(note.end, note.first + STAGES); block++)
#pragma unroll
        for (int i = 0; i < 2 * SLABS; i++)
            map_prefetch_4(&maps.map[1 + i / SLABS], i % SLABS * SLAB, block * KEYS, tile.head_kv, tile.batch);
}

// A block of K or V, once there is room.
__device__ inline void bring(const attest_cuda_args &args, const attest_tensor_map *map, const Note &note, int block, uint32_t to,
                             uint32_t full, uint32_t parity)
{
    barrier_wait(full + TO_FREE, parity);
    copy_keys(args, map, note.tile, to, full, block * KEYS, note.end * KEYS);
}

__device__ inline void copy_all(const attest_cuda_args &args, const attest_cuda_maps &maps, unsigned char *shared, uint32_t base)
{
    Ring<Q_STAGES> q = {0, 1};
    Ring<STAGES> kv = {0, 1};
    int number = 0;
#pragma unroll 1
    for (int index = blockIdx.x; index < args.tiles; index += gridDim.x, number++, q.advance()) {
        Note &note = note_of(shared, number);
        const uint32_t q_full = base + Q_FULL + 8 * q.stage;
        if (number > 0)
            note_write(args, note, index);
        barrier_wait(q_full + TO_FREE, q.parity);
        copy_rows(args, &maps.map[0], note.tile, base + SHARED_Q + q.stage * Q_BYTES, q_full);
#pragma unroll 1
        for (int block = note.first; block < note.end; block++, kv.advance()) {
            const uint32_t to = base + SHARED_K + kv.stage * KV_BYTES, full = base + K_FULL + 8 * kv.stage;
            bring(args, &maps.map[1], note, block, to, full, kv.parity);
            bring(args, &maps.map[2], note, block, to + TO_V, full + TO_V_BARRIER, kv.parity);
        }
    }
}

/* ---- scores and weights, of the first COUNT keys of a block ---- */

/* ---- computing ---- */

// One arrival for a warp.
__device__ inline void warp_arrive(uint32_t barrier)
{
    if (threadIdx.x % 32 == 0)
        barrier_arrive(barrier);
}

// A warpgroup, and its tile.
struct Here {
    int group, first, end; // blocks of keys
    attest_span all;       // keys that all rows see
    bool blanks, modified;
    float c, unit;         // unit is 1 / c
    uint32_t q_at, q_full; // its rows of Q; the barrier
};

// A block of keys, of which the first COUNT are seen: K at `k_at`, whose barrier is `full`.
template <int COUNT>
__device__ __forceinline__ void attend_block(const attest_cuda_args &args, const Here &here, const Note &note, int block,
                                             uint32_t k_at, uint32_t full, uint32_t parity, Rows &rows, float (&limit)[2],
                                             Output &O)
{
    const bool more = block > here.first;
    float S[COUNT / 2];
    uint32_t P[FIRST_PART / 16][4];
    barrier_wait(full, parity);
    begin_scores<COUNT>(S, here.q_at, k_at);
    wgmma_wait<0>();
    settle(S);
    warp_arrive(full + TO_FREE);
    if (block + 1 == here.end)
        warp_arrive(here.q_full + TO_FREE);
    if constexpr (COUNT == KEYS)
        if (here.modified)
            modify(args, S);
    if (block * KEYS < here.all.begin || block * KEYS + COUNT > here.all.end)
        hide_bits(args, note.tile.sequence, S, row_here(note.tile.row_begin + here.group * GROUP_Q), block * KEYS);
    const bool rise = !are_within(S, limit);
    bool rises[2];
    if (rise) {
        float carry[2];
        raise_to(S, rows, limit, rises, carry, here.c);
        rows.l[0] *= carry[0], rows.l[1] *= carry[1];
        if (more)
            rescale(O, carry);
    }
    weigh_part<0>(P, S, rows, here.c);
    barrier_wait(full + TO_V_BARRIER, parity);
    if (here.blanks)
        blank(k_at + TO_V, seen_by_some(args, note.tile.sequence), block * KEYS, 1 + here.group);
    begin_output(O, P, k_at + TO_V, more);
    if constexpr (COUNT > FIRST_PART) {
        uint32_t rest[(COUNT - FIRST_PART) / 16][4];
        weigh_part<FIRST_PART>(rest, S, rows, here.c);
        begin_output(O, rest, k_at + TO_V + FIRST_PART * PITCH, true);
    }
    if (rise)
        limits_of(rows, rises, here.unit, far_of((here.end - here.first) * KEYS), (block - here.first + 1) * KEYS, limit);
    wgmma_wait<0>();
    settle(O);
    if (here.blanks)
        proxy_fence(); // before a copy into its place
    warp_arrive(full + TO_V_BARRIER + TO_FREE);
}

// A block of keys of which the rows of the warpgroup see nothing.
__device__ inline void leave_block(const Here &here, int block, uint32_t full, uint32_t parity)
{
    barrier_wait(full, parity);
    warp_arrive(full + TO_FREE);
    if (block + 1 == here.end)
        warp_arrive(here.q_full + TO_FREE);
    barrier_wait(full + TO_V_BARRIER, parity);
    warp_arrive(full + TO_V_BARRIER + TO_FREE);
}

__device__ __forceinline__ void compute_all(const attest_cuda_args &args, unsigned char *shared, uint32_t base, int group,
                                            bool modified)
{
    Ring<Q_STAGES> q = {0, 0};
    Ring<STAGES> kv = {0, 0};
    Here here;
    Rows rows;
    Output O;
    here.group = group, here.modified = modified;
    here.c = modified ? 1 : args.scale * LOG2_E, here.unit = 1 / here.c;
    int number = 0;
#pragma unroll 1
    for (int index = blockIdx.x; index < args.tiles; index += gridDim.x, number++, q.advance()) {
        const int q_stage = attest_uniform(q.stage);
        here.q_full = base + Q_FULL + 8 * q_stage, here.q_at = base + SHARED_Q + q_stage * Q_BYTES + group * GROUP_Q * PITCH;
        barrier_wait(here.q_full, q.parity);
        const Note &note = note_of(shared, number);
        const int own_end = note.own_end[group];
        here.first = attest_uniform(note.first), here.end = attest_uniform(note.end);
        here.all = note.all[group];
        here.blanks = note.blanks;
        float limit[2] = {minus_infinity(), minus_infinity()};
        rows_begin(rows);
        if (here.first == here.end)
            warp_arrive(here.q_full + TO_FREE);
        if (here.first == here.end || own_end <= here.first * KEYS)
            output_begin(O);
#pragma unroll 1
        for (int block = here.first; block < here.end; block++, kv.advance()) {
            const int stage = attest_uniform(kv.stage), left = attest_uniform(own_end - block * KEYS);
            const uint32_t k_at = base + SHARED_K + stage * KV_BYTES, full = base + K_FULL + 8 * stage;
            if (left > 96 || (left > 0 && modified))
                attend_block<KEYS>(args, here, note, block, k_at, full, kv.parity, rows, limit, O);
            else if (left > 64)
                attend_block<96>(args, here, note, block, k_at, full, kv.parity, rows, limit, O);
            else if (left > 0)
                attend_block<64>(args, here, note, block, k_at, full, kv.parity, rows, limit, O);
            else
                leave_block(here, block, full, kv.parity);
        }
        write_rows(args, note.tile, rows, O, here.c, group);
    }
}

__device__ __forceinline__ void run(const attest_cuda_args &args, const attest_cuda_maps &maps, unsigned char *shared,
                                    uint32_t base, bool modified)
{
    const int warp = attest_uniform(threadIdx.x / 32);
    if (warp < COMPUTING_WARPS)
        compute_all(args, shared, base, warp / (GROUP_THREADS / 32), modified);
    else if (elect_one())
        copy_all(args, maps, shared, base);
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1)
    attest_kernel(const __grid_constant__ attest_cuda_args args, const __grid_constant__ attest_cuda_maps maps)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    const uint32_t base = shared_address(shared);
    grid_allow_next();
    if (threadIdx.x == 0) {
        for (int i = 0; i < 3; i++)
            map_prefetch(&maps.map[i]);
        for (int i = 0; i < BARRIERS; i++) {
            barrier_init(base + Q_FULL + 8 * i, 1);
            barrier_init(base + Q_FULL + 8 * i + TO_FREE, COMPUTING_WARPS);
        }
        barrier_init_fence();
        note_write(args, note_of(shared, 0), blockIdx.x);
        prefetch_tile(args, maps, note_of(shared, 0));
    }
    __syncthreads();      // the barriers are there, and the first note
    grid_wait_previous(); // nothing is read or written before
    if (is_plain(args)) {
        const attest_cuda_args plain = plain_args(args);
        run(plain, maps, shared, base, false);
    } else {
        attest_cuda_args known = args; // what the manifest refuses is not there
        known.flags = args.flags & (ATTEST_BOTTOM_RIGHT | ATTEST_SOFTCAP | ATTEST_SINK | ATTEST_LSE);
        run(known, maps, shared, base, needs_modifying(args));
    }
}
