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

/* Whether a table that somebody hands in can be used at all. */
attest_status cuda_kernel_check(const attest_cuda_kernel *kernel, struct text why);

#endif
