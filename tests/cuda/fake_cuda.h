/*
 * fake_cuda.h - what the driver that is made up (fake_driver.c) remembers, for the test that it serves. A test finds it with
 * dlsym(dlopen("libcuda.so.1"), "fake_cuda").
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <attest_kernel_cuda.h>

#include <stdbool.h>

enum { FAKE_LAUNCHES = 4096, FAKE_MAPS = 64 };

struct fake_launch {
    char function[32]; /* attest_kernel or attest_combine */
    unsigned grid, grid_y, grid_z, block, shared;
    bool early;       /* with programmatic stream serialization */
    unsigned cluster; /* blocks of one, if the launch says so, else 0 */
    bool captured;
    void *stream;
    int device;
    attest_cuda_args args;
};

struct fake_map {
    int type, interleave, swizzle, promotion, fill;
    uint32_t rank;
    void *address;
    uint64_t sizes[5], strides[4];
    uint32_t box[5], steps[5];
};

struct fake_cuda {
    /* What happened. */
    int inits, loads, unloads, launches, graph_launches, captures, waits, maps, moves, streams, events, graphs;
    long allocations;                         /* that were not freed */
    int depth;                                /* contexts that were pushed and not popped, of all threads */
    char last_image[16];                      /* the first bytes of the last image that was loaded */
    struct fake_launch launch[FAKE_LAUNCHES]; /* the last FAKE_LAUNCHES, by number modulo that */
    struct fake_map map[FAKE_MAPS];           /* that were encoded or moved, by the sum of both */

    /* What is to happen: the next call of the function fails with this result, or with sticky every call from then on. */
    int fail_load, fail_launch, fail_combine, fail_alloc, fail_wait, fail_map, fail_instantiate;
    int sticky;
    int blocks_per_sm; /* what the GPU says; 2 */
};

#endif
