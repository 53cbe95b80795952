/*
 * device.h - what the files of the CUDA backend share.
 */
#ifndef ATTEST_DEVICE_H
#define ATTEST_DEVICE_H

#include "driver.h"
#include "gpu.h"

#include <pthread.h>
#include <stdatomic.h>

/* The driver, or NULL and why not. */
const struct driver *driver_get(const char **why);

/* "WHAT: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS, CUDA error 700)" */
void driver_say(cu_result result, const char *what, char *text, size_t size);

struct gpu {
    const struct driver *driver;
    cu_context primary;
    attest_device_info info;
    atomic_int broken; /* the error after which it does nothing more; 0: it works */
    pthread_mutex_t lock;
    struct loaded *loaded; /* the images that were loaded, under the lock */
};

/* The GPU's context becomes that of this thread, until gpu_leave; nothing happens if it is already. */
attest_status gpu_enter(struct gpu *gpu, bool *pushed, struct text why);
void gpu_leave(struct gpu *gpu, bool pushed);

/* ATTEST_OK for 0; else what went wrong as status and sentence. Remembers errors that the GPU does not recover from. */
attest_status gpu_result(struct gpu *gpu, cu_result result, const char *what, struct text why);

/* Whether blocks are launched by tile, slot and sequence. Their clusters are blocks that follow each other in the first. */
static inline bool is_in_three_dimensions(const attest_cuda_kernel *kernel)
{
    return kernel->launch == ATTEST_LAUNCH_GRID || kernel->launch == ATTEST_LAUNCH_JOINED;
}

/* One image in the memory of a GPU, ready to be launched. Clusters of more blocks than CLUSTER_PORTABLE have to be allowed. */
enum { CLUSTER_PORTABLE = 8, CLUSTER_MOST = 16, CLUSTER_SIZES = 5 };
struct loaded {
    struct loaded *next;
    uint64_t digest, bytes;
    uint32_t launch, threads, shared, cluster; /* what it was made ready for */
    cu_function kernel, combine;               /* combine is NULL unless the launch is split */
    int blocks;                                /* of the kernel that one multiprocessor holds at once */
    int clusters[CLUSTER_SIZES];               /* with launch = joined: of 2^i blocks, that the GPU holds at once */
};
attest_status image_load(struct gpu *gpu, const attest_cuda_kernel *kernel, const attest_cuda_image *image,
                         const struct loaded **loaded, struct text why);

#endif
