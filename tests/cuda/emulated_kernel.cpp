/*
 * emulated_kernel.cpp - the kernel named by KERNEL, compiled for the CPU, and a launch of it. See emulation.h.
 */
#include "emulation.h"

alignas(128) unsigned char shared[232448]; /* what extern __shared__ memory is */

#include KERNEL

static attest_cuda_args launched;

static void one_thread()
{
    attest_kernel(launched);
}

/* Launches one block for each tile, from rubbish in shared memory. */
extern "C" void emulated_launch(const attest_cuda_args *args, int side_by_side)
{
    launched = *args;
    gridDim.x = (unsigned)args->tiles;
    for (int32_t tile = 0; tile < args->tiles; tile++) {
        memset(shared, 0xff, sizeof shared);
        blockIdx.x = (unsigned)tile;
        emulation::run_block(ATTEST_THREADS, side_by_side != 0, one_thread);
    }
}

extern "C" const attest_cuda_facts *emulated_facts(void)
{
    return &attest_facts;
}
