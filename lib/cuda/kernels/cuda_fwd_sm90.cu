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
 * attest-cuda: tiles [d64] = 128x128
 * attest-cuda: tiles [d256] = 128x64
 * attest-cuda: rate      = 100
 * attest-cuda: rate [d64] = 40 + tile_q * 5 / 16
 * attest-cuda: rate [d256] = 65 + tile_kv * 7 / 16
 * attest-cuda: stages    = 4
 * attest-cuda: stages [d64] = 8
 * attest-cuda: stages [d96] = 5
 * attest-cuda: stages [d128] = 5
 * attest-cuda: stages [d256] = 320 / tile_kv
 * attest-cuda: threads   = 2 * tile_q + 128
 * attest-cuda: shared    = 2 * up(dim, 64) * (2 * tile_q + stages * tile_kv) + 1280
 * attest-cuda: shared [d192] = 2 * up(dim, 64) * (tile_q + stages * tile_kv) + 1280
 * attest-cuda: shared [d256] = 2 * up(dim, 64) * (tile_q + stages * tile_kv) + 1280
 * attest-cuda: registers = min(168, 65536 / threads)
 * attest-cuda: launch    = persistent
 * attest-cuda: packs     = yes
 * attest-cuda: pdl       = yes
 * attest-cuda: align     = 16
 * attest-cuda: map       = q rows tile_q columns 64 swizzle 128
 * attest-cuda: map       = k rows tile_kv columns 64 swizzle 128
 * attest-cuda: map       = v rows tile_kv columns 64 swizzle 128
 * attest-cuda: refuses   = alibi bias o=f32
 * attest-cuda: tensor    = gmma
 * attest-cuda: mma_qk    = 64 * tile_kv * 16 / 4
 * attest-cuda: mma_pv    = 64 * dim * 16 / 4
 * attest-cuda: space     = tile_kv 64 80 96 128; stages 4 5 6 8
 *
 * Contract: f16 and bf16, O like Q; any dim and dim_v up to 256; tensors and strides in multiples of 16 bytes; full, causal, windows,
 * softcap, sinks, LSE, packed and padded sequences, and pages that hold whole blocks of keys or blocks that hold whole pages. No ALiBi
 * and no bias.
 *
 * Algorithm, for each warpgroup and its 64 rows of a tile, over all blocks of keys of all tiles, one after the other:
 *
 *     S = Q K[0]^T;  P, m, l = softmax(S)
 *     for block 1 ...:
 *         S = Q K[block]^T and O += P V[block - 1], both under way
 *         wait for S;  P' = 2^(S - m), l' = l + sum(P'), while O is still under way
 *             or, where that gives a heavy weight, and for a tile's first block: m', l', P' = softmax(S)
 *         wait for O;  O *= 2^(m - m'), or where block - 1 was its tile's last: O /= l is written, LSE = m + log(l)
 *     O += P V[last], which is written
 *
 * So tensor cores have no break between tiles either. Where there is room for one Q only, O += P V[last] is not begun beside the next
 * tile's first S but before it, and written while the next Q comes.
 *
 * Parts. Warpgroup 0 gives its registers away, and one thread of it makes all copies, tile after tile, as far ahead as there is room,
 * and tells the others what they need to know of a tile. Warpgroups 1 .. GROUPS compute. They take turns in beginning their
 * products, so that while one works on its softmax the tensor cores work for another. A grid is launched before the one ahead of it has
 * ended (pdl), and gets ready meanwhile.
 *
 * Shared memory. Matrices are slabs of 64 columns (ptx_sm90.cuh has their layout), slab after slab.
 *
 *     Q[Q_STAGES][SLABS][TILE_Q][64]   KV[STAGES][SLABS][TILE_KV][64]   notes[NOTES]   barriers
 *
 *     barrier        arrives                                              waits
 *     Q_FULL[stage]  the copies of a tile's Q; the note of it is there    warpgroups, before the first product
 *     Q_FREE[stage]  every warp, after the last product with K            copying thread
 *     FULL[stage]    the copies of a block of K or V                      warpgroups
 *     FREE[stage]    every warp, after S or O                             copying thread
 *
 * Blocks of K and V follow each other in one ring, K before V: where it has an odd number of places, one more of them comes early.
 *
 * What a warpgroup does with its rows is in attention_sm90.cuh.
 */
#define KEYS ATTEST_TILE_KV
#include "attention_sm90.cuh"

constexpr int STAGES = ATTEST_STAGES, Q_STAGES = D <= 128 ? 2 : 1, GROUPS = TILE_Q / GROUP_Q;
// A tile's note is read until its O is written, when the copying thread may be as many as five tiles ahead.
constexpr int NOTES = 8, NOTE_BYTES = 128;
constexpr int SHARED_Q = 0, SHARED_KV = Q_STAGES * Q_BYTES, SHARED_NOTES = SHARED_KV + STAGES * KV_BYTES,
              SHARED_BARRIERS = SHARED_NOTES + NOTES * NOTE_BYTES, SHARED_BYTES = SHARED_BARRIERS + 256;
constexpr int Q_FULL = SHARED_BARRIERS, Q_FREE = Q_FULL + 8 * Q_STAGES, FULL = Q_FREE + 8 * Q_STAGES, FREE = FULL + 8 * STAGES;
constexpr bool LEAVES = TILE_Q > KEYS; // with causal masks there are blocks of a tile that the rows of some warpgroups do not see
constexpr int COMPUTING_WARPS = GROUPS * 4;
constexpr bool AHEAD = GROUPS == 2; // weights are rounded while products still read those before: there are registers for both
// Where it is seen that a weight is heavy. With many columns of V there is so much to multiply that there is time for looking at all weights.
enum Look { AT_SCORES, AT_SUMS, AT_WEIGHTS };
constexpr Look LOOK = !AHEAD ? AT_SCORES : D <= 128 ? AT_SUMS : AT_WEIGHTS;
// A block has what it was launched with, and no more: asking for more waits for ever.
constexpr int LAUNCH_REGISTERS = 65536 / THREADS / 8 * 8 < 168 ? 65536 / THREADS / 8 * 8 : 168;
constexpr int COPYING_REGISTERS = GROUPS == 3 ? 32 : 24, COMPUTING_REGISTERS = GROUPS == 2 ? 240 : GROUPS == 3 ? 160 : 112;

static_assert(GROUPS * GROUP_Q == TILE_Q && THREADS == (GROUPS + 1) * GROUP_THREADS && GROUPS >= 2 && GROUPS <= 4, "warpgroups");
static_assert(COPYING_REGISTERS + GROUPS * COMPUTING_REGISTERS <= (GROUPS + 1) * LAUNCH_REGISTERS, "there are enough registers");
static_assert(TILE_Q - GROUP_Q <= KEYS, "a warpgroup leaves at most one block of keys to others");
static_assert(FREE + 8 * STAGES <= SHARED_BYTES && SHARED_BYTES <= 227 * 1024, "there is room");

ATTEST_CUDA_FACTS(SHARED_BYTES);

/* ---- what there is to do ---- */

// What a warpgroup needs to know of its 64 rows of a tile, in blocks of keys: the last that they see something of is before `end`, and
// plain .. plain + plain_count are weighed as they are, since all rows see all keys. `leaves` is 1 if the tile has one block more, which is left
// to others.
struct Part {
    int end, leaves, plain, plain_count;
};

// The copying thread's note of a tile: what it is, the blocks of keys that it goes through, first .. first + count, the keys that some row of
// its sequence sees, and whether there are others in the blocks. A note whose count is negative is the last, and of no tile.
struct __align__(16) Note
{
    Part parts[GROUPS];
    attest_tile tile;
    int first, count, end; // blocks; the key behind the last
    int blanks;
    attest_span seen;
    int64_t o; // the place in O of its slot's first row, if heads do not share tiles
};
static_assert(sizeof(Note) <= NOTE_BYTES, "a note has its place");

// The tiles of a block, one after the other: every other round goes backward, so that two rounds together are as long for all blocks.
__device__ inline int tile_of_round(int round)
{
    const int blocks = (int)gridDim.x, block = (int)blockIdx.x;
    return round * blocks + (round % 2 ? blocks - 1 - block : block);
}

// Heads whose tiles come together, those that may see most keys first. Where tiles differ, as many as make an even number of whole
// rounds: then every block gets as much as every other. Else one, whose K and V its tiles find in the L2 cache.
__device__ inline int heads_together(const attest_cuda_args &args)
{
    if (args.window_right >= args.seq_kv)
        return 1;
    int a = 2 * (int)gridDim.x, b = args.tiles_q; // their greatest common divisor
    while (b) {
        const int rest = a - attest_divide(a, b) * b;
        a = b;
        b = rest;
    }
    return min(attest_divide(2 * (int)gridDim.x, a), args.batch * args.slots);
}

__device__ inline attest_tile tile_get(const attest_cuda_args &args, int together, int index)
{
    const int set = attest_divide(index, together * args.tiles_q), first = set * together, rest = index - first * args.tiles_q,
              count = min(together, args.batch * args.slots - first), row = attest_divide(rest, count),
              head = first + rest - row * count, batch = attest_divide(head, args.slots);
    return attest_tile_of(args, batch, head - batch * args.slots, args.tiles_q - 1 - row);
}

// A place in a ring of STAGES buffers of BYTES bytes, or of as many units of 16 bytes, and of their barriers, and the parity of the
// barriers there.
template <int RING_STAGES, int BYTES> struct Ring {
    uint32_t at, barrier; // addresses
    int stage;
    uint32_t parity;

    __device__ inline void advance()
    {
        if (++stage == RING_STAGES) {
            stage = 0;
            parity ^= 1;
            at -= (RING_STAGES - 1) * BYTES;
            barrier -= (RING_STAGES - 1) * 8;
        } else {
            at += BYTES;
            barrier += 8;
        }
    }
};
using Ring_Q = Ring<Q_STAGES, Q_BYTES>;
using Ring_KV = Ring<STAGES, KV_BYTES>;
// As warpgroups have them, for products.
using Units_Q = Ring<Q_STAGES, Q_BYTES / 16>;
using Units_KV = Ring<STAGES, KV_BYTES / 16>;
// From a barrier that says "full" to that which says "free".
constexpr int Q_TO_FREE = Q_FREE - Q_FULL, KV_TO_FREE = FREE - FULL;

/* ---- copies ---- */

__device__ inline Note &note_of(unsigned char *shared, int number)
{
    return *reinterpret_cast<Note *>(shared + SHARED_NOTES + number % NOTES * NOTE_BYTES);
}

__device__ inline Part part_of(const attest_cuda_args &args, const Note &note, int group)
{
    const attest_tile &tile = note.tile;
    const int first_row = tile.row_begin + group * GROUP_Q, last_row = min(first_row + GROUP_Q, tile.row_end) - 1;
    const attest_span all = seen_by_all(args, tile, first_row);
    Part part;
    part.end = note.first + note.count;
    part.leaves = LEAVES && note.count > 1 &&
                  attest_row_visible(args, tile.sequence, row_in_sequence(args, last_row)).end <= (part.end - 1) * KEYS;
    part.end -= part.leaves;
    part.plain = (max(all.begin, 0) + KEYS - 1) / KEYS;
    part.plain_count = needs_modifying(args) ? 0 : max(max(all.end, 0) / KEYS - part.plain, 0);
    return part;
}

// The note of a tile, the first of this block from `round` on.
__device__ inline void write_note(const attest_cuda_args &args, Note &note, int together, int &round)
{
    note.count = -1;
    for (; round * (int)gridDim.x < args.tiles && note.count < 0; round++) {
        const int index = tile_of_round(round);
        if (index >= args.tiles)
            continue;
        const attest_tile tile = tile_get(args, together, index);
        if (tile.row_begin >= tile.row_end)
            continue;
        // A tile without keys goes through one block, which nobody brings, and of which it sees nothing.
        const attest_span keys = attest_tile_visible(args, tile);
        const bool some = keys.end > keys.begin;
        note.tile = tile;
        note.first = some ? keys.begin / KEYS : 0;
        note.count = some ? (keys.end - 1) / KEYS + 1 - note.first : 1;
        note.end = some ? keys.end : 0;
        note.seen = some ? seen_by_some(args, tile.sequence, keys.end) : attest_span{0, 0};
        note.blanks = note.seen.begin > note.first * KEYS || note.seen.end < (note.first + note.count) * KEYS;
        note.o = attest_row_offset(args, args.stride_o, tile, tile.slot, 0);
#pragma unroll 1
        for (int group = 0; group < GROUPS; group++)
            note.parts[group] = part_of(args, note, group);
    }
}

// The copy of a tile's Q, once there is room, which says that the note of it is there.
__device__ inline void announce(const attest_cuda_args &args, const attest_cuda_maps &maps, const Note &note, Ring_Q &q)
{
    barrier_wait(q.barrier + Q_TO_FREE, q.parity);
    if (note.count > 0)
        copy_rows(args, &maps.map[0], note.tile, q.at, q.barrier);
    else
        barrier_arrive(q.barrier);
    q.advance();
}

// A block of K or V of the tile that the note is of.
__device__ inline void bring(const attest_cuda_args &args, const attest_tensor_map *map, const Note &note, int block, uint32_t to,
                             uint32_t barrier)
{
    if (note.end > 0)
        copy_keys(args, map, note.tile, to, barrier, (note.first + block) * KEYS, note.end);
    else
        barrier_arrive(barrier);
}

// A tile's Q is brought to the L2 cache.
__device__ inline void prefetch_rows(const attest_cuda_args &args, const attest_tensor_map *map, const attest_tile &tile)
{
    const int row = tile.sequence.q_first + attest_divide(tile.row_begin, args.pack),
              batch = attest_has(args, ATTEST_VARLEN_Q) ? 0 : tile.batch;
#pragma unroll
    for (int slab = 0; slab < SLABS; slab++)
        map_prefetch_5(map, slab * SLAB, 0, row, tile.slot, batch);
}

// Q of a tile is asked for as early as it can be. With two places for it that is behind the first keys of the tile before. With one it is
// brought to the L2 cache then, and asked for behind the first K of its own tile.
__device__ inline void copy_all(const attest_cuda_args &args, const attest_cuda_maps &maps, unsigned char *shared, uint32_t base)
{
    Ring_Q q = {base + SHARED_Q, base + Q_FULL, 0, 1};
    Ring_KV kv = {base + SHARED_KV, base + FULL, 0, 1};
    const int together = heads_together(args);
    constexpr bool EARLY = Q_STAGES > 1;
    int round = 0, number = 0;
    write_note(args, note_of(shared, number), together, round);
    if (EARLY)
        announce(args, maps, note_of(shared, number), q);
    for (; note_of(shared, number).count > 0; number++) {
        const Note &note = note_of(shared, number);
        Note &next = note_of(shared, number + 1);
#pragma unroll 1
        for (int block = 0; block < note.count; block++) {
            for (int of_v = 0; of_v < 2; of_v++, kv.advance()) {
                if (!EARLY && block == 0 && of_v)
                    announce(args, maps, note, q);
                barrier_wait(kv.barrier + KV_TO_FREE, kv.parity);
                bring(args, &maps.map[1 + of_v], note, block, kv.at, kv.barrier);
            }
            if (block > 0)
                continue;
            write_note(args, next, together, round);
            if (EARLY)
                announce(args, maps, next, q);
            else if (next.count > 0)
                prefetch_rows(args, &maps.map[0], next.tile);
        }
    }
    if (!EARLY)
        announce(args, maps, note_of(shared, number), q);
}

/* ---- weights ---- */

// The largest of a thread's scores of each of its rows.
__device__ inline void largest(const Scores &S, float (&most)[2])
{
    float of[2][2]; // of even and of odd columns: more that can be done at a time
#pragma unroll
    for (int n = 0; n < 4; n++)
        of[n / 2][n % 2] = S[n];
#pragma unroll
    for (int n = 4; n < KEYS / 2; n++)
        of[n / 2 % 2][n % 2] = fmaxf(of[n / 2 % 2][n % 2], S[n]);
#pragma unroll
    for (int half = 0; half < 2; half++)
        most[half] = fmaxf(of[half][0], of[half][1]);
}

// Rows.m is in units of log2 here, rounded: what a weight takes nothing for but one multiplication and addition of its score.
// The new maximum m of rows that rise, and `base`, which is m, or 0 without a key yet; `carry` is what O so far is to be multiplied with,
// and l has been. `most` and `light` are of this thread's columns; a row rises if any of its columns is not light.
__device__ inline void rise(const float (&most)[2], const bool (&light)[2], Rows &rows, bool (&rises)[2], float (&carry)[2],
                            float (&base)[2], float c)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float m = fmaxf(rows.m[half], __fmul_rn(most[half], c));
        m = fmaxf(m, __shfl_xor_sync(ALL_LANES, m, 1));
        m = fmaxf(m, __shfl_xor_sync(ALL_LANES, m, 2));
        rises[half] = of_row(!light[half]);
        m = rises[half] ? m : rows.m[half];
        base[half] = m == minus_infinity() ? 0 : m;
        carry[half] = exp2_fast(rows.m[half] - base[half]);
        rows.m[half] = m;
        rows.l[half] *= carry[half];
    }
}

// S becomes 2^(S c - base).
__device__ inline void weigh(Scores &S, Rows &rows, const float (&base)[2], float c)
{
    float sum[2][2] = {{0, 0}, {0, 0}};
#pragma unroll
    for (int n = 0; n < KEYS / 2; n++) {
        S[n] = exp2_fast(fmaf(S[n], c, -base[n / 2 % 2]));
        sum[n / 2 % 2][n % 2] += S[n];
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
        rows.l[half] += sum[half][0] + sum[half][1];
}

__device__ inline void round_weights(Weights &P, const Scores &S)
{
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            P[step][i] = pack(S[step * 8 + i * 2], S[step * 8 + i * 2 + 1]);
}

// m of a row is the maximum of its scores in the first block of a tile, and then stays as it is while no weight is heavy: following every
// maximum would cost shuffles and a multiplication of O in nearly every block, and only rounding a weight that counts for much shows in
// the error. A weight is heavy that is so many times the mean of those before. The root of their number is how long a vector they are, in
// units of their mean, and what is small beside that does not show. By sums a heavy weight is not seen well, and looking for it in vain
// costs more than half a block of keys: so not below 90 there.
__device__ inline float heavy_of(int blocks)
{
    const float root = __uint_as_float((__float_as_uint((float)(blocks * KEYS)) >> 1) + 0x1fbd1df5); // to 4 %
    return LOOK == AT_SUMS ? 90 : fminf(1.5f * root, 68);
}

// How large a weight of a row may be for m to stay as it is, where m has been raised, if `blocks` blocks of keys of `all` are in l, of
// which each of four threads has a part; or the sum of the thread's weights of a block; or the logarithm of a weight.
__device__ inline void limits_of(const Rows &rows, const bool (&rises)[2], int blocks, int all, float (&limit)[2])
{
    const float heavy = heavy_of(all),
                factor = reciprocal_fast((float)(blocks * KEYS)) * (LOOK == AT_SUMS ? heavy + KEYS / 4 : heavy);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float l = rows.l[half];
        l += __shfl_xor_sync(ALL_LANES, l, 1);
        l += __shfl_xor_sync(ALL_LANES, l, 2);
        const float weight = fminf(fmaxf(l * factor, 1), LARGEST);
        limit[half] = !rises[half] ? limit[half] : LOOK == AT_SCORES ? log2f(weight) : weight;
    }
}

// The largest of the lower halves of three words, and of the upper halves.
__device__ inline uint32_t largest_halves(uint32_t a, uint32_t b, uint32_t c)
{
#ifdef __CUDA_ARCH__
    return __vimax3_u16x2(a, b, c);
#else
    const uint32_t low = max(max(a & 0xffff, b & 0xffff), c & 0xffff), high = max(max(a >> 16, b >> 16), c >> 16);
    return high << 16 | low;
#endif
}

// 2^(S c - base), rounded; their sums; and pairs with the largest of each row, as their bits are.
__device__ inline void weigh_rounded(Weights &P, const Scores &S, const float (&base)[2], float c, float (&sum)[2],
                                     uint32_t (&most)[2])
{
    float of[2][2]; // of even and of odd columns: more that can be done at a time
    most[0] = most[1] = 0;
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int n = step * 8 + i * 2, half = i % 2;
            const float even = exp2_fast(fmaf(S[n], c, -base[half])), odd = exp2_fast(fmaf(S[n + 1], c, -base[half]));
            of[half][0] = n < 4 ? even : of[half][0] + even;
            of[half][1] = n < 4 ? odd : of[half][1] + odd;
            P[step][i] = pack(even, odd);
        }
#pragma unroll
        for (int half = 0; half < 2; half++)
            most[half] = largest_halves(most[half], P[step][half], P[step][half + 2]);
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
        sum[half] = of[half][0] + of[half][1];
}

// LOOK == AT_SCORES: S becomes weights, with m as it is where no score is above `limit`, which is a logarithm. True if m has been raised, as
// it is for the first block of a tile.
template <typename Mask>
__device__ inline bool softmax_by_scores(Scores &S, Rows &rows, const float (&limit)[2], bool (&rises)[2], float (&carry)[2],
                                         float c, bool first, bool plain, const Mask &mask)
{
    if (!plain)
        mask();
    float most[2], base[2];
    bool light[2];
    largest(S, most);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        base[half] = rows.m[half];
        light[half] = !first && fmaf(most[half], c, -base[half]) <= limit[half];
    }
    const bool raised = !__all_sync(ALL_LANES, light[0] && light[1]);
    if (raised)
        rise(most, light, rows, rises, carry, base, c);
    weigh(S, rows, base, c);
    return raised;
}

// LOOK == AT_SUMS: rounded weights, with m as it is where the sums are within their limits; not if m is -inf, and they are infinite or NaN.
// True if m has been raised. There is neither a maximum nor a shuffle then, and the exponentials are there once for both ways: instructions
// that are seldom run come from far.
template <typename Mask>
__device__ inline bool softmax_by_sums(Weights &P, const Scores &S, Rows &rows, const float (&limit)[2], bool (&rises)[2],
                                       float (&carry)[2], float c, bool first, bool plain, const Mask &mask)
{
    float base[2] = {rows.m[0], rows.m[1]}, sum[2];
    bool light[2] = {false, false};
    uint32_t unused[2];
    enum { MASKS = 1, RISES = 2 };
    int todo = (plain ? 0 : MASKS) | (first ? RISES : 0);
#pragma unroll 1
    for (;;) {
        if (todo) {
            if (todo & MASKS)
                mask();
            if (todo & RISES) {
                float most[2];
                largest(S, most);
                rise(most, light, rows, rises, carry, base, c);
            }
        }
        weigh_rounded(P, S, base, c, sum, unused);
#pragma unroll
        for (int half = 0; half < 2; half++)
            light[half] = sum[half] <= limit[half];
        if (todo & RISES || __all_sync(ALL_LANES, light[0] && light[1]))
            break;
        todo = RISES;
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
        rows.l[half] += sum[half];
    return todo & RISES;
}

// LOOK == AT_WEIGHTS: the same, with m as it is where the weights themselves are within their limits; infinite and NaN are above all others.
// Registers do not do for one code for both ways.
template <typename Mask>
__device__ inline bool softmax_by_weights(Weights &P, Scores &S, Rows &rows, const float (&limit)[2], bool (&rises)[2],
                                          float (&carry)[2], float c, bool first, bool plain, const Mask &mask)
{
    if (!plain)
        mask();
    bool light[2] = {false, false};
    if (!first) {
        float sum[2];
        uint32_t most[2];
        weigh_rounded(P, S, rows.m, c, sum, most);
        const uint32_t bound = pack(limit[0], limit[1]), even = (most[0] & 0xffff) | most[1] << 16,
                       odd = most[0] >> 16 | (most[1] & 0xffff0000), beyond = largest_halves(even, odd, bound) ^ bound;
        if (__all_sync(ALL_LANES, beyond == 0)) {
#pragma unroll
            for (int half = 0; half < 2; half++)
                rows.l[half] += sum[half];
            return false;
        }
        light[0] = !(beyond & 0xffff);
        light[1] = !(beyond >> 16);
    }
    float most[2], base[2];
    largest(S, most);
    rise(most, light, rows, rises, carry, base, c);
    weigh(S, rows, base, c);
    round_weights(P, S);
    return true;
}

/* ---- computing ---- */

// Whether the phase of this parity has ended. One that has need not be waited for; in emulation all are.
__device__ inline bool barrier_passed(uint32_t at, uint32_t parity)
{
    uint32_t passed = 0;
#ifdef __CUDA_ARCH__
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, done;\n"
                 "}"
                 : "=r"(passed)
                 : "r"(at), "r"(parity)
                 : "memory");
#endif
    return passed;
}

// The next weights, once no product reads those before any more. `zero` is 0, but the assembler must not know: what is only moved it
// keeps in one place, and writes the next weights where a product under way still reads.
__device__ inline void replace(Weights &P, const Weights &next, uint32_t zero)
{
    const uint32_t one = zero + 1;
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            P[step][i] = i % 2 ? next[step][i] ^ zero : next[step][i] * one; // by two kinds of units
}

// One arrival for a warp, if `all` holds, by one instruction without a branch: in every block of keys a jump costs as much as ten others.
__device__ inline void warp_arrive(uint32_t barrier, bool all = true)
{
    const bool here = threadIdx.x % 32 == 0 && all;
#ifdef __CUDA_ARCH__
    asm volatile("{\n"
                 ".reg .pred here;\n"
                 "setp.ne.b32 here, %1, 0;\n"
                 "@here mbarrier.arrive.shared::cta.b64 _, [%0];\n"
                 "}" ::"r"(barrier),
                 "r"((int)here)
                 : "memory");
#else
    if (here)
        barrier_arrive(barrier);
#endif
}

// As pin(), without a branch. `at` is somewhere in shared memory, where nothing is written.
__device__ inline void pin_at(uint32_t at, float value)
{
#ifdef __CUDA_ARCH__
    asm volatile("{\n"
                 ".reg .pred never;\n"
                 "setp.eq.f32 never, %1, 0fBF800000;\n"
                 "@never st.volatile.shared.f32 [%0], %1;\n"
                 "}" ::"r"(at),
                 "f"(value)
                 : "memory");
#endif
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

// What O of the thread's rows is to be multiplied with in the end; LSE is written.
__device__ inline void finish_rows(const attest_cuda_args &args, const attest_tile &tile, Rows rows, int group, float (&factor)[2])
{
    rows_end(rows, 1);
    if (args.flags & (ATTEST_LSE | ATTEST_SINK)) {
        const int r = row_here(tile.row_begin + group * GROUP_Q);
#pragma unroll
        for (int half = 0; half < 2; half++)
            factor[half] = finish_row(args, tile, r + half * 8, rows.m[half], rows.l[half], threadIdx.x % 4 == 0);
        return;
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
        factor[half] = rows.l[half] == 0 ? 0 : reciprocal_fast(rows.l[half]);
}

// O of the group's rows is normalised and written. Once in a tile, by instructions that come from far: so there are few, and few jumps.
__device__ inline void write_rows(const attest_cuda_args &args, const Note &note, const Output &O, const float (&factor)[2],
                                  int group)
{
    const int r = row_here(note.tile.row_begin + group * GROUP_Q), rows = note.tile.row_end - r;
    uint16_t *to[2];
    if (args.pack == 1) {
        to[0] = (uint16_t *)args.o + note.o + r * args.stride_o[2];
        to[1] = to[0] + 8 * args.stride_o[2];
    } else {
        to[0] = row_of_o(args, note.tile, r);
        to[1] = row_of_o(args, note.tile, r + 8);
    }
    if (args.dim_v != D) {
#pragma unroll
        for (int half = 0; half < 2; half++)
            write_columns<false, true>(args, to[half], O, half, factor[half], half * 8 < rows);
        return;
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
        write_columns<true, true>(args, to[half], O, half, factor[half], half * 8 < rows);
}

// Where a warpgroup is: a block of keys of a tile.
struct Here {
    int number, block; // of the tile; of keys
    int blanks;        // 1 if there are keys in the tile's blocks that no row of the sequence sees
    Part part;
};

// On to the next tile. False if there is none.
__device__ inline bool next_tile(unsigned char *shared, Here &here, Units_Q &q, int group)
{
    q.advance();
    barrier_wait(q.barrier, q.parity);
    const Note &note = note_of(shared, ++here.number);
    here.block = note.first;
    here.blanks = note.blanks;
    here.part = note.parts[group];
    return note.count > 0;
}

__device__ inline void compute_all(const attest_cuda_args &args, unsigned char *shared, uint32_t base, int group)
{
    // In registers: the compiler would work them out for every block of keys.
    const bool modified = attest_uniform(needs_modifying(args));
    const float c = __shfl_sync(ALL_LANES, modified ? 1 : args.scale * LOG2_E, 0);
    const int own_barrier = 1 + GROUPS + group; // for the threads of the group alone
    Units_Q q = {(base + SHARED_Q + (Q_STAGES - 1) * Q_BYTES + group * GROUP_Q * PITCH) / 16, base + Q_FULL + (Q_STAGES - 1) * 8,
                 Q_STAGES - 1, 1};                                    // next_tile goes on to the first
    Units_KV k = {(base + SHARED_KV) / 16, base + FULL, 0, 0}, v = k; // of this block, and of the one before
    Here here = {-1};
    Rows rows;
    Output O;
    Scores S;
    Weights P, next;
    float carry[2], limit[2] = {0, 0}, factor[2] = {0, 0};
    int there = 0; // the K and V that come next, and nothing is to be blanked
    int fresh = 1; // nothing is in O yet
    rows_begin(rows);
    output_begin(O);
    for (;;) {
        const Here before = here;         // its weights are P
        int pending = before.number >= 0; // P V is still to be begun
        const int last = ++here.block >= here.part.end;
        int more = 1;
        Units_KV left = k; // V of a block that is left to others
        if (last || !there) {
            if (last) {
                if (LEAVES && before.part.leaves) {
                    barrier_wait(k.barrier, k.parity);
                    warp_arrive(k.barrier + KV_TO_FREE);
                    left.advance();
                    k = left;
                    k.advance();
                    turn_wait(group);
                    turn_pass(group);
                }
                if (before.number >= 0) {
                    finish_rows(args, note_of(shared, before.number).tile, rows, group, factor);
                    if (Q_STAGES == 1) { // and the next Q comes late: the tile is brought to its end meanwhile
                        barrier_wait(v.barrier, v.parity);
                        if (before.blanks)
                            blank(v.at * 16, note_of(shared, before.number).seen, before.block * KEYS, own_barrier);
                        turn_wait(group);
                        wgmma_fence();
                        begin_pv(O, P, v.at, !fresh);
                        turn_pass(group);
                        wgmma_wait<0>();
                        settle(O);
                        warp_arrive(v.barrier + KV_TO_FREE);
                        if (LEAVES && before.part.leaves) {
                            barrier_wait(left.barrier, left.parity);
                            warp_arrive(left.barrier + KV_TO_FREE);
                        }
                        write_rows(args, note_of(shared, before.number), O, factor, group);
                        pending = zero_here(); // as before the first tile; known, it would be a second copy of the loop
                        fresh = 1 - zero_here();
                    }
                }
                more = next_tile(shared, here, q, group);
                if (Q_STAGES == 1 && !more)
                    break;
                rows_begin(rows);
            }
            if (pending)
                barrier_wait(v.barrier, v.parity);
            if (more)
                barrier_wait(k.barrier, k.parity);
            if (pending && before.blanks)
                blank(v.at * 16, note_of(shared, before.number).seen, before.block * KEYS, own_barrier);
        }
        turn_wait(group);
        wgmma_fence();
        begin_qk(S, q.at, k.at);      // without a tile any more: of something that was there, for nobody
        begin_pv(O, P, v.at, !fresh); // likewise before the first
        fresh = last;
        turn_pass(group);
        Units_KV next_v = k, next_k;
        next_v.advance();
        next_k = next_v;
        next_k.advance();
        // Asked while S is waited for anyway.
        const bool v_there = barrier_passed(next_v.barrier, next_v.parity), k_there = barrier_passed(next_k.barrier, next_k.parity);
        there = v_there & k_there & !here.blanks;
        const bool plain = !more || (unsigned)(here.block - here.part.plain) < (unsigned)here.part.plain_count;
        wgmma_wait<1>();
        settle(S);
        warp_arrive(k.barrier + KV_TO_FREE, more);
        warp_arrive(q.barrier + Q_TO_FREE, more && here.block + 1 == here.part.end);
        const auto mask = [&] {
            if (modified)
                modify(args, S);
            const attest_tile &tile = note_of(shared, here.number).tile;
            hide(args, tile.sequence, S, row_here(tile.row_begin + group * GROUP_Q), here.block * KEYS);
        };
        bool rises[2];
        const bool raised = LOOK == AT_SCORES ? softmax_by_scores(S, rows, limit, rises, carry, c, last, plain, mask)
                            : LOOK == AT_SUMS ? softmax_by_sums(next, S, rows, limit, rises, carry, c, last, plain, mask)
                                              : softmax_by_weights(next, S, rows, limit, rises, carry, c, last, plain, mask);
        pin_at(v.barrier, rows.l[0] + rows.l[1]); // the weights, before O is waited for
        wgmma_wait<0>();
        settle(O);
        warp_arrive(v.barrier + KV_TO_FREE, pending);
        v = next_v;
        k = next_k;
        if (AHEAD)
            replace(P, next, v.at >> 31);
        else
            round_weights(P, S);
        if (raised) {
            const Note &note = note_of(shared, here.number);
            limits_of(rows, rises, here.block + 1 - note.first, note.count, limit);
            if (!last) {
                rescale(O, carry);
                continue;
            }
            if (LEAVES && Q_STAGES > 1 && pending && before.part.leaves) {
                barrier_wait(left.barrier, left.parity);
                warp_arrive(left.barrier + KV_TO_FREE);
            }
            if (Q_STAGES > 1 && pending)
                write_rows(args, note_of(shared, before.number), O, factor, group);
            if (!more)
                break;
        }
    }
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
        for (int stage = 0; stage < Q_STAGES; stage++) {
            barrier_init(base + Q_FULL + 8 * stage, 1);
            barrier_init(base + Q_FREE + 8 * stage, COMPUTING_WARPS);
        }
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(base + FULL + 8 * stage, 1);
            barrier_init(base + FREE + 8 * stage, COMPUTING_WARPS);
        }
        barrier_init_fence();
    }
    __syncthreads();      // the barriers are there
    grid_wait_previous(); // nothing is read or written before

    const int group = attest_uniform(threadIdx.x / GROUP_THREADS) - 1;
    if (group < 0) {
        registers_less<COPYING_REGISTERS>();
        if (threadIdx.x == 0)
            copy_all(args, maps, shared, base);
    } else {
        registers_more<COMPUTING_REGISTERS>();
        if (group == GROUPS - 1)
            turn_pass(group);
        compute_all(args, shared, base, group);
        if (group == 0)
            turn_wait(group);
    }
}
