/*
 * FlashAttention for Hopper where heads are wide and sequences short: blocks that go from tile to tile, with a warp that only copies, and
 * warpgroups that know nothing of each other.
 *
 * attest-cuda: name       = cuda_fwd_sm90_heads
 * attest-cuda: summary    = wgmma on tiles that bulk tensor copies bring, one warp for the copies, warpgroups each for itself
 * attest-cuda: archs      = sm_90a
 * attest-cuda: dtypes     = f16 bf16
 * attest-cuda: dims       = 96 128 192 256
 * attest-cuda: padding    = yes
 * attest-cuda: tile_q     = 128
 * attest-cuda: tile_kv    = 128
 * attest-cuda: tile_kv [d256] = 96
 * attest-cuda: stages     = 4
 * attest-cuda: stages [d192] = 3
 * attest-cuda: stages [d256] = 3
 * attest-cuda: threads    = 2 * tile_q + 32
 * attest-cuda: threads [d192] = 2 * tile_q + 128
 * attest-cuda: threads [d256] = 2 * tile_q + 128
 * attest-cuda: shared     = 2 * up(dim, 64) * (2 * tile_q + stages * tile_kv) + 768
 * attest-cuda: shared [d192] = 2 * up(dim, 64) * (tile_q + stages * tile_kv) + 768
 * attest-cuda: shared [d256] = 2 * up(dim, 64) * (tile_q + stages * tile_kv) + 768
 * attest-cuda: registers  = 168
 * attest-cuda: launch     = persistent
 * attest-cuda: packs      = yes
 * attest-cuda: pdl        = yes
 * attest-cuda: rows_most  = 1024
 * attest-cuda: align      = 16
 * attest-cuda: map        = q rows tile_q * 128 / up(dim, 128) columns 64 swizzle 128
 * attest-cuda: map        = k rows tile_kv columns 64 swizzle 128
 * attest-cuda: map        = v rows tile_kv columns 64 swizzle 128
 * attest-cuda: refuses    = alibi bias varlenq varlenkv lens page o=f32
 * attest-cuda: tensor     = gmma
 * attest-cuda: mma_qk     = 64 * tile_kv * 16 / 4
 * attest-cuda: mma_pv     = 64 * dim * 16 / 4
 *
 * Contract: as cuda_fwd_sm90, any dim and dim_v up to 256; no lengths and no pages; at most 1024 rows of a slot, where it is the faster
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
 * Of a block of keys whose end its rows do not see, it computes only the first (MORE, LESS) if they are enough.
 *
 * Shared memory: Q[Q_STAGES][SLABS][TILE_Q][64], KV[STAGES][SLABS][KEYS][64], notes, barriers. Blocks of K and V follow each other in one
 * ring, K before V.
 *
 *     barrier               arrives                                                   waits
 *     Q_FULL[stage][part]   the copies of Q, or of a part of it for each warpgroup;   warpgroups
 *                           the note of the tile is there
 *     KV_FULL[stage]        the copies of a block of K or V                           warpgroups
 *     ... + TO_FREE         every warp that reads it, when it has                     copying thread
 *
 * What a warpgroup does with its rows is in attention_sm90.cuh and attention_sm90_many.cuh.
 */
#define KEYS ATTEST_TILE_KV
#include "attention_sm90_many.cuh"

#ifdef WGMMA_SS // not in emulation, which has products of all sizes
#define AT_ALL_16    AT_0 ", " AT_8
#define OF_ALL_16(c) OF(c, 0), OF(c, 8)
WGMMA_SS(32, 16, 0, 16, 17, 18)
#endif

constexpr int STAGES = ATTEST_STAGES, Q_STAGES = D <= 128 ? 2 : 1, GROUPS = TILE_Q / GROUP_Q, GROUP_WARPS = GROUP_THREADS / 32,
              COMPUTING_WARPS = GROUPS * GROUP_WARPS;
// Where Q has one place, each warpgroup's rows of it come as soon as that has the last scores of the tile before; and behind the first
// block of K, whose place is free by then.
constexpr int Q_PARTS = Q_STAGES > 1 ? 1 : GROUPS;
constexpr bool K_BEFORE_Q = Q_STAGES == 1;
// A tile's note is read until its O is written. When the copying thread writes that of four tiles on, the next but one has been read.
constexpr int NOTES = 4, NOTE_BYTES = 128;
constexpr int SHARED_Q = 0, SHARED_KV = Q_STAGES * Q_BYTES, SHARED_NOTES = SHARED_KV + STAGES * KV_BYTES,
              SHARED_BARRIERS = SHARED_NOTES + NOTES * NOTE_BYTES, SHARED_ORDER = SHARED_BARRIERS + 248,
              SHARED_BYTES = SHARED_BARRIERS + 256;
constexpr int Q_BARRIERS = Q_STAGES * Q_PARTS, Q_FULL = SHARED_BARRIERS, KV_FULL = Q_FULL + 8 * Q_BARRIERS,
              BARRIERS = Q_BARRIERS + STAGES;
constexpr int TO_FREE = 8 * BARRIERS; // from a barrier that says "full" to that which says "free"
// Of a block of keys that a warpgroup's rows do not see to its end, it computes the first MORE or LESS if they are enough.
constexpr int MORE = KEYS > 96 ? 96 : 64, LESS = KEYS > 96 ? 64 : 32;
constexpr int FIRST_PART = D <= 128 ? 64 : 32; // keys
// Where a whole warpgroup copies, it gives registers away; a block has only those that it was launched with.
constexpr bool GIVES = THREADS == (GROUPS + 1) * GROUP_THREADS;
constexpr int COPYING_REGISTERS = 24, COMPUTING_REGISTERS = 240;

static_assert(GROUPS * GROUP_Q == TILE_Q && (GIVES || THREADS == (COMPUTING_WARPS + 1) * 32), "warpgroups, and a warp that copies");
static_assert(2 * TO_FREE <= SHARED_ORDER - SHARED_BARRIERS && SHARED_BYTES <= 227 * 1024, "there is room");

ATTEST_CUDA_FACTS(SHARED_BYTES);

/* ---- what there is to do ---- */

// What the copying thread knows of a tile: blocks of keys first .. end, and for each warpgroup which keys all its rows see, and the key
// behind the last that some row sees, 0 if it has no rows.
struct Note {
    attest_tile tile;
    int first, end;
    int last;   // 1 if it is the block's last
    int blanks; // 1 if there are keys in the tile's blocks that no row of the sequence sees
    attest_span all[GROUPS];
    int own_end[GROUPS];
};
static_assert(sizeof(Note) <= NOTE_BYTES, "a note has its place");

__device__ inline Note &note_of(unsigned char *shared, int number)
{
    return *reinterpret_cast<Note *>(shared + SHARED_NOTES + number % NOTES * NOTE_BYTES);
}

// The order of tiles, for which blocks go in rounds. As long as every block gets as much as every other, the tiles of a head follow each
// other, and find its K and V in the L2 cache: where there are as many rounds as a head has tiles, of which a block gets another in
// each. With a causal mask a head's tiles differ, and a block that got the same ones in all rounds, or too few of them, would be
// late: else they come in sets of heads, as in cuda_fwd_sm90, from the longest to the shortest, every other round backward.
struct Order {
    int together; // heads of a set; 0: no sets
    int turn;     // without: by so much each round's tiles are further on in their head
};

__device__ inline Order order_get(const attest_cuda_args &args)
{
    const int blocks = (int)gridDim.x, tiles = args.tiles_q;
    Order order = {0, 0};
    if (tiles == 1 || args.tiles <= blocks || args.window_right >= args.seq_kv)
        return order;
    const bool few_rounds = args.tiles <= blocks * (tiles - 1);
    order.turn = attest_divide(blocks, tiles) * tiles == blocks;
    if (order.turn && !few_rounds)
        return order;
    int a = 2 * blocks, b = tiles; // their greatest common divisor
    while (b) {
        const int rest = a - attest_divide(a, b) * b;
        a = b;
        b = rest;
    }
    if (few_rounds || a > 1)
        order.together = min(attest_divide(2 * blocks, a), args.batch * args.slots); // an even number of whole rounds
    return order;
}

// What tile `number` of this block is among all.
__device__ inline int index_of(const Order &order, int number)
{
    const int blocks = (int)gridDim.x, block = (int)blockIdx.x;
    return number * blocks + (order.together > 0 && number % 2 ? blocks - 1 - block : block);
}

__device__ inline attest_tile tile_get(const attest_cuda_args &args, const Order &order, int index)
{
    const int tiles = args.tiles_q;
    int head = index, in_slot = 0;
    if (order.together > 0) {
        const int set = attest_divide(index, order.together * tiles), first = set * order.together, rest = index - first * tiles,
                  count = min(order.together, args.batch * args.slots - first), row = attest_divide(rest, count);
        head = first + rest - row * count, in_slot = tiles - 1 - row;
    } else if (tiles > 1) {
        head = attest_divide(index, tiles);
        in_slot = index - head * tiles;
        if (order.turn > 0) {
            in_slot += attest_divide(head * tiles, gridDim.x);
            in_slot -= attest_divide(in_slot, tiles) * tiles;
        }
    }
    const int batch = attest_divide(head, args.slots);
    return attest_tile_of(args, batch, head - batch * args.slots, in_slot);
}

// Of tile `number` of this block.
__device__ inline void note_write(const attest_cuda_args &args, const Order &order, Note &note, int number)
{
    const attest_tile tile = tile_get(args, order, index_of(order, number));
    const attest_span keys = attest_tile_visible(args, tile), seen = seen_by_some(args, tile.sequence, keys.end);
    note.tile = tile;
    note.last = index_of(order, number + 1) >= args.tiles;
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

    template <int STEP = 1> __device__ inline void advance()
    {
        static_assert(COUNT % STEP == 0, "it meets the end");
        stage += STEP;
        if (stage == COUNT) {
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
    for (int i = 0; i < Q_PARTS * SLABS; i++)
        map_prefetch_5(&maps.map[0], i % SLABS * SLAB, 0, row_in_sequence(args, tile.row_begin + i / SLABS * GROUP_Q), tile.slot,
                       tile.batch);
#pragma unroll 1
    for (int block = note.first; block < min(note.end, note.first + STAGES / 2); block++)
#pragma unroll
        for (int i = 0; i < 2 * SLABS; i++)
            map_prefetch_4(&maps.map[1 + i / SLABS], i % SLABS * SLAB, block * KEYS, tile.head_kv, tile.batch);
}

// Q of a tile, or a warpgroup's rows of it for themselves, once there is room.
__device__ inline void bring_rows(const attest_cuda_args &args, const attest_tensor_map *map, const Note &note, uint32_t base,
                                  Ring<Q_STAGES> &q)
{
#pragma unroll
    for (int part = 0; part < Q_PARTS; part++) {
        const uint32_t full = base + Q_FULL + 8 * (q.stage * Q_PARTS + part),
                       to = base + SHARED_Q + q.stage * Q_BYTES + part * GROUP_Q * PITCH;
        const int row = row_in_sequence(args, note.tile.row_begin + part * GROUP_Q);
        barrier_wait(full + TO_FREE, q.parity);
        barrier_expect(full, Q_BYTES / Q_PARTS);
#pragma unroll
        for (int slab = 0; slab < SLABS; slab++)
            map_load_5(to + slab * Q_SLAB, map, full, slab * SLAB, 0, row, note.tile.slot, note.tile.batch);
    }
    q.advance();
}

// A block of K or V, once there is room.
__device__ inline void bring_keys(const attest_cuda_args &args, const attest_tensor_map *map, const Note &note, int block,
                                  uint32_t base, Ring<STAGES> &kv)
{
    const uint32_t full = base + KV_FULL + 8 * kv.stage;
    barrier_wait(full + TO_FREE, kv.parity);
    copy_keys(args, map, note.tile, base + SHARED_KV + kv.stage * KV_BYTES, full, block * KEYS, note.end * KEYS);
    kv.advance();
}

__device__ inline void copy_all(const attest_cuda_args &args, const attest_cuda_maps &maps, unsigned char *shared, uint32_t base)
{
    Ring<Q_STAGES> q = {0, 1};
    Ring<STAGES> kv = {0, 1};
    const Order order = *reinterpret_cast<const Order *>(shared + SHARED_ORDER);
#pragma unroll 1
    for (int number = 0; index_of(order, number) < args.tiles; number++) {
        Note &note = note_of(shared, number);
        if (number > 0)
            note_write(args, order, note, number);
        if (!K_BEFORE_Q || note.first == note.end)
            bring_rows(args, &maps.map[0], note, base, q);
#pragma unroll 1
        for (int block = note.first; block < note.end; block++) {
            bring_keys(args, &maps.map[1], note, block, base, kv);
            if (K_BEFORE_Q && block == note.first)
                bring_rows(args, &maps.map[0], note, base, q);
            bring_keys(args, &maps.map[2], note, block, base, kv);
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

// A warpgroup, and its tile.
struct Here {
    int group, first, end; // blocks of keys
    int own_end;           // the block behind the last that its rows see something of
    attest_span all;       // keys that all rows see
    bool blanks, modified;
    float c, unit;         // unit is 1 / c
    uint32_t q_at, q_full; // its rows of Q; the barrier
};

// A place of the ring of K and V: its address, that of its barrier, and the parity there.
struct At {
    uint32_t at, full, parity;
};

__device__ inline At at_of(const Ring<STAGES> &kv, uint32_t base)
{
    const int stage = attest_uniform(kv.stage);
    const At at = {base + SHARED_KV + stage * KV_BYTES, base + KV_FULL + 8 * stage, kv.parity};
    return at;
}

// K and V of the next block. Where places are even in number, V is always behind K.
__device__ inline void take(Ring<STAGES> &kv, uint32_t base, At &k, At &v)
{
    k = at_of(kv, base);
    if constexpr (STAGES % 2 == 0) {
        v = {k.at + KV_BYTES, k.full + 8, k.parity};
        kv.advance<2>();
    } else {
        kv.advance();
        v = at_of(kv, base);
        kv.advance();
    }
}

// A block of keys, of which the first COUNT are seen.
template <int COUNT>
__device__ __forceinline__ void attend_block(const attest_cuda_args &args, const Here &here, const Note &note, int block,
                                             const At &k, const At &v, Rows &rows, float (&limit)[2], Output &O)
{
    const bool more = block > here.first;
    float S[COUNT / 2];
    uint32_t P[FIRST_PART / 16][4];
    barrier_wait(k.full, k.parity);
    begin_scores<COUNT>(S, here.q_at, k.at);
    wgmma_wait<0>();
    settle(S);
    warp_arrive(k.full + TO_FREE);
    if (block + 1 == here.own_end)
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
    barrier_wait(v.full, v.parity);
    if (here.blanks)
        blank(v.at, seen_by_some(args, note.tile.sequence, note.end * KEYS), block * KEYS, 1 + here.group);
    begin_output(O, P, v.at, more);
    if constexpr (COUNT > FIRST_PART) {
        uint32_t rest[(COUNT - FIRST_PART) / 16][4];
        weigh_part<FIRST_PART>(rest, S, rows, here.c);
        begin_output(O, rest, v.at + FIRST_PART * PITCH, true);
    }
    if (rise)
        limits_of(rows, rises, here.unit, far_of((here.end - here.first) * KEYS), (block - here.first + 1) * KEYS, limit);
    wgmma_wait<0>();
    settle(O);
    if (here.blanks)
        proxy_fence(); // before a copy into its place
    warp_arrive(v.full + TO_FREE);
}

// A block of keys of which the rows of the warpgroup see nothing.
__device__ inline void leave_block(const At &k, const At &v)
{
    barrier_wait(k.full, k.parity);
    warp_arrive(k.full + TO_FREE);
    barrier_wait(v.full, v.parity);
    warp_arrive(v.full + TO_FREE);
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
    bool last = false;
#pragma unroll 1
    for (int number = 0; !last; number++, q.advance()) {
        const int q_stage = attest_uniform(q.stage);
        here.q_full = base + Q_FULL + 8 * (q_stage * Q_PARTS + group % Q_PARTS);
        here.q_at = base + SHARED_Q + q_stage * Q_BYTES + group * GROUP_Q * PITCH;
        barrier_wait(here.q_full, q.parity);
        const Note &note = note_of(shared, number);
        const int own_end = note.own_end[group];
        here.first = attest_uniform(note.first), here.end = attest_uniform(note.end);
        here.all = note.all[group];
        here.blanks = note.blanks;
        last = note.last;
        float limit[2] = {minus_infinity(), minus_infinity()};
        rows_begin(rows);
        here.own_end = attest_uniform(min(here.end, (own_end + KEYS - 1) / KEYS));
        if (here.own_end <= here.first) {
            warp_arrive(here.q_full + TO_FREE);
            output_begin(O);
        }
#pragma unroll 1
        for (int block = here.first; block < here.end; block++) {
            const int left = attest_uniform(own_end - block * KEYS);
            At k, v;
            take(kv, base, k, v);
            if (left > MORE || (left > 0 && modified))
                attend_block<KEYS>(args, here, note, block, k, v, rows, limit, O);
            else if (left > LESS)
                attend_block<MORE>(args, here, note, block, k, v, rows, limit, O);
            else if (left > 0)
                attend_block<LESS>(args, here, note, block, k, v, rows, limit, O);
            else
                leave_block(k, v);
        }
        write_rows(args, note.tile, rows, O, here.c, group);
    }
}

// A problem with nothing but masks by position has code of its own, which the compiler knows more of.
template <bool PLAIN> __device__ inline attest_cuda_args known_args(const attest_cuda_args &args)
{
    if (PLAIN)
        return plain_args(args);
    attest_cuda_args known = args; // what the manifest refuses is not there
    known.flags = args.flags & (ATTEST_BOTTOM_RIGHT | ATTEST_SOFTCAP | ATTEST_SINK | ATTEST_LSE);
    return known;
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
            barrier_init(base + Q_FULL + 8 * i + TO_FREE, i < Q_BARRIERS ? COMPUTING_WARPS / Q_PARTS : COMPUTING_WARPS);
        }
        barrier_init_fence();
        const Order order = order_get(args);
        *reinterpret_cast<Order *>(shared + SHARED_ORDER) = order;
        note_write(args, order, note_of(shared, 0), 0);
        prefetch_tile(args, maps, note_of(shared, 0));
    }
    __syncthreads();      // the barriers are there, and the first note
    grid_wait_previous(); // nothing is read or written before
    const int warp = attest_uniform(threadIdx.x / 32), group = warp / GROUP_WARPS;
    if (group < GROUPS) {
        if (GIVES)
            registers_more<COMPUTING_REGISTERS>();
        if (is_plain(args))
            compute_all(known_args<true>(args), shared, base, group, false);
        else
            compute_all(known_args<false>(args), shared, base, group, needs_modifying(args));
    } else {
        if (GIVES)
            registers_less<COPYING_REGISTERS>();
        if (warp == COMPUTING_WARPS && elect_one()) {
            if (is_plain(args))
                copy_all(known_args<true>(args), maps, shared, base);
            else
                copy_all(known_args<false>(args), maps, shared, base);
        }
    }
}
