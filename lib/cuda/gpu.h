/*
 * gpu.h - the CUDA backend, as the rest of lib/ sees it: a GPU, its memory, and kernels that are chosen, planned and launched.
 */
#ifndef ATTEST_GPU_H
#define ATTEST_GPU_H

#include "../internal.h"

#include <attest_kernel_cuda.h>

/* GPU `index` of this machine. There is one object for each, for the life of the process. */
attest_status gpu_open(int index, struct gpu **gpu, struct text why);
attest_status gpu_info(int index, attest_device_info *info, struct text why);
const char *gpu_model(const struct gpu *gpu);
void gpu_class(const struct gpu *gpu, char *text, size_t size); /* "nvidia-h200" */

/* ATTEST_OK, or that the GPU has had an error that it does not recover from. */
attest_status gpu_ready(const struct gpu *gpu, struct text why);

attest_status gpu_alloc(struct gpu *gpu, size_t bytes, void **memory, struct text why);
attest_status gpu_free(struct gpu *gpu, void *memory, struct text why);
attest_status gpu_put(struct gpu *gpu, void *device, const void *host, size_t bytes, void *stream, struct text why);
attest_status gpu_get(struct gpu *gpu, void *host, const void *device, size_t bytes, void *stream, struct text why);
attest_status gpu_set(struct gpu *gpu, void *device, int byte, size_t bytes, void *stream, struct text why);
attest_status gpu_synchronize(struct gpu *gpu, void *stream, struct text why);

/* ---- kernels --------------------------------------------------------------------------------------------------------------- */

/* The kernels of this build, best first; none if it was built without nvcc. */
extern const struct kernel cuda_kernels[];
extern const int cuda_kernel_count;

/* The first GPU that this build has kernels for, candidates aside, or -1. */
int gpu_usable(void);

/* Whether a table that somebody hands in can be used at all. */
attest_status cuda_kernel_check(const attest_cuda_kernel *kernel, struct text why);

/* Tiles that were asked for; 0: any. */
struct tile_wish {
    uint32_t q, kv;
};

/* Query heads that share a tile: those of a KV head where the kernel packs them and its tiles hold whole groups, else 1. */
int64_t cuda_pack(const attest_cuda_kernel *kernel, const attest_cuda_image *image, const attest_problem *p);

/* How far a row sees to either side of its place; ATTEST_CUDA_UNBOUNDED where there is no limit. */
int32_t cuda_window_left(const attest_problem *p);
int32_t cuda_window_right(const attest_problem *p);

/* The one predicate of CUDA kernels: ATTEST_OK and the image that runs, or why not. `gpu` is NULL for a context on the CPU. */
attest_status cuda_refusal(const struct gpu *gpu, const attest_cuda_kernel *kernel, struct tile_wish wish, const attest_problem *p,
                           const attest_cuda_image **image, struct text why);

/* Why the image that cuda_refusal found runs and not the kernel's first: " (192x128 would take 50.0 % longer)"; "" if it is that. */
void cuda_tiles_explain(const struct gpu *gpu, const attest_cuda_kernel *kernel, const attest_cuda_image *image,
                        const attest_problem *p, char *text, size_t size);

/* A launch, with everything in it but the pointers. */
struct cuda_plan;
attest_status cuda_plan_create(struct gpu *gpu, const attest_cuda_kernel *kernel, const attest_cuda_image *image,
                               const attest_problem *p, struct cuda_plan **plan, size_t *workspace, struct text why);
void cuda_plan_destroy(struct cuda_plan *plan);                                 /* NULL is fine */
struct gpu *cuda_plan_gpu(const struct cuda_plan *plan);                        /* where it runs */
uint32_t cuda_plan_align(const struct cuda_plan *plan);                         /* of Q, K, V and O; 0: that of their elements */
void cuda_plan_describe(const struct cuda_plan *plan, char *text, size_t size); /* "tiles of 128x64, 512 blocks of 128 threads" */
attest_status cuda_run(const struct cuda_plan *plan, const attest_tensors *t, void *workspace, void *stream, struct text why);

#endif
