/*
 * attention_sm90.cuh - what the Hopper kernels cuda_fwd_sm90, _short and _many are made of: the work of one warpgroup, which has
 * 64 rows and takes keys in blocks. The including file says, before the #include, how many keys a block has:
 *
 *     #define KEYS ATTEST_TILE_KV
 *
 * Shared memory. A matrix of D columns is slabs of 64 columns, slab after slab (ptx_sm90.cuh has the layout of a slab).
 *
 * Registers. A thread has two rows, g and g + 8 of its warp's 16, and of each four columns in sixteen: see wgmma_ss. P as it comes
 * from S is the A operand of the product with V.
 *
 * Numbers. Scores are kept as they come from the matrix unit, m is their maximum, and exp(scale (s - m)) is 2^(s c - m c) with
 * c = scale log2(e). With a softcap, or a scale that is not positive, they are first brought to units of log2, and c is 1. P is
 * rounded to 16 bits for the product with V, l is not. O / l is the same for every m, as long as no weight is too large for 16 bits or
 * too small; but with m the maximum of all scores so far, the weight that counts most is exactly 1, and is not rounded.
 */
#ifndef ATTEST_ATTENTION_SM90_CUH
#define ATTEST_ATTENTION_SM90_CUH

#include "ptx_sm90.cuh"

constexpr int D = ATTEST_DIM, TILE_Q = ATTEST_TILE_Q, THREADS = ATTEST_THREADS;
constexpr int GROUP_Q = 64, GROUP_THREADS = 128;
constexpr int SLAB = 64, SLABS = (D + SLAB - 1) / SLAB, PITCH = SLAB * 2; // a row of a slab, in bytes
constexpr int Q_SLAB = TILE_Q * PITCH, KV_SLAB = KEYS * PITCH, Q_BYTES = SLABS * Q_SLAB, KV_BYTES = SLABS * KV_SLAB;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;
constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr float LARGEST = 1024; // weight in 16 bits, 2^RISE

static_assert(Q_SLAB % 1024 == 0 && KV_SLAB % 1024 == 0, "the swizzle repeats every 1024 bytes");
static_assert(KEYS % 16 == 0 && D % 16 == 0, "products go 16 deep");

__device__ inline float minus_infinity()
{
    return __int_as_float(0xff800000);
}

/* ---- single instructions that only some of the kernels use ---- */

// The box at these coordinates is brought to the L2 cache. Nothing of it is used: it may be asked for while it is still being written.
__device__ inline void map_prefetch_4(const attest_tensor_map *map, int c0, int c1, int c2, int c3)
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" ::"l"(map), "r"(c0), "r"(c1), "r"(c2),
                 "r"(c3)
                 : "memory");
#endif
}

__device__ inline void map_prefetch_5(const attest_tensor_map *map, int c0, int c1, int c2, int c3, int c4)
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.bulk.prefetch.tensor.5d.L2.global.tile [%0, {%1, %2, %3, %4, %5}];" ::"l"(map), "r"(c0), "r"(c1),
                 "r"(c2), "r"(c3), "r"(c4)
                 : "memory");
#endif
}

// 16 bytes at once: of an assignment of a uint4 the compiler makes four stores where it likes.
__device__ inline void store_16(uint16_t *to, const uint32_t (&words)[4])
{
#ifdef __CUDA_ARCH__
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
#else
    *reinterpret_cast<uint4 *>(to) = make_uint4(words[0], words[1], words[2], words[3]);
#endif
}

/* ---- copies: by one thread ---- */

// The rows of a tile. A slot's rows are those of its heads in turn, which is how the map has them.
__device__ inline void copy_rows(const attest_cuda_args &args, const attest_tensor_map *map, const attest_tile &tile, uint32_t to,
                                 uint32_t barrier)
{
    const int row = tile.sequence.q_first + attest_divide(tile.row_begin, args.pack),
              batch = attest_has(args, ATTEST_VARLEN_Q) ? 0 : tile.batch;
    barrier_expect(barrier, Q_BYTES);
#pragma unroll
    for (int slab = 0; slab < SLABS; slab++)
        map_load_5(to + slab * Q_SLAB, map, barrier, slab * SLAB, 0, row, tile.slot, batch);
}

__device__ inline void copy_box(uint32_t to, const attest_tensor_map *map, uint32_t barrier, int key, int head, int outer)
{
#pragma unroll
    for (int slab = 0; slab < SLABS; slab++)
        map_load_4(to + slab * KV_SLAB, map, barrier, slab * SLAB, key, head, outer);
}

// Keys first .. first + KEYS of K or V. Those from `end` on need not come.
__device__ inline void copy_keys(const attest_cuda_args &args, const attest_tensor_map *map, const attest_tile &tile, uint32_t to,
                                 uint32_t barrier, int first, int end)
{
    if (!attest_has(args, ATTEST_PAGED)) {
        const int batch = attest_has(args, ATTEST_VARLEN_KV) ? 0 : tile.batch;
        barrier_expect(barrier, KV_BYTES);
        copy_box(to, map, barrier, tile.sequence.kv_first + first, tile.head_kv, batch);
        return;
    }
    const int rows = min(args.page_size, KEYS), keys = min(end - first, KEYS);
    barrier_expect(barrier, (keys + rows - 1) / rows * rows * PITCH * SLABS);
#pragma unroll 1
    for (int at = 0; at < keys; at += rows) {
        const int slot = (first + at) / args.page_size;
        const int page = attest_clamp(args.page_table[tile.batch * args.stride_page_table + slot], 0, args.page_count - 1);
        copy_box(to + at * PITCH, map, barrier, first + at - slot * args.page_size, tile.head_kv, page);
    }
}

/* ---- rows ---- */

using Scores = float[KEYS / 2];         // [KEYS / 8][4]
using Weights = uint32_t[KEYS / 16][4]; // P, as A operands
using Output = float[D / 2];            // [D / 8][4]

// What a thread keeps of its rows.
struct Rows {
    float m[2], l[2]; // the largest score so far, or near it; the sum, of this thread's columns only
};

// Row g of a thread whose warpgroup's rows begin at `first`.
__device__ inline int row_here(int first)
{
    const int thread = threadIdx.x + zero_here(); // worked out where it is needed: registers are short
    return first + thread % GROUP_THREADS / 32 * 16 + thread % 32 / 4;
}

// Without a key yet.
__device__ inline void rows_begin(Rows &rows)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        rows.m[half] = minus_infinity();
        rows.l[half] = 0;
    }
}

__device__ inline void output_begin(Output &O)
{
#pragma unroll
    for (int n = 0; n < D / 2; n++)
        O[n] = 0;
}

// Sums of whole rows; the maximum in units of log2, rounded as in softmax().
__device__ inline void rows_end(Rows &rows, float c)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float &l = rows.l[half];
        l += __shfl_xor_sync(ALL_LANES, l, 1);
        l += __shfl_xor_sync(ALL_LANES, l, 2);
        rows.m[half] = rows.m[half] == minus_infinity() ? rows.m[half] : __fmul_rn(rows.m[half], c);
    }
}

// Row r of a slot is query row i of one of its heads.
__device__ inline int row_in_sequence(const attest_cuda_args &args, int r)
{
    return args.pack == 1 ? r : attest_divide(r, args.pack);
}

struct Place {
    int head, i;
};

__device__ inline Place place_get(const attest_cuda_args &args, const attest_tile &tile, int r)
{
    const int i = row_in_sequence(args, r);
    Place place = {tile.slot * args.pack + r - i * args.pack, i};
    return place;
}

// Keys that every one of the rows first .. first + GROUP_Q sees, as far as they are there.
__device__ inline attest_span seen_by_all(const attest_cuda_args &args, const attest_tile &tile, int first)
{
    const int last = min(first + GROUP_Q, tile.row_end) - 1;
    attest_span all = {attest_row_visible(args, tile.sequence, row_in_sequence(args, last)).begin,
                       attest_row_visible(args, tile.sequence, row_in_sequence(args, first)).end};
    return all;
}

/* ---- products ---- */

// S = Q K^T, begun. Q and K are where they are in units of 16 bytes, as descriptors have it.
__device__ inline void begin_qk(Scores &S, uint32_t q_unit, uint32_t k_unit)
{
    const uint64_t q = descriptor(0, 0, 8 * PITCH) | q_unit, k = descriptor(0, 0, 8 * PITCH) | k_unit;
#pragma unroll
    for (int step = 0; step < D / 16; step++)
        wgmma_ss<KEYS, false>(S, q + ((step / 4 * Q_SLAB + step % 4 * 32) >> 4), k + ((step / 4 * KV_SLAB + step % 4 * 32) >> 4),
                              step > 0);
    wgmma_commit();
}

// O += P V, begun; or O = P V. V likewise.
__device__ inline void begin_pv(Output &O, const Weights &P, uint32_t v_unit, bool accumulate)
{
    const uint64_t v = descriptor(0, KV_SLAB, 8 * PITCH) | v_unit;
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++)
        wgmma_rs<D, true>(O, P[step], v + (step * 16 * PITCH >> 4), accumulate || step > 0);
    wgmma_commit();
}

// S = Q K^T of the first COUNT keys of a block, begun by itself.
template <int COUNT> __device__ inline void begin_scores(float (&S)[COUNT / 2], uint32_t q_at, uint32_t k_at)
{
    const uint64_t q = descriptor(q_at, 0, 8 * PITCH), k = descriptor(k_at, 0, 8 * PITCH);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < D / 16; step++)
        wgmma_ss<COUNT, false>(S, q + ((step / 4 * Q_SLAB + step % 4 * 32) >> 4), k + ((step / 4 * KV_SLAB + step % 4 * 32) >> 4),
                               step > 0);
    wgmma_commit();
}

// O += P V of some of the keys of a block, begun by itself; or O = P V.
template <int STEPS> __device__ inline void begin_output(Output &O, const uint32_t (&P)[STEPS][4], uint32_t v_at, bool accumulate)
{
    const uint64_t v = descriptor(v_at, KV_SLAB, 8 * PITCH);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < STEPS; step++)
        wgmma_rs<D, true>(O, P[step], v + (step * 16 * PITCH >> 4), accumulate || step > 0);
    wgmma_commit();
}

/* ---- modifiers and masks ---- */

__device__ inline bool needs_modifying(const attest_cuda_args &args)
{
    return attest_has(args, ATTEST_SOFTCAP) || !(args.scale > 0);
}

// To 3 units in the last place.
__device__ inline float tanh_of(float x)
{
    const float y = fabsf(x), z = x * x;
    float p = -0.0058951564f;
    p = fmaf(p, z, 0.020795971f);
    p = fmaf(p, z, -0.05378383f);
    p = fmaf(p, z, 0.13331924f);
    p = fmaf(p, z, -0.33333299f);
    const float low = fmaf(y * z, p, y);
    const float high = 1 - 2 * reciprocal_fast(exp2_fast(2 * LOG2_E * y) + 1);
    return copysignf(y < 0.6f ? low : high, x);
}

// Scores in units of log2, where a scale alone does not do.
__device__ inline void modify(const attest_cuda_args &args, Scores &S)
{
    if (!attest_has(args, ATTEST_SOFTCAP)) {
#pragma unroll
        for (int n = 0; n < KEYS / 2; n++)
            S[n] *= args.scale * LOG2_E;
        return;
    }
    const float cap = args.softcap + (float)zero_here(), inner = args.scale / cap, outer = cap * LOG2_E;
#pragma unroll
    for (int n = 0; n < KEYS / 2; n += 4)
        if (cap >
            (float)zero_here()) // always: but now the compiler does not work on all of S at a time, for which registers do not do
#pragma unroll
            for (int e = n; e < n + 4; e++)
                S[e] = outer * tanh_of(S[e] * inner);
}

// Bits of the 32 columns of a thread from `word` * 128 on that lie before column `end`: of every eight columns it has two.
__device__ inline uint32_t columns_before(int end, int word)
{
    const int count = (end >> 3) * 2 + min(end & 7, 2) - word * 32;
    return count >= 32 ? 0xffffffffu : (1u << max(count, 0)) - 1;
}

// What a row does not see becomes -inf. `first` is the block's first key.
__device__ inline void hide(const attest_cuda_args &args, const attest_sequence &sequence, Scores &S, int r, int first)
{
    const int key = first + threadIdx.x % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const attest_span sees = attest_row_visible(args, sequence, row_in_sequence(args, r + half * 8));
#pragma unroll
        for (int word = 0; word < (KEYS + 127) / 128; word++) {
            const uint32_t seen = columns_before(sees.end - key, word) & ~columns_before(sees.begin - key, word);
#pragma unroll
            for (int n = word * 32; n < word * 32 + 32 && n < KEYS / 4; n++)
                if (!(seen >> n % 32 & 1))
                    S[n / 2 * 4 + half * 2 + n % 2] = minus_infinity();
        }
    }
}

// Keys that some row of the sequence sees. From the end of the tensor on, where a copy brings zeros, it does not matter.
__device__ inline attest_span seen_by_some(const attest_cuda_args &args, const attest_sequence &sequence)
{
    const attest_span top = attest_row_visible(args, sequence, 0),
                      bottom = attest_row_visible(args, sequence, sequence.q_count - 1);
    const bool zeros = !(args.flags & (ATTEST_VARLEN_KV | ATTEST_PAGED)) && bottom.end == args.seq_kv;
    return {top.begin, zeros ? ATTEST_CUDA_UNBOUNDED : bottom.end};
}

// The same, of those that are copied: in pages smaller than a block, keys from `end` on, the end of what the tile sees, need not be.
__device__ inline attest_span seen_by_some(const attest_cuda_args &args, const attest_sequence &sequence, int end)
{
    attest_span some = seen_by_some(args, sequence);
    if (attest_has(args, ATTEST_PAGED) && args.page_size < KEYS)
        some.end = min(some.end, end);
    return some;
}

// V of other keys than `seen` has no weight, but may be NaN: it is made zero. `first` is the block's first key. For the
// threads of a warpgroup; `barrier` is one of its own.
__device__ inline void blank(uint32_t v_at, const attest_span &seen, int first, int barrier)
{
    const int begin = seen.begin - first, end = seen.end - first;
    if (begin <= 0 && end >= KEYS)
        return;
#pragma unroll 1
    for (int index = threadIdx.x % GROUP_THREADS; index < KEYS * SLABS * 8; index += GROUP_THREADS) {
        const int row = index / 8 % KEYS;
        if (row < begin || row >= end)
            store_shared_16(v_at + index * 16, make_uint4(0, 0, 0, 0));
    }
    proxy_fence(); // written by threads, read by wgmma
    named_barrier(barrier, GROUP_THREADS);
}

/* ---- m and O ---- */

// The new maximum m, and `base`, which is m c; `carry` is what O and l so far are to be multiplied with.
template <int COUNT> __device__ inline void raise(const float (&S)[COUNT], Rows &rows, float (&carry)[2], float (&base)[2], float c)
{
    float most[2][2]; // of even and of odd columns: more that can be done at a time
#pragma unroll
    for (int half = 0; half < 2; half++)
        most[half][0] = most[half][1] = rows.m[half];
#pragma unroll
    for (int n = 0; n < COUNT; n++)
        most[n / 2 % 2][n % 2] = fmaxf(most[n / 2 % 2][n % 2], S[n]);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float &m = most[half][0];
        m = fmaxf(m, most[half][1]);
        m = fmaxf(m, __shfl_xor_sync(ALL_LANES, m, 1));
        m = fmaxf(m, __shfl_xor_sync(ALL_LANES, m, 2));
        base[half] = m == minus_infinity() ? 0 : __fmul_rn(m, c);
        // Rounded, as the base before was: fused it would not be 1 where the maximum has not moved, and l would drift.
        carry[half] = exp2_fast(__fmul_rn(rows.m[half], c) - base[half]);
        rows.m[half] = m;
    }
}

// Whether something holds for a lane of the four that have a row. What a row is to be must not depend on others of its warp: a query gives
// the same bits whatever lies beside it.
__device__ inline bool of_row(bool of_lane)
{
    return __ballot_sync(ALL_LANES, of_lane) >> (threadIdx.x & 28) & 15;
}

// Often no maximum has moved, and there is nothing to do.
__device__ inline void rescale(Output &O, const float (&carry)[2])
{
    if (__all_sync(ALL_LANES, carry[0] == 1 && carry[1] == 1))
        return;
#pragma unroll
    for (int n = 0; n < D / 2; n++)
        O[n] *= carry[n / 2 % 2];
}

/* ---- the end of a row ---- */

// What O of row r is to be multiplied with; m is in units of log2. LSE is written, by the threads that have `first_column`.
__device__ inline float finish_row(const attest_cuda_args &args, const attest_tile &tile, int r, float m, float l,
                                   bool first_column)
{
    if (!(args.flags & (ATTEST_LSE | ATTEST_SINK)) || r >= tile.row_end)
        return l == 0 ? 0 : reciprocal_fast(l);
    const Place place = place_get(args, tile, r);
    const attest_ending ending = attest_row_ending(args, m * LN_2, l, place.head);
    if (attest_has(args, ATTEST_LSE) && first_column)
        args.lse[attest_row_offset(args, args.stride_lse, tile, place.head, place.i)] = ending.lse;
    return ending.factor;
}

// Where O of row r is.
__device__ inline uint16_t *row_of_o(const attest_cuda_args &args, const attest_tile &tile, int r)
{
    const Place place = place_get(args, tile, r);
    return (uint16_t *)args.o + attest_row_offset(args, args.stride_o, tile, place.head, place.i);
}

// Columns 8 * chunk .. 8 * chunk + 8 of a row.
__device__ inline void write_chunk(const attest_cuda_args &args, uint16_t *row, int chunk, const uint32_t (&pairs)[4])
{
    uint16_t *to = row + chunk * 8;
    if (chunk * 8 + 8 <= args.dim_v) {
        *reinterpret_cast<uint4 *>(to) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
        return;
    }
#pragma unroll
    for (int e = 0; e < 8; e++)
        if (chunk * 8 + e < args.dim_v)
            to[e] = (uint16_t)(pairs[e / 2] >> e % 2 * 16);
}

// Among the four lanes that have a row: lane t gives four pairs of columns, those of chunks 0 .. 3, and gets the four of chunk t.
__device__ inline void transpose_quad(uint32_t (&pairs)[4])
{
    const bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const uint32_t got = __shfl_xor_sync(ALL_LANES, odd ? pairs[i] : pairs[i + 1], 1);
        (odd ? pairs[i] : pairs[i + 1]) = got;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t got = __shfl_xor_sync(ALL_LANES, upper ? pairs[i] : pairs[i + 2], 2);
        (upper ? pairs[i] : pairs[i + 2]) = got;
    }
}

// O of one of a thread's two rows is normalised and written. Four lanes have a row, and give it to each other in pieces of 16 bytes.
template <bool WHOLE, bool AT_ONCE> // all columns are there; 16 bytes are one store
__device__ inline void write_columns(const attest_cuda_args &args, uint16_t *to, const Output &O, int half, float factor,
                                     bool there)
{
#pragma unroll
    for (int n = 0; n < D / 8; n += 4) {
        uint32_t pairs[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            pairs[i] = pack(O[(n + i) * 4 + half * 2] * factor, O[(n + i) * 4 + half * 2 + 1] * factor);
        transpose_quad(pairs);
        if (!there)
            continue;
        const int chunk = n + threadIdx.x % 4;
        if (WHOLE && AT_ONCE)
            store_16(to + chunk * 8, pairs);
        else if (WHOLE)
            *reinterpret_cast<uint4 *>(to + chunk * 8) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
        else
            write_chunk(args, to, chunk, pairs);
    }
}

template <bool AT_ONCE = false>
__device__ inline void write_row(const attest_cuda_args &args, uint16_t *to, const Output &O, int half, float factor, bool there)
{
    if (args.dim_v == D)
        write_columns<true, AT_ONCE>(args, to, O, half, factor, there);
    else
        write_columns<false, AT_ONCE>(args, to, O, half, factor, there);
}

/* ---- blocks that are one tile ---- */

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

// Whether the problem has nothing but masks by position.
__device__ inline bool is_plain(const attest_cuda_args &args)
{
    return !(args.flags & ~(ATTEST_CAUSAL | ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT | ATTEST_BOTTOM_RIGHT)) && args.pack == 1 &&
           args.slots == args.heads_kv && args.dim_v == D && args.scale * LOG2_E > 0;
}

// The arguments of such a problem, with what the compiler is to know of them.
__device__ inline attest_cuda_args plain_args(const attest_cuda_args &args)
{
    attest_cuda_args plain = args;
    plain.flags = args.flags & ATTEST_BOTTOM_RIGHT;
    plain.pack = 1;
    plain.slots = plain.heads_kv;
    plain.dim_v = D;
    return plain;
}

#endif
