/*
 * occupancy.c - the resource model against NVIDIA's own, which comes with the toolkit as a header: cuda_occupancy.h. For
 * tests/cuda_build.t, which compiles it where that header is.
 */
#include <cuda_occupancy.h>
#include <stdio.h>

#include "cuda/cuda_resources.h"

static int theirs(const struct cuda_limits *limits, const struct cuda_use *use)
{
    cudaOccDeviceProp device = {.computeMajor = limits->number / 10,
                                .computeMinor = limits->number % 10,
                                .maxThreadsPerBlock = CUDA_BLOCK_THREADS,
                                .maxThreadsPerMultiprocessor = limits->warps * CUDA_WARP,
                                .regsPerBlock = CUDA_REGISTERS,
                                .regsPerMultiprocessor = CUDA_REGISTERS,
                                .warpSize = CUDA_WARP,
                                .sharedMemPerBlock = CUDA_SHARED_DEFAULT,
                                .sharedMemPerMultiprocessor = (size_t)limits->shared,
                                .numSms = 1,
                                .sharedMemPerBlockOptin = (size_t)limits->shared_block,
                                .reservedSharedMemPerBlock = CUDA_SHARED_RESERVED};
    cudaOccFuncAttributes function = {.maxThreadsPerBlock = CUDA_BLOCK_THREADS,
                                      .numRegs = (int)use->registers,
                                      .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
                                      .maxDynamicSharedSizeBytes = (size_t)use->shared,
                                      .numBlockBarriers = (int)use->barriers};
    cudaOccDeviceState state = {.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED};
    cudaOccResult result = {0};
    return cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, (int)use->threads, (size_t)use->shared)
               ? -1
               : result.activeBlocksPerMultiprocessor;
}

int main(void)
{
    long compared = 0, different = 0;
    for (int arch = 0; arch < cuda_limits_count; arch++)
        for (int threads = 32; threads <= 1024; threads += 32)
            for (int registers = 16; registers <= 255; registers += 7)
                for (int shared = 0; shared <= 240 * 1024; shared += 4111)
                    for (int barriers = 0; barriers <= 16; barriers += 8) {
                        struct cuda_use use = {threads, registers, shared, barriers};
                        int ours = cuda_fit(&cuda_limits[arch], &use).blocks, other = theirs(&cuda_limits[arch], &use);
                        compared++;
                        if (ours != other && different++ < 10)
                            printf("%s: %d threads, %d registers, %d bytes, %d barriers: %d blocks here, %d there\n",
                                   cuda_limits[arch].name, threads, registers, shared, barriers, ours, other);
                    }
    printf("%ld compared, %ld different\n", compared, different);
    return different != 0;
}
