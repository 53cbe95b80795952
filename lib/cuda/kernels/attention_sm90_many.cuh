/*
 * attention_sm90_many.cuh - what cuda_fwd_sm90_many and cuda_fwd_sm90_heads have in common beside attention_sm90.cuh: masks and weights of
 * parts of a block of keys, and the end of a tile.
 */
#ifndef ATTEST_ATTENTION_SM90_MANY_CUH
#define ATTEST_ATTENTION_SM90_MANY_CUH

#include "attention_sm90.cuh"

/* ---- masks ---- */

// Of the columns a thread has of a row, which are 8 n and 8 n + 1 for all n, those below `end`: bits 2 n and 2 n + 1.
__device__ inline uint32_t columns_below(int end)
{
    const int whole = attest_clamp(end, 0, KEYS), bits = whole / 8 * 2 + min(whole % 8, 2);
    return bits >= 32 ? ~0u : (1u << bits) - 1;
}

// What a row does not see becomes -inf. `first` is the block's first key. What it sees is a set of bits, from which the compiler makes
// predicates seven at a time.
template <int COUNT>
__device__ inline void hide_bits(const attest_cuda_args &args, const attest_sequence &sequence, float (&S)[COUNT], int r, int first)
{
    static_assert(COUNT <= 64, "a row's columns are the bits of a word");
    const int key = first + threadIdx.x % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const attest_span sees = attest_row_visible(args, sequence, row_in_sequence(args, r + half * 8));
        const uint32_t seen = columns_below(sees.end - key) & ~columns_below(sees.begin - key);
#pragma unroll
        for (int n = 0; n < COUNT / 4; n++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                if (!(seen >> (n * 2 + e) & 1))
                    S[n * 4 + half * 2 + e] = minus_infinity();
    }
}

/* ---- P, m, l ---- */

// What is subtracted from scores in units of log2. Rounded, so that it is the same wherever m is.
__device__ inline float base_of(float m, float c)
{
    return m == minus_infinity() ? 0 : __fmul_rn(m, c);
}

__device__ inline float log2_fast(float x)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return log2f(x);
#endif
}

// The largest of a thread's scores of each of its rows.
template <int COUNT> __device__ inline void largest(const float (&S)[COUNT], float (&most)[2])
{
    float of[2][2]; // of even and of odd columns: more that can be done at a time
#pragma unroll
    for (int n = 0; n < 4; n++)
        of[n / 2][n % 2] = S[n];
#pragma unroll
    for (int n = 4; n < COUNT; n++)
        of[n / 2 % 2][n % 2] = fmaxf(of[n / 2 % 2][n % 2], S[n]);
#pragma unroll
    for (int half = 0; half < 2; half++)
        most[half] = fmaxf(of[half][0], of[half][1]);
}

constexpr float FAR = D <= 128 ? 40 : 32, FAR_OF_KEY = 24.0f / 256; // with many columns of V there is time for raising m

// For rows that see up to so many keys.
__device__ inline float far_of(int keys)
{
    return fminf(FAR, keys * FAR_OF_KEY);
}

// Up to where scores may be for m to stay as it is: weights are then at most 1, or `far` times what they are on average, and at most
// 2^RISE. With m its largest score, a row's largest weight is 1, and not rounded; below that it may be rounded like the others as long as
// they are as many as to count for more. What weights are on average is seen from a lane's own sums, of a quarter of `keys`, where m has
// been raised last. `unit` is 1 / c. Where a row has few keys, one of them counts for more: `far` is FAR at most.
__device__ inline void limits_of(const Rows &rows, const bool (&rises)[2], float unit, float far, int keys, float (&limit)[2])
{
    const float factor = far * 4 * reciprocal_fast((float)keys);
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (rises[half])
            limit[half] = fmaf(log2_fast(fminf(fmaxf(rows.l[half] * factor, 1), LARGEST)), unit, rows.m[half]);
}

// Whether no score of the warp is beyond its row's limit.
template <int COUNT> __device__ inline bool are_within(const float (&S)[COUNT], const float (&limit)[2])
{
    float most[2];
    largest(S, most);
    return __all_sync(ALL_LANES, most[0] <= limit[0] && most[1] <= limit[1]);
}

// Where a score is beyond its row's limit, the row rises: m becomes the maximum of its scores too. `carry` is what O and l so far are to be
// multiplied with.
template <int COUNT>
__device__ inline void raise_to(const float (&S)[COUNT], Rows &rows, const float (&limit)[2], bool (&rises)[2], float (&carry)[2],
                                float c)
{
    float most[2];
    largest(S, most);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float m = fmaxf(rows.m[half], most[half]);
        m = fmaxf(m, __shfl_xor_sync(ALL_LANES, m, 1));
        m = fmaxf(m, __shfl_xor_sync(ALL_LANES, m, 2));
        rises[half] = of_row(!(most[half] <= limit[half]));
        m = rises[half] ? m : rows.m[half];
        carry[half] = exp2_fast(__fmul_rn(rows.m[half], c) - base_of(m, c));
        rows.m[half] = m;
    }
}

// The weights of keys from FIRST on with m as it is, rounded; and their sums.
template <int FIRST, int STEPS, int SCORES>
__device__ inline void weigh_part(uint32_t (&P)[STEPS][4], const float (&S)[SCORES], Rows &rows, float c)
{
    const float base[2] = {base_of(rows.m[0], c), base_of(rows.m[1], c)};
    float sum[2][2] = {{0, 0}, {0, 0}};
#pragma unroll
    for (int step = 0; step < STEPS; step++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int n = FIRST / 2 + step * 8 + i * 2;
            const float x = exp2_fast(fmaf(S[n], c, -base[i % 2])), y = exp2_fast(fmaf(S[n + 1], c, -base[i % 2]));
            sum[i % 2][0] += x, sum[i % 2][1] += y;
            P[step][i] = pack(x, y);
        }
    rows.l[0] += sum[0][0] + sum[0][1], rows.l[1] += sum[1][0] + sum[1][1];
}

/* ---- the end of a tile ---- */

__device__ inline void write_rows(const attest_cuda_args &args, const attest_tile &tile, Rows &rows, const Output &O, float c,
                                  int group)
{
    const int r = row_here(tile.row_begin + group * GROUP_Q);
    rows_end(rows, c);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = r + half * 8;
        const float factor = finish_row(args, tile, row, rows.m[half], rows.l[half], threadIdx.x % 4 == 0);
        uint16_t *to = row_of_o(args, tile, row);
        write_row<true>(args, to, O, half, factor, row < tile.row_end);
    }
}

#endif
