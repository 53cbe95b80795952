/*
 * device.c - GPUs: one object for each, for the life of the process; their errors; their memory.
 *
 * All work happens in the primary context, which is that of the CUDA runtime and of everybody who uses it, so that their pointers
 * and streams are ours.
 */
#include "device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GPUS = 64 };

static struct gpu *gpus[MOST_GPUS];
static pthread_mutex_t gpus_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- errors ---------------------------------------------------------------------------------------------------------------- */

/* Errors after which the context of the GPU answers every call with the same error, until the process ends. */
static bool is_fatal(cu_result result)
{
    static const cu_result fatal[] = {4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        if (fatal[i] == result)
            return true;
    return false;
}

attest_status gpu_result(struct gpu *gpu, cu_result result, const char *what, struct text why)
{
    if (result == 0)
        return ATTEST_OK;
    if (is_fatal(result))
        atomic_store(&gpu->broken, result);
    char sentence[400];
    driver_say(result, what, sentence, sizeof sentence);
    return fail(why, result == CU_OUT_OF_MEMORY ? ATTEST_ERROR_MEMORY : ATTEST_ERROR_DEVICE, "%s", sentence);
}

attest_status gpu_ready(const struct gpu *gpu, struct text why)
{
    int broken = atomic_load(&gpu->broken);
    if (!broken)
        return ATTEST_OK;
    char what[64], sentence[400];
    snprintf(what, sizeof what, "%s does nothing more in this process", gpu->info.device);
    driver_say(broken, what, sentence, sizeof sentence);
    return fail(why, ATTEST_ERROR_DEVICE, "%s", sentence);
}

/* ---- devices --------------------------------------------------------------------------------------------------------------- */

/* "NVIDIA H200" -> "nvidia-h200" */
static void class_of(const char *model, char *text, size_t size)
{
    size_t used = 0;
    for (const char *at = model; *at && used + 1 < size; at++)
        if (isalnum((unsigned char)*at))
            text[used++] = (char)tolower((unsigned char)*at);
        else if (used && text[used - 1] != '-')
            text[used++] = '-';
    while (used && text[used - 1] == '-')
        used--;
    text[used] = 0;
}

static cu_result describe(const struct driver *driver, int index, cu_device device, attest_device_info *info)
{
    int major = 0, minor = 0, sms = 0, cache = 0, shared = 0;
    size_t memory = 0;
    const struct {
        int attribute, *value;
    } asked[] = {{CU_COMPUTE_MAJOR, &major},
                 {CU_COMPUTE_MINOR, &minor},
                 {CU_MULTIPROCESSORS, &sms},
                 {CU_L2_CACHE, &cache},
                 {CU_SHARED_BLOCK, &shared}};
    cu_result result = driver->device_name(info->model, sizeof info->model, device);
    for (size_t i = 0; i < sizeof asked / sizeof *asked && result == 0; i++)
        result = driver->device_attribute(asked[i].value, asked[i].attribute, device);
    if (result == 0)
        result = driver->device_memory(&memory, device);
    info->model[sizeof info->model - 1] = 0;
    info->memory = memory;
    info->cache = (uint64_t)cache;
    info->compute = (uint32_t)(10 * major + minor);
    info->multiprocessors = (uint32_t)sms;
    info->shared_block = (uint32_t)shared;
    info->driver = (uint32_t)driver->version;
    snprintf(info->device, sizeof info->device, "cuda:%d", index % 1000);
    class_of(info->model, info->device_class, sizeof info->device_class);
    return result;
}

/* The driver and the device, or why not. */
static attest_status find(int index, const struct driver **driver, cu_device *device, attest_device_info *info, struct text why)
{
    const char *trouble;
    *driver = driver_get(&trouble);
    if (!*driver)
        return fail(why, ATTEST_ERROR_UNAVAILABLE, "%s", trouble);
    if (index >= (*driver)->devices)
        return fail(why, ATTEST_ERROR_UNAVAILABLE, "there is no cuda:%d here: the last GPU is cuda:%d", index,
                    (*driver)->devices - 1);
    cu_result result = (*driver)->device_get(device, index);
    if (result == 0)
        result = describe(*driver, index, *device, info);
    if (result == 0)
        return ATTEST_OK;
    char sentence[400], what[64];
    snprintf(what, sizeof what, "the driver does not describe cuda:%d", index);
    driver_say(result, what, sentence, sizeof sentence);
    return fail(why, ATTEST_ERROR_DEVICE, "%s", sentence);
}

attest_status gpu_info(int index, attest_device_info *info, struct text why)
{
    const struct driver *driver;
    cu_device device;
    *info = (attest_device_info){.size = sizeof *info};
    return find(index, &driver, &device, info, why);
}

static attest_status make(int index, struct gpu **gpu, struct text why)
{
    struct gpu *made = calloc(1, sizeof *made);
    cu_device device;
    if (!made)
        return fail(why, ATTEST_ERROR_MEMORY, "no memory for a context");
    attest_status status = find(index, &made->driver, &device, &made->info, why);
    if (status == ATTEST_OK) {
        char what[64];
        snprintf(what, sizeof what, "cuda:%d cannot be used", index);
        status = gpu_result(made, made->driver->primary_retain(&made->primary, device), what, why);
    }
    if (status != ATTEST_OK) {
        free(made);
        return status;
    }
    pthread_mutex_init(&made->lock, NULL);
    *gpu = made;
    return ATTEST_OK;
}

attest_status gpu_open(int index, struct gpu **gpu, struct text why)
{
    *gpu = NULL;
    if (index >= MOST_GPUS)
        return fail(why, ATTEST_ERROR_UNAVAILABLE, "there is no cuda:%d here", index);
    pthread_mutex_lock(&gpus_lock);
    attest_status status = gpus[index] ? ATTEST_OK : make(index, &gpus[index], why);
    *gpu = gpus[index];
    pthread_mutex_unlock(&gpus_lock);
    return status;
}

const char *gpu_model(const struct gpu *gpu)
{
    return gpu->info.model;
}

void gpu_class(const struct gpu *gpu, char *text, size_t size)
{
    snprintf(text, size, "%s", gpu->info.device_class);
}

attest_status gpu_enter(struct gpu *gpu, bool *pushed, struct text why)
{
    cu_context current = NULL;
    *pushed = false;
    if (gpu->driver->context_current(&current) == 0 && current == gpu->primary)
        return ATTEST_OK;
    TRY(gpu_result(gpu, gpu->driver->context_push(gpu->primary), "the GPU's context cannot be used by this thread", why));
    *pushed = true;
    return ATTEST_OK;
}

void gpu_leave(struct gpu *gpu, bool pushed)
{
    cu_context gone;
    if (pushed)
        gpu->driver->context_pop(&gone);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

static cu_pointer pointer_of(const void *memory)
{
    return (cu_pointer)(uintptr_t)memory;
}

attest_status gpu_alloc(struct gpu *gpu, size_t bytes, void **memory, struct text why)
{
    cu_pointer found = 0;
    bool pushed;
    int mode = CU_CAPTURE_RELAXED; /* somebody may be capturing a graph elsewhere, which this has nothing to do with */
    char what[64];
    snprintf(what, sizeof what, "no %zu bytes of memory on %s", bytes, gpu->info.device);
    TRY(gpu_enter(gpu, &pushed, why));
    gpu->driver->capture_mode(&mode);
    cu_result result = gpu->driver->memory_alloc(&found, bytes);
    gpu->driver->capture_mode(&mode);
    gpu_leave(gpu, pushed);
    *memory = result == 0 ? (void *)(uintptr_t)found : NULL;
    return gpu_result(gpu, result, what, why);
}

attest_status gpu_free(struct gpu *gpu, void *memory, struct text why)
{
    bool pushed;
    int mode = CU_CAPTURE_RELAXED;
    TRY(gpu_enter(gpu, &pushed, why));
    gpu->driver->capture_mode(&mode);
    cu_result result = gpu->driver->memory_free(pointer_of(memory));
    gpu->driver->capture_mode(&mode);
    gpu_leave(gpu, pushed);
    return gpu_result(gpu, result, "the memory cannot be freed", why);
}

attest_status gpu_put(struct gpu *gpu, void *device, const void *host, size_t bytes, void *stream, struct text why)
{
    bool pushed;
    TRY(gpu_enter(gpu, &pushed, why));
    cu_result result = gpu->driver->copy_in(pointer_of(device), host, bytes, stream);
    if (result == 0) /* a copy from pinned memory returns before it is done */
        result = gpu->driver->stream_wait(stream);
    gpu_leave(gpu, pushed);
    return gpu_result(gpu, result, "the data cannot be copied to the GPU", why);
}

attest_status gpu_get(struct gpu *gpu, void *host, const void *device, size_t bytes, void *stream, struct text why)
{
    bool pushed;
    TRY(gpu_enter(gpu, &pushed, why));
    cu_result result = gpu->driver->copy_out(host, pointer_of(device), bytes, stream);
    if (result == 0)
        result = gpu->driver->stream_wait(stream);
    gpu_leave(gpu, pushed);
    return gpu_result(gpu, result, "the data cannot be copied from the GPU", why);
}

attest_status gpu_set(struct gpu *gpu, void *device, int byte, size_t bytes, void *stream, struct text why)
{
    bool pushed;
    TRY(gpu_enter(gpu, &pushed, why));
    cu_result result = gpu->driver->fill(pointer_of(device), (unsigned char)byte, bytes, stream);
    gpu_leave(gpu, pushed);
    return gpu_result(gpu, result, "the memory of the GPU cannot be set", why);
}

attest_status gpu_synchronize(struct gpu *gpu, void *stream, struct text why)
{
    bool pushed;
    TRY(gpu_enter(gpu, &pushed, why));
    cu_result result = gpu->driver->stream_wait(stream);
    gpu_leave(gpu, pushed);
    return gpu_result(gpu, result, "the GPU", why);
}
