/*
 * cuda_fwd_simt.cu - float32 FlashAttention without tensor cores: outer products in registers, fed from shared memory.
 * docs/kernels/cuda_simt.md has its floor and its times.
 *
 * attest-cuda: summary         = 64 rows, the keys dealt to groups of warps, 8x8 outer products in registers, float32 throughout
 * attest-cuda: archs           = sm_80 sm_86 sm_89 sm_90
 * attest-cuda: dtypes          = f32
 * attest-cuda: dims            = 64 128
 * attest-cuda: padding         = yes
 * attest-cuda: tile_q          = 64
 * attest-cuda: tile_kv         = 32
 * attest-cuda: tile_kv [sm_90] = 64
 * attest-cuda: threads         = 128
 * attest-cuda: threads [sm_90] = 256
 * attest-cuda: shared          = 4 * (tile_q * dim + threads / dim * (tile_kv * (2 * dim + tile_q) + 2 * tile_q))
 * attest-cuda: registers       = 255
 * attest-cuda: launch          = tile
 * attest-cuda: packs           = yes
 *
 * Contract: all of SEMANTICS in attest.h, any strides, any dim and dim_v up to 128. Nothing is refused. Tensors that are aligned to
 * 16 bytes, rows, heads and batches too, are copied 16 bytes at a time, others 4.
 *
 * Map. A block has 64 query rows. Its warps form groups; group g of G takes tiles g, g + G ... of the keys, with a maximum, a sum
 * and an output of its own, and the groups are joined at the end: so that 128 blocks of 64 rows keep 8 warps busy on each SM, and
 * each thread still has an outer product that is large enough to need few loads. In a group each warp has 4 * ROWS rows; a thread
 * has ROWS of them (8 for dim 64, 4 for dim 128), each fourth one, and of the tile's keys, and then of the columns of O, every quad
 * that is `column` modulo 8.
 *
 * Shared memory, floats in quads of 16 bytes. Where lanes of a warp read different rows at the same column, the place of a quad in
 * its row is exchanged (`^`) with bits of the row's number, so that eight lanes hit eight different quads of banks:
 *     Q[64][dim]                quad ^ (row & 1) * 4
 *     of each group: K[tile][dim], quad ^ (key / 4 & 7);  V[tile][dim];  P[64][tile], quad ^ (row & 1) * 4
 * At the end a group's K, V and P hold its output.
 *
 * Pipeline of a group: K of the next tile is on its way while P is made and multiplied with V,
 * and V of the next tile while the next S is made. Each of the four barriers stands between a write and a read of one buffer.
 *
 * Barriers are for all threads of the block, so all groups go through the loop together. With barriers of its own for each group
 * nobody had to wait for another one's exponentials, and the results were right; but compute-sanitizer's racecheck then reports
 * what is written before the barrier for all at the end and read behind it, and a kernel that it does not find clean is not proven.
 *
 * Scores and maxima are in units of log2: exp(x) = 2^(x log2 e), and the factor is that of the scale. Modifiers (softcap, ALiBi, bias) are
 * applied in shared memory, one score after the other: that is slow, and code for it would not fit into registers beside the rest. Modified
 * scores are in natural units, and differences are brought to log2: a bias near the lowest float would be -inf in units of log2.
 */
#include <attest_kernel_cuda.h>

#include "simt.cuh"

constexpr int D = ATTEST_DIM;
constexpr int BLOCK_Q = ATTEST_TILE_Q;
constexpr int BLOCK_KV = ATTEST_TILE_KV;
constexpr int ROWS = 512 / D;                              // query rows of a thread
constexpr int GROUP_THREADS = 32 * (BLOCK_Q / (4 * ROWS)); // 64 for dim 64, 128 for dim 128
constexpr int GROUPS = ATTEST_THREADS / GROUP_THREADS;
constexpr int QUADS = D / 4;             // of a row of Q, K, V and O
constexpr int KEY_QUADS = BLOCK_KV / 32; // of a thread, in a row of S
constexpr int OUT_QUADS = D / 32;        // of a thread, in a row of O
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;
constexpr unsigned ALL_LANES = 0xffffffffu, MINUS_ZERO = 0x80000000u;

static_assert(GROUP_THREADS / QUADS == 4, "see copy_keys");
static_assert(BLOCK_Q == 64 && BLOCK_KV % 32 == 0 && GROUPS >= 1 && GROUP_THREADS == D, "see Map");

struct Group {
    float K[BLOCK_KV * D], V[BLOCK_KV * D], P[BLOCK_Q * BLOCK_KV];
};
struct Tiles {
    float Q[BLOCK_Q * D];
    Group group[GROUPS];
    float m[GROUPS][BLOCK_Q], l[GROUPS][BLOCK_Q];
};
static_assert(sizeof(Group) >= sizeof(float) * BLOCK_Q * D, "a group's output takes the place of its K, V and P");
ATTEST_CUDA_FACTS(sizeof(Tiles));

__device__ inline float minus_infinity()
{
    return __int_as_float(0xff800000);
}

__device__ inline float *quad_at(float *tile, int quads, int row, int quad)
{
    return tile + (row * quads + quad) * 4;
}

__device__ inline float4 load_quad(const float *from)
{
    return *reinterpret_cast<const float4 *>(from);
}

__device__ inline void store_quad(float *to, float a, float b, float c, float d)
{
    *reinterpret_cast<float4 *>(to) = make_float4(a, b, c, d);
}

__device__ inline float part(const float4 &quad, int n)
{
    return n == 0 ? quad.x : n == 1 ? quad.y : n == 2 ? quad.z : quad.w;
}

// Whether a tensor and its rows, heads and batches lie at multiples of 16 bytes.
__device__ inline bool is_aligned(const void *data, const int64_t *stride)
{
    return (((uint64_t)data | (uint64_t)(stride[0] | stride[1] | stride[2]) * sizeof(float)) & 15) == 0;
}

// One quad; `count` floats of it are there (any number, negative too), and the rest become 0. `base` is an address that may be
// read.
__device__ inline void copy_quad(float *to, const float *from, const float *base, int count, bool aligned)
{
    count = count < 0 ? 0 : count > 4 ? 4 : count;
    if (aligned) {
        copy16(to, count ? from : base, count * 4);
        return;
    }
    for (int n = 0; n < 4; n++)
        copy4(to + n, n < count ? from + n : base, n < count ? 4 : 0);
}

// Begins to copy keys first .. first + BLOCK_KV of K or V, all threads of a group together; 0 from `end` on and beyond column
// `dim`.
template <bool Swizzled>
__device__ inline void copy_keys(const attest_cuda_args &args, const attest_tile &tile, const void *data, const int64_t *stride,
                                 int dim, int first, int end, bool aligned, float *KV_smem)
{
    constexpr int STEP = GROUP_THREADS / QUADS; // keys that the group copies at once
    const float *base = (const float *)data;
    const int thread = threadIdx.x % GROUP_THREADS, quad = thread % QUADS, key_0 = thread / QUADS;
    const bool paged = attest_has(args, ATTEST_PAGED);
    if (aligned && !paged && dim == D && first + BLOCK_KV <= end) {
        const float *from = base + attest_key_offset(args, stride, tile, first + key_0) + quad * 4;
#pragma unroll
        for (int n = 0; n < BLOCK_KV / STEP; n++, from += STEP * stride[2]) {
            int key = key_0 + n * STEP;
            copy16(quad_at(KV_smem, QUADS, key, Swizzled ? quad ^ (n * STEP / 4 & 7) : quad), from, 16);
        }
        return;
    }
#pragma unroll 1
    for (int key = key_0; key < BLOCK_KV; key += STEP) {
        bool there = first + key < end;
        int64_t at = there ? attest_key_offset(args, stride, tile, first + key) + quad * 4 : 0;
        copy_quad(quad_at(KV_smem, QUADS, key, Swizzled ? quad ^ (key / 4 & 7) : quad), base + at, base, there ? dim - quad * 4 : 0,
                  aligned);
    }
}

// Row r of the tile's slot in Q, O or LSE.
__device__ inline int64_t row_offset(const attest_cuda_args &args, const int64_t *stride, const attest_tile &tile, int r)
{
    return attest_row_offset(args, stride, tile, tile.slot * args.pack + r % args.pack, r / args.pack);
}

__device__ inline void copy_rows(const attest_cuda_args &args, const attest_tile &tile, float *Q_smem)
{
    const float *base = (const float *)args.q;
    const bool aligned = is_aligned(args.q, args.stride_q);
    const int quad = threadIdx.x % QUADS;
    for (int row = threadIdx.x / QUADS; row < BLOCK_Q; row += ATTEST_THREADS / QUADS) {
        bool there = tile.row_begin + row < tile.row_end;
        int64_t at = there ? row_offset(args, args.stride_q, tile, tile.row_begin + row) + quad * 4 : 0;
        copy_quad(quad_at(Q_smem, QUADS, row, quad ^ (row & 1) * 4), base + at, base, there ? args.dim - quad * 4 : 0, aligned);
    }
}

// Steps 1, 2, 4, 5 and 6 of SEMANTICS: the score of row r of the slot, -inf if it does not see the key.
__device__ inline float modify(const attest_cuda_args &args, const attest_tile &tile, int r, int j, float dot)
{
    const int i = r / args.pack, head = tile.slot * args.pack + r % args.pack;
    const attest_span row = attest_row_visible(args, tile.sequence, i);
    if (j < row.begin || j >= row.end)
        return minus_infinity();
    float s = args.scale * dot;
    if (attest_has(args, ATTEST_SOFTCAP))
        s = args.softcap * tanhf(s / args.softcap);
    if (attest_has(args, ATTEST_ALIBI))
        s -= args.alibi_slopes[head] * fabsf((float)(attest_row_place(args, tile.sequence, i) - j));
    if (attest_has(args, ATTEST_BIAS)) {
        const float bias =
            attest_load(args.bias, args.dtype_bias, attest_bias_offset(args, tile, head, i) + j * args.stride_bias[3]);
        s = bias == minus_infinity() ? bias : s + bias; // even if s is NaN
    }
    return s;
}

// O += P V. A key that a bias hides from all rows of the thread must not be multiplied, it may be NaN: its P is -0. A weight that has
// underflowed is +0.
template <bool Biased>
__device__ inline void add_values(Group &own, int row_0, int column, int swizzle, float (&O_rmem)[ROWS][OUT_QUADS][4])
{
#pragma unroll 2
    for (int key = 0; key < BLOCK_KV; key += 4) {
        float4 p[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            p[r] = load_quad(quad_at(own.P, BLOCK_KV / 4, row_0 + r * 4, key / 4 ^ swizzle));
#pragma unroll
        for (int c = 0; c < 4; c++) {
            bool hidden = Biased;
#pragma unroll
            for (int r = 0; r < ROWS && Biased; r++)
                hidden = hidden && __float_as_uint(part(p[r], c)) == MINUS_ZERO;
#pragma unroll
            for (int n = 0; n < OUT_QUADS; n++) {
                float4 v = load_quad(quad_at(own.V, QUADS, key + c, n * 8 + column));
                if (hidden)
                    v = make_float4(0, 0, 0, 0);
#pragma unroll
                for (int d = 0; d < 4; d++)
#pragma unroll
                    for (int r = 0; r < ROWS; r++)
                        O_rmem[r][n][d] = fmaf(part(p[r], c), part(v, d), O_rmem[r][n][d]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1) attest_kernel(const __grid_constant__ attest_cuda_args args)
{
    extern __shared__ __align__(16) unsigned char shared[];
    Tiles &smem = *reinterpret_cast<Tiles *>(shared);

    // The last tiles of all slots come first: with a causal mask they are the longest.
    const int slots = args.batch * args.slots, turn = blockIdx.x / slots;
    const attest_tile tile = attest_tile_get(args, (blockIdx.x - turn * slots) * args.tiles_q + args.tiles_q - 1 - turn);
    if (tile.row_begin >= tile.row_end)
        return;
    const attest_span span = attest_tile_visible(args, tile);
    // Keys from here to there are seen by all rows of the tile, where only positions decide.
    const int all_begin = attest_row_visible(args, tile.sequence, (tile.row_end - 1) / args.pack).begin;
    const int all_end = attest_row_visible(args, tile.sequence, tile.row_begin / args.pack).end;
    // A scale that is not positive is rare enough to be treated as a modifier.
    const bool modified = (args.flags & (ATTEST_SOFTCAP | ATTEST_ALIBI | ATTEST_BIAS)) != 0 || !(args.scale > 0);
    const bool biased = attest_has(args, ATTEST_BIAS);
    const bool aligned_k = is_aligned(args.k, args.stride_k), aligned_v = is_aligned(args.v, args.stride_v);
    const float factor = modified ? 1.0f : args.scale * LOG2_E, unit = modified ? LOG2_E : 1.0f; // of a maximum, in units of log2

    const int group = threadIdx.x / GROUP_THREADS, lane = threadIdx.x % 32;
    const int column = (lane & 1) | (lane >> 1 & 6), part_row = (lane >> 1 & 1) | (lane >> 3 & 2);
    const int row_0 = threadIdx.x % GROUP_THREADS / 32 * 4 * ROWS + part_row; // and each fourth row from there
    const int swizzle = (part_row & 1) * 4;                                   // of these rows
    Group &own = smem.group[group];

    float m[ROWS], l[ROWS], O_rmem[ROWS][OUT_QUADS][4];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        m[r] = minus_infinity();
        l[r] = 0;
#pragma unroll
        for (int d = 0; d < OUT_QUADS * 4; d++)
            O_rmem[r][d / 4][d % 4] = 0;
    }

    constexpr int STRIDE = GROUPS * BLOCK_KV; // keys that all groups take at once
    copy_rows(args, tile, smem.Q);
    if (span.begin < span.end)
        copy_keys<true>(args, tile, args.k, args.stride_k, args.dim, span.begin + group * BLOCK_KV, span.end, aligned_k, own.K);
    copies_close();
    if (span.begin < span.end)
        copy_keys<false>(args, tile, args.v, args.stride_v, args.dim_v, span.begin + group * BLOCK_KV, span.end, aligned_v, own.V);
    copies_close();
    copies_wait<1>();
    __syncthreads(); // Q has been written by all threads

    for (int block = span.begin; block < span.end; block += STRIDE) {
        const int first = block + group * BLOCK_KV; // may be behind the end: then K and V are 0, and all keys are masked
        const bool last = block + STRIDE >= span.end;
        copies_wait<1>();
        __syncthreads(); // K has been written

        // S = Q K^T
        float s[ROWS][KEY_QUADS][4];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int n = 0; n < KEY_QUADS * 4; n++)
                s[r][n / 4][n % 4] = 0;
#pragma unroll 1
        for (int quad = 0; quad < QUADS; quad++) {
            float4 q[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                q[r] = load_quad(quad_at(smem.Q, QUADS, row_0 + r * 4, quad ^ swizzle));
#pragma unroll
            for (int n = 0; n < KEY_QUADS * 4; n++) {
                float4 k = load_quad(quad_at(own.K, QUADS, n / 4 * 32 + column * 4 + n % 4, quad ^ column));
#pragma unroll
                for (int c = 0; c < 4; c++)
#pragma unroll
                    for (int r = 0; r < ROWS; r++)
                        s[r][n / 4][n % 4] = fmaf(part(q[r], c), part(k, c), s[r][n / 4][n % 4]);
            }
        }
        __syncthreads(); // K has been read
        if (!last)
            copy_keys<true>(args, tile, args.k, args.stride_k, args.dim, first + STRIDE, span.end, aligned_k, own.K);
        copies_close();

        // Modifiers and masks.
        if (modified) {
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int n = 0; n < KEY_QUADS; n++)
                    store_quad(quad_at(own.P, BLOCK_KV / 4, row_0 + r * 4, (n * 8 + column) ^ swizzle), s[r][n][0], s[r][n][1],
                               s[r][n][2], s[r][n][3]);
#pragma unroll 1
            for (int n = 0; n < ROWS * KEY_QUADS * 4; n++) {
                int row = row_0 + n / (KEY_QUADS * 4) * 4, quad = n / 4 % KEY_QUADS * 8 + column;
                float *at = quad_at(own.P, BLOCK_KV / 4, row, quad ^ swizzle) + n % 4;
                row = min(tile.row_begin + row, tile.row_end - 1); // rows that are not there are like the last one
                *at = modify(args, tile, row, first + quad * 4 + n % 4, *at);
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int n = 0; n < KEY_QUADS; n++) {
                    float4 quad = load_quad(quad_at(own.P, BLOCK_KV / 4, row_0 + r * 4, (n * 8 + column) ^ swizzle));
#pragma unroll
                    for (int c = 0; c < 4; c++)
                        s[r][n][c] = part(quad, c);
                }
        } else if (first < all_begin || first + BLOCK_KV > all_end) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                attest_span row = attest_row_visible(args, tile.sequence, (tile.row_begin + row_0 + r * 4) / args.pack);
#pragma unroll
                for (int n = 0; n < KEY_QUADS * 4; n++) {
                    int j = first + n / 4 * 32 + column * 4 + n % 4;
                    if (j < row.begin || j >= row.end)
                        s[r][n / 4][n % 4] = minus_infinity();
                }
            }
        }

        // Maximum, exponential, sum; what was there before is brought to the new maximum. A row is shared by eight lanes. The
        // factor joins the difference to the maximum in one operation, which is rounded once; it is positive, so the largest is the
        // same.
        float top[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            top[r] = s[r][0][0];
#pragma unroll
            for (int n = 1; n < KEY_QUADS * 4; n++)
                top[r] = fmaxf(top[r], s[r][n / 4][n % 4]);
        }
#pragma unroll
        for (int step = 1; step < 16; step = step == 1 ? 4 : step * 2) // all rows at once: a shuffle takes long
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                top[r] = fmaxf(top[r], __shfl_xor_sync(ALL_LANES, top[r], step));
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            top[r] = fmaxf(top[r] * factor, m[r]);
            float base = top[r] == minus_infinity() ? 0.0f : top[r], carry = power2((m[r] - base) * unit), sum = 0;
#pragma unroll
            for (int n = 0; n < KEY_QUADS; n++) {
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    float difference = fmaf(s[r][n][c], factor, -base);
                    if (modified)
                        difference *= LOG2_E;
                    const bool hidden = biased && s[r][n][c] == minus_infinity();
                    s[r][n][c] = hidden ? __uint_as_float(MINUS_ZERO) : power2(difference); // P from here on
                    sum += s[r][n][c];
                }
                store_quad(quad_at(own.P, BLOCK_KV / 4, row_0 + r * 4, (n * 8 + column) ^ swizzle), s[r][n][0], s[r][n][1],
                           s[r][n][2], s[r][n][3]);
            }
            m[r] = top[r];
            l[r] = l[r] * carry + sum; // of this lane's keys alone
#pragma unroll
            for (int d = 0; d < OUT_QUADS * 4; d++)
                O_rmem[r][d / 4][d % 4] *= carry;
        }

        copies_wait<1>();
        __syncthreads(); // V and P have been written

        if (biased)
            add_values<true>(own, row_0, column, swizzle, O_rmem);
        else
            add_values<false>(own, row_0, column, swizzle, O_rmem);
        __syncthreads(); // V and P have been read
        if (!last)
            copy_keys<false>(args, tile, args.v, args.stride_v, args.dim_v, first + STRIDE, span.end, aligned_v, own.V);
        copies_close();
    }

    // Epilogue: every group leaves its output where its K, V and P were, and then all threads join the groups.
    copies_wait<0>();
    __syncthreads(); // all groups are done
    float *O_smem = own.K;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        l[r] += __shfl_xor_sync(ALL_LANES, l[r], 1);
        l[r] += __shfl_xor_sync(ALL_LANES, l[r], 4);
        l[r] += __shfl_xor_sync(ALL_LANES, l[r], 8);
        if (column == 0) {
            smem.m[group][row_0 + r * 4] = m[r];
            smem.l[group][row_0 + r * 4] = l[r];
        }
#pragma unroll
        for (int n = 0; n < OUT_QUADS; n++)
            store_quad(quad_at(O_smem, QUADS, row_0 + r * 4, (n * 8 + column) ^ swizzle), O_rmem[r][n][0], O_rmem[r][n][1],
                       O_rmem[r][n][2], O_rmem[r][n][3]);
    }
    __syncthreads(); // all groups' outputs have been written

    const bool aligned_o = is_aligned(args.o, args.stride_o);
    const int quad = threadIdx.x % QUADS;
    for (int row = threadIdx.x / QUADS; row < BLOCK_Q && tile.row_begin + row < tile.row_end; row += ATTEST_THREADS / QUADS) {
        float top = minus_infinity(), sum = 0, o[4] = {0, 0, 0, 0};
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            top = fmaxf(top, smem.m[g][row]);
        float base = top == minus_infinity() ? 0.0f : top;
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            float weight = power2((smem.m[g][row] - base) * unit);
            float4 more = load_quad(quad_at(smem.group[g].K, QUADS, row, quad ^ (row & 1) * 4));
            sum = fmaf(weight, smem.l[g][row], sum);
#pragma unroll
            for (int d = 0; d < 4; d++)
                o[d] = fmaf(weight, part(more, d), o[d]);
        }
        const int r = tile.row_begin + row;
        attest_ending ending = attest_row_ending(args, modified ? top : top * LN_2, sum, tile.slot * args.pack + r % args.pack);
        float *at = (float *)args.o + row_offset(args, args.stride_o, tile, r) + quad * 4;
        if (aligned_o && quad * 4 + 4 <= args.dim_v) {
            store_quad(at, o[0] * ending.factor, o[1] * ending.factor, o[2] * ending.factor, o[3] * ending.factor);
        } else {
#pragma unroll
            for (int d = 0; d < 4; d++)
                if (quad * 4 + d < args.dim_v)
                    at[d] = o[d] * ending.factor;
        }
        if (attest_has(args, ATTEST_LSE) && quad == 0)
            args.lse[row_offset(args, args.stride_lse, tile, r)] = ending.lse;
    }
}
