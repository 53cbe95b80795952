/*
 * emulated.h - what the kernel in emulation (emulated_kernel.cpp) and those who launch it (emulate.c) know of each other.
 */
#ifndef EMULATED_H
#define EMULATED_H

#include <attest_kernel_cuda.h>

/* The parts of a manifest that a launch needs; emulated_flags.c writes it. */
struct emulated_manifest {
    uint32_t launch;  /* attest_cuda_launch */
    uint32_t cluster; /* blocks, at most; 1: they come alone */
    uint32_t packs, pads, tensor;
    uint32_t refuses_o32, refuses_dv;
    uint64_t refuses;
    uint32_t split_keys, partial, rows_most, align;
    uint32_t map_count;
    struct {
        char tensor;
        uint32_t rows, columns, swizzle;
    } map[ATTEST_CUDA_MAPS];
};

/* Warps side by side, or each as far as it gets; blocks of a cluster likewise. */
enum emulated_order { EMULATED_LAST_FIRST, EMULATED_SIDE_BY_SIDE, EMULATED_FIRST_FIRST };

#ifdef __cplusplus
extern "C" {
#endif

/* Launches the kernel, and the one that joins pieces if there are some. */
void emulated_launch(const attest_cuda_args *args, const attest_cuda_maps *maps, enum emulated_order order);
const attest_cuda_facts *emulated_facts(void);
const struct emulated_manifest *emulated_manifest_get(void);

#ifdef __cplusplus
}
#endif

#endif
