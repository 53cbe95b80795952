/*
 * kernel_cuda_sm80.cu - FlashAttention on tensor cores (mma.sync) with a ring of asynchronous copies (cp.async): complete and right, and
 * a place to begin from. It runs on GPUs from compute capability 8.0 on.
 *
 * The manifest: what the host has to know, and what the build gate holds against the image. attest_kernel_cuda.h explains the keys.
 *
 * attest-cuda: name      = kernel_cuda_sm80
 * attest-cuda: summary   = mma.sync, 16 rows to a warp, K and V by cp.async into a ring of stages
 * attest-cuda: archs     = sm_80 sm_86 sm_89 sm_90
 * attest-cuda: dtypes    = f16 bf16
 * attest-cuda: dims      = 64 128
 * attest-cuda: padding   = yes
 * attest-cuda: tile_q    = 64
 * attest-cuda: tile_kv   = 64
 * attest-cuda: stages    = 2
 * attest-cuda: threads   = 2 * tile_q
 * attest-cuda: shared    = 2 * dim * (tile_q + 2 * stages * tile_kv)
 * attest-cuda: registers = 192
 * attest-cuda: launch    = tile
 * attest-cuda: align     = 16
 * attest-cuda: refuses   = bias
 * attest-cuda: tensor    = hmma
 * attest-cuda: mma_qk    = 16 * 8 * 16
 * attest-cuda: mma_pv    = 16 * 8 * 16
 *
 * Contract: all of SEMANTICS in attest.h but for the bias, 16-bit types, dim and dim_v up to 128; tensors and strides are multiples of
 * 16 bytes.
 *
 * The algorithm, for each row i of the tile, over the blocks of keys that some row of the tile sees; scores are in units of log2:
 *     s_j = log2(e) scale q_i . k_j, with softcap and ALiBi; -inf if masks hide key j from row i
 *     m'  = max(m, max_j s_j)                      the largest score so far
 *     p_j = 2^(s_j - m')
 *     l   = l 2^(m - m') + sum_j p_j               the denominator, relative to m'
 *     o   = o 2^(m - m') + sum_j p_j v_j           the output, likewise
 * and at the end O = o / l, LSE = ln(2) m + ln l. The sink joins the denominator there. P is rounded to 16 bits for the product with V, l
 * is not.
 *
 * Map. A block has TILE_Q rows, a warp 16 of them for all of the keys. S_rmem[TILE_KV / 8][4] and O_rmem[D / 8][4] are fragments C of
 * attest/mma_sm80.cuh: a lane holds two columns of rows lane / 4 and lane / 4 + 8.
 *     Q_smem[TILE_Q][D], then STAGES times K_smem[TILE_KV][D] and V_smem[TILE_KV][D], 16-bit elements. A row is cut into chunks of 16
 *     bytes, and chunk c of row r lies where chunk c ^ (r % 8) would, so that the eight rows that ldmatrix reads at a time lie in
 *     different banks.
 *
 * Pipeline. While block n is computed, the next STAGES - 1 blocks are on their way. One barrier for each block, behind the wait for this
 * thread's copies of block n: after it block n is there for all threads, and all have read block n - 1, into whose buffer the next copy
 * goes.
 */
#include <attest/mma_sm80.cuh>

constexpr int D = ATTEST_DIM, TILE_Q = ATTEST_TILE_Q, TILE_KV = ATTEST_TILE_KV, STAGES = ATTEST_STAGES;
constexpr int CHUNKS = D / 8; // of a row
constexpr int PITCH = D * 2;  // bytes of a row in shared memory
constexpr int TILE_BYTES = TILE_KV * PITCH, SHARED_KV = TILE_Q * PITCH;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;
constexpr unsigned ALL_LANES = 0xffffffffu;

static_assert(TILE_Q == ATTEST_THREADS / 32 * 16, "a warp has 16 rows");
static_assert(CHUNKS % 8 == 0 && TILE_KV % 16 == 0, "the swizzle works on 8 chunks, fragments on 16 keys");
static_assert(STAGES >= 2, "one block is computed while another one is on its way");

ATTEST_CUDA_FACTS(SHARED_KV + 2 * STAGES * TILE_BYTES);

__device__ inline float minus_infinity()
{
    return __int_as_float(0xff800000);
}

__device__ inline uint32_t chunk_at(uint32_t base, int row, int chunk)
{
    return base + row * PITCH + ((chunk ^ row % 8) << 4);
}

// One chunk; zero where there is no row, and beyond column `dim`.
__device__ inline void copy_chunk(uint32_t to, const void *data, int64_t at, int chunk, int dim, bool there)
{
    const int count = there ? min(max(dim - chunk * 8, 0), 8) : 0;
    cp_async_16(to, (const uint16_t *)data + (count ? at + chunk * 8 : 0), 2 * count);
}

__device__ inline void copy_rows(const attest_cuda_args &args, const attest_tile &tile, uint32_t to)
{
    for (int index = threadIdx.x; index < TILE_Q * CHUNKS; index += ATTEST_THREADS) {
        const int row = index / CHUNKS, chunk = index % CHUNKS, i = tile.row_begin + row;
        const bool there = i < tile.row_end;
        copy_chunk(chunk_at(to, row, chunk), args.q, there ? attest_row_offset(args, args.stride_q, tile, tile.slot, i) : 0, chunk,
                   args.dim, there);
    }
}

// Keys first .. first + TILE_KV of K, and behind them of V. Keys from `end` on are zero: no row sees them, and they may be NaN.
__device__ inline void copy_keys(const attest_cuda_args &args, const attest_tile &tile, uint32_t to, int first, int end)
{
    for (int index = threadIdx.x; index < TILE_KV * CHUNKS; index += ATTEST_THREADS) {
        const int row = index / CHUNKS, chunk = index % CHUNKS, key = first + row;
        const bool there = key < end;
        const uint32_t at = chunk_at(to, row, chunk);
        copy_chunk(at, args.k, there ? attest_key_offset(args, args.stride_k, tile, key) : 0, chunk, args.dim, there);
        copy_chunk(at + TILE_BYTES, args.v, there ? attest_key_offset(args, args.stride_v, tile, key) : 0, chunk, args.dim_v, there);
    }
}

// S = Q K^T, of the warp's 16 rows.
__device__ inline void product_qk(float (&S_rmem)[TILE_KV / 8][4], uint32_t q_at, uint32_t k_at)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < TILE_KV / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            S_rmem[n][e] = 0;
#pragma unroll
    for (int mma_d = 0; mma_d < D / 16; mma_d++) {
        uint32_t Q_rmem[4];
        ldmatrix_x4(Q_rmem, chunk_at(q_at, warp * 16 + lane % 16, 2 * mma_d + lane / 16));
#pragma unroll
        for (int mma_kv = 0; mma_kv < TILE_KV / 16; mma_kv++) {
            uint32_t K_rmem[4]; // keys 0 .. 7, then 8 .. 15, columns 0 .. 7 and 8 .. 15 of each
            ldmatrix_x4(K_rmem, chunk_at(k_at, mma_kv * 16 + lane / 16 * 8 + lane % 8, 2 * mma_d + lane / 8 % 2));
            mma(S_rmem[2 * mma_kv], Q_rmem, K_rmem[0], K_rmem[1]);
            mma(S_rmem[2 * mma_kv + 1], Q_rmem, K_rmem[2], K_rmem[3]);
        }
    }
}

// O += P V. P is S_rmem, packed to pairs: fragments C are fragments A of the next product.
__device__ inline void product_pv(float (&O_rmem)[D / 8][4], const float (&P_rmem)[TILE_KV / 8][4], uint32_t v_at)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int mma_kv = 0; mma_kv < TILE_KV / 16; mma_kv++) {
        const float(&left)[4] = P_rmem[2 * mma_kv], (&right)[4] = P_rmem[2 * mma_kv + 1];
        const uint32_t pairs[4] = {pack(left[0], left[1]), pack(left[2], left[3]), pack(right[0], right[1]), pack(right[2], right[3])};
#pragma unroll
        for (int mma_d = 0; mma_d < D / 16; mma_d++) {
            uint32_t V_rmem[4]; // columns 0 .. 7, then 8 .. 15, keys 0 .. 7 and 8 .. 15 of each
            ldmatrix_x4_transposed(V_rmem, chunk_at(v_at, mma_kv * 16 + lane % 16, 2 * mma_d + lane / 16));
            mma(O_rmem[2 * mma_d], pairs, V_rmem[0], V_rmem[1]);
            mma(O_rmem[2 * mma_d + 1], pairs, V_rmem[2], V_rmem[3]);
        }
    }
}

// Steps 1, 2 and 4 of SEMANTICS, in units of log2: row `place` among the keys, key j. __fmul_rn: a product that is fused with the
// subtraction of the maximum would not be what the maximum was taken of.
__device__ inline float modify(const attest_cuda_args &args, float s, float slope, int place, int j)
{
    s = attest_has(args, ATTEST_SOFTCAP) ? args.softcap * tanhf(s * args.scale / args.softcap) : s * args.scale;
    return __fmul_rn(s - slope * fabsf((float)(place - j)), LOG2_E);
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS) attest_kernel(const __grid_constant__ attest_cuda_args args)
{
    extern __shared__ __align__(128) unsigned char shared[];
    const uint32_t q_at = shared_address(shared), kv_at = q_at + SHARED_KV;

    // Coordinates. Every thread of a block has the same tile, so this return is uniform.
    const attest_tile tile = attest_tile_get(args, blockIdx.x);
    if (tile.row_begin >= tile.row_end)
        return;
    const attest_span keys = attest_tile_visible(args, tile);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, blocks = (max(keys.end - keys.begin, 0) + TILE_KV - 1) / TILE_KV;
    const float slope = attest_has(args, ATTEST_ALIBI) ? args.alibi_slopes[tile.slot] : 0;

    float O_rmem[D / 8][4], m[2] = {minus_infinity(), minus_infinity()}, l[2] = {0, 0};
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            O_rmem[n][e] = 0;

    // Q and the first block are one group, each block behind it is another one, empty if there is no such block.
    copy_rows(args, tile, q_at);
    for (int n = 0; n < STAGES - 1; n++) {
        if (n < blocks)
            copy_keys(args, tile, kv_at + n * 2 * TILE_BYTES, keys.begin + n * TILE_KV, keys.end);
        cp_async_commit();
    }

    for (int kv_block = 0; kv_block < blocks; kv_block++) {
        const int first = keys.begin + kv_block * TILE_KV, next = kv_block + STAGES - 1;
        const uint32_t k_at = kv_at + kv_block % STAGES * 2 * TILE_BYTES, v_at = k_at + TILE_BYTES;
        cp_async_wait<STAGES - 2>();
        __syncthreads(); // this block has been written, and the one before has been read
        if (next < blocks)
            copy_keys(args, tile, kv_at + next % STAGES * 2 * TILE_BYTES, keys.begin + next * TILE_KV, keys.end);
        cp_async_commit();

        float S_rmem[TILE_KV / 8][4];
        product_qk(S_rmem, q_at, k_at);

        // Mask, maximum, exponential, sum; what was there before is brought to the new maximum. A lane has two rows; four lanes share
        // each.
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int i = tile.row_begin + warp * 16 + half * 8 + lane / 4, place = attest_row_place(args, tile.sequence, i);
            const attest_span row = attest_row_visible(args, tile.sequence, i);
            float most = m[half];
#pragma unroll
            for (int n = 0; n < TILE_KV / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int j = first + n * 8 + lane % 4 * 2 + e;
                    float &s = S_rmem[n][half * 2 + e];
                    s = j >= row.begin && j < row.end ? modify(args, s, slope, place, j) : minus_infinity();
                    most = fmaxf(most, s);
                }
            most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 1));
            most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 2));
            const float shift = most == minus_infinity() ? 0 : most, carry = exp2_fast(m[half] - shift);
            m[half] = most;
            l[half] *= carry;
#pragma unroll
            for (int n = 0; n < TILE_KV / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float &p = S_rmem[n][half * 2 + e];
                    p = exp2_fast(p - shift);
                    l[half] += p;
                }
#pragma unroll
            for (int n = 0; n < D / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    O_rmem[n][half * 2 + e] *= carry;
        }
        product_pv(O_rmem, S_rmem, v_at);
    }

    // Epilogue. A block must not end while copies are on their way.
    cp_async_wait<0>();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int i = tile.row_begin + warp * 16 + half * 8 + lane / 4;
        l[half] += __shfl_xor_sync(ALL_LANES, l[half], 1);
        l[half] += __shfl_xor_sync(ALL_LANES, l[half], 2);
        if (i >= tile.row_end)
            continue;
        const attest_ending ending = attest_row_ending(args, m[half] * LN_2, l[half], tile.slot);
        const int64_t at = attest_row_offset(args, args.stride_o, tile, tile.slot, i);
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int column = n * 8 + lane % 4 * 2 + e;
                if (column < args.dim_v)
                    attest_store(args.o, args.dtype_o, at + column, O_rmem[n][half * 2 + e] * ending.factor);
            }
        if (attest_has(args, ATTEST_LSE) && lane % 4 == 0)
            args.lse[attest_row_offset(args, args.stride_lse, tile, tile.slot, i)] = ending.lse;
    }
}
