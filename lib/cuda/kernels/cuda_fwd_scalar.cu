/*
 * cuda_fwd_scalar.cu - FlashAttention without tensor cores, vectors or copies in the background: complete, simple and right; slow.
 * It takes every problem, so the library has it for those that no faster kernel takes; and it is what `attest new --cuda` writes, to
 * begin with. docs/kernels/cuda_scalar.md has its floor and its times.
 *
 * The manifest: what the host has to know, and what the build gate holds against the image. attest_kernel_cuda.h explains the keys.
 *
 * attest-cuda: name      = cuda_fwd_scalar
 * attest-cuda: summary   = one warp for four rows, one lane for each key, float32 throughout
 * attest-cuda: archs     = sm_80 sm_86 sm_89 sm_90
 * attest-cuda: dtypes    = f32 f16 bf16
 * attest-cuda: dims      = 64 128 256 512
 * attest-cuda: padding   = yes
 * attest-cuda: tile_q    = 16
 * attest-cuda: tile_kv   = 32
 * attest-cuda: threads   = 128
 * attest-cuda: shared    = 4 * (tile_q * dim + tile_kv * (dim + 1))
 * attest-cuda: registers = 80 + dim / 8
 * attest-cuda: launch    = tile
 *
 * Contract: all of SEMANTICS in attest.h, every dtype, any strides, any dim and dim_v up to 512. Nothing is refused.
 *
 * The algorithm, for each row i of the tile, over the blocks of keys that some row of the tile sees:
 *     s_j = scale q_i . k_j, with softcap, ALiBi and bias; -inf if masks hide key j from row i
 *     m'  = max(m, max_j s_j)                      the largest score so far
 *     p_j = exp(s_j - m')
 *     l   = l exp(m - m') + sum_j p_j              the denominator, relative to m'
 *     o   = o exp(m - m') + sum_j p_j v_j          the output, likewise
 * and at the end O = o / l, LSE = m + ln l. The sink joins the denominator there.
 *
 * Map. A block has 4 warps and 16 rows; a warp owns 4 rows for all of the keys. In the product with K a lane is a key, so a block
 * of keys is as long as a warp; in the product with V a lane is every 32nd column of O.
 *     Q_smem[16][dim], KV_smem[32][dim + 1]: float; K and then V of a block of keys lie in KV_smem. The odd pitch lets 32 lanes
 *     read 32 rows without a bank conflict.
 *
 * Barriers, four for each block of keys: before K is written (all have read the last V) and after (all see K), before V is written
 * (all have read K) and after (all see V).
 */
#include <attest_kernel_cuda.h>

constexpr int WARPS = ATTEST_THREADS / 32;
constexpr int WARP_Q = ATTEST_TILE_Q / WARPS; // rows of a warp
constexpr int BLOCK_KV = ATTEST_TILE_KV;      // keys of a block
constexpr int D = ATTEST_DIM;                 // dim and dim_v, with what lies beyond them zero
constexpr int LANE_D = D / 32;                // columns of O that a lane owns, for each row
constexpr float LOG2_E = 1.4426950408889634f;
constexpr unsigned ALL_LANES = 0xffffffffu;

static_assert(BLOCK_KV == 32, "a lane is a key");
static_assert(ATTEST_TILE_Q % WARPS == 0 && D % 32 == 0, "rows and columns are shared out evenly");

struct Tiles {
    float Q[ATTEST_TILE_Q][D];
    float KV[BLOCK_KV][D + 1];
};
ATTEST_CUDA_FACTS(sizeof(Tiles));

__device__ inline float minus_infinity()
{
    return __int_as_float(0xff800000);
}

__device__ inline float warp_max(float x)
{
    for (int step = 16; step; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, step));
    return x;
}

__device__ inline float warp_sum(float x)
{
    for (int step = 16; step; step /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

// Keys first .. first + BLOCK_KV of K or V, a warp for each key; zero beyond `end` and beyond column `dim`.
__device__ inline void load_keys(const attest_cuda_args &args, const attest_tile &tile, const void *data, const int64_t *stride,
                                 int dim, int first, int end, float (*KV_smem)[D + 1])
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int key = warp; key < BLOCK_KV; key += WARPS) {
        bool there = first + key < end;
        int64_t at = there ? attest_key_offset(args, stride, tile, first + key) : 0;
        for (int d = lane; d < D; d += 32)
            KV_smem[key][d] = there && d < dim ? attest_load(data, ATTEST_DTYPE, at + d) : 0.0f;
    }
}

// A warp for each row; zero beyond the last row and beyond column `dim`.
__device__ inline void load_rows(const attest_cuda_args &args, const attest_tile &tile, float (*Q_smem)[D])
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int row = warp; row < ATTEST_TILE_Q; row += WARPS) {
        int r = tile.row_begin + row;
        bool there = r < tile.row_end;
        int64_t at = there ? attest_row_offset(args, args.stride_q, tile, tile.slot * args.pack + r % args.pack, r / args.pack) : 0;
        for (int d = lane; d < D; d += 32)
            Q_smem[row][d] = there && d < args.dim ? attest_load(args.q, ATTEST_DTYPE, at + d) : 0.0f;
    }
}

// Steps 2, 4 and 5 of SEMANTICS. `visible` is false afterwards if the bias hides the key.
__device__ inline float modify(const attest_cuda_args &args, const attest_tile &tile, int head, int i, int j, float s,
                               bool &visible)
{
    if (attest_has(args, ATTEST_SOFTCAP))
        s = args.softcap * tanhf(s / args.softcap);
    if (attest_has(args, ATTEST_ALIBI))
        s -= args.alibi_slopes[head] * fabsf((float)(attest_row_place(args, tile.sequence, i) - j));
    if (attest_has(args, ATTEST_BIAS) && visible) {
        int64_t at = attest_bias_offset(args, tile, head, i) + j * args.stride_bias[3];
        float bias = attest_load(args.bias, args.dtype_bias, at);
        visible = bias != minus_infinity();
        s += bias;
    }
    return s;
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS) attest_kernel(const __grid_constant__ attest_cuda_args args)
{
    extern __shared__ unsigned char shared[];
    Tiles &smem = *reinterpret_cast<Tiles *>(shared);

    // Coordinates. Every thread of a block has the same tile, so this return is uniform.
    const attest_tile tile = attest_tile_get(args, blockIdx.x);
    if (tile.row_begin >= tile.row_end)
        return;
    const attest_span span = attest_tile_visible(args, tile);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    float m[WARP_Q], l[WARP_Q], O_rmem[WARP_Q][LANE_D];
    for (int q = 0; q < WARP_Q; q++) {
        m[q] = minus_infinity();
        l[q] = 0;
        for (int d = 0; d < LANE_D; d++)
            O_rmem[q][d] = 0;
    }

    load_rows(args, tile, smem.Q);
    for (int kv_block = span.begin; kv_block < span.end; kv_block += BLOCK_KV) {
        __syncthreads(); // the last block's V has been read, and Q has been written
        load_keys(args, tile, args.k, args.stride_k, args.dim, kv_block, span.end, smem.KV);
        __syncthreads(); // K has been written

        // S: a lane is a key.
        float s[WARP_Q];
#pragma unroll
        for (int q = 0; q < WARP_Q; q++)
            s[q] = 0;
        for (int d = 0; d < D; d++) {
            float k = smem.KV[lane][d];
#pragma unroll
            for (int q = 0; q < WARP_Q; q++)
                s[q] = fmaf(smem.Q[warp * WARP_Q + q][d], k, s[q]);
        }

        // Mask, maximum, exponential, sum; what was there before is brought to the new maximum.
        unsigned seen[WARP_Q]; // bit j: the row sees key kv_block + j. What it does not see must not be multiplied, it may be NaN
#pragma unroll
        for (int q = 0; q < WARP_Q; q++) {
            int r = tile.row_begin + warp * WARP_Q + q, i = r / args.pack, head = tile.slot * args.pack + r % args.pack;
            int j = kv_block + lane;
            attest_span row = attest_row_visible(args, tile.sequence, i);
            bool visible = r < tile.row_end && j >= row.begin && j < row.end;
            float score = modify(args, tile, head, i, j, args.scale * s[q], visible);
            seen[q] = __ballot_sync(ALL_LANES, visible);

            float m_new = fmaxf(m[q], warp_max(visible ? score : minus_infinity()));
            bool any = m_new != minus_infinity();
            float carry = any ? exp2f((m[q] - m_new) * LOG2_E) : 1.0f;
            s[q] = visible ? exp2f((score - (any ? m_new : 0.0f)) * LOG2_E) : 0.0f; // P from here on
            l[q] = l[q] * carry + warp_sum(s[q]);
            m[q] = m_new;
#pragma unroll
            for (int d = 0; d < LANE_D; d++)
                O_rmem[q][d] *= carry;
        }

        __syncthreads(); // K has been read
        load_keys(args, tile, args.v, args.stride_v, args.dim_v, kv_block, span.end, smem.KV);
        __syncthreads(); // V has been written

        // P V: a lane is every 32nd column.
        for (int key = 0; key < BLOCK_KV; key++) {
#pragma unroll
            for (int q = 0; q < WARP_Q; q++) {
                float p = __shfl_sync(ALL_LANES, s[q], key);
                if (seen[q] >> key & 1) {
#pragma unroll
                    for (int d = 0; d < LANE_D; d++)
                        O_rmem[q][d] = fmaf(p, smem.KV[key][d * 32 + lane], O_rmem[q][d]);
                }
            }
        }
    }

    // Epilogue.
#pragma unroll
    for (int q = 0; q < WARP_Q; q++) {
        int r = tile.row_begin + warp * WARP_Q + q, i = r / args.pack, head = tile.slot * args.pack + r % args.pack;
        if (r >= tile.row_end)
            continue;
        attest_ending ending = attest_row_ending(args, m[q], l[q], head);
        int64_t at = attest_row_offset(args, args.stride_o, tile, head, i);
#pragma unroll
        for (int d = 0; d < LANE_D; d++)
            if (d * 32 + lane < args.dim_v)
                attest_store(args.o, args.dtype_o, at + d * 32 + lane, O_rmem[q][d] * ending.factor);
        if (attest_has(args, ATTEST_LSE) && lane == 0)
            args.lse[attest_row_offset(args, args.stride_lse, tile, head, i)] = ending.lse;
    }
}
