/*
 * cuda_resources.c - the occupancy model.
 *
 * A multiprocessor takes blocks until one of five things runs out: warps, registers, shared memory, barriers, blocks. Registers are
 * given to warps, in portions of 256, from the quarter of the multiprocessor that the warp runs in; whether a block can be launched
 * at all is decided as if its warps filled all four quarters evenly. Shared memory is given to blocks in portions of 128 bytes,
 * with 1 KB on top that the hardware keeps.
 */
#include "cuda_resources.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define CUDA_LIMITS(name, number, image, shared, block, warps, blocks, barriers)                                                   \
    {#name, number, #image, (shared)*1024, (block)*1024, warps, blocks, barriers},
const struct cuda_limits cuda_limits[] = {
#include "cuda_limits.def"
};
#undef CUDA_LIMITS
const int cuda_limits_count = sizeof cuda_limits / sizeof *cuda_limits;

int cuda_arch_find(const char *name)
{
    for (int i = 0; i < cuda_limits_count; i++)
        if (strcmp(cuda_limits[i].name, name) == 0)
            return i;
    return -1;
}

static int64_t round_up(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/* False, with the numbers, if not even one block can be launched. */
static bool can_launch(const struct cuda_limits *limits, const struct cuda_use *use, int64_t warps, int64_t warp_registers,
                       char *text, size_t size)
{
    if (use->threads < 1 || use->threads > CUDA_BLOCK_THREADS) {
        snprintf(text, size, "a block has %lld threads, and 1 to %d are possible", (long long)use->threads, CUDA_BLOCK_THREADS);
        return false;
    }
    if (use->registers > CUDA_THREAD_REGISTERS) {
        snprintf(text, size, "a thread has %lld registers, and at most %d are possible", (long long)use->registers,
                 CUDA_THREAD_REGISTERS);
        return false;
    }
    if (warp_registers * round_up(warps, CUDA_QUARTERS) > CUDA_REGISTERS) {
        snprintf(text, size, "%lld threads of %lld registers need %lld registers, and an SM has %d", (long long)use->threads,
                 (long long)use->registers, (long long)(warp_registers * round_up(warps, CUDA_QUARTERS)), CUDA_REGISTERS);
        return false;
    }
    if (use->shared > limits->shared_block) {
        snprintf(text, size, "a block needs %lld bytes of shared memory, and %s has %lld (%lld KB of the SM's %lld KB)",
                 (long long)use->shared, limits->name, (long long)limits->shared_block, (long long)limits->shared_block / 1024,
                 (long long)limits->shared / 1024);
        return false;
    }
    if (use->barriers > 16) {
        snprintf(text, size, "a block uses %lld barriers, and 16 are possible", (long long)use->barriers);
        return false;
    }
    return true;
}

struct cuda_fit cuda_fit(const struct cuda_limits *limits, const struct cuda_use *use)
{
    struct cuda_fit fit = {.limiter = "blocks"};
    int64_t warps = round_up(use->threads, CUDA_WARP) / CUDA_WARP;
    int64_t warp_registers = round_up(use->registers * CUDA_WARP, CUDA_REGISTER_UNIT);
    int64_t shared = round_up(use->shared + CUDA_SHARED_RESERVED, CUDA_SHARED_UNIT);
    if (!can_launch(limits, use, warps, warp_registers, fit.sentence, sizeof fit.sentence))
        return fit;
    int64_t register_warps = warp_registers ? CUDA_REGISTERS / CUDA_QUARTERS / warp_registers * CUDA_QUARTERS : INT_MAX;
    const struct {
        const char *name;
        int64_t blocks;
    } bounds[] = {
        {"warps", limits->warps / warps},
        {"registers", register_warps / warps},
        {"shared memory", limits->shared / shared},
        {"barriers", use->barriers && limits->barriers ? limits->barriers / use->barriers : INT_MAX},
    };
    int64_t blocks = limits->blocks;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i].blocks < blocks) {
            blocks = bounds[i].blocks;
            fit.limiter = bounds[i].name;
        }
    fit.blocks = (int)blocks;
    fit.occupancy = (double)(blocks * warps) / limits->warps;
    fit.fits = blocks > 0;
    snprintf(fit.sentence, sizeof fit.sentence, "%d block%s of %lld warps fit on an SM of %s; %s keep%s out the next", fit.blocks,
             fit.blocks == 1 ? "" : "s", (long long)warps, limits->name, fit.limiter,
             strcmp(fit.limiter, "shared memory") == 0 ? "s" : "");
    return fit;
}
