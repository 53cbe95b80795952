/*
 * cuda_fwd_wmma.cu - FlashAttention on tensor cores in portable CUDA C++: both products by nvcuda::wmma, everything else by plain
 * threads. docs/kernels/cuda_wmma.md has its floor and its times.
 *
 * attest-cuda: summary   = both products by nvcuda::wmma from shared memory, a warp for each row of the softmax
 * attest-cuda: archs     = sm_80 sm_86 sm_89 sm_90
 * attest-cuda: dtypes    = f16 bf16
 * attest-cuda: dims      = 64 128
 * attest-cuda: padding   = yes
 * attest-cuda: tile_q    = 64
 * attest-cuda: tile_kv   = 64
 * attest-cuda: tiles     = 32x64 32x32 48x64 16x64
 * attest-cuda: threads   = 128 * (up(tile_q, 32) / 32)
 * attest-cuda: shared    = 2 * ((tile_q + 2 * tile_kv) * (dim + 8) + tile_q * (tile_kv + 8)) + 4 * tile_q * (max(dim, tile_kv) + 8)
 * attest-cuda: registers = 194
 * attest-cuda: launch    = tile
 * attest-cuda: packs     = yes
 * attest-cuda: refuses   = bias
 * attest-cuda: tensor    = hmma
 * attest-cuda: mma_qk    = 16 * 8 * 16
 * attest-cuda: mma_pv    = 16 * 8 * 16
 *
 * Contract: SEMANTICS in attest.h without a bias (a key that it hides from all rows would be multiplied with 0, and may be NaN),
 * any strides, any dim and dim_v up to 128. Tensors that are aligned to 16 bytes, rows, heads and batches too, are copied 16 bytes
 * at a time in the background, others element by element.
 *
 * Where the numbers of a fragment lie in a warp's registers is the compiler's own business. So fragments are loaded from shared
 * memory and stored to shared memory, and never touched in between: what has to know its row (masks, maximum, rescaling) works on S
 * and on P V there, with a warp for each row and a lane for each key or column, as in cuda_fwd_scalar.cu.
 *     Q[tile_q][dim + 8], K, V[tile_kv][dim + 8], P[tile_q][tile_kv + 8]: elements; the 16 bytes more shift each row by four banks
 *     S[tile_q][max(dim, tile_kv) + 4]: float, and then P V in the same place, and at the end O
 * O is summed in registers: lane d of the row's warp has columns d, d + 32 ...
 *
 * Four barriers for each tile: K is there and P V has been read; S is written and K has been read; P is written and V is there; P V
 * is written and V has been read. K of the next tile is copied from the second one on, V from the fourth.
 */
#include <attest_kernel_cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int D = ATTEST_DIM;
constexpr int BLOCK_Q = ATTEST_TILE_Q;
constexpr int BLOCK_KV = ATTEST_TILE_KV;
constexpr int WARPS = ATTEST_THREADS / 32;
constexpr int WARP_Q = BLOCK_Q / WARPS; // rows of a warp, in the softmax: warp, warp + WARPS ...
constexpr int LANE_KV = BLOCK_KV / 32;  // keys of a lane
constexpr int LANE_D = D / 32;          // columns of a lane
constexpr int FRAGMENT = 16;            // rows, columns and depth of a fragment
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;
constexpr unsigned ALL_LANES = 0xffffffffu;

#if ATTEST_DTYPE == 2
typedef __half Element;
#else
typedef __nv_bfloat16 Element;
#endif

static_assert(ATTEST_DTYPE != ATTEST_F32 && BLOCK_Q % FRAGMENT == 0 && BLOCK_KV % 32 == 0 && BLOCK_Q % WARPS == 0, "see above");

struct Tiles {
    Element Q[BLOCK_Q][D + 8];
    Element K[BLOCK_KV][D + 8];
    Element V[BLOCK_KV][D + 8];
    Element P[BLOCK_Q][BLOCK_KV + 8];
    float S[BLOCK_Q][(D > BLOCK_KV ? D : BLOCK_KV) + 4];
    int begin[BLOCK_Q], end[BLOCK_Q]; // keys that each row sees
    float m[BLOCK_Q], l[BLOCK_Q];     // at the end
};
static_assert(sizeof(Tiles::Q) % 32 == 0 && sizeof(Tiles::K) % 32 == 0 && sizeof(Tiles::P) % 32 == 0,
              "fragments begin at 32 bytes");
ATTEST_CUDA_FACTS(sizeof(Tiles));

__device__ inline float minus_infinity()
{
    return __int_as_float(0xff800000);
}

__device__ inline float warp_sum(float x)
{
    for (int step = 16; step; step /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

// 2^x to 2 units in the last place; results below 2^-126 are 0.
__device__ inline float power2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Whether a tensor and its rows, heads and batches lie at multiples of 16 bytes.
__device__ inline bool is_aligned(const void *data, const int64_t *stride)
{
    return (((uint64_t)data | (uint64_t)(stride[0] | stride[1] | stride[2]) * sizeof(Element)) & 15) == 0;
}

// Eight elements, of which the first `count` are there and the rest become 0: begun in the background, or done, if they are not
// aligned. `base` is an address that may be read.
__device__ inline void copy8(Element *to, const Element *from, const Element *base, int count, bool aligned)
{
    count = count < 0 ? 0 : count > 8 ? 8 : count;
    if (aligned) {
        uint32_t address = (uint32_t)__cvta_generic_to_shared(to);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(count ? from : base), "r"(count * 2)
                     : "memory");
        return;
    }
#pragma unroll 1
    for (int n = 0; n < 8; n++)
        to[n] = n < count ? from[n] : Element(0.0f);
}

__device__ inline void copies_close()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int Open> __device__ inline void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Open) : "memory");
}

// Keys first .. first + BLOCK_KV of K or V; 0 from `end` on and beyond column `dim`.
__device__ inline void copy_keys(const attest_cuda_args &args, const attest_tile &tile, const void *data, const int64_t *stride,
                                 int dim, int first, int end, Element (*KV_smem)[D + 8])
{
    constexpr int STEP = ATTEST_THREADS / (D / 8); // keys that are copied at once
    const Element *base = (const Element *)data;
    const bool aligned = is_aligned(data, stride);
    const int d = threadIdx.x % (D / 8) * 8, key_0 = threadIdx.x / (D / 8);
    if (aligned && dim == D && first + BLOCK_KV <= end && !attest_has(args, ATTEST_PAGED)) {
        const Element *from = base + attest_key_offset(args, stride, tile, first + key_0) + d;
#pragma unroll
        for (int key = 0; key < BLOCK_KV; key += STEP, from += STEP * stride[2])
            copy8(&KV_smem[key_0 + key][d], from, base, 8, true);
        return;
    }
#pragma unroll 1
    for (int key = key_0; key < BLOCK_KV; key += STEP) {
        bool there = first + key < end;
        int64_t at = there ? attest_key_offset(args, stride, tile, first + key) + d : 0;
        copy8(&KV_smem[key][d], base + at, base, there ? dim - d : 0, aligned);
    }
}

__device__ inline void copy_rows(const attest_cuda_args &args, const attest_tile &tile, Element (*Q_smem)[D + 8])
{
    const Element *base = (const Element *)args.q;
    const bool aligned = is_aligned(args.q, args.stride_q);
    const int d = threadIdx.x % (D / 8) * 8;
#pragma unroll 1
    for (int row = threadIdx.x / (D / 8); row < BLOCK_Q; row += ATTEST_THREADS / (D / 8)) {
        int r = tile.row_begin + row;
        bool there = r < tile.row_end;
        int64_t at =
            there ? attest_row_offset(args, args.stride_q, tile, tile.slot * args.pack + r % args.pack, r / args.pack) + d : 0;
        copy8(&Q_smem[row][d], base + at, base, there ? args.dim - d : 0, aligned);
    }
}

// C = A B, a warp for each fragment of C, or for two next to each other, which share a fragment of A, if there are enough. B is
// stored by columns, if Transposed, else by rows.
template <bool Transposed, int M, int N, int K>
__device__ inline void multiply(const Element *A, int pitch_a, const Element *B, int pitch_b, float *C, int pitch_c)
{
    typedef typename std::conditional<Transposed, wmma::col_major, wmma::row_major>::type Layout;
    constexpr int PIECES = M / FRAGMENT * (N / FRAGMENT) >= 2 * WARPS && N % (2 * FRAGMENT) == 0 ? 2 : 1;
#pragma unroll 1
    for (int n = threadIdx.x / 32; n < M / FRAGMENT * (N / FRAGMENT / PIECES); n += WARPS) {
        const int row = n % (M / FRAGMENT) * FRAGMENT, column = n / (M / FRAGMENT) * FRAGMENT * PIECES;
        wmma::fragment<wmma::accumulator, FRAGMENT, FRAGMENT, FRAGMENT, float> c[PIECES];
#pragma unroll
        for (int piece = 0; piece < PIECES; piece++)
            wmma::fill_fragment(c[piece], 0.0f);
#pragma unroll
        for (int k = 0; k < K; k += FRAGMENT) {
            wmma::fragment<wmma::matrix_a, FRAGMENT, FRAGMENT, FRAGMENT, Element, wmma::row_major> a;
            wmma::load_matrix_sync(a, A + row * pitch_a + k, pitch_a);
#pragma unroll
            for (int piece = 0; piece < PIECES; piece++) {
                wmma::fragment<wmma::matrix_b, FRAGMENT, FRAGMENT, FRAGMENT, Element, Layout> b;
                const int at = column + piece * FRAGMENT;
                wmma::load_matrix_sync(b, Transposed ? B + at * pitch_b + k : B + k * pitch_b + at, pitch_b);
                wmma::mma_sync(c[piece], a, b, c[piece]);
            }
        }
#pragma unroll
        for (int piece = 0; piece < PIECES; piece++)
            wmma::store_matrix_sync(C + row * pitch_c + column + piece * FRAGMENT, c[piece], pitch_c, wmma::mem_row_major);
    }
}

// Steps 2 and 4 of SEMANTICS, on a lane's own scores of its warp's rows, in place.
__device__ inline void modify(const attest_cuda_args &args, const attest_tile &tile, int first, Tiles &smem)
{
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int row = threadIdx.x / 32; row < BLOCK_Q; row += WARPS) {
        const int r = min(tile.row_begin + row, tile.row_end - 1), i = r / args.pack,
                  head = tile.slot * args.pack + r - i * args.pack;
        const float slope = attest_has(args, ATTEST_ALIBI) ? args.alibi_slopes[head] : 0.0f;
#pragma unroll 1
        for (int n = lane; n < BLOCK_KV; n += 32) {
            float s = args.scale * smem.S[row][n];
            if (attest_has(args, ATTEST_SOFTCAP))
                s = args.softcap * tanhf(s / args.softcap);
            smem.S[row][n] = s - slope * fabsf((float)(attest_row_place(args, tile.sequence, i) - first - n));
        }
    }
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1) attest_kernel(const __grid_constant__ attest_cuda_args args)
{
    extern __shared__ __align__(128) unsigned char shared[];
    Tiles &smem = *reinterpret_cast<Tiles *>(shared);

    // The last tiles of all slots come first: with a causal mask they are the longest.
    const int slots = args.batch * args.slots, turn = blockIdx.x / slots;
    const attest_tile tile = attest_tile_get(args, (blockIdx.x - turn * slots) * args.tiles_q + args.tiles_q - 1 - turn);
    if (tile.row_begin >= tile.row_end)
        return;
    const attest_span span = attest_tile_visible(args, tile);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    float m[WARP_Q], l[WARP_Q], O_rmem[WARP_Q][LANE_D];
#pragma unroll
    for (int q = 0; q < WARP_Q; q++) {
        m[q] = minus_infinity();
        l[q] = 0;
#pragma unroll
        for (int d = 0; d < LANE_D; d++)
            O_rmem[q][d] = 0;
    }

    for (int row = threadIdx.x; row < BLOCK_Q; row += ATTEST_THREADS) {
        const attest_span seen = attest_row_visible(args, tile.sequence, (tile.row_begin + row) / args.pack);
        smem.begin[row] = seen.begin;
        smem.end[row] = seen.end;
    }
    copy_rows(args, tile, smem.Q);
    copy_keys(args, tile, args.k, args.stride_k, args.dim, span.begin, span.end, smem.K);
    copies_close();
    copy_keys(args, tile, args.v, args.stride_v, args.dim_v, span.begin, span.end, smem.V);
    copies_close();

    for (int first = span.begin; first < span.end; first += BLOCK_KV) {
        const int next = first + BLOCK_KV;
        copies_wait<1>();
        __syncthreads(); // K (and Q) has been written, and the last P V has been read
        multiply<true, BLOCK_Q, BLOCK_KV, D>(smem.Q[0], D + 8, smem.K[0], D + 8, smem.S[0], sizeof smem.S[0] / sizeof(float));
        __syncthreads(); // S has been written, and K has been read
        if (next < span.end)
            copy_keys(args, tile, args.k, args.stride_k, args.dim, next, span.end, smem.K);
        copies_close();

        const bool modified = (args.flags & (ATTEST_SOFTCAP | ATTEST_ALIBI)) != 0;
        const float unit_scale = modified ? LOG2_E : args.scale * LOG2_E;
        if (modified)
            modify(args, tile, first, smem);

        // Mask, maximum, exponential, sum. The output so far is brought to the new maximum. Scores are in units of log2.
        float s[WARP_Q][LANE_KV], top[WARP_Q];
#pragma unroll
        for (int q = 0; q < WARP_Q; q++) {
            const int row = q * WARPS + warp, begin = smem.begin[row], end = smem.end[row];
            top[q] = minus_infinity();
#pragma unroll
            for (int n = 0; n < LANE_KV; n++) {
                const int j = first + n * 32 + lane;
                s[q][n] = j >= begin && j < end ? smem.S[row][n * 32 + lane] * unit_scale : minus_infinity();
                top[q] = fmaxf(top[q], s[q][n]);
            }
        }
#pragma unroll
        for (int step = 16; step; step /= 2) // all rows at once: a shuffle takes long
#pragma unroll
            for (int q = 0; q < WARP_Q; q++)
                top[q] = fmaxf(top[q], __shfl_xor_sync(ALL_LANES, top[q], step));
#pragma unroll
        for (int q = 0; q < WARP_Q; q++) {
            top[q] = fmaxf(m[q], top[q]);
            const float base = top[q] == minus_infinity() ? 0.0f : top[q], carry = power2(m[q] - base);
            m[q] = top[q];
            l[q] *= carry;
#pragma unroll
            for (int n = 0; n < LANE_KV; n++) {
                float p = power2(s[q][n] - base);
                smem.P[q * WARPS + warp][n * 32 + lane] = Element(p);
                l[q] += p; // of this lane's keys alone
            }
#pragma unroll
            for (int d = 0; d < LANE_D; d++)
                O_rmem[q][d] *= carry;
        }

        copies_wait<1>();
        __syncthreads(); // P and V have been written, and S has been read
        multiply<false, BLOCK_Q, D, BLOCK_KV>(smem.P[0], BLOCK_KV + 8, smem.V[0], D + 8, smem.S[0],
                                              sizeof smem.S[0] / sizeof(float));
        __syncthreads(); // P V has been written, and V has been read
        if (next < span.end)
            copy_keys(args, tile, args.v, args.stride_v, args.dim_v, next, span.end, smem.V);
        copies_close();
#pragma unroll
        for (int q = 0; q < WARP_Q; q++)
#pragma unroll
            for (int d = 0; d < LANE_D; d++)
                O_rmem[q][d] += smem.S[q * WARPS + warp][d * 32 + lane];
    }
    copies_wait<0>();

    // Epilogue: O passes through shared memory, so that there is one piece of code for all rows of a warp.
#pragma unroll
    for (int q = 0; q < WARP_Q; q++) {
        const int row = q * WARPS + warp;
        const float sum = warp_sum(l[q]);
        if (lane == 0) {
            smem.m[row] = m[q];
            smem.l[row] = sum;
        }
#pragma unroll
        for (int d = 0; d < LANE_D; d++)
            smem.S[row][d * 32 + lane] = O_rmem[q][d]; // the same lane read P V there
    }
    __syncwarp();
#pragma unroll 1
    for (int row = warp; row < BLOCK_Q && tile.row_begin + row < tile.row_end; row += WARPS) {
        const int r = tile.row_begin + row, i = r / args.pack, head = tile.slot * args.pack + r - i * args.pack;
        const attest_ending ending = attest_row_ending(args, smem.m[row] * LN_2, smem.l[row], head);
        const int64_t at = attest_row_offset(args, args.stride_o, tile, head, i);
#pragma unroll
        for (int d = 0; d < LANE_D; d++)
            if (d * 32 + lane < args.dim_v)
                attest_store(args.o, args.dtype_o, at + d * 32 + lane, smem.S[row][d * 32 + lane] * ending.factor);
        if (attest_has(args, ATTEST_LSE) && lane == 0)
            args.lse[attest_row_offset(args, args.stride_lse, tile, head, i)] = ending.lse;
    }
}
