/*
 * table.c - the CUDA kernels of this build, in the order of kernels.def. The images and what their manifests say come from a file
 * that the build writes (scripts/cuda_images.c); without nvcc there are none.
 */
#include "gpu.h"

#ifdef ATTEST_CUDA_KERNELS
#define KERNEL(dtype, stem)                                                                                                        \
    extern const attest_cuda_kernel cuda_fwd_##stem;                                                                               \
    extern const char cuda_fwd_##stem##_needs[];
#define CANDIDATE KERNEL
#include "kernels.def"
#undef KERNEL
#undef CANDIDATE

#define NAME_BF16 "bf16"
#define NAME_F16  "f16"
#define NAME_F32  "f32"
#define ROW(dtype, stem, candidate)                                                                                                \
    {"cuda_fwd_" NAME_##dtype "_" #stem, "cuda", ATTEST_##dtype, NULL, &cuda_fwd_##stem, cuda_fwd_##stem##_needs, candidate},
#define KERNEL(dtype, stem)    ROW(dtype, stem, false)
#define CANDIDATE(dtype, stem) ROW(dtype, stem, true)
const struct kernel cuda_kernels[] = {
#include "kernels.def"
    {NULL, NULL, 0, NULL, NULL, NULL, false},
};
const int cuda_kernel_count = sizeof cuda_kernels / sizeof *cuda_kernels - 1;
#else
const struct kernel cuda_kernels[] = {{NULL, NULL, 0, NULL, NULL, NULL, false}};
const int cuda_kernel_count = 0;
#endif
