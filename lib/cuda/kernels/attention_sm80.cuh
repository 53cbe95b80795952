/*
 * attention_sm80.cuh - FlashAttention on mma.sync, ldmatrix and cp.async: what the kernels cuda_fwd_sm80 and cuda_fwd_sm80_split are
 * made of. The including file says, before the #include, how many rows a warp has:
 *
 *     #define WARP_ROWS 32
 *
 * and, if not all of them work on tiles, how many threads do: COMPUTING_THREADS.
 *
 * The tile is TILE_Q rows, and keys come in blocks of TILE_KV. Warps stand in a grid of WARPS_Q x WARPS_KV: warp (q, kv) owns
 * WARP_ROWS rows of the tile for all of the keys that are its share, WARP_KV keys of every block. With WARPS_KV > 1 the shares are
 * joined at the end, in order.
 *
 * Memory. Shared: Q[TILE_Q][D], then STAGES times K[TILE_KV][D] and V[TILE_KV][D], then a bit for each key of a block, then what
 * each warp has to know of its masks, which would take registers otherwise. A row of D elements is cut into chunks of 16 bytes, and
 * chunk c of row r lies where chunk c ^ swizzle(r) would: so eight rows of one column of chunks, which is what ldmatrix reads at a
 * time, lie in different banks. Registers: S and P (the same ones), O, the rows' maximum m and sum l; and as much of Q as there is
 * room for.
 *
 * Pipeline. Block n + STAGES - 1 is on its way while block n is computed; one barrier a block says both that block n is there, for
 * all threads, and that nobody reads the buffer of block n - 1 any more, into which the next copy goes. There are few warps, so what
 * is not a product is put among products: the copies of the next block between those of Q K^T, the exponentials of 16 keys between
 * those of the 16 keys before, and fragments are fetched some products before they are used.
 *
 * Numbers. Scores are kept as they come from the matrix unit, and m is their maximum; exp(scale (s - m)) is 2^(s c - m c) with
 * c = scale log2(e), one fused multiply-add and one exponential, and m c is the maximum in units of log2. Where scores are modified
 * (softcap, ALiBi, bias) or the scale is not positive they are first brought to natural units, and exp(s - m) is 2^((s - m) log2(e)):
 * in units of log2 a bias near the lowest float would be -inf. unit_of() says what the maximum of a row is counted in, once all of its
 * keys have been seen. P is rounded to 16 bits for the product with V, l is not.
 */
#ifndef ATTEST_ATTENTION_SM80_CUH
#define ATTEST_ATTENTION_SM80_CUH

#include "mma_sm80.cuh"

#ifndef COMPUTING_THREADS
#define COMPUTING_THREADS ATTEST_THREADS
#endif
constexpr int D = ATTEST_DIM, TILE_Q = ATTEST_TILE_Q, TILE_KV = ATTEST_TILE_KV, STAGES = ATTEST_STAGES, THREADS = COMPUTING_THREADS;
constexpr int WARPS = THREADS / 32, WARPS_Q = TILE_Q / WARP_ROWS, WARPS_KV = WARPS / WARPS_Q, WARP_KV = TILE_KV / WARPS_KV;
constexpr int M = WARP_ROWS / 16; // fragments of rows that a warp has
constexpr int CHUNKS = D / 8;     // of a row
constexpr int PITCH = D * 2;      // bytes of a row in shared memory
constexpr int TILE_BYTES = TILE_KV * PITCH;
// Columns of fragments of Q that stay in registers: all of them, or as many as O and S leave room for.
constexpr int KEPT = M * D <= 128 ? D / 16 : M == 2 || WARPS_KV > 1 ? 0 : 8;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;
constexpr unsigned ALL_LANES = 0xffffffffu;

static_assert(WARPS_Q * WARPS_KV == WARPS && WARPS_Q * WARP_ROWS == TILE_Q, "warps stand in a grid");
static_assert(WARP_KV % 16 == 0 && WARPS_KV * WARP_KV == TILE_KV, "a warp's keys are columns of whole fragments");
static_assert(CHUNKS % 4 == 0, "the swizzle works on groups of 4 or 8 chunks");

constexpr int SHARED_Q = 0, SHARED_KV = TILE_Q * PITCH, SHARED_SEEN = SHARED_KV + 2 * STAGES * TILE_BYTES;
constexpr int SHARED_VIEWS = SHARED_SEEN + (TILE_KV / 8 + 15) / 16 * 16;
constexpr int SHARED_BYTES = SHARED_VIEWS + WARPS * 32;

// What a warp leaves for the joining: O, then m and l, for each of its rows. The pitch keeps rows in different banks.
constexpr int JOIN_PITCH = D + 8; // floats
static_assert(WARPS_KV == 1 || WARPS_KV * TILE_Q * JOIN_PITCH * 4 <= SHARED_SEEN, "the shares fit where Q, K and V were");

__device__ inline float minus_infinity()
{
    return __int_as_float(0xff800000);
}

/* ---- shared memory ---- */

constexpr int GROUP = CHUNKS % 8 == 0 ? 8 : 4; // chunks that change places with each other

__device__ constexpr int swizzle(int row)
{
    return GROUP == 8 ? row % 8 : row / 2 % 4;
}

__device__ inline uint32_t chunk_at(uint32_t base, int row, int chunk)
{
    return base + row * PITCH + ((chunk ^ swizzle(row)) << 4);
}

// From the address of chunk 0 or 1 to that of chunk 2 * pair or 2 * pair + 1 of the same row. `pair` is a constant.
__device__ inline uint32_t chunk_pair(uint32_t at, int pair)
{
    return (at ^ (2 * pair % GROUP << 4)) + 2 * pair / GROUP * GROUP * 16;
}

/* ---- from global to shared memory ---- */

// Where rows of 16-bit elements come from.
struct Source {
    const uint16_t *data;
    int dim;
    bool aligned; // rows begin at multiples of 16 bytes
};

// A chunk, by cp.async, or else element by element; zero if it is not there, and beyond column `dim`.
__device__ inline void copy_chunk(const Source &source, uint32_t to, int64_t at, int chunk, bool there)
{
    int count = there ? min(max(source.dim - chunk * 8, 0), 8) : 0;
    const uint16_t *from = source.data + (count ? at + chunk * 8 : 0);
    if (source.aligned) {
        cp_async_16(to, from, count * 2);
        return;
    }
    uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t low = 2 * i < count ? from[2 * i] : 0, high = 2 * i + 1 < count ? from[2 * i + 1] : 0;
        pairs[i] = low | high << 16;
    }
    store_shared_16(to, make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
}

// How Q, K and V are copied: in columns of chunks (rows lie a stride apart, are aligned, and have D elements), or in any way.
enum Copy { COPY_SIMPLE, COPY_ANY };

// attest_key_offset where keys are not paged.
__device__ inline int64_t key_offset(const attest_cuda_args &args, const int64_t *stride, const attest_tile &tile, int j)
{
    int64_t batch = attest_has(args, ATTEST_VARLEN_KV) ? 0 : tile.batch;
    return tile.head_kv * stride[1] + batch * stride[0] + (int64_t)(tile.sequence.kv_first + j) * stride[2];
}

// GROUP threads stand side by side along a row, and each copies every GROUP-th chunk of rows STEP apart: all of them are swizzled
// in the same way, and those of one row lie at constant distances, where they come from and where they go.
constexpr int STEP = THREADS / GROUP;
constexpr bool IN_COLUMNS = STEP % 8 == 0 && TILE_KV % STEP == 0;
constexpr int PARTS = TILE_KV / STEP; // of a block of K or V: each thread's chunks of one row

__device__ inline void copy_row(uint32_t to, const void *from, bool there)
{
#pragma unroll
    for (int n = 0; n < CHUNKS / GROUP; n++)
        cp_async_16(to + n * GROUP * 16, (const unsigned char *)from + n * GROUP * 16, there ? 16 : 0);
}

// The simple way: K and V as a stream of blocks. Addresses move on with it, and are worked out once.
struct Stream {
    const unsigned char *k, *v; // the thread's first chunk of each, in the next block
    int k_step, v_step;         // bytes from row to row
    int left;                   // keys from that of its chunk on
    uint32_t at;                // where its chunk of K goes, in the first buffer
};

__device__ inline bool step_fits(int64_t stride)
{
    return 2 * stride == (int)(2 * stride);
}

__device__ inline Stream stream_get(const attest_cuda_args &args, const attest_tile &tile, const attest_span &keys, uint32_t to)
{
    const int row = threadIdx.x / GROUP, chunk = threadIdx.x % GROUP, key = keys.begin + row;
    Stream stream = {(const unsigned char *)args.k + 2 * key_offset(args, args.stride_k, tile, key) + chunk * 16,
                     (const unsigned char *)args.v + 2 * key_offset(args, args.stride_v, tile, key) + chunk * 16,
                     2 * (int)args.stride_k[2],
                     2 * (int)args.stride_v[2],
                     keys.end - key,
                     chunk_at(to, row, chunk)};
    return stream;
}

// Part 0 .. 2 * PARTS - 1 of the next block, first of K, then of V; keys that are not there become zero. `stage` is where its
// buffer lies beside the first.
__device__ inline void copy_part(const Stream &stream, uint32_t stage, int part)
{
    const bool of_k = part < PARTS;
    const int row = part % PARTS * STEP;
    const unsigned char *from = of_k ? stream.k + (int64_t)stream.k_step * row : stream.v + (int64_t)stream.v_step * row;
    copy_row(stream.at + stage + (of_k ? 0 : TILE_BYTES) + row * PITCH, from, row < stream.left);
}

__device__ inline void stream_on(Stream &stream)
{
    stream.k += (int64_t)stream.k_step * TILE_KV;
    stream.v += (int64_t)stream.v_step * TILE_KV;
    stream.left -= TILE_KV;
}

// Any way: keys first .. first + TILE_KV of the sequence; those from `end` on become zero.
__device__ inline void copy_keys(const attest_cuda_args &args, const attest_tile &tile, const void *data, const int64_t *stride,
                                 int dim, uint32_t bit, uint32_t to, int first, int end)
{
    const Source source = {(const uint16_t *)data, dim, (args.aligned & bit) != 0};
#pragma unroll 1
    for (int index = threadIdx.x; index < TILE_KV * CHUNKS; index += THREADS) {
        int row = index / CHUNKS, chunk = index % CHUNKS, key = first + row;
        bool there = key < end;
        copy_chunk(source, chunk_at(to, row, chunk), there ? attest_key_offset(args, stride, tile, key) : 0, chunk, there);
    }
}

/* ---- what a warp works on ---- */

struct Warp {
    int lane, q, kv; // its place in the grid of warps
    int row;         // its first row, in the slot
};

// One row of a lane: fragment m, upper (0) or lower (1) half.
__device__ inline int row_of(const Warp &warp, int m, int half)
{
    return warp.row + m * 16 + half * 8 + warp.lane / 4;
}

// Row r of a slot: query row i of one of its heads.
struct Place {
    int head, i; // head of the slot, 0 <= head < pack
    bool there;
};

__device__ inline Place place_get(const attest_cuda_args &args, const attest_tile &tile, int r)
{
    int i = args.pack == 1 ? r : attest_divide(r, args.pack);
    Place place = {r - i * args.pack, i, r < tile.row_end};
    return place;
}

// Where the rows of a slot lie in a tensor with the layout of Q.
struct Strip {
    int64_t base, head, row;
};

__device__ inline Strip strip_get(const attest_cuda_args &args, const attest_tile &tile, const int64_t *stride)
{
    Strip strip = {attest_row_offset(args, stride, tile, tile.slot * args.pack, 0), stride[1], stride[2]};
    return strip;
}

__device__ inline int64_t offset_of(const Strip &strip, const Place &place)
{
    return strip.base + place.head * strip.head + place.i * strip.row;
}

// Of KEYS keys.
template <int KEYS> using Scores = float[M][KEYS / 8][4];
using Output = float[M][D / 8][4];

// The running state of a lane's rows.
struct Rows {
    float m[M][2]; // the largest score so far
    float l[M][2]; // the sum, of this lane's columns only
};

template <Copy COPY> __device__ inline void copy_rows(const attest_cuda_args &args, const attest_tile &tile, uint32_t to)
{
    const Source source = {(const uint16_t *)args.q, args.dim, COPY == COPY_SIMPLE || args.aligned & ATTEST_ALIGNED_Q};
    const Strip strip = strip_get(args, tile, args.stride_q);
    if (COPY == COPY_SIMPLE && args.pack == 1) {
        const int row = threadIdx.x / GROUP, chunk = threadIdx.x % GROUP, count = tile.row_end - tile.row_begin;
        const uint16_t *from = source.data + strip.base + (tile.row_begin + row) * strip.row + chunk * 8;
        const uint32_t at = chunk_at(to, row, chunk);
#pragma unroll
        for (int n = 0; n < (TILE_Q + STEP - 1) / STEP; n++, from += STEP * strip.row)
            if (TILE_Q % STEP == 0 || row + n * STEP < TILE_Q)
                copy_row(at + n * STEP * PITCH, from, row + n * STEP < count);
        return;
    }
#pragma unroll 2
    for (int index = threadIdx.x; index < TILE_Q * CHUNKS; index += THREADS) {
        int row = index / CHUNKS, chunk = index % CHUNKS;
        const Place place = place_get(args, tile, tile.row_begin + row);
        copy_chunk(source, chunk_at(to, row, chunk), place.there ? offset_of(strip, place) : 0, chunk, place.there);
    }
}

/* ---- S = Q K^T ---- */

// The address that a lane gives to ldmatrix for the fragment of rows 0 .. 15, columns 0 .. 15.
__device__ inline uint32_t fragment_at(uint32_t base, int lane)
{
    return chunk_at(base, lane % 16, lane / 16);
}

// The same for two fragments B of K: keys 0 .. 7, then 8 .. 15.
__device__ inline uint32_t fragment_k_at(uint32_t base, int lane)
{
    return chunk_at(base, lane % 8 + lane / 16 * 8, lane / 8 % 2);
}

// Fragments of K and V are fetched so many fragments ahead of their use.
constexpr int AHEAD = M == 1 ? 4 : 2;

// `between(k)` is called after column k of fragments, for what may be done beside the products.
template <int KEYS, typename Between>
__device__ inline void product_qk(Scores<KEYS> &S, const uint32_t (&Q)[KEPT + 1][M][4], uint32_t q_at, uint32_t k_at,
                                  Between between)
{
    constexpr int ROW = KEYS / 16, COUNT = D / 16 * ROW;
    uint32_t K[AHEAD + 1][4], now[2][M][4];
    auto fetch_q = [&](int k) {
#pragma unroll
        for (int m = 0; m < M; m++) {
            if (k >= KEPT)
                ldmatrix_x4(now[k % 2][m], chunk_pair(q_at, k) + m * 16 * PITCH);
#pragma unroll
            for (int i = 0; i < 4 && k < KEPT; i++)
                now[k % 2][m][i] = Q[k][m][i];
        }
    };
    auto fetch_k = [&](int step) {
        if (step < COUNT)
            ldmatrix_x4(K[step % (AHEAD + 1)], chunk_pair(k_at, step / ROW) + step % ROW * 16 * PITCH);
    };
    fetch_q(0);
#pragma unroll
    for (int step = 0; step < AHEAD; step++)
        fetch_k(step);
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                S[m][n][e] = 0;
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
#pragma unroll
        for (int n = 0; n < ROW; n++) {
            const int step = k * ROW + n;
            fetch_k(step + AHEAD);
            if (n == ROW - 1 && k + 1 < D / 16)
                fetch_q(k + 1);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma(S[m][2 * n], now[k % 2][m], K[step % (AHEAD + 1)][0], K[step % (AHEAD + 1)][1]);
                mma(S[m][2 * n + 1], now[k % 2][m], K[step % (AHEAD + 1)][2], K[step % (AHEAD + 1)][3]);
            }
        }
        between(k);
    }
}

/* ---- modifiers and masks ---- */

// Keys that masks by position leave to a row of the sequence.
__device__ inline attest_span visible_of(const attest_cuda_args &args, int q_count, int kv_count, int i)
{
    const attest_sequence sequence = {0, q_count, 0, kv_count};
    return attest_row_visible(args, sequence, i);
}

// What a warp has to know of its masks is kept in shared memory, since registers are what is short. First two spans: keys in `all`
// are seen by every row of the warp, keys outside of `some` by none. Then what rows are found with: the lengths of the sequence,
// the warp's first row in the slot, the end of the keys that were loaded.
__device__ inline void view_keep(const attest_cuda_args &args, const attest_tile &tile, const attest_span &keys, const Warp &warp,
                                 uint32_t at)
{
    const int q_count = tile.sequence.q_count, kv_count = tile.sequence.kv_count,
              last = place_get(args, tile, min(warp.row + WARP_ROWS, tile.row_end) - 1).i,
              upmost = min(place_get(args, tile, warp.row).i, last);
    const attest_span upper = visible_of(args, q_count, kv_count, upmost), lower = visible_of(args, q_count, kv_count, last);
    const attest_span all = {lower.begin, min(upper.end, keys.end)}, some = {upper.begin, lower.end};
    if (warp.lane == 0) {
        store_shared_16(at, make_uint4(all.begin, all.end, some.begin, some.end));
        store_shared_16(at + 16, make_uint4(q_count, kv_count, warp.row, keys.end));
    }
    __syncwarp();
}

// Whether scores need more than a positive scale.
__device__ inline bool is_modified(const attest_cuda_args &args)
{
    return args.flags & (ATTEST_SOFTCAP | ATTEST_ALIBI | ATTEST_BIAS) || args.scale <= 0;
}

// Units of log2 in one unit of a row's maximum.
__device__ inline float unit_of(const attest_cuda_args &args)
{
    return is_modified(args) ? LOG2_E : 1;
}

// Steps 1 to 5 of SEMANTICS, in natural units. `first` is the warp's first key.
template <int KEYS>
__device__ inline void modify(const attest_cuda_args &args, const attest_tile &tile, const Warp &warp, Scores<KEYS> &S, int first)
{
    const bool softcap = attest_has(args, ATTEST_SOFTCAP), alibi = attest_has(args, ATTEST_ALIBI),
               bias = attest_has(args, ATTEST_BIAS);
    const float to_cap = softcap ? args.scale / args.softcap : 0;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            Place row = place_get(args, tile, row_of(warp, m, half));
            float slope = alibi && row.there ? args.alibi_slopes[tile.slot * args.pack + row.head] : 0;
            const int place = attest_row_place(args, tile.sequence, row.i),
                      key = first + (warp.lane + zero_here()) % 4 * 2; // not kept for all blocks: registers are short
            int64_t bias_at = bias && row.there ? attest_bias_offset(args, tile, tile.slot * args.pack + row.head, row.i) : 0;
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float &s = S[m][n][half * 2 + e];
                    int j = key + n * 8 + e;
                    s = softcap ? args.softcap * tanhf(s * to_cap) : s * args.scale;
                    s -= slope * fabsf((float)(place - j));
                    if (bias && row.there && j < tile.sequence.kv_count) {
                        float value = attest_load(args.bias, args.dtype_bias, bias_at + j * args.stride_bias[3]);
                        s = value == minus_infinity() ? value : s + value; // even if s is NaN
                    }
                    if (bias && !row.there) // a row that is not there sees nothing: see blank_unseen
                        s = minus_infinity();
                }
        }
}

// What the masks hide becomes -inf. `first` is the warp's first key.
template <int KEYS>
__device__ inline void hide(const attest_cuda_args &args, uint32_t view_at, int lane, Scores<KEYS> &S, int first)
{
    const uint4 view = load_shared_16(view_at + 16); // see view_keep
    const int top = (int)view.z + lane / 4;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int r = top + m * 16 + half * 8;
            const attest_span row = visible_of(args, view.x, view.y, args.pack == 1 ? r : attest_divide(r, args.pack));
            const int key = first + lane % 4 * 2, low = row.begin - key, high = min(row.end, (int)view.w) - key;
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (n * 8 + e < low || n * 8 + e >= high)
                        S[m][n][half * 2 + e] = minus_infinity();
        }
}

// A key that a bias of -inf hides from every row of the tile has no weight, but its V may be NaN: it is made zero. `part` of the
// warps' shares is what S has. For all threads.
template <int KEYS>
__device__ inline void blank_unseen(const Warp &warp, const Scores<KEYS> &S, int part, uint32_t *seen, uint32_t v_at)
{
    if (threadIdx.x < TILE_KV / 32)
        seen[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            bool any = false;
#pragma unroll
            for (int m = 0; m < M; m++)
                any = any || S[m][n][e] != minus_infinity() || S[m][n][2 + e] != minus_infinity();
            unsigned lanes = __ballot_sync(ALL_LANES, any);
            int key = warp.kv * WARP_KV + part * KEYS + n * 8 + warp.lane * 2 + e;
            if (warp.lane < 4 && lanes & 0x11111111u << warp.lane)
                atomicOr(&seen[key / 32], 1u << key % 32);
        }
    __syncthreads();
    for (int index = threadIdx.x; index < TILE_KV * CHUNKS; index += THREADS) {
        int key = index / CHUNKS;
        if (key % WARP_KV / KEYS == part && !(seen[key / 32] >> key % 32 & 1))
            store_shared_16(chunk_at(v_at, key, index % CHUNKS), make_uint4(0, 0, 0, 0));
    }
    __syncthreads();
}

/* ---- P, m, l ---- */

// What one block does to its rows: P is 2^(S c - base), or exp(S - base) if it is modified, O and l are multiplied with `carry`, and `sum` is added to l.
struct Step {
    float base[M][2], carry[M][2], sum[M][2];
};

// The new maximum. (Following it only when it has grown by much would save most of the rescaling, but then the largest weight of a
// row is not 1, which is exact in 16 bits, and errors are half as large again.) True if it is the old one for all rows of the warp.
template <int KEYS, bool MODIFIED> __device__ inline bool follow_maximum(const Scores<KEYS> &S, Rows &rows, Step &step, float c)
{
    bool moved = false;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float most = rows.m[m][half];
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
                most = fmaxf(most, fmaxf(S[m][n][half * 2], S[m][n][half * 2 + 1]));
            most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 1));
            most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 2));
            const float base = most == minus_infinity() ? 0 : most * c;
            // Rounded, as the base before was: where the maximum has not moved this is 1, and fused it would be 2^(the rounding of
            // m c), by which l would drift away block by block.
            const float fall = __fmul_rn(rows.m[m][half], c) - base;
            step.carry[m][half] = exp2_fast(MODIFIED ? fall * LOG2_E : fall);
            moved = moved || most != rows.m[m][half];
            rows.m[m][half] = most;
            rows.l[m][half] *= step.carry[m][half];
            step.base[m][half] = base;
            step.sum[m][half] = 0;
        }
    return !__any_sync(ALL_LANES, moved);
}

__device__ inline void rescale(Output &O, const float (&carry)[M][2])
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                O[m][n][e] *= carry[m][e / 2];
}

// S becomes P in a part of the fragments of 16 keys, `part` of `parts`.
template <int KEYS, bool MODIFIED> __device__ inline void weigh(Scores<KEYS> &S, Step &step, float c, int k, int part, int parts)
{
#pragma unroll
    for (int i = part * M * 8 / parts; i < (part + 1) * M * 8 / parts; i++) {
        const int m = i / 8, e = i % 4;
        float &s = S[m][2 * k + i / 4 % 2][e];
        s = exp2_fast(MODIFIED ? (s - step.base[m][e / 2]) * LOG2_E : fmaf(s, c, -step.base[m][e / 2]));
        step.sum[m][e / 2] += s;
    }
}

/* ---- O += P V ---- */

// P of the first 16 keys is there; that of the next 16 is worked out among the products with these.
template <int KEYS, bool MODIFIED>
__device__ inline void product_pv(Output &O, Scores<KEYS> &S, Rows &rows, Step &step, float c, uint32_t v_at)
{
    constexpr int ROW = D / 16, COUNT = KEYS / 16 * ROW;
    uint32_t V[AHEAD + 1][4];
    auto fetch_v = [&](int index) {
        if (index < COUNT)
            ldmatrix_x4_transposed(V[index % (AHEAD + 1)], chunk_pair(v_at, index % ROW) + index / ROW * 16 * PITCH);
    };
#pragma unroll
    for (int index = 0; index < AHEAD; index++)
        fetch_v(index);
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++) {
        uint32_t A[M][4];
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                A[m][i] = pack(S[m][2 * k + i / 2][i % 2 * 2], S[m][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int n = 0; n < ROW; n++) {
            const int index = k * ROW + n;
            fetch_v(index + AHEAD);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma(O[m][2 * n], A[m], V[index % (AHEAD + 1)][0], V[index % (AHEAD + 1)][1]);
                mma(O[m][2 * n + 1], A[m], V[index % (AHEAD + 1)][2], V[index % (AHEAD + 1)][3]);
            }
            if (k + 1 < KEYS / 16)
                weigh<KEYS, MODIFIED>(S, step, c, k + 1, n, ROW);
        }
    }
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            rows.l[m][half] += step.sum[m][half];
}

/* ---- all blocks of keys ---- */

// `keys` are those that some row of the tile sees, and that are this block's share of them. MODIFIED: scores need more than a scale.
// Cases are apart so that the one that matters most is short: instructions have to be fetched as well.
template <Copy COPY, bool MODIFIED>
__device__ inline void attend(const attest_cuda_args &args, const attest_tile &tile, const attest_span &keys, const Warp &warp,
                              unsigned char *shared, Rows &rows, Output &O)
{
    constexpr uint32_t STAGE = 2 * TILE_BYTES;
    constexpr int KEYS = MODIFIED ? 16 : WARP_KV; // at a time: modifying takes registers
    // Where copies are simple they are issued among the products, which leave the time for it.
    constexpr bool AMONG = COPY == COPY_SIMPLE && !MODIFIED && WARPS_KV == 1;

    const uint32_t base = shared_address(shared), kv_base = base + SHARED_KV;
    Stream stream = stream_get(args, tile, keys, kv_base);
    // Keys first .. first + TILE_KV, if there are any.
    auto copy_block = [&](int first, uint32_t stage) {
        if (first >= keys.end)
            return;
        const uint32_t to = kv_base + stage;
        if (COPY == COPY_SIMPLE) {
#pragma unroll
            for (int part = 0; part < 2 * PARTS; part++)
                copy_part(stream, stage, part);
        } else {
            copy_keys(args, tile, args.k, args.stride_k, args.dim, ATTEST_ALIGNED_K, to, first, keys.end);
            copy_keys(args, tile, args.v, args.stride_v, args.dim_v, ATTEST_ALIGNED_V, to + TILE_BYTES, first, keys.end);
        }
    };

    copy_rows<COPY>(args, tile, base + SHARED_Q);
#pragma unroll
    for (int block = 0; block < STAGES - 1; block++) {
        copy_block(keys.begin + block * TILE_KV, block * STAGE);
        cp_async_commit();
        stream_on(stream);
    }

    const uint32_t view_at = base + SHARED_VIEWS + threadIdx.x / 32 * 32;
    view_keep(args, tile, keys, warp, view_at);
    const uint32_t q_at = fragment_at(base + SHARED_Q + warp.q * WARP_ROWS * PITCH, warp.lane);
    const uint32_t of_warp = kv_base + warp.kv * WARP_KV * PITCH; // its share of the keys, in the first buffer
    uint32_t Q[KEPT + 1][M][4];
    const float c = MODIFIED ? 1 : args.scale * LOG2_E;
    const bool biased = MODIFIED && attest_has(args, ATTEST_BIAS);

    uint32_t stage = 0, next = (STAGES - 1) * STAGE; // where the buffers of this block and of the one to copy lie
    for (int block = keys.begin; block < keys.end; block += TILE_KV) {
        const uint4 view = load_shared_16(view_at); // see view_keep
        const int first = block + warp.kv * WARP_KV, to_copy = block + (STAGES - 1) * TILE_KV;
        const bool edge = __any_sync(ALL_LANES, first < (int)view.x || first + WARP_KV > (int)view.y);
        const bool unseen = !biased && __any_sync(ALL_LANES, first >= (int)view.w || first + WARP_KV <= (int)view.z);
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        if (KEPT && block == keys.begin) {
#pragma unroll
            for (int k = 0; k < KEPT; k++)
#pragma unroll
                for (int m = 0; m < M; m++)
                    ldmatrix_x4(Q[k][m], chunk_pair(q_at, k) + m * 16 * PITCH);
        }
        if (!AMONG || unseen) {
            copy_block(to_copy, next);
            cp_async_commit();
        }
#pragma unroll 1
        for (int part = 0; part < WARP_KV / KEYS && !unseen; part++) {
            const int lane = warp.lane + (MODIFIED ? zero_here() : 0), at = part * KEYS;
            const uint32_t here = stage + at * PITCH;
            Scores<KEYS> S;
            product_qk<KEYS>(S, Q, q_at, fragment_k_at(of_warp, lane) + here, [&](int k) {
                if (AMONG && to_copy < keys.end) {
#pragma unroll
                    for (int i = k * 2 * PARTS / (D / 16); i < (k + 1) * 2 * PARTS / (D / 16); i++)
                        copy_part(stream, next, i);
                }
            });
            if (AMONG)
                cp_async_commit();
            if (MODIFIED)
                modify<KEYS>(args, tile, warp, S, first + at);
            if (__builtin_expect(edge, 0))
                hide<KEYS>(args, view_at, lane, S, first + at);
            if (biased)
                blank_unseen<KEYS>(warp, S, part, reinterpret_cast<uint32_t *>(shared + SHARED_SEEN), kv_base + stage + TILE_BYTES);
            Step step;
            const bool still = follow_maximum<KEYS, MODIFIED>(S, rows, step, c);
            weigh<KEYS, MODIFIED>(S, step, c, 0, 0, 1);
            if (!still)
                rescale(O, step.carry);
            product_pv<KEYS, MODIFIED>(O, S, rows, step, c, fragment_at(of_warp + TILE_BYTES, lane) + here);
        }
        stream_on(stream);
        stage = stage == (STAGES - 1) * STAGE ? 0 : stage + STAGE;
        next = next == (STAGES - 1) * STAGE ? 0 : next + STAGE;
    }
    cp_async_wait<0>();
    if (keys.begin >= keys.end) // then there was no barrier yet, and Q may still be on its way
        __syncthreads();

        // Sums of whole rows, and maxima in the unit of unit_of().
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float &l = rows.l[m][half];
            l += __shfl_xor_sync(ALL_LANES, l, 1);
            l += __shfl_xor_sync(ALL_LANES, l, 2);
            rows.m[m][half] *= rows.m[m][half] == minus_infinity() ? 1 : c;
        }
}

__device__ inline void attend(const attest_cuda_args &args, const attest_tile &tile, const attest_span &keys, const Warp &warp,
                              unsigned char *shared, Rows &rows, Output &O)
{
#pragma unroll
    for (int m = 0; m < M; m++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            rows.m[m][half] = minus_infinity();
            rows.l[m][half] = 0;
        }
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                O[m][n][e] = 0;
    }
    constexpr uint32_t ALIGNED = ATTEST_ALIGNED_Q | ATTEST_ALIGNED_K | ATTEST_ALIGNED_V;
    const bool simple = IN_COLUMNS && !attest_has(args, ATTEST_PAGED) && args.dim == D && args.dim_v == D &&
                        (args.aligned & ALIGNED) == ALIGNED && step_fits(args.stride_k[2]) && step_fits(args.stride_v[2]);
    if (is_modified(args))
        attend<COPY_ANY, true>(args, tile, keys, warp, shared, rows, O);
    else if (IN_COLUMNS && simple)
        attend<IN_COLUMNS ? COPY_SIMPLE : COPY_ANY, false>(args, tile, keys, warp, shared, rows, O);
    else
        attend<COPY_ANY, false>(args, tile, keys, warp, shared, rows, O);
}

#include "attention_sm80_end.cuh"

/* ---- a tile, from beginning to end ---- */

__device__ inline void compute_tile(const attest_cuda_args &args, const attest_tile &tile, unsigned char *shared)
{
    if (tile.row_begin >= tile.row_end)
        return;
    Rows rows;
    Output O;
    attend(args, tile, attest_tile_visible(args, tile), warp_get(tile), shared, rows, O);
    if (WARPS_KV > 1)
        write_joined(args, tile, warp_get(tile), shared, rows, O);
    else
        write_rows(args, tile, warp_get(tile), shared, rows, O);
}

#endif
