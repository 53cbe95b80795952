/*
 * A small kernel for the emulation's own test: one warp that copies by bulk loads, four that multiply with wgmma, O by a bulk store.
 * It is no kernel of the library, and nobody has made it fast.
 *
 * attest-cuda: archs     = sm_90a
 * attest-cuda: dtypes    = f16 bf16
 * attest-cuda: dims      = 64 128
 * attest-cuda: padding   = yes
 * attest-cuda: tile_q    = 64
 * attest-cuda: tile_kv   = 64
 * attest-cuda: stages    = 2
 * attest-cuda: threads   = 160
 * attest-cuda: shared    = 2 * dim * (tile_q + 2 * stages * tile_kv) + 64
 * attest-cuda: registers = 255
 * attest-cuda: launch    = persistent
 * attest-cuda: align     = 16
 * attest-cuda: map       = q rows tile_q columns 64 swizzle 128
 * attest-cuda: map       = k rows tile_kv columns 64 swizzle 128
 * attest-cuda: map       = v rows tile_kv columns 64 swizzle 128
 * attest-cuda: map       = o rows tile_q columns 64 swizzle 128
 * attest-cuda: refuses   = softcap alibi bias varlenq varlenkv page o=f32
 * attest-cuda: tensor    = gmma
 * attest-cuda: mma_qk    = 64 * 64 * 16 / 4
 * attest-cuda: mma_pv    = 64 * dim * 16 / 4
 */
#include "ptx_sm90.cuh"

constexpr int D = ATTEST_DIM, TILE_Q = ATTEST_TILE_Q, TILE_KV = ATTEST_TILE_KV, STAGES = ATTEST_STAGES, PANELS = D / 64;
constexpr int PANEL_Q = TILE_Q * 128, PANEL_KV = TILE_KV * 128, TILE_BYTES = TILE_KV * D * 2; // a panel is 64 columns
constexpr int SHARED_KV = TILE_Q * D * 2, SHARED_BARRIERS = SHARED_KV + 2 * STAGES * TILE_BYTES, SHARED_BYTES = SHARED_BARRIERS + 64;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;
enum { MAP_Q, MAP_K, MAP_V, MAP_O };

ATTEST_CUDA_FACTS(SHARED_BYTES);

struct Barriers {
    uint32_t base;
    __device__ uint32_t rows_full() const { return base; }
    __device__ uint32_t rows_empty() const { return base + 8; }
    __device__ uint32_t full(int stage) const { return base + 16 + stage * 8; }
    __device__ uint32_t empty(int stage) const { return base + 32 + stage * 8; }
};

__device__ inline int blocks_of(const attest_span &keys)
{
    return max(keys.end - keys.begin + TILE_KV - 1, 0) / TILE_KV;
}

// One lane of the last warp.
__device__ inline void produce(const attest_cuda_args &args, const attest_cuda_maps &maps, uint32_t base, const Barriers &barriers)
{
    uint32_t block = 0, round = 0; // counted over all tiles
    for (int index = blockIdx.x; index < args.tiles; index += gridDim.x) {
        const attest_tile tile = attest_tile_get(args, index);
        const attest_span keys = attest_tile_visible(args, tile);
        if (tile.row_begin >= tile.row_end)
            continue;
        barrier_wait(barriers.rows_empty(), (round++ & 1) ^ 1);
        if (elect_one()) {
            barrier_expect(barriers.rows_full(), PANELS * PANEL_Q);
            for (int panel = 0; panel < PANELS; panel++)
                map_load_4(base + panel * PANEL_Q, &maps.map[MAP_Q], barriers.rows_full(), panel * 64, tile.row_begin, tile.slot, tile.batch);
        }
        for (int n = 0; n < blocks_of(keys); n++, block++) {
            const int stage = block % STAGES, first = keys.begin + n * TILE_KV;
            const uint32_t to = base + SHARED_KV + stage * 2 * TILE_BYTES;
            barrier_wait(barriers.empty(stage), (block / STAGES & 1) ^ 1);
            if (elect_one()) {
                barrier_expect(barriers.full(stage), 2 * TILE_BYTES);
                for (int panel = 0; panel < PANELS; panel++) {
                    map_load_4(to + panel * PANEL_KV, &maps.map[MAP_K], barriers.full(stage), panel * 64, first, tile.head_kv, tile.batch);
                    map_load_4(to + TILE_BYTES + panel * PANEL_KV, &maps.map[MAP_V], barriers.full(stage), panel * 64, first, tile.head_kv,
                               tile.batch);
                }
            }
        }
    }
}

__device__ inline void consume(const attest_cuda_args &args, const attest_cuda_maps &maps, uint32_t base, const Barriers &barriers)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint32_t block = 0, round = 0;
    for (int index = blockIdx.x; index < args.tiles; index += gridDim.x) {
        const attest_tile tile = attest_tile_get(args, index);
        const attest_span keys = attest_tile_visible(args, tile);
        if (tile.row_begin >= tile.row_end)
            continue;
        const float minus_infinity = -__int_as_float(0x7f800000), c = args.scale * LOG2_E;
        float O[D / 2], m[2] = {minus_infinity, minus_infinity}, l[2] = {0, 0};
        for (int i = 0; i < D / 2; i++)
            O[i] = 0;
        barrier_wait(barriers.rows_full(), round++ & 1);
        for (int n = 0; n < blocks_of(keys); n++, block++) {
            const int stage = block % STAGES, first = keys.begin + n * TILE_KV;
            const uint32_t k_at = base + SHARED_KV + stage * 2 * TILE_BYTES, v_at = k_at + TILE_BYTES;
            float S[TILE_KV / 2];
            barrier_wait(barriers.full(stage), block / STAGES & 1);
            if (first + TILE_KV > keys.end) { // keys that nobody sees may be NaN, and have a weight of 0
                for (int row = keys.end - first + warp; row < TILE_KV; row += 4)
                    for (int chunk = lane; chunk < PANELS * 8; chunk += 32)
                        store_shared_16(v_at + chunk / 8 * PANEL_KV + row * 128 + chunk % 8 * 16, make_uint4(0, 0, 0, 0));
                proxy_fence();         // V
                named_barrier(1, 128); // V has been blanked
            }
            wgmma_fence();
            for (int k = 0; k < D / 16; k++)
                wgmma_ss<TILE_KV, false>(S, descriptor(base + k / 4 * PANEL_Q + k % 4 * 32, 16, 1024),
                                         descriptor(k_at + k / 4 * PANEL_KV + k % 4 * 32, 16, 1024), k > 0);
            wgmma_commit();
            wgmma_wait<0>(); // S is there

            for (int half = 0; half < 2; half++) {
                const int row = tile.row_begin + warp * 16 + lane / 4 + half * 8;
                const attest_span span = attest_row_visible(args, tile.sequence, row);
                float most = m[half];
                for (int i = 0; i < TILE_KV / 2; i++) {
                    const int key = first + i / 4 * 8 + lane % 4 * 2 + i % 2;
                    if (i / 2 % 2 != half)
                        continue;
                    S[i] = key < span.begin || key >= span.end ? minus_infinity : S[i] * c;
                    most = fmaxf(most, S[i]);
                }
                most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
                most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
                const float shift = most == minus_infinity ? 0 : most, carry = exp2_fast(m[half] - shift);
                m[half] = most;
                l[half] *= carry;
                for (int i = 0; i < TILE_KV / 2; i++)
                    if (i / 2 % 2 == half)
                        l[half] += S[i] = exp2_fast(S[i] - shift);
                for (int i = 0; i < D / 2; i++)
                    if (i / 2 % 2 == half)
                        O[i] *= carry;
            }
            wgmma_fence(); // O and P
            for (int k = 0; k < TILE_KV / 16; k++) {
                uint32_t P[4];
                for (int i = 0; i < 4; i++)
                    P[i] = pack(S[k * 8 + i * 2], S[k * 8 + i * 2 + 1]);
                wgmma_rs<D, true>(O, P, descriptor(v_at + k * 2048, PANEL_KV, 1024), true);
            }
            wgmma_commit();
            wgmma_wait<0>(); // O is there
            barrier_arrive(barriers.empty(stage));
        }
        // O goes where Q was.
        for (int half = 0; half < 2; half++) {
            l[half] += __shfl_xor_sync(0xffffffffu, l[half], 1);
            l[half] += __shfl_xor_sync(0xffffffffu, l[half], 2);
            const int row = tile.row_begin + warp * 16 + lane / 4 + half * 8;
            float factor = 0;
            if (row < tile.row_end) {
                const attest_ending ending = attest_row_ending(args, m[half] * LN_2, l[half], tile.slot);
                factor = ending.factor;
                if (attest_has(args, ATTEST_LSE) && lane % 4 == 0)
                    args.lse[attest_row_offset(args, args.stride_lse, tile, tile.slot, row)] = ending.lse;
            }
            for (int i = 0; i < D / 2; i++)
                if (i / 2 % 2 == half)
                    O[i] *= factor;
        }
        named_barrier(1, 128); // Q has been read
        for (int n = 0; n < D / 16; n++) {
            uint32_t matrices[4];
            for (int i = 0; i < 4; i++)
                matrices[i] = pack(O[n * 8 + i * 2], O[n * 8 + i * 2 + 1]);
            const int row = warp * 16 + lane % 16, chunk = n % 4 * 2 + lane / 16;
            store_matrix_x4(base + n / 4 * PANEL_Q + row * 128 + ((chunk ^ row % 8) << 4), matrices);
        }
        proxy_fence();         // O is there for the bulk store
        named_barrier(1, 128); // O has been written
        if (threadIdx.x == 0) {
            for (int panel = 0; panel < PANELS; panel++)
                map_store_4(&maps.map[MAP_O], base + panel * PANEL_Q, panel * 64, tile.row_begin, tile.slot, tile.batch);
            stores_commit();
            stores_wait_read();
            barrier_arrive(barriers.rows_empty());
        }
    }
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1)
    attest_kernel(const __grid_constant__ attest_cuda_args args, const __grid_constant__ attest_cuda_maps maps)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    const uint32_t base = shared_address(shared);
    const Barriers barriers = {base + SHARED_BARRIERS};
    if (threadIdx.x == 0) {
        barrier_init(barriers.rows_full(), 1);
        barrier_init(barriers.rows_empty(), 1);
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(barriers.full(stage), 1);
            barrier_init(barriers.empty(stage), 128);
        }
        barrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        registers_less<24>();
        produce(args, maps, base, barriers);
    } else {
        registers_more<240>();
        consume(args, maps, base, barriers);
    }
}
