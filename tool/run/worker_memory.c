/*
 * worker_memory.c - where the tensors and the workspace of the worker lie: at new addresses each time, between pages that cannot be
 * touched.
 */
#include "worker_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "far_strides.h"

static void unmap(struct mapping *mapping)
{
    if (mapping->size && worker.unpoison)
        worker.unpoison(mapping->base, mapping->size);
    if (mapping->size)
        munmap(mapping->base, mapping->size);
    *mapping = (struct mapping){0};
}

/* Addresses that cannot be touched. */
static bool reserve(struct mapping *mapping, size_t size)
{
    void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return worker_refuse(EXECUTION_LACKING, "no addresses for %zu bytes: %s", size, strerror(errno));
    *mapping = (struct mapping){base, size};
    return true;
}

/* Memory, with so many bytes before and behind that cannot be touched. (Not the other way round: memory that replaces what was reserved
 * does not count towards the limit.) */
static bool allot(struct mapping *mapping, size_t before, size_t size, size_t behind)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS;
    unsigned char *base = mmap(NULL, before + size + behind, PROT_READ | PROT_WRITE, how, -1, 0);
    if (base == MAP_FAILED)
        return false;
    *mapping = (struct mapping){base, before + size + behind};
    return mmap(base, before, PROT_NONE, how | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED &&
           mmap(base + before + size, behind, PROT_NONE, how | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* The problem as the kernel sees it, and how its tensors are spread. */
static attest_problem problem_of(const struct load *load, struct far_spread spreads[TENSORS_MOST])
{
    if (worker.hello.guard == GUARD_FAR)
        return far_strides(&load->problem, spreads);
    memset(spreads, 0, TENSORS_MOST * sizeof *spreads);
    return load->problem;
}

/* Maps a piece, in runs that lie apart where it is spread. */
static bool map_piece(unsigned char *at, const struct piece *piece, struct far_spread spread, bool output, int file)
{
    size_t size = (size_t)piece->size, run = spread.run ? spread.run : size;
    for (size_t offset = 0; offset < size; offset += run, at += spread.step)
        if (mmap(at, run < size - offset ? run : size - offset, output ? PROT_READ | PROT_WRITE : PROT_READ,
                 MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, (off_t)(piece->offset + offset)) == MAP_FAILED)
            return worker_refuse(EXECUTION_LACKING, "a tensor could not be mapped: %s", strerror(errno));
    return true;
}

/* Maps the pieces one after the other, with a page between them that cannot be touched. */
static bool map_pieces(const struct load *load, const int files[2], struct worker_slot *slot)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = ((size_t)load->shift + 1) * page;
    struct far_spread spreads[TENSORS_MOST];
    problem_of(load, spreads);
    for (int i = 0; i < TENSORS_MOST; i++)
        size += load->pieces[i].size ? far_reach(&load->pieces[i], spreads[i]) + page : 0;
    if (!reserve(&slot->mapping, size))
        return false;
    struct tensor_list list;
    if (!tensor_list_get(&load->problem, &list))
        return worker_refuse(EXECUTION_INVALID, "the problem is not valid");
    slot->tensors = (attest_tensors){.size = sizeof slot->tensors};
    unsigned char *at = slot->mapping.base + ((size_t)load->shift + 1) * page;
    for (int i = 0; i < TENSORS_MOST; i++) {
        const struct piece *piece = &load->pieces[i];
        const bool output = piece->output;
        worker.board->bases[load->slot][i] = 0;
        if (!piece->size)
            continue;
        int same = 0; /* tensors that share their memory have the same piece */
        while (same < i && (load->pieces[same].size == 0 || load->pieces[same].output != piece->output ||
                            load->pieces[same].offset != piece->offset))
            same++;
        if (same < i) {
            worker.board->bases[load->slot][i] = worker.board->bases[load->slot][same];
            tensor_set_pointer(&slot->tensors, &list.of[i], tensor_pointer(&slot->tensors, &list.of[same]));
            continue;
        }
        if (!map_piece(at, piece, spreads[i], output, files[output]))
            return false;
        worker.board->bases[load->slot][i] = (uint64_t)(uintptr_t)at;
        tensor_set_pointer(&slot->tensors, &list.of[i], at + piece->at);
        if (worker.poison) {
            worker.poison(at, (size_t)piece->start);
            worker.poison(at + piece->start + piece->bytes, (size_t)(piece->size - piece->start - piece->bytes));
        }
        at += far_reach(piece, spreads[i]) + page;
    }
    return true;
}

static size_t largest_workspace(void)
{
    size_t most = 0;
    for (int i = 0; i < EXECUTOR_SLOTS; i++)
        if (worker.slots[i].plan && attest_plan_workspace_size(worker.slots[i].plan) > most)
            most = attest_plan_workspace_size(worker.slots[i].plan);
    return most;
}

/* The workspace for the largest plan, at new addresses, between pages that cannot be touched. */
static bool make_workspace(uint32_t shift)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), most = largest_workspace();
    unmap(&worker.room);
    worker.workspace = NULL;
    worker.workspace_size = most;
    size_t used = (most + 63) / 64 * 64, pages = (used + page - 1) / page * page;
    if (most > SIZE_MAX / 4 || !allot(&worker.room, (shift + 1) * page, pages, page))
        return worker_refuse(EXECUTION_GREEDY, "it asks for a workspace of %zu bytes, which is not to be had", most);
    worker.workspace = worker.room.base + (shift + 1) * page + (worker.hello.guard == GUARD_END ? pages - used : 0);
    return true;
}

/* The tensors and the workspace on a GPU. */
static bool load_on_device(const struct load *load, const int files[2], struct worker_slot *slot)
{
    enum execution_end end = EXECUTION_LACKING;
    char why[512];
    const size_t most = largest_workspace();
    if (!device_slot_make(&slot->device, worker.context, load, files, worker.hello.guard == GUARD_FAR, &end, why, sizeof why))
        return worker_refuse(end, "%s", why);
    slot->tensors = slot->device.tensors;
    attest_status status = device_workspace_make(&worker.device_workspace, worker.context, most);
    worker.workspace_size = most;
    if (status != ATTEST_OK) {
        device_slot_free(&slot->device);
        return worker_refuse(status == ATTEST_ERROR_DEVICE ? EXECUTION_CRASHED : EXECUTION_GREEDY,
                             "its workspace of %zu bytes: %.400s", most, attest_context_detail(worker.context));
    }
    worker.workspace = device_workspace_at(&worker.device_workspace);
    return true;
}

bool worker_load_slot(const struct load *load, const int files[2])
{
    if (load->slot < 0 || load->slot >= EXECUTOR_SLOTS)
        return worker_refuse(EXECUTION_INVALID, "there is no such slot");
    if (files[0] < 0 || files[1] < 0)
        return worker_refuse(EXECUTION_GREEDY, "it has opened so many files that the worker can open none");
    struct worker_slot *slot = &worker.slots[load->slot];
    attest_plan_destroy(slot->plan);
    slot->plan = NULL;
    unmap(&slot->mapping);
    device_slot_free(&slot->device);
    struct far_spread spreads[TENSORS_MOST];
    attest_problem problem = problem_of(load, spreads);
    attest_status status = attest_plan_create(worker.context, &problem, worker.kernel, &slot->plan);
    if (status != ATTEST_OK)
        return worker_refuse(status == ATTEST_ERROR_UNSUPPORTED ? EXECUTION_REFUSED
                             : status == ATTEST_ERROR_DEVICE    ? EXECUTION_CRASHED
                                                                : EXECUTION_LACKING,
                             "%.600s", attest_context_detail(worker.context));
    if (worker.on_device ? load_on_device(load, files, slot) : map_pieces(load, files, slot) && make_workspace(load->shift))
        return true;
    attest_plan_destroy(slot->plan);
    slot->plan = NULL;
    return false;
}
