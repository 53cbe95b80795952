/*
 * ptx.cuh - one instruction each: what CUDA C has no word for. Kernels use PTX through these names alone.
 */
#ifndef ATTEST_PTX_CUH
#define ATTEST_PTX_CUH

#include <attest_kernel_cuda.h>

/* ---- places ---- */

__device__ inline uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

// 0, but the compiler does not know: what is worked out from it is worked out where that is written, not ahead of a loop, and takes
// no registers elsewhere.
__device__ inline int zero_here()
{
    int zero;
    asm volatile("mov.u32 %0, 0;" : "=r"(zero));
    return zero;
}

/* ---- asynchronous copies to shared memory ---- */

// 16 bytes, of which the first `bytes` are read and the others become zero. Both addresses are multiples of 16.
__device__ inline void cp_async_16(uint32_t to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ inline void cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until at most `groups` of this thread's newest groups are under way.
template <int groups> __device__ inline void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

/* ---- shared memory ---- */

__device__ inline void store_shared_16(uint32_t to, uint4 value)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
}

__device__ inline void store_shared_4(uint32_t to, uint32_t value)
{
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(value) : "memory");
}

__device__ inline uint4 load_shared_16(uint32_t from)
{
    uint4 value;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "r"(from)
                 : "memory");
    return value;
}

// Four 8 x 8 matrices of 16-bit elements; lane n gives the address of row n % 8 of matrix n / 8.
__device__ inline void ldmatrix_x4(uint32_t (&matrix)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
                 : "r"(from)
                 : "memory");
}

__device__ inline void ldmatrix_x4_transposed(uint32_t (&matrix)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
                 : "r"(from)
                 : "memory");
}

/* ---- arithmetic ---- */

// 2^x to 2 units in the last place; 0 for -inf.
__device__ inline float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ inline float reciprocal_fast(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Two floats as a pair of elements, `low` in the lower half.
__device__ inline uint32_t pack_f16(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

__device__ inline uint32_t pack_bf16(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// Two floats as a pair of elements of the kernel's type.
__device__ inline uint32_t pack(float low, float high)
{
#if ATTEST_DTYPE == 2 // ATTEST_F16
    return pack_f16(low, high);
#else
    return pack_bf16(low, high);
#endif
}

/* ---- one grid after another ---- */

// The next grid of the stream may be launched when all blocks have said so or ended.
__device__ inline void grid_allow_next()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Until the grid before this one has ended and what it wrote can be seen.
__device__ inline void grid_wait_previous()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
