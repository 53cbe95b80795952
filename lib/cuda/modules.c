/*
 * modules.c - images in the memory of a GPU: loaded when a plan first wants them, kept for the life of the process.
 *
 * An image is known by its bytes, not by where they lie: a kernel that a caller brought may be gone, and another in its place.
 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a, a word at a time. */
static uint64_t digest_of(const void *data, uint64_t bytes)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325), word;
    for (uint64_t at = 0; at < bytes; at += sizeof word) {
        word = 0;
        memcpy(&word, (const char *)data + at, bytes - at < sizeof word ? (size_t)(bytes - at) : sizeof word);
        digest = (digest ^ word) * UINT64_C(0x100000001b3);
        digest ^= digest >> 29;
    }
    return digest;
}

/* Finds a function, lets it have its dynamic shared memory, and brings it to the GPU, so that no launch has to. */
static attest_status prepare(struct gpu *gpu, cu_module module, const char *name, uint32_t shared, cu_function *function,
                             struct text why)
{
    char what[128];
    int ignored;
    snprintf(what, sizeof what, "the image has no function %s", name);
    TRY(gpu_result(gpu, gpu->driver->module_function(function, module, name), what, why));
    snprintf(what, sizeof what, "%s does not get its %u bytes of shared memory", name, shared);
    if (shared)
        TRY(gpu_result(gpu, gpu->driver->function_set(*function, CU_FUNCTION_MOST_DYNAMIC_SHARED, (int)shared), what, why));
    snprintf(what, sizeof what, "%s cannot be loaded", name);
    return gpu_result(gpu, gpu->driver->function_get(&ignored, CU_FUNCTION_SHARED, *function), what, why);
}

/* Blocks of a cluster lie side by side on the GPU, in groups of multiprocessors that are not all of the same size: only the driver knows
 * how many clusters there is room for. */
static attest_status count_clusters(struct gpu *gpu, const attest_cuda_image *image, struct loaded *made, struct text why)
{
    if (image->cluster > CLUSTER_PORTABLE) {
        cu_result result = gpu->driver->function_set(made->kernel, CU_FUNCTION_WIDE_CLUSTERS, 1);
        TRY(gpu_result(gpu, result, "the kernel does not get clusters of more than 8 blocks", why));
    }
    for (unsigned i = 0, size = 1; size <= image->cluster; i++, size *= 2) {
        struct cu_launch_attribute cluster = {.id = CU_LAUNCH_CLUSTER, .value.cluster = {size, 1, 1}};
        struct cu_launch_config config = {.grid = {size, 1, 1},
                                          .block = {image->facts.threads, 1, 1},
                                          .shared = image->facts.dynamic_shared,
                                          .attributes = &cluster,
                                          .attribute_count = 1};
        cu_result result = gpu->driver->clusters_at_once(&made->clusters[i], made->kernel, &config);
        TRY(gpu_result(gpu, result, "the GPU does not say how many clusters it holds", why));
    }
    return ATTEST_OK;
}

static attest_status examine(struct gpu *gpu, const attest_cuda_kernel *kernel, const attest_cuda_image *image, cu_module module,
                             struct loaded *made, struct text why)
{
    TRY(prepare(gpu, module, ATTEST_CUDA_KERNEL, image->facts.dynamic_shared, &made->kernel, why));
    if (kernel->launch == ATTEST_LAUNCH_SPLIT)
        TRY(prepare(gpu, module, ATTEST_CUDA_COMBINE, 0, &made->combine, why));
    if (kernel->launch == ATTEST_LAUNCH_JOINED)
        TRY(count_clusters(gpu, image, made, why));
    cu_result result =
        gpu->driver->blocks_per_sm(&made->blocks, made->kernel, (int)image->facts.threads, image->facts.dynamic_shared);
    TRY(gpu_result(gpu, result, "the GPU does not say how many blocks it holds", why));
    return made->blocks > 0 ? ATTEST_OK
                            : fail(why, ATTEST_ERROR_UNAVAILABLE, "no block of %s fits on a multiprocessor of %s", kernel->name,
                                   gpu->info.model);
}

static attest_status load(struct gpu *gpu, const attest_cuda_kernel *kernel, const attest_cuda_image *image, struct loaded *made,
                          struct text why)
{
    char log[256] = "", what[400];
    int options[] = {CU_JIT_ERROR_TEXT, CU_JIT_ERROR_TEXT_SIZE};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    cu_module module = NULL;
    cu_result result = gpu->driver->module_load(&module, image->data, 2, options, values);
    log[strcspn(log, "\n")] = 0;
    snprintf(what, sizeof what, "the image of %.64s does not load%s%.*s", kernel->name, *log ? ": " : "", (int)sizeof log - 1, log);
    TRY(gpu_result(gpu, result, what, why));
    attest_status status = examine(gpu, kernel, image, module, made, why);
    if (status != ATTEST_OK)
        gpu->driver->module_unload(module);
    return status;
}

static bool is_same(const struct loaded *a, const struct loaded *b)
{
    return a->digest == b->digest && a->bytes == b->bytes && a->launch == b->launch && a->threads == b->threads &&
           a->shared == b->shared && a->cluster == b->cluster;
}

attest_status image_load(struct gpu *gpu, const attest_cuda_kernel *kernel, const attest_cuda_image *image,
                         const struct loaded **loaded, struct text why)
{
    const struct loaded wanted = {.digest = digest_of(image->data, image->bytes),
                                  .bytes = image->bytes,
                                  .launch = kernel->launch,
                                  .threads = image->facts.threads,
                                  .shared = image->facts.dynamic_shared,
                                  .cluster = image->cluster};
    attest_status status = ATTEST_OK;
    pthread_mutex_lock(&gpu->lock);
    struct loaded *found = gpu->loaded;
    while (found && !is_same(found, &wanted))
        found = found->next;
    if (!found) {
        found = calloc(1, sizeof *found);
        bool pushed = false;
        int mode = CU_CAPTURE_RELAXED; /* as in gpu_alloc */
        status = found ? gpu_enter(gpu, &pushed, why) : fail(why, ATTEST_ERROR_MEMORY, "no memory for a plan");
        if (status == ATTEST_OK) {
            *found = wanted;
            gpu->driver->capture_mode(&mode);
            status = load(gpu, kernel, image, found, why);
            gpu->driver->capture_mode(&mode);
            gpu_leave(gpu, pushed);
        }
        if (status == ATTEST_OK) {
            found->next = gpu->loaded;
            gpu->loaded = found;
        } else {
            free(found);
            found = NULL;
        }
    }
    *loaded = found;
    pthread_mutex_unlock(&gpu->lock);
    return status;
}
