/*
 * kernel_cuda_sm90.cu - FlashAttention for Hopper: one producer warp copies by TMA, one warpgroup multiplies with wgmma, O leaves by a
 * bulk store. Complete and right, and a place to begin from.
 *
 * The manifest: what the host has to know, and what the build gate holds against the image. attest_kernel_cuda.h explains the keys.
 *
 * attest-cuda: name      = kernel_cuda_sm90
 * attest-cuda: summary   = wgmma, a producer warp with TMA and mbarriers, persistent blocks
 * attest-cuda: archs     = sm_90a
 * attest-cuda: dtypes    = f16 bf16
 * attest-cuda: dims      = 64 128
 * attest-cuda: padding   = yes
 * attest-cuda: tile_q    = 64
 * attest-cuda: tile_kv   = 64
 * attest-cuda: stages    = 2
 * attest-cuda: threads   = 160
 * attest-cuda: shared    = 2 * dim * (tile_q + 2 * stages * tile_kv) + 16 * (stages + 1)
 * attest-cuda: registers = 192
 * attest-cuda: launch    = persistent
 * attest-cuda: align     = 16
 * attest-cuda: map       = q rows tile_q columns 64 swizzle 128
 * attest-cuda: map       = k rows tile_kv columns 64 swizzle 128
 * attest-cuda: map       = v rows tile_kv columns 64 swizzle 128
 * attest-cuda: map       = o rows tile_q columns 64 swizzle 128
 * attest-cuda: refuses   = bias varlenq varlenkv page o=f32
 * attest-cuda: tensor    = gmma
 * attest-cuda: mma_qk    = 64 * tile_kv * 16 / 4
 * attest-cuda: mma_pv    = 64 * dim * 16 / 4
 *
 * Contract: SEMANTICS in attest.h without bias, packed sequences and pages; 16-bit types, O of the same type, dim and dim_v up to 128;
 * tensors and strides are multiples of 16 bytes.
 *
 * The algorithm is that of the online softmax, for each row i of the tile, over the blocks of keys that some row of the tile sees;
 * scores are in units of log2:
 *     s_j = log2(e) scale q_i . k_j, with softcap and ALiBi; -inf if masks hide key j from row i
 *     m'  = max(m, max_j s_j),  p_j = 2^(s_j - m'),  l = l 2^(m - m') + sum_j p_j,  o = o 2^(m - m') + sum_j p_j v_j
 * and at the end O = o / l, LSE = ln(2) m + ln l. The sink joins the denominator there. P is rounded to 16 bits for the product with V, l
 * is not.
 *
 * Map. A block has 64 rows at a time; warps 0 to 3, a warpgroup, compute, and warp 4 copies. Blocks are persistent: block n computes
 * tiles n, n + gridDim.x, ... In shared memory, 16-bit elements: Q_smem[64][D], where O is put at the end of a tile, then STAGES times
 * K_smem[TILE_KV][D] and V_smem[TILE_KV][D], each in panels of 64 columns with a swizzle of 128 bytes (attest/ptx_sm90.cuh), then the
 * barriers.
 *
 *     barrier        who arrives                              who waits                   phase
 *     q_full         producer, with Q's bytes announced       consumers                   one for each tile
 *     q_empty        thread 0, when O's store has read Q_smem producer                    likewise; the first wait passes
 *     full[stage]    producer, with K's and V's bytes         consumers                   one for each block in this stage
 *     empty[stage]   128 consumers, after both products       producer                    likewise; the first wait passes
 */
#include <attest/bulk_sm90.cuh>

constexpr int D = ATTEST_DIM, TILE_Q = ATTEST_TILE_Q, TILE_KV = ATTEST_TILE_KV, STAGES = ATTEST_STAGES;
constexpr int PANELS = D / 64, PANEL_Q = TILE_Q * 128, PANEL_KV = TILE_KV * 128, TILE_BYTES = PANELS * PANEL_KV;
constexpr int SHARED_KV = PANELS * PANEL_Q, SHARED_BARRIERS = SHARED_KV + 2 * STAGES * TILE_BYTES;
constexpr int CONSUMERS = 128; // threads
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;
constexpr unsigned ALL_LANES = 0xffffffffu;
enum { MAP_Q, MAP_K, MAP_V, MAP_O }; // in the order of the manifest

static_assert(ATTEST_THREADS == CONSUMERS + 32 && TILE_Q == 64, "a warpgroup with 64 rows, and a producer");

ATTEST_CUDA_FACTS(SHARED_BARRIERS + 16 * (STAGES + 1));

__device__ inline float minus_infinity()
{
    return __int_as_float(0xff800000);
}

// Addresses in shared memory. The numbers of tiles and blocks that the phases are counted by run over all tiles of a thread block.
struct Shared {
    uint32_t q;
    __device__ uint32_t k(int stage) const { return q + SHARED_KV + stage * 2 * TILE_BYTES; }
    __device__ uint32_t v(int stage) const { return k(stage) + TILE_BYTES; }
    __device__ uint32_t q_full() const { return q + SHARED_BARRIERS; }
    __device__ uint32_t q_empty() const { return q_full() + 8; }
    __device__ uint32_t full(int stage) const { return q_full() + 16 + stage * 16; }
    __device__ uint32_t empty(int stage) const { return full(stage) + 8; }
};

__device__ inline int blocks_of(const attest_span &keys)
{
    return max(keys.end - keys.begin + TILE_KV - 1, 0) / TILE_KV;
}

/* ---- the producer: one warp ---- */

__device__ inline void produce(const attest_cuda_args &args, const attest_cuda_maps &maps, const Shared &smem)
{
    uint32_t tiles = 0, blocks = 0; // so far
    for (int index = blockIdx.x; index < args.tiles; index += gridDim.x) {
        const attest_tile tile = attest_tile_get(args, index);
        const attest_span keys = attest_tile_visible(args, tile);
        if (tile.row_begin >= tile.row_end)
            continue;
        barrier_wait(smem.q_empty(), (tiles++ & 1) ^ 1); // the last tile's O has left
        if (elect_one()) {
            barrier_expect(smem.q_full(), PANELS * PANEL_Q);
            for (int panel = 0; panel < PANELS; panel++)
                map_load_4(smem.q + panel * PANEL_Q, &maps.map[MAP_Q], smem.q_full(), panel * 64, tile.row_begin, tile.slot,
                           tile.batch);
        }
        for (int n = 0; n < blocks_of(keys); n++, blocks++) {
            const int stage = blocks % STAGES, first = keys.begin + n * TILE_KV;
            barrier_wait(smem.empty(stage), (blocks / STAGES & 1) ^ 1); // the block before in this stage has been read
            if (elect_one()) {
                barrier_expect(smem.full(stage), 2 * TILE_BYTES);
                for (int panel = 0; panel < PANELS; panel++) {
                    map_load_4(smem.k(stage) + panel * PANEL_KV, &maps.map[MAP_K], smem.full(stage), panel * 64, first, tile.head_kv,
                               tile.batch);
                    map_load_4(smem.v(stage) + panel * PANEL_KV, &maps.map[MAP_V], smem.full(stage), panel * 64, first, tile.head_kv,
                               tile.batch);
                }
            }
        }
    }
}

/* ---- the consumers: a warpgroup ---- */

// V of keys from `seen` on becomes zero: no row sees them, they have a weight of 0, and they may be NaN.
__device__ inline void blank(uint32_t v_at, int seen)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int key = seen + warp; key < TILE_KV; key += 4)
        for (int chunk = lane; chunk < PANELS * 8; chunk += 32)
            store_shared_16(v_at + chunk / 8 * PANEL_KV + key * 128 + chunk % 8 * 16, make_uint4(0, 0, 0, 0));
    proxy_fence();               // written by threads, read by wgmma
    named_barrier(1, CONSUMERS); // V has been blanked by all
}

// Steps 1, 2 and 4 of SEMANTICS, in units of log2: row `place` among the keys, key j. __fmul_rn: a product that is fused with the
// subtraction of the maximum would not be what the maximum was taken of.
__device__ inline float modify(const attest_cuda_args &args, float s, float slope, int place, int j)
{
    s = attest_has(args, ATTEST_SOFTCAP) ? args.softcap * tanhf(s * args.scale / args.softcap) : s * args.scale;
    return __fmul_rn(s - slope * fabsf((float)(place - j)), LOG2_E);
}

// S[TILE_KV / 2]: s[4 n + 2 half + e] is row 16 warp + 8 half + lane / 4, key 8 n + 2 (lane % 4) + e. It becomes P; O is brought to the
// new maximum.
__device__ inline void softmax(const attest_cuda_args &args, const attest_tile &tile, int first, float slope, float (&S)[TILE_KV / 2],
                               float (&O)[D / 2], float (&m)[2], float (&l)[2])
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
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
                float &s = S[n * 4 + half * 2 + e];
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
                float &p = S[n * 4 + half * 2 + e];
                p = exp2_fast(p - shift);
                l[half] += p;
            }
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                O[n * 4 + half * 2 + e] *= carry;
    }
}

// One block of keys. wgmma reads what is in shared memory through the async proxy, as TMA wrote it: no fence is needed between them.
__device__ inline void attend(const attest_cuda_args &args, const attest_tile &tile, const Shared &smem, int stage, int first, float slope,
                              float (&O)[D / 2], float (&m)[2], float (&l)[2])
{
    float S[TILE_KV / 2];
    wgmma_fence();
#pragma unroll
    for (int mma_d = 0; mma_d < D / 16; mma_d++)
        wgmma_ss<TILE_KV, false>(S, descriptor(smem.q + mma_d / 4 * PANEL_Q + mma_d % 4 * 32, 16, 1024),
                                 descriptor(smem.k(stage) + mma_d / 4 * PANEL_KV + mma_d % 4 * 32, 16, 1024), mma_d > 0);
    wgmma_commit();
    wgmma_wait<0>(); // S is there
    settle(S);
    softmax(args, tile, first, slope, S, O, m, l);

    uint32_t P[TILE_KV / 16][4];
#pragma unroll
    for (int mma_kv = 0; mma_kv < TILE_KV / 16; mma_kv++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            P[mma_kv][i] = pack(S[mma_kv * 8 + i * 2], S[mma_kv * 8 + i * 2 + 1]);
    wgmma_fence(); // O and P were written by this thread
#pragma unroll
    for (int mma_kv = 0; mma_kv < TILE_KV / 16; mma_kv++)
        wgmma_rs<D, true>(O, P[mma_kv], descriptor(smem.v(stage) + mma_kv * 2048, PANEL_KV, 1024), true);
    wgmma_commit();
    wgmma_wait<0>(); // O is there, and K, V and P have been read
    settle(O);
}

// Normalises O, writes LSE, and puts O where Q was.
__device__ inline void finish(const attest_cuda_args &args, const attest_cuda_maps &maps, const attest_tile &tile, const Shared &smem,
                              float (&O)[D / 2], const float (&m)[2], float (&l)[2])
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int i = tile.row_begin + warp * 16 + half * 8 + lane / 4;
        float factor = 0;
        l[half] += __shfl_xor_sync(ALL_LANES, l[half], 1);
        l[half] += __shfl_xor_sync(ALL_LANES, l[half], 2);
        if (i < tile.row_end) {
            const attest_ending ending = attest_row_ending(args, m[half] * LN_2, l[half], tile.slot);
            factor = ending.factor;
            if (attest_has(args, ATTEST_LSE) && lane % 4 == 0)
                args.lse[attest_row_offset(args, args.stride_lse, tile, tile.slot, i)] = ending.lse;
        }
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                O[n * 4 + half * 2 + e] *= factor;
    }
    named_barrier(1, CONSUMERS); // Q has been read by all
#pragma unroll
    for (int n = 0; n < D / 16; n++) {
        uint32_t matrices[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            matrices[i] = pack(O[n * 8 + i * 2], O[n * 8 + i * 2 + 1]);
        const int row = warp * 16 + lane % 16, chunk = n % 4 * 2 + lane / 16;
        store_matrix_x4(smem.q + n / 4 * PANEL_Q + row * 128 + ((chunk ^ row % 8) << 4), matrices);
    }
    proxy_fence();               // written by threads, read by the bulk store
    named_barrier(1, CONSUMERS); // O has been written by all
    if (threadIdx.x == 0) {
        for (int panel = 0; panel < PANELS; panel++)
            map_store_4(&maps.map[MAP_O], smem.q + panel * PANEL_Q, panel * 64, tile.row_begin, tile.slot, tile.batch);
        stores_commit();
        stores_wait_read<0>();
        barrier_arrive(smem.q_empty());
    }
}

__device__ inline void consume(const attest_cuda_args &args, const attest_cuda_maps &maps, const Shared &smem)
{
    uint32_t tiles = 0, blocks = 0; // so far
    for (int index = blockIdx.x; index < args.tiles; index += gridDim.x) {
        const attest_tile tile = attest_tile_get(args, index);
        const attest_span keys = attest_tile_visible(args, tile);
        if (tile.row_begin >= tile.row_end)
            continue;
        const float slope = attest_has(args, ATTEST_ALIBI) ? args.alibi_slopes[tile.slot] : 0;
        float O[D / 2], m[2] = {minus_infinity(), minus_infinity()}, l[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < D / 2; i++)
            O[i] = 0;
        barrier_wait(smem.q_full(), tiles++ & 1);
        for (int n = 0; n < blocks_of(keys); n++, blocks++) {
            const int stage = blocks % STAGES, first = keys.begin + n * TILE_KV;
            barrier_wait(smem.full(stage), blocks / STAGES & 1);
            if (first + TILE_KV > keys.end)
                blank(smem.v(stage), keys.end - first);
            attend(args, tile, smem, stage, first, slope, O, m, l);
            barrier_arrive(smem.empty(stage));
        }
        finish(args, maps, tile, smem, O, m, l);
    }
    if (threadIdx.x == 0)
        stores_wait<0>(); // shared memory must not go before the stores are done
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1)
    attest_kernel(const __grid_constant__ attest_cuda_args args, const __grid_constant__ attest_cuda_maps maps)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    const Shared smem = {shared_address(shared)};
    if (threadIdx.x == 0) {
        barrier_init(smem.q_full(), 1);
        barrier_init(smem.q_empty(), 1);
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(smem.full(stage), 1);
            barrier_init(smem.empty(stage), CONSUMERS);
        }
        barrier_init_fence();
    }
    __syncthreads(); // the barriers are there
    if (threadIdx.x >= CONSUMERS)
        produce(args, maps, smem);
    else
        consume(args, maps, smem);
}
