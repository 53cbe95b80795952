/*
 * emulated_kernel.cpp - the kernel named by KERNEL, compiled for the CPU, and a launch of it. See emulation.h.
 */
#include "emulation.h"

alignas(1024) unsigned char shared[emulation::SHARED_MOST + 1024];

#include KERNEL
#include "emulated.h"

#ifndef EMULATED_MANIFEST /* a kernel in tiles, which has no wishes */
#define EMULATED_MANIFEST                                                                                                          \
    {                                                                                                                              \
        ATTEST_LAUNCH_TILE, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, {}                                                                 \
    }
#define EMULATED_LAUNCH 1
#endif
#define EMULATED_SPLIT (EMULATED_LAUNCH == 3)

static const emulated_manifest manifest = EMULATED_MANIFEST;
static attest_cuda_args launched;
static attest_cuda_maps maps_launched;

/* A template, so that the way that is not taken is not compiled. */
template <typename Kernel> static void call(Kernel kernel)
{
    if constexpr (std::is_invocable_v<Kernel, attest_cuda_args, attest_cuda_maps>)
        kernel(launched, maps_launched);
    else
        kernel(launched);
}

static void one_thread()
{
    call(attest_kernel);
}

/* One cluster; shared memory that it did not ask for has to stay as it is. */
static void one_cluster(unsigned x, unsigned y, unsigned z, unsigned blocks, emulation::Order order, uint32_t bytes,
                        void (*thread)())
{
    memset(shared + bytes, 0xff, sizeof shared - bytes);
    blockIdx = {x, y, z};
    emulation::shared_bytes = bytes;
    emulation::run_cluster((int)blocks, ATTEST_THREADS, order, thread);
    for (size_t at = bytes; at < sizeof shared; at++)
        if (shared[at] != 0xff)
            emulation::stop("byte %zu of shared memory was written, of %u", at, bytes);
}

static void grid(unsigned x, unsigned y, unsigned z, unsigned cluster, emulation::Order order, uint32_t bytes, void (*thread)())
{
    x = (x + cluster - 1) / cluster * cluster;
    gridDim = {x, y, z};
    for (unsigned k = 0; k < z; k++)
        for (unsigned j = 0; j < y; j++)
            for (unsigned i = 0; i < x; i += cluster)
                one_cluster(i, j, k, cluster, order, bytes, thread);
}

#if EMULATED_SPLIT
static void one_thread_of_combine()
{
    call(attest_combine);
}
#endif

extern "C" void emulated_launch(const attest_cuda_args *args, const attest_cuda_maps *maps, enum emulated_order order)
{
    enum { PERSISTENT_BLOCKS = 5 };
    launched = *args;
    if (maps)
        maps_launched = *maps;
    unsigned tiles = (unsigned)args->tiles, bytes = attest_facts.dynamic_shared;
    emulation::Order chosen = order == EMULATED_SIDE_BY_SIDE ? emulation::SIDE_BY_SIDE
                              : order == EMULATED_LAST_FIRST ? emulation::LAST_FIRST
                                                             : emulation::FIRST_FIRST;
    if (manifest.launch == ATTEST_LAUNCH_GRID)
        grid((unsigned)args->tiles_q, (unsigned)args->slots, (unsigned)args->batch, manifest.cluster, chosen, bytes, one_thread);
    else if (manifest.launch == ATTEST_LAUNCH_PERSISTENT)
        grid(tiles < PERSISTENT_BLOCKS ? tiles : PERSISTENT_BLOCKS, 1, 1, 1, chosen, bytes, one_thread);
    else if (manifest.launch == ATTEST_LAUNCH_JOINED)
        grid((unsigned)(args->tiles_q * args->splits), (unsigned)args->slots, (unsigned)args->batch, (unsigned)args->splits, chosen,
             bytes, one_thread);
    else
        grid(tiles * (unsigned)args->splits, 1, 1, 1, chosen, bytes, one_thread);
#if EMULATED_SPLIT
    if (args->splits > 1)
        grid(tiles, 1, 1, 1, chosen, 0, one_thread_of_combine);
#endif
}

extern "C" const attest_cuda_facts *emulated_facts(void)
{
    return &attest_facts;
}

extern "C" const emulated_manifest *emulated_manifest_get(void)
{
    return &manifest;
}
