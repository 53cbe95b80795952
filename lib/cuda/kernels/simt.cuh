/*
 * simt.cuh - the few instructions that kernels without tensor cores need and CUDA C has no words for. Each is one function.
 */
#ifndef ATTEST_SIMT_CUH
#define ATTEST_SIMT_CUH

#include <stdint.h>

// Begins to copy 16 (or 4) bytes to shared memory, of which only the first `bytes` are read and the rest become 0.
__device__ inline void copy16(float *to, const float *from, int bytes)
{
    uint32_t address = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

__device__ inline void copy4(float *to, const float *from, int bytes)
{
    uint32_t address = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

// Copies begun since the last call form a group.
__device__ inline void copies_close()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most `Open` groups of this thread's copies are not done.
template <int Open> __device__ inline void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Open) : "memory");
}

// A barrier for `threads` threads of the block; `id` is 1 to 15, 0 is __syncthreads.
__device__ inline void barrier(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// 2^x to 2 units in the last place; results below 2^-126 are 0.
__device__ inline float power2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#endif
