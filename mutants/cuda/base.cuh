/*
 * base.cuh - FlashAttention on tensor cores, small and right, with a hook at every place where kernels go wrong. The CUDA mutants
 * are this kernel with a hook or two replaced: a file of this folder has its own manifest, defines what it changes, and includes
 * base.cuh last. As it stands it passes every gate; harmless_base.cu is it.
 *
 * It takes f16 of dim 64 with masks by position; tiles of 64 rows and 64 keys, four warps with 16 rows each, S and P V by mma.sync
 * from fragments that ldmatrix reads, K and V in a ring of ATTEST_STAGES tiles that cp.async fills. Three other ways are switched
 * on by a macro: SPLIT (launch = split), BULK (rows copied by cp.async.bulk, which complete on an mbarrier; sm_90) and WGMMA (S by
 * wgmma; sm_90a).
 *
 * Shared memory: rows of 64 elements, PITCH bytes from each other, in chunks of 16 bytes. Chunk c of row r is at SWIZZLE(r, c), so
 * that the eight rows that ldmatrix reads at once lie in different banks:
 *     Q[64], K[stages][64], V[stages][64], and what EXTRA_SHARED declares
 *
 * Ring, for tile n: wait for the copies of tile n; barrier: all threads' copies are there, and tile n - 1 has been read by all;
 * begin to copy tile n + stages - 1 to where tile n - 1 was; compute. One barrier for each tile.
 */
#include <attest_kernel_cuda.h>

/* ---- the hooks, in the order of the computation. A hook may use the names of the function that it stands in. ----------------- */

#ifndef SPLIT
#define SPLIT 0
#endif
#ifndef BULK
#define BULK 0
#endif
#ifndef WGMMA
#define WGMMA 0
#endif
#ifndef PITCH
#define PITCH (BULK ? 144 : 128)
#endif
#ifndef SWIZZLE
#define SWIZZLE(row, chunk) (BULK ? (chunk) : (chunk) ^ ((row)&7))
#endif
#ifndef SWIZZLE_K /* where K is read */
#define SWIZZLE_K(row, chunk) SWIZZLE(row, chunk)
#endif
#ifndef SWIZZLE_V
#define SWIZZLE_V(row, chunk) SWIZZLE(row, chunk)
#endif
#ifndef EXTRA_SHARED
#define EXTRA_SHARED
#endif
#ifndef FACTS
#define FACTS sizeof(Tiles)
#endif
#ifndef BLOCKS /* of a multiprocessor that registers must be left for */
#define BLOCKS 1
#endif
#ifndef ATTRIBUTES /* of the kernel */
#define ATTRIBUTES
#endif
#ifndef AT_START /* a statement, before anything else */
#define AT_START ((void)0)
#endif
#ifndef TILE_INDEX /* of the tile that a block computes */
#define TILE_INDEX(block) (block)
#endif
#ifndef COPY_END /* the first key that is not read */
#define COPY_END(end) (end)
#endif
#ifndef KEY_OFFSET /* of a key in K or V, in elements */
#define KEY_OFFSET(offset) (offset)
#endif
#ifndef SPAN_END /* the first key that is not looked at */
#define SPAN_END(end) (end)
#endif
#ifndef STAGE_WRITTEN
#define STAGE_WRITTEN(n) ((n) % ATTEST_STAGES)
#endif
#ifndef WAIT_FOR_TILE
#define WAIT_FOR_TILE copies_wait<ATTEST_STAGES - 2>()
#endif
#ifndef BARRIER
#define BARRIER __syncthreads()
#endif
#ifndef BULK_WAIT
#define BULK_WAIT(barrier, phase) mbarrier_wait(barrier, phase)
#endif
#ifndef Q_FRAGMENTS /* a statement, after the fragments of Q have been read */
#define Q_FRAGMENTS(q) ((void)0)
#endif
#ifndef SCALE
#define SCALE args.scale
#endif
#ifndef SCORES /* a statement, after a tile of S has been computed */
#define SCORES(s) ((void)0)
#endif
#ifndef WGMMA_WAIT
#define WGMMA_WAIT asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory")
#endif
#ifndef SEES
#define SEES(row, j) ((j) >= (row).begin && (j) < (row).end)
#endif
#ifndef TOP /* the maximum that is taken away */
#define TOP(top) (top)
#endif
#ifndef SUM /* the sum of a row over the four lanes that share it */
#define SUM(l) quad_sum(l)
#endif
#ifndef CARRY /* what O and the sum so far are multiplied with */
#define CARRY(before, now) power2((before) - (now))
#endif
#ifndef RESCALE
#define RESCALE(o, carry) ((o) *= (carry))
#endif
#ifndef MULTIPLY_PV
#define MULTIPLY_PV(o, a, b0, b1) multiply(o, a, b0, b1)
#endif
#ifndef VALUES /* a statement, after a tile of V has been added */
#define VALUES(o) ((void)0)
#endif
#ifndef WRITES_ROW
#define WRITES_ROW(i) ((i) < tile.row_end)
#endif
#ifndef O_COLUMN
#define O_COLUMN(d) (d)
#endif
#ifndef WEIGHT /* of a piece, where pieces of the keys are joined */
#define WEIGHT(m, top) power2((m) - (top))
#endif
#ifndef FIRST_PIECE /* that is joined */
#define FIRST_PIECE 0
#endif
#ifndef PIECE_WRITES /* whether a piece leaves its result */
#define PIECE_WRITES true
#endif
#ifndef AT_END
#define AT_END ((void)0)
#endif

/* ---- instructions ------------------------------------------------------------------------------------------------------------ */

constexpr int D = 64, BLOCK = 64;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;
constexpr unsigned ALL_LANES = 0xffffffffu;

static_assert(ATTEST_DTYPE == ATTEST_F16 && ATTEST_DIM == D && ATTEST_TILE_Q == BLOCK && ATTEST_TILE_KV == BLOCK &&
                  ATTEST_THREADS == 128 && ATTEST_STAGES >= 2,
              "the base has one shape");

__device__ inline uint32_t shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

__device__ inline float minus_infinity()
{
    return __int_as_float(0xff800000);
}

__device__ inline float power2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ inline float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 1));
    return fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 2));
}

__device__ inline float quad_sum(float x)
{
    x += __shfl_xor_sync(ALL_LANES, x, 1);
    return x + __shfl_xor_sync(ALL_LANES, x, 2);
}

// Begins to copy 16 bytes; `bytes` is 16, or 0 for zeros.
__device__ inline void copy16(void *to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ inline void copies_close()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int Open> __device__ inline void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Open) : "memory");
}

// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void load_matrices(uint32_t (&r)[4], const void *at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(at))
                 : "memory");
}

__device__ inline void load_matrices_transposed(uint32_t (&r)[4], const void *at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(at))
                 : "memory");
}

// c += a b, 16x8 with a depth of 16.
__device__ inline void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline uint32_t pack_halves(float low, float high)
{
    uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

#if BULK
__device__ inline void mbarrier_init(uint64_t *barrier)
{
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}

__device__ inline void mbarrier_expect(uint64_t *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}

__device__ inline void mbarrier_wait(uint64_t *barrier, int phase)
{
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(
                     shared_address(barrier)),
                 "r"(phase)
                 : "memory");
}

/* The same, asked for again and again. */
__device__ inline void mbarrier_poll(uint64_t *barrier, int phase)
{
    uint32_t done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(phase)
                     : "memory");
}

__device__ inline void bulk_copy(void *to, const void *from, int bytes, uint64_t *barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}
#endif

/* ---- the kernel -------------------------------------------------------------------------------------------------------------- */

struct Tiles {
    unsigned char Q[BLOCK * PITCH];
    unsigned char K[ATTEST_STAGES][BLOCK * PITCH];
    unsigned char V[ATTEST_STAGES][BLOCK * PITCH];
#if BULK
    uint64_t filled[ATTEST_STAGES];
#endif
    EXTRA_SHARED
};
ATTEST_CUDA_FACTS(FACTS);

// Keys first .. first + 64 of K or V; 0 from `end` on, of which there may be none.
__device__ inline void copy_keys(const attest_cuda_args &args, const attest_tile &tile, const void *data, const int64_t *stride,
                                 int first, int end, unsigned char *to)
{
    for (int n = threadIdx.x; n < BLOCK * 8; n += ATTEST_THREADS) {
        int key = n / 8, chunk = n % 8;
        bool there = first + key < end;
        const uint16_t *from =
            (const uint16_t *)data + (there ? KEY_OFFSET(attest_key_offset(args, stride, tile, first + key)) + chunk * 8 : 0);
        copy16(to + key * PITCH + SWIZZLE(key, chunk) * 16, from, there ? 16 : 0);
    }
}

#if BULK
// The same, by the first warp: rows that are there are copied in bulk, the others become 0.
__device__ inline void bulk_keys(const attest_cuda_args &args, const attest_tile &tile, int first, int end, Tiles &smem, int stage)
{
    if (threadIdx.x >= 32)
        return;
    int rows = min(BLOCK, max(0, end - first));
    if (threadIdx.x == 0)
        mbarrier_expect(&smem.filled[stage], rows * 2 * D * 2);
    __syncwarp();
    for (int key = threadIdx.x; key < BLOCK; key += 32) {
        unsigned char *k = smem.K[stage] + key * PITCH, *v = smem.V[stage] + key * PITCH;
        if (key < rows) {
            bulk_copy(k, (const uint16_t *)args.k + attest_key_offset(args, args.stride_k, tile, first + key), D * 2,
                      &smem.filled[stage]);
            bulk_copy(v, (const uint16_t *)args.v + attest_key_offset(args, args.stride_v, tile, first + key), D * 2,
                      &smem.filled[stage]);
        } else {
            for (int chunk = 0; chunk < 8; chunk++) {
                ((uint4 *)k)[chunk] = make_uint4(0, 0, 0, 0);
                ((uint4 *)v)[chunk] = make_uint4(0, 0, 0, 0);
            }
        }
    }
}
#endif

#if WGMMA
// Where a tile of 64 rows of 128 bytes lies, in the swizzle of 128 bytes, which is SWIZZLE.
__device__ inline uint64_t matrix_descriptor(const void *at)
{
    return (uint64_t)(shared_address(at) >> 4 & 0x3fff) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

// S = Q K^T, a depth of 16 of it: 64x64, of which each warp gets 16 rows, laid out as those of mma.sync.
__device__ inline void multiply_group(float (&s)[8][4], uint64_t q, uint64_t k, int add)
{
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
        "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, add, 1, 1, 0, 0;\n}"
        : "+f"(s[0][0]), "+f"(s[0][1]), "+f"(s[0][2]), "+f"(s[0][3]), "+f"(s[1][0]), "+f"(s[1][1]), "+f"(s[1][2]), "+f"(s[1][3]),
          "+f"(s[2][0]), "+f"(s[2][1]), "+f"(s[2][2]), "+f"(s[2][3]), "+f"(s[3][0]), "+f"(s[3][1]), "+f"(s[3][2]), "+f"(s[3][3]),
          "+f"(s[4][0]), "+f"(s[4][1]), "+f"(s[4][2]), "+f"(s[4][3]), "+f"(s[5][0]), "+f"(s[5][1]), "+f"(s[5][2]), "+f"(s[5][3]),
          "+f"(s[6][0]), "+f"(s[6][1]), "+f"(s[6][2]), "+f"(s[6][3]), "+f"(s[7][0]), "+f"(s[7][1]), "+f"(s[7][2]), "+f"(s[7][3])
        : "l"(q), "l"(k), "r"(add));
}
#endif

// O and LSE of two elements of a row; the ending is that of the row.
__device__ inline void store_pair(const attest_cuda_args &args, const attest_tile &tile, int i, int d, float a, float b)
{
    uint16_t *at = (uint16_t *)args.o + attest_row_offset(args, args.stride_o, tile, tile.slot, i) + O_COLUMN(d);
    *(uint32_t *)at = pack_halves(a, b);
}

extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, BLOCKS) ATTRIBUTES
    attest_kernel(const __grid_constant__ attest_cuda_args args)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    Tiles &smem = *reinterpret_cast<Tiles *>(shared);
    AT_START;

    const int index = SPLIT ? blockIdx.x / args.splits : TILE_INDEX(blockIdx.x), piece = SPLIT ? blockIdx.x % args.splits : 0;
    const attest_tile tile = attest_tile_get(args, index);
    if (tile.row_begin >= tile.row_end)
        return;
    attest_span span = attest_tile_visible(args, tile);
    if (SPLIT) {
        span.begin = max(span.begin, piece * args.split_keys);
        span.end = min(span.end, piece * args.split_keys + args.split_keys);
    }
    span.end = SPAN_END(span.end);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row_0 = tile.row_begin + warp * 16 + lane / 4; // and eight further

    for (int n = threadIdx.x; n < BLOCK * 8; n += ATTEST_THREADS) {
        int row = n / 8, chunk = n % 8;
        bool there = tile.row_begin + row < tile.row_end;
        int64_t at = there ? attest_row_offset(args, args.stride_q, tile, tile.slot, tile.row_begin + row) + chunk * 8 : 0;
        copy16(smem.Q + row * PITCH + SWIZZLE(row, chunk) * 16, (const uint16_t *)args.q + at, there ? 16 : 0);
    }
#if BULK
    copies_close();
    copies_wait<0>();
    if (threadIdx.x == 0)
        for (int n = 0; n < ATTEST_STAGES; n++)
            mbarrier_init(&smem.filled[n]);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    for (int n = 0; n < ATTEST_STAGES - 1; n++)
        bulk_keys(args, tile, span.begin + n * BLOCK, span.end, smem, n);
#else
    for (int n = 0; n < ATTEST_STAGES - 1; n++) {
        copy_keys(args, tile, args.k, args.stride_k, span.begin + n * BLOCK, COPY_END(span.end), smem.K[n]);
        copy_keys(args, tile, args.v, args.stride_v, span.begin + n * BLOCK, COPY_END(span.end), smem.V[n]);
        copies_close();
    }
#endif

    float m[2] = {minus_infinity(), minus_infinity()}, l[2] = {0, 0}, o[8][4] = {};
#if !WGMMA
    uint32_t q[4][4] = {};
#endif
    for (int n = 0, first = span.begin; first < span.end; n++, first += BLOCK) {
        const int stage = n % ATTEST_STAGES, next = first + (ATTEST_STAGES - 1) * BLOCK,
                  written = STAGE_WRITTEN(n + ATTEST_STAGES - 1);
#if BULK
        BULK_WAIT(&smem.filled[stage], n / ATTEST_STAGES & 1);
        BARRIER; // zeros have been written, and tile n - 1 has been read
        bulk_keys(args, tile, next, span.end, smem, written);
#else
        WAIT_FOR_TILE;
#if WGMMA
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
        BARRIER; // tile n has been written by all, and tile n - 1 has been read by all
        copy_keys(args, tile, args.k, args.stride_k, next, COPY_END(span.end), smem.K[written]);
        copy_keys(args, tile, args.v, args.stride_v, next, COPY_END(span.end), smem.V[written]);
        copies_close();
#endif

        // S = Q K^T: a warp has 16 rows, s[k] 8 keys.
        float s[8][4] = {};
#if WGMMA
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int d = 0; d < 4; d++)
            multiply_group(s, matrix_descriptor(smem.Q) + d * 2, matrix_descriptor(smem.K[stage]) + d * 2, d > 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        WGMMA_WAIT;
#else
        if (n == 0) {
#pragma unroll
            for (int d = 0; d < 4; d++) {
                int row = warp * 16 + lane % 16, chunk = d * 2 + lane / 16;
                load_matrices(q[d], smem.Q + row * PITCH + SWIZZLE(row, chunk) * 16);
            }
            Q_FRAGMENTS(q);
        }
#pragma unroll
        for (int d = 0; d < 4; d++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                uint32_t b[4];
                int key = k * 16 + lane % 8 + lane / 16 * 8, chunk = d * 2 + lane / 8 % 2;
                load_matrices(b, smem.K[stage] + key * PITCH + SWIZZLE_K(key, chunk) * 16);
                multiply(s[k * 2], q[d], b[0], b[1]);
                multiply(s[k * 2 + 1], q[d], b[2], b[3]);
            }
#endif
        SCORES(s);

        // Mask, maximum, exponential, sum, for the two rows of a lane; scores in units of log2.
#pragma unroll
        for (int h = 0; h < 2; h++) {
            attest_span row = attest_row_visible(args, tile.sequence, row_0 + h * 8);
            if (SPLIT) // a block that begins with a window goes on into the keys of the next piece
                row.end = min(row.end, span.end);
            float top = minus_infinity();
#pragma unroll
            for (int k = 0; k < 8; k++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int j = first + k * 8 + lane % 4 * 2 + e;
                    float &x = s[k][h * 2 + e];
                    x = SEES(row, j) ? x * (SCALE * LOG2_E) : minus_infinity();
                    top = fmaxf(top, x);
                }
            top = TOP(fmaxf(m[h], quad_max(top)));
            const float base = top == minus_infinity() ? 0.0f : top, carry = CARRY(m[h], base);
            m[h] = top;
            float sum = 0;
#pragma unroll
            for (int k = 0; k < 8; k++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    s[k][h * 2 + e] = power2(s[k][h * 2 + e] - base);
                    sum += s[k][h * 2 + e];
                }
            l[h] = l[h] * carry + SUM(sum);
#pragma unroll
            for (int d = 0; d < 8; d++) {
                RESCALE(o[d][h * 2], carry);
                RESCALE(o[d][h * 2 + 1], carry);
            }
        }

        // O += P V: what was S is P, and lies just as the other operand has to.
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const uint32_t p[4] = {pack_halves(s[k * 2][0], s[k * 2][1]), pack_halves(s[k * 2][2], s[k * 2][3]),
                                   pack_halves(s[k * 2 + 1][0], s[k * 2 + 1][1]), pack_halves(s[k * 2 + 1][2], s[k * 2 + 1][3])};
#pragma unroll
            for (int d = 0; d < 4; d++) {
                uint32_t b[4];
                int key = k * 16 + lane % 16, chunk = d * 2 + lane / 16;
                load_matrices_transposed(b, smem.V[stage] + key * PITCH + SWIZZLE_V(key, chunk) * 16);
                MULTIPLY_PV(o[d * 2], p, b[0], b[1]);
                MULTIPLY_PV(o[d * 2 + 1], p, b[2], b[3]);
            }
        }
        VALUES(o);
    }
    copies_wait<0>();

#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int i = row_0 + h * 8;
        if (SPLIT && args.splits > 1) {
            float *partial = attest_partial_row(args, index, piece, warp * 16 + lane / 4 + h * 8);
            if (PIECE_WRITES) {
#pragma unroll
                for (int d = 0; d < 8; d++) {
                    partial[d * 8 + lane % 4 * 2] = o[d][h * 2];
                    partial[d * 8 + lane % 4 * 2 + 1] = o[d][h * 2 + 1];
                }
                if (lane % 4 == 0) {
                    partial[D] = m[h];
                    partial[D + 1] = l[h];
                }
            }
        } else if (WRITES_ROW(i)) {
            const attest_ending ending = attest_row_ending(args, m[h] * LN_2, l[h], tile.slot);
#pragma unroll
            for (int d = 0; d < 8; d++)
                store_pair(args, tile, i, d * 8 + lane % 4 * 2, o[d][h * 2] * ending.factor, o[d][h * 2 + 1] * ending.factor);
            if (attest_has(args, ATTEST_LSE) && lane % 4 == 0)
                args.lse[attest_row_offset(args, args.stride_lse, tile, tile.slot, i)] = ending.lse;
        }
    }
    AT_END;
}

#if SPLIT
// Joins the pieces of a tile: a warp for each row, two columns for each lane.
extern "C" __global__ void __launch_bounds__(ATTEST_THREADS, 1) attest_combine(const __grid_constant__ attest_cuda_args args)
{
    const attest_tile tile = attest_tile_get(args, blockIdx.x);
    const int lane = threadIdx.x % 32;
    for (int i = tile.row_begin + threadIdx.x / 32; i < tile.row_end; i += ATTEST_THREADS / 32) {
        float top = minus_infinity(), sum = 0, a = 0, b = 0;
        for (int piece = 0; piece < args.splits; piece++)
            top = fmaxf(top, attest_partial_row(args, blockIdx.x, piece, i - tile.row_begin)[D]);
        const int first = FIRST_PIECE;
        const float base = top == minus_infinity() ? 0.0f : top; // also of a row that sees nothing but NaN, whose sum says so
        for (int piece = 0; piece < args.splits; piece++) {
            const float *partial = attest_partial_row(args, blockIdx.x, (first + piece) % args.splits, i - tile.row_begin);
            const float weight = WEIGHT(partial[D], base);
            sum += weight * partial[D + 1];
            a += weight * partial[lane * 2];
            b += weight * partial[lane * 2 + 1];
        }
        const attest_ending ending = attest_row_ending(args, top * LN_2, sum, tile.slot);
        store_pair(args, tile, i, lane * 2, a * ending.factor, b * ending.factor);
        if (attest_has(args, ATTEST_LSE) && lane == 0)
            args.lse[attest_row_offset(args, args.stride_lse, tile, tile.slot, i)] = ending.lse;
    }
}
#endif
