/*
 * memory.c - memory of a context's device, and which devices there are. On the CPU it is ordinary memory, so that a program that is
 * written for a GPU runs there too.
 */
#include "internal.h"
#include "cuda/gpu.h"

#include <stdlib.h>
#include <string.h>

enum { MEMORY_ALIGN = 256 };

/* What all of these calls check first. */
static attest_status begin(attest_context *context, const void *stream)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    TRY(context_ready(context));
    if (stream && !context->gpu)
        return fail(context_text(context), ATTEST_ERROR_ARGUMENT, "stream is not NULL, and the context is on the CPU");
    return ATTEST_OK;
}

/* And those that copy or set bytes: no bytes are right, wherever they are. */
static attest_status begin_bytes(attest_context *context, const void *device, const void *host, size_t bytes, const void *stream)
{
    TRY(begin(context, stream));
    if (bytes && (!device || !host))
        return fail(context_text(context), ATTEST_ERROR_ARGUMENT, "%s is NULL", device ? "host" : "device");
    return ATTEST_OK;
}

attest_status attest_memory_alloc(attest_context *context, size_t bytes, void **memory)
{
    if (memory)
        *memory = NULL;
    TRY(begin(context, NULL));
    struct text why = context_text(context);
    if (!memory)
        return fail(why, ATTEST_ERROR_ARGUMENT, "memory is NULL");
    if (context->gpu)
        return gpu_alloc(context->gpu, bytes ? bytes : 1, memory, why);
    if (bytes <= SIZE_MAX - MEMORY_ALIGN)
        *memory = aligned_alloc(MEMORY_ALIGN, (bytes + MEMORY_ALIGN) / MEMORY_ALIGN * MEMORY_ALIGN);
    return *memory ? ATTEST_OK : fail(why, ATTEST_ERROR_MEMORY, "no memory for %zu bytes", bytes);
}

attest_status attest_memory_free(attest_context *context, void *memory)
{
    TRY(begin(context, NULL));
    if (context->gpu)
        return memory ? gpu_free(context->gpu, memory, context_text(context)) : ATTEST_OK;
    free(memory);
    return ATTEST_OK;
}

attest_status attest_memory_put(attest_context *context, void *device, const void *host, size_t bytes, void *stream)
{
    TRY(begin_bytes(context, device, host, bytes, stream));
    if (bytes && context->gpu)
        return gpu_put(context->gpu, device, host, bytes, stream, context_text(context));
    if (bytes)
        memcpy(device, host, bytes);
    return ATTEST_OK;
}

attest_status attest_memory_get(attest_context *context, void *host, const void *device, size_t bytes, void *stream)
{
    TRY(begin_bytes(context, device, host, bytes, stream));
    if (bytes && context->gpu)
        return gpu_get(context->gpu, host, device, bytes, stream, context_text(context));
    if (bytes)
        memcpy(host, device, bytes);
    return ATTEST_OK;
}

attest_status attest_memory_set(attest_context *context, void *device, int byte, size_t bytes, void *stream)
{
    TRY(begin_bytes(context, device, device, bytes, stream));
    if (bytes && context->gpu)
        return gpu_set(context->gpu, device, byte, bytes, stream, context_text(context));
    if (bytes)
        memset(device, byte, bytes);
    return ATTEST_OK;
}

attest_status attest_synchronize(attest_context *context, void *stream)
{
    TRY(begin(context, stream));
    return context->gpu ? gpu_synchronize(context->gpu, stream, context_text(context)) : ATTEST_OK;
}

attest_status attest_device_get(int index, attest_device_info *info, char *text, size_t text_size)
{
    struct text why = {text, text_size};
    attest_device_info own;
    if (text && text_size)
        text[0] = 0;
    TRY(struct_read(&own, sizeof own, DEVICE_INFO_SIZE_0_1, info, "info", why));
    if (index < 0)
        return fail(why, ATTEST_ERROR_ARGUMENT, "index is %d; it must be 0 or more", index);
    uint64_t size = info->size < sizeof own ? info->size : sizeof own;
    TRY(gpu_info(index, &own, why));
    own.size = info->size;
    memcpy(info, &own, size);
    return ATTEST_OK;
}
