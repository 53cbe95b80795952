/*
 * cuda_resources.h - does a block fit on a multiprocessor, and how many do.
 */
#ifndef ATTEST_CUDA_RESOURCES_H
#define ATTEST_CUDA_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same on every architecture of cuda_limits.def. */
enum {
    CUDA_WARP = 32,
    CUDA_BLOCK_THREADS = 1024,
    CUDA_REGISTERS = 65536,         /* of an SM, in four equal parts; a block can have all of them */
    CUDA_THREAD_REGISTERS = 255,    /* of a thread */
    CUDA_REGISTER_UNIT = 256,       /* registers are given to warps in such portions */
    CUDA_QUARTERS = 4,              /* parts of an SM, each with a quarter of the registers */
    CUDA_SHARED_UNIT = 128,         /* bytes; shared memory is given to blocks in such portions */
    CUDA_SHARED_RESERVED = 1024,    /* bytes that the hardware keeps for every block */
    CUDA_SHARED_DEFAULT = 48 * 1024 /* bytes a block can have without opting in */
};

struct cuda_limits {
    const char *name;  /* sm_89 */
    int number;        /* 89 */
    const char *image; /* whose image runs there: sm_80 */
    int64_t shared;    /* bytes of the SM */
    int64_t shared_block;
    int warps, blocks, barriers; /* barriers 0: never what runs out */
};
extern const struct cuda_limits cuda_limits[];
extern const int cuda_limits_count;
int cuda_arch_find(const char *name); /* index in cuda_limits, or -1 */

/* What a block uses. */
struct cuda_use {
    int64_t threads;
    int64_t registers; /* of a thread */
    int64_t shared;    /* bytes, static and dynamic */
    int64_t barriers;  /* 0: not known */
};

struct cuda_fit {
    bool fits;
    int blocks;          /* on one SM */
    double occupancy;    /* warps there are, of those there could be */
    const char *limiter; /* "warps", "registers", "shared memory", "barriers" or "blocks": what keeps the next block out */
    char sentence[200];  /* if it does not fit: why, with the numbers; else how many fit, and what keeps the next one out */
};
struct cuda_fit cuda_fit(const struct cuda_limits *limits, const struct cuda_use *use);

#endif
