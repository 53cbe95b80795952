/*
 * worker_device.c - see worker_device.h.
 */
#include "worker_device.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BAND = 4096, BAND_BYTE = 0xa7 };

/* ---- making ----------------------------------------------------------------------------------------------------------- */

static bool map_files(struct device_slot *slot, const int files[2], char *why, size_t why_size)
{
    for (int place = 0; place < TENSORS_MOST; place++) {
        const struct piece *piece = &slot->pieces[place];
        size_t *size = &slot->sizes[piece->output], end = (size_t)(piece->offset + piece->size);
        *size = piece->size && end > *size ? end : *size;
    }
    for (int i = 0; i < 2; i++) {
        void *map =
            slot->sizes[i] ? mmap(NULL, slot->sizes[i], i ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, files[i], 0) : NULL;
        if (map == MAP_FAILED) {
            snprintf(why, why_size, "the tensors could not be mapped: %s", strerror(errno));
            return false;
        }
        slot->files[i] = map;
    }
    size_t most = slot->sizes[0] > slot->sizes[1] ? slot->sizes[0] : slot->sizes[1];
    slot->copy = malloc(most + 1);
    if (!slot->copy)
        snprintf(why, why_size, "out of memory for the outputs");
    return slot->copy != NULL;
}

/* Addresses on the device: all pieces in one allocation, or, far apart, one for each. */
static attest_status lay_out(struct device_slot *slot, const attest_problem *problem, bool far)
{
    attest_status status = ATTEST_OK;
    struct tensor_list list;
    if (!tensor_list_get(problem, &list))
        return ATTEST_ERROR_ARGUMENT;
    if (far)
        far_strides(problem, slot->spreads);
    else
        status = attest_memory_alloc(slot->context, slot->sizes[0] + slot->sizes[1] + 1, &slot->memory[0]);
    for (int place = 0; place < TENSORS_MOST && status == ATTEST_OK; place++) {
        const struct piece *piece = &slot->pieces[place];
        bool output = piece->output;
        if (!piece->size)
            continue;
        if (far) {
            status = attest_memory_alloc(slot->context, far_reach(piece, slot->spreads[place]), &slot->memory[place]);
            slot->bases[place] = slot->memory[place];
        } else {
            slot->bases[place] = (unsigned char *)slot->memory[0] + (output ? slot->sizes[0] : 0) + piece->offset;
        }
        tensor_set_pointer(&slot->tensors, &list.of[place], slot->bases[place] + piece->at);
    }
    return status;
}

bool device_slot_make(struct device_slot *slot, attest_context *context, const struct load *load, const int files[2], bool far,
                      enum execution_end *end, char *why, size_t why_size)
{
    *slot = (struct device_slot){.context = context, .far = far, .tensors = {.size = sizeof slot->tensors}};
    memcpy(slot->pieces, load->pieces, sizeof slot->pieces);
    bool mapped = map_files(slot, files, why, why_size);
    attest_status status = mapped ? lay_out(slot, &load->problem, far) : ATTEST_OK;
    if (mapped && status == ATTEST_OK)
        return true;
    if (mapped)
        snprintf(why, why_size, "%s", attest_context_detail(context));
    *end = status == ATTEST_ERROR_DEVICE ? EXECUTION_CRASHED : EXECUTION_LACKING;
    device_slot_free(slot);
    return false;
}

void device_slot_free(struct device_slot *slot)
{
    for (int place = 0; place < TENSORS_MOST; place++)
        if (slot->memory[place])
            attest_memory_free(slot->context, slot->memory[place]);
    for (int i = 0; i < 2; i++)
        if (slot->files[i])
            munmap(slot->files[i], slot->sizes[i]);
    free(slot->copy);
    *slot = (struct device_slot){0};
}

/* ---- moving ----------------------------------------------------------------------------------------------------------- */

/* Copies a piece, in runs where it is spread. */
static attest_status copy_piece(struct device_slot *slot, int place, bool back)
{
    const struct piece *piece = &slot->pieces[place];
    struct far_spread spread = slot->spreads[place];
    size_t size = (size_t)piece->size, run = spread.run ? spread.run : size;
    unsigned char *device = slot->bases[place];
    attest_status status = ATTEST_OK;
    for (size_t offset = 0; offset < size && status == ATTEST_OK; offset += run, device += spread.step) {
        size_t at = (size_t)piece->offset + offset, bytes = run < size - offset ? run : size - offset;
        status = back ? attest_memory_get(slot->context, slot->copy + at, device, bytes, NULL)
                      : attest_memory_put(slot->context, device, slot->files[piece->output] + at, bytes, NULL);
    }
    return status;
}

static bool is_far(const struct device_slot *slot)
{
    return slot->far;
}

static attest_status copy_file(struct device_slot *slot, int file, bool back)
{
    unsigned char *device = (unsigned char *)slot->memory[0] + (file ? slot->sizes[0] : 0);
    attest_status status = ATTEST_OK;
    if (!is_far(slot))
        return back ? attest_memory_get(slot->context, slot->copy, device, slot->sizes[file], NULL)
                    : attest_memory_put(slot->context, device, slot->files[file], slot->sizes[file], NULL);
    for (int place = 0; place < TENSORS_MOST && status == ATTEST_OK; place++)
        if (slot->pieces[place].size && slot->pieces[place].output == (uint64_t)file)
            status = copy_piece(slot, place, back);
    return status;
}

attest_status device_slot_put(struct device_slot *slot)
{
    attest_status status = copy_file(slot, 0, false);
    return status == ATTEST_OK ? copy_file(slot, 1, false) : status;
}

bool device_slot_get(struct device_slot *slot, enum execution_end *end, char *why, size_t why_size)
{
    attest_status status = copy_file(slot, 1, true);
    if (status == ATTEST_OK) {
        memcpy(slot->files[1], slot->copy, slot->sizes[1]);
        status = copy_file(slot, 0, true);
    }
    if (status != ATTEST_OK) {
        *end = status == ATTEST_ERROR_DEVICE ? EXECUTION_CRASHED : EXECUTION_LACKING;
        snprintf(why, why_size, "%s", attest_context_detail(slot->context));
        return false;
    }
    if (memcmp(slot->copy, slot->files[0], slot->sizes[0]) == 0)
        return true;
    *end = EXECUTION_INVALID;
    snprintf(why, why_size, "it changed its inputs, or what lies beside them");
    return false;
}

/* ---- the workspace ---------------------------------------------------------------------------------------------------- */

attest_status device_workspace_make(struct device_workspace *workspace, attest_context *context, size_t size)
{
    void *memory = NULL;
    if (workspace->memory && size == workspace->size)
        return ATTEST_OK;
    device_workspace_free(workspace);
    size_t used = (size + 255) / 256 * 256;
    attest_status status = attest_memory_alloc(context, used + 2 * BAND, &memory);
    if (status == ATTEST_OK)
        status = attest_memory_set(context, memory, BAND_BYTE, used + 2 * BAND, NULL);
    *workspace = (struct device_workspace){context, memory, size, used};
    return status;
}

void device_workspace_free(struct device_workspace *workspace)
{
    if (workspace->memory)
        attest_memory_free(workspace->context, workspace->memory);
    *workspace = (struct device_workspace){0};
}

void *device_workspace_at(const struct device_workspace *workspace)
{
    return workspace->memory + BAND;
}

void device_slot_extents(const struct device_slot *slot, const struct device_workspace *workspace)
{
    void (*tell)(uint64_t, size_t, int, int) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *symbol = driver ? dlsym(driver, "emulated_tensor") : NULL;
    memcpy(&tell, &symbol, sizeof tell);
    bool first = true;
    for (int place = 0; place < TENSORS_MOST && tell; place++) {
        const struct piece *piece = &slot->pieces[place];
        if (!piece->size || is_far(slot))
            continue;
        tell((uint64_t)(uintptr_t)slot->bases[place] + piece->start, (size_t)piece->bytes, (int)piece->output, first);
        first = false;
    }
    if (tell && workspace->memory)
        tell((uint64_t)(uintptr_t)workspace->memory + BAND, workspace->size, 1, 1);
    if (driver)
        dlclose(driver);
}

bool device_workspace_intact(const struct device_workspace *workspace, char *why, size_t why_size)
{
    unsigned char bands[2][BAND + 256];
    size_t behind = BAND + workspace->room - workspace->size;
    bool read =
        attest_memory_get(workspace->context, bands[0], workspace->memory, BAND, NULL) == ATTEST_OK &&
        attest_memory_get(workspace->context, bands[1], workspace->memory + BAND + workspace->size, behind, NULL) == ATTEST_OK;
    for (int i = 0; i < 2 && read; i++)
        for (size_t at = 0; at < (i ? behind : BAND); at++)
            if (bands[i][at] != BAND_BYTE) {
                snprintf(why, why_size, "it wrote byte %zu %s its workspace", i ? at + 1 : BAND - at,
                         i ? "behind the end of" : "before the start of");
                return false;
            }
    if (!read)
        snprintf(why, why_size, "%s", attest_context_detail(workspace->context));
    return read;
}
