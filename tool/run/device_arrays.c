/*
 * device_arrays.c - see device_arrays.h.
 */
#include "device_arrays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BAND_BYTE = 0xa7 };

bool context_on_cpu(const attest_context *context)
{
    return strcmp(attest_context_device(context), "cpu") == 0;
}

/* The first byte of the array in host memory. */
static unsigned char *host_bytes(const struct device_arrays *arrays, const attest_tensors *host, int i)
{
    return (unsigned char *)tensor_pointer(host, &arrays->list.of[i]) + arrays->list.of[i].first_byte;
}

static size_t bytes_of(const struct device_arrays *arrays, int i)
{
    return (size_t)arrays->list.of[i].bytes;
}

attest_status device_arrays_make(struct device_arrays *arrays, attest_context *context, const attest_problem *problem,
                                 const attest_tensors *host, size_t band, char *why, size_t why_size)
{
    *arrays = (struct device_arrays){.context = context, .band = band, .tensors = {.size = sizeof arrays->tensors}};
    if (!tensor_list_get(problem, &arrays->list)) {
        snprintf(why, why_size, "the problem is not valid");
        return ATTEST_ERROR_ARGUMENT;
    }
    attest_status status = ATTEST_OK;
    for (int i = 0; i < arrays->list.count && status == ATTEST_OK; i++) {
        const attest_tensor_info *info = &arrays->list.of[i];
        const size_t bytes = bytes_of(arrays, i);
        void *memory = NULL;
        if (!info->present || !tensor_pointer(host, info))
            continue;
        size_t all = bytes + 2 * band;
        status = attest_memory_alloc(context, all ? all : 1, &memory);
        if (status == ATTEST_OK && band && (status = attest_memory_set(context, memory, BAND_BYTE, band, NULL)) == ATTEST_OK)
            status = attest_memory_set(context, (char *)memory + band + bytes, BAND_BYTE, band, NULL);
        arrays->memory[i] = memory;
        if (memory)
            tensor_set_pointer(&arrays->tensors, info, arrays->memory[i] + band - info->first_byte);
    }
    if (status != ATTEST_OK) {
        snprintf(why, why_size, "%s", attest_context_detail(context));
        device_arrays_free(arrays);
    }
    return status;
}

void device_arrays_free(struct device_arrays *arrays)
{
    for (int i = 0; i < arrays->list.count; i++)
        if (arrays->memory[i])
            attest_memory_free(arrays->context, arrays->memory[i]);
    *arrays = (struct device_arrays){0};
}

/* Whether the tensor is on the device, has bytes, and has this role. */
static bool is_moved(const struct device_arrays *arrays, int i, uint32_t role)
{
    return arrays->memory[i] && bytes_of(arrays, i) && arrays->list.of[i].role & role;
}

static attest_status put(struct device_arrays *arrays, const attest_tensors *host, uint32_t role)
{
    attest_status status = ATTEST_OK;
    for (int i = 0; i < arrays->list.count && status == ATTEST_OK; i++)
        if (is_moved(arrays, i, role))
            status = attest_memory_put(arrays->context, arrays->memory[i] + arrays->band, host_bytes(arrays, host, i),
                                       bytes_of(arrays, i), NULL);
    return status;
}

attest_status device_arrays_put_inputs(struct device_arrays *arrays, const attest_tensors *host)
{
    return put(arrays, host, ATTEST_ROLE_INPUT);
}

attest_status device_arrays_put_outputs(struct device_arrays *arrays, const attest_tensors *host)
{
    return put(arrays, host, ATTEST_ROLE_OUTPUT);
}

attest_status device_arrays_get_outputs(struct device_arrays *arrays, const attest_tensors *host)
{
    attest_status status = ATTEST_OK;
    for (int i = 0; i < arrays->list.count && status == ATTEST_OK; i++)
        if (is_moved(arrays, i, ATTEST_ROLE_OUTPUT))
            status = attest_memory_get(arrays->context, host_bytes(arrays, host, i), arrays->memory[i] + arrays->band,
                                       bytes_of(arrays, i), NULL);
    return status;
}

/* ---- what was left alone --------------------------------------------------------------------------------------------- */

static bool band_intact(struct device_arrays *arrays, int i, bool behind, char *why, size_t why_size)
{
    unsigned char *band = malloc(arrays->band);
    const unsigned char *from = arrays->memory[i] + (behind ? arrays->band + bytes_of(arrays, i) : 0);
    bool read = band && attest_memory_get(arrays->context, band, from, arrays->band, NULL) == ATTEST_OK;
    size_t at = 0;
    while (read && at < arrays->band && band[at] == BAND_BYTE)
        at++;
    free(band);
    if (!read)
        snprintf(why, why_size, "the guard bands could not be read: %s", attest_context_detail(arrays->context));
    else if (at < arrays->band)
        snprintf(why, why_size, "it wrote byte %zu %s %s", behind ? at + 1 : arrays->band - at,
                 behind ? "behind the end of" : "before the start of", tensor_title(&arrays->list.of[i]));
    return read && at == arrays->band;
}

static bool input_intact(struct device_arrays *arrays, const attest_tensors *host, int i, char *why, size_t why_size)
{
    const size_t bytes = bytes_of(arrays, i);
    void *copy = malloc(bytes + 1);
    bool same = copy && attest_memory_get(arrays->context, copy, arrays->memory[i] + arrays->band, bytes, NULL) == ATTEST_OK &&
                memcmp(copy, host_bytes(arrays, host, i), bytes) == 0;
    free(copy);
    if (!same)
        snprintf(why, why_size, copy ? "it changed its inputs: %s" : "out of memory to look at %s",
                 tensor_title(&arrays->list.of[i]));
    return same;
}

bool device_arrays_intact(struct device_arrays *arrays, const attest_tensors *host, char *why, size_t why_size)
{
    for (int i = 0; i < arrays->list.count; i++) {
        if (!arrays->memory[i])
            continue;
        if (arrays->band && (!band_intact(arrays, i, false, why, why_size) || !band_intact(arrays, i, true, why, why_size)))
            return false;
        if (is_moved(arrays, i, ATTEST_ROLE_INPUT) && !input_intact(arrays, host, i, why, why_size))
            return false;
    }
    return true;
}
