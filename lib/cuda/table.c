/*
 * table.c - the CUDA kernels of this build, in the order of kernels.def. The images and what their manifests say come from a file
 * that the build writes (scripts/cuda_images.c); without nvcc there are none.
 */
#include "gpu.h"

#ifdef ATTEST_CUDA_KERNELS
#define KERNEL(op, dtype, stem)                                                                                                    \
    extern const attest_cuda_kernel cuda_##op##_##stem;                                                                            \
    extern const char cuda_##op##_##stem##_needs[];
#define CANDIDATE KERNEL
#include "kernels.def"
#undef KERNEL
#undef CANDIDATE

#define NAME_BF16 "bf16"
#define NAME_F16  "f16"
#define NAME_F32  "f32"
#define ROW(op, dtype, stem, candidate)                                                                                            \
    {"cuda_" #op "_" NAME_##dtype "_" #stem,                                                                                       \
     "cuda",                                                                                                                       \
     OP_##op,                                                                                                                      \
     ATTEST_##dtype,                                                                                                               \
     NULL,                                                                                                                         \
     &cuda_##op##_##stem,                                                                                                          \
     cuda_##op##_##stem##_needs,                                                                                                   \
     candidate},
#define KERNEL(op, dtype, stem)    ROW(op, dtype, stem, false)
#define CANDIDATE(op, dtype, stem) ROW(op, dtype, stem, true)
const struct kernel cuda_kernels[] = {
#include "kernels.def"
    {0},
};
const int cuda_kernel_count = sizeof cuda_kernels / sizeof *cuda_kernels - 1;
#else
const struct kernel cuda_kernels[] = {{0}};
const int cuda_kernel_count = 0;
#endif
