/*
 * device.c - GPUs: one object for each, for the life of the process.
 */
#include "gpu.h"

attest_status gpu_open(int index, struct gpu **gpu, struct text why)
{
    (void)index;
    *gpu = NULL;
    return fail(why, ATTEST_ERROR_UNAVAILABLE, "there is no CUDA backend yet");
}

attest_status gpu_info(int index, attest_device_info *info, struct text why)
{
    (void)index, (void)info;
    return fail(why, ATTEST_ERROR_UNAVAILABLE, "there is no CUDA backend yet");
}

const char *gpu_model(const struct gpu *gpu)
{
    (void)gpu;
    return "";
}

void gpu_class(const struct gpu *gpu, char *text, size_t size)
{
    (void)gpu;
    if (size)
        text[0] = 0;
}

static attest_status none(struct text why)
{
    return fail(why, ATTEST_ERROR_UNAVAILABLE, "there is no CUDA backend yet");
}

attest_status gpu_ready(const struct gpu *gpu, struct text why)
{
    (void)gpu;
    return none(why);
}

attest_status gpu_alloc(struct gpu *gpu, size_t bytes, void **memory, struct text why)
{
    (void)gpu, (void)bytes, (void)memory;
    return none(why);
}

attest_status gpu_free(struct gpu *gpu, void *memory, struct text why)
{
    (void)gpu, (void)memory;
    return none(why);
}

attest_status gpu_put(struct gpu *gpu, void *device, const void *host, size_t bytes, void *stream, struct text why)
{
    (void)gpu, (void)device, (void)host, (void)bytes, (void)stream;
    return none(why);
}

attest_status gpu_get(struct gpu *gpu, void *host, const void *device, size_t bytes, void *stream, struct text why)
{
    (void)gpu, (void)device, (void)host, (void)bytes, (void)stream;
    return none(why);
}

attest_status gpu_set(struct gpu *gpu, void *device, int byte, size_t bytes, void *stream, struct text why)
{
    (void)gpu, (void)device, (void)byte, (void)bytes, (void)stream;
    return none(why);
}

attest_status gpu_synchronize(struct gpu *gpu, void *stream, struct text why)
{
    (void)gpu, (void)stream;
    return none(why);
}

attest_status cuda_kernel_check(const attest_cuda_kernel *kernel, struct text why)
{
    (void)kernel;
    return none(why);
}

attest_status attest_cuda_time(attest_context *context, const attest_cuda_call *calls, int count, int replays, double *seconds)
{
    (void)calls, (void)count, (void)replays, (void)seconds;
    return context ? none(context_text(context)) : ATTEST_ERROR_ARGUMENT;
}
