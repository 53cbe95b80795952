/*
 * mma.h - nvcuda::wmma for the emulated device: 16x16x16 products of f16 and bf16. Which lane holds which
 * elements is the compiler's own business, and is simpler here than on a GPU.
 */
#ifndef EMULATED_MMA_H
#define EMULATED_MMA_H

#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace nvcuda
{
namespace wmma
{
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int M, int N, int K, typename T, typename Layout = void> struct fragment {
    static constexpr int rows = std::is_same_v<Use, matrix_b> ? K : M, columns = std::is_same_v<Use, matrix_a> ? K : N;
    static constexpr int num_elements = rows * columns / 32;
    T x[num_elements]; /* elements lane * num_elements ... of the matrix, row by row */
};

template <typename F, typename T> inline void fill_fragment(F &f, T value)
{
    for (int i = 0; i < F::num_elements; i++)
        f.x[i] = value;
}

template <typename Use, int M, int N, int K, typename T, typename Layout>
inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout> &f, const T *from, unsigned pitch)
{
    emulated_load_fragment(from, pitch, f.rows, f.columns, sizeof(T), (unsigned char *)f.x, std::is_same_v<Layout, col_major>);
}

template <int M, int N, int K, typename T>
inline void load_matrix_sync(fragment<accumulator, M, N, K, T> &f, const T *from, unsigned pitch, layout_t layout)
{
    emulated_load_fragment(from, pitch, M, N, sizeof(T), (unsigned char *)f.x, layout == mem_col_major);
}

template <int M, int N, int K, typename T>
inline void store_matrix_sync(T *to, const fragment<accumulator, M, N, K, T> &f, unsigned pitch, layout_t layout)
{
    emulated_store_fragment(to, pitch, M, N, sizeof(T), (const unsigned char *)f.x, layout == mem_col_major);
}

template <int M, int N, int K, typename T, typename A, typename B>
inline void mma_sync(fragment<accumulator, M, N, K, float> &d, const fragment<matrix_a, M, N, K, T, A> &a,
                     const fragment<matrix_b, M, N, K, T, B> &b, const fragment<accumulator, M, N, K, float> &c)
{
    static_assert(M == 16 && N == 16 && K == 16, "the emulated device has products of 16x16x16");
    float left[M * K / 32], right[K * N / 32], sums[M * N / 32];
    for (int i = 0; i < M * K / 32; i++)
        left[i] = (float)a.x[i];
    for (int i = 0; i < K * N / 32; i++)
        right[i] = (float)b.x[i];
    for (int i = 0; i < M * N / 32; i++)
        sums[i] = c.x[i];
    emulated_fragment_product(left, right, sums);
    for (int i = 0; i < M * N / 32; i++)
        d.x[i] = sums[i];
}
} // namespace wmma
} // namespace nvcuda

#endif
