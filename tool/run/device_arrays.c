/*
 * device_arrays.c - see device_arrays.h.
 */
#include "device_arrays.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/layout.h"

enum { BAND_BYTE = 0xa7, FIRST_OUTPUT = 10 };

/* The members of attest_tensors; those with a letter have an extent, the others a length. */
static const struct {
    const char *name;
    size_t member;
    char letter;
} members[DEVICE_ARRAYS] = {
    {"Q", offsetof(attest_tensors, q), 'q'},
    {"K", offsetof(attest_tensors, k), 'k'},
    {"V", offsetof(attest_tensors, v), 'v'},
    {"the bias", offsetof(attest_tensors, bias), 'b'},
    {"the ALiBi slopes", offsetof(attest_tensors, alibi_slopes), 0},
    {"the sinks", offsetof(attest_tensors, sinks), 0},
    {"cu_seqlens_q", offsetof(attest_tensors, cu_seqlens_q), 0},
    {"cu_seqlens_kv", offsetof(attest_tensors, cu_seqlens_kv), 0},
    {"kv_lengths", offsetof(attest_tensors, kv_lengths), 0},
    {"the page table", offsetof(attest_tensors, page_table), 0},
    {"O", offsetof(attest_tensors, o), 'o'},
    {"LSE", offsetof(attest_tensors, lse), 'l'},
};

bool context_on_cpu(const attest_context *context)
{
    return strcmp(attest_context_device(context), "cpu") == 0;
}

static unsigned char *host_pointer(const attest_tensors *tensors, int i)
{
    unsigned char *pointer;
    memcpy(&pointer, (const char *)tensors + members[i].member, sizeof pointer);
    return pointer;
}

/* The first byte of the array in host memory. */
static unsigned char *host_bytes(const struct device_array *array, const attest_tensors *host, int i)
{
    return host_pointer(host, i) - array->at;
}

static size_t size_of_letter(const attest_problem *problem, char letter)
{
    return letter == 'l'   ? sizeof(float)
           : letter == 'o' ? element_size(problem->dtype_o)
           : letter == 'b' ? element_size(problem->dtype_bias)
                           : element_size(problem->dtype);
}

static attest_status measure_array(const attest_problem *problem, int i, struct device_array *array)
{
    size_t batch = (size_t)problem->batch, heads = (size_t)problem->heads_q;
    int64_t first = 0, count = 0, pages;
    if (members[i].letter) {
        attest_status status = attest_problem_extent(problem, members[i].letter, &first, &count);
        size_t size = size_of_letter(problem, members[i].letter);
        array->bytes = (size_t)count * size;
        array->at = count ? -first * (int64_t)size : 0;
        return status;
    }
    switch (members[i].member) {
    case offsetof(attest_tensors, alibi_slopes):
    case offsetof(attest_tensors, sinks):
        array->bytes = heads * 4;
        break;
    case offsetof(attest_tensors, kv_lengths):
        array->bytes = batch * 4;
        break;
    case offsetof(attest_tensors, page_table):
        pages = (problem->seq_kv + problem->page_size - 1) / problem->page_size;
        array->bytes = batch ? (size_t)((problem->batch - 1) * problem->stride_page_table + pages) * 4 : 0;
        break;
    default:
        array->bytes = (batch + 1) * 4;
    }
    return ATTEST_OK;
}

attest_status device_arrays_make(struct device_arrays *arrays, attest_context *context, const attest_problem *problem,
                                 const attest_tensors *host, size_t band, char *why, size_t why_size)
{
    *arrays = (struct device_arrays){.context = context, .band = band, .tensors = {.size = sizeof arrays->tensors}};
    attest_status status = ATTEST_OK;
    for (int i = 0; i < DEVICE_ARRAYS && status == ATTEST_OK; i++) {
        struct device_array *array = &arrays->arrays[i];
        void *memory = NULL;
        if (!host_pointer(host, i) || (status = measure_array(problem, i, array)) != ATTEST_OK)
            continue;
        size_t all = array->bytes + 2 * band;
        status = attest_memory_alloc(context, all ? all : 1, &memory);
        if (status == ATTEST_OK && band && (status = attest_memory_set(context, memory, BAND_BYTE, band, NULL)) == ATTEST_OK)
            status = attest_memory_set(context, (char *)memory + band + array->bytes, BAND_BYTE, band, NULL);
        array->memory = memory;
        if (!memory)
            continue;
        unsigned char *pointer = array->memory + band + array->at;
        memcpy((char *)&arrays->tensors + members[i].member, &pointer, sizeof pointer);
    }
    if (status != ATTEST_OK) {
        snprintf(why, why_size, "%s", attest_context_detail(context));
        device_arrays_free(arrays);
    }
    return status;
}

void device_arrays_free(struct device_arrays *arrays)
{
    for (int i = 0; i < DEVICE_ARRAYS; i++)
        if (arrays->arrays[i].memory)
            attest_memory_free(arrays->context, arrays->arrays[i].memory);
    *arrays = (struct device_arrays){0};
}

static attest_status put(struct device_arrays *arrays, const attest_tensors *host, int begin, int end)
{
    attest_status status = ATTEST_OK;
    for (int i = begin; i < end && status == ATTEST_OK; i++) {
        const struct device_array *array = &arrays->arrays[i];
        if (array->memory && array->bytes)
            status =
                attest_memory_put(arrays->context, array->memory + arrays->band, host_bytes(array, host, i), array->bytes, NULL);
    }
    return status;
}

attest_status device_arrays_put_inputs(struct device_arrays *arrays, const attest_tensors *host)
{
    return put(arrays, host, 0, FIRST_OUTPUT);
}

attest_status device_arrays_put_outputs(struct device_arrays *arrays, const attest_tensors *host)
{
    return put(arrays, host, FIRST_OUTPUT, DEVICE_ARRAYS);
}

attest_status device_arrays_get_outputs(struct device_arrays *arrays, const attest_tensors *host)
{
    attest_status status = ATTEST_OK;
    for (int i = FIRST_OUTPUT; i < DEVICE_ARRAYS && status == ATTEST_OK; i++) {
        const struct device_array *array = &arrays->arrays[i];
        if (array->memory && array->bytes)
            status =
                attest_memory_get(arrays->context, host_bytes(array, host, i), array->memory + arrays->band, array->bytes, NULL);
    }
    return status;
}

/* ---- what was left alone --------------------------------------------------------------------------------------------- */

static bool band_intact(struct device_arrays *arrays, int i, bool behind, char *why, size_t why_size)
{
    const struct device_array *array = &arrays->arrays[i];
    unsigned char *band = malloc(arrays->band);
    const unsigned char *from = array->memory + (behind ? arrays->band + array->bytes : 0);
    bool read = band && attest_memory_get(arrays->context, band, from, arrays->band, NULL) == ATTEST_OK;
    size_t at = 0;
    while (read && at < arrays->band && band[at] == BAND_BYTE)
        at++;
    free(band);
    if (!read)
        snprintf(why, why_size, "the guard bands could not be read: %s", attest_context_detail(arrays->context));
    else if (at < arrays->band)
        snprintf(why, why_size, "it wrote byte %zu %s %s", behind ? at + 1 : arrays->band - at,
                 behind ? "behind the end of" : "before the start of", members[i].name);
    return read && at == arrays->band;
}

static bool input_intact(struct device_arrays *arrays, const attest_tensors *host, int i, char *why, size_t why_size)
{
    const struct device_array *array = &arrays->arrays[i];
    void *copy = malloc(array->bytes + 1);
    bool same = copy && attest_memory_get(arrays->context, copy, array->memory + arrays->band, array->bytes, NULL) == ATTEST_OK &&
                memcmp(copy, host_bytes(array, host, i), array->bytes) == 0;
    free(copy);
    if (!same)
        snprintf(why, why_size, copy ? "it changed its inputs: %s" : "out of memory to look at %s", members[i].name);
    return same;
}

bool device_arrays_intact(struct device_arrays *arrays, const attest_tensors *host, char *why, size_t why_size)
{
    for (int i = 0; i < DEVICE_ARRAYS; i++) {
        if (!arrays->arrays[i].memory)
            continue;
        if (arrays->band && (!band_intact(arrays, i, false, why, why_size) || !band_intact(arrays, i, true, why, why_size)))
            return false;
        if (i < FIRST_OUTPUT && arrays->arrays[i].bytes && !input_intact(arrays, host, i, why, why_size))
            return false;
    }
    return true;
}
