/*
 * kernel_table.c - what is done before and after every call of a kernel's functions (see kernel_table.h).
 */
#include "kernel_table.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "registers.h"
#include "base/rubbish.h"
#include "scratch.h"

enum { PAGE_MOST = 1 << 16, FILLED_MOST = 1 << 20, BAND_WORDS = 64 };

/* What does not change once the kernel is loaded. */
static union {
    struct {
        const attest_cpu_kernel *original;
        attest_cpu_kernel inner, outer;
        enum guard guard;
        struct board *board;
        char name[128], needs[64], summary[256];
    } is;
    char page[PAGE_MOST];
} fixed __attribute__((aligned(PAGE_MOST)));

static size_t wanted; /* bytes, of the plan that runs: the library asks at the beginning of each run */
static bool is_thorough = true;

static size_t scratch_size(const attest_problem *problem, int64_t tile_rows)
{
    registers_before(is_thorough);
    size_t size = fixed.is.inner.scratch_size(problem, tile_rows);
    registers_after(FUNCTION_SIZES, is_thorough);
    wanted = size;
    return fixed.is.guard == GUARD_BANDS && size < SIZE_MAX / 2 ? size + BAND_WORDS * sizeof(uint64_t) : size;
}

/* The band behind the scratch of a task. Beyond it is the scratch of another thread, where an overrun would show only now and then. */
static void band_fill(unsigned char *band, uint64_t bits)
{
    for (int i = 0; i < BAND_WORDS; i++)
        memcpy(band + (size_t)i * sizeof bits, &bits, sizeof bits);
}

/* Bytes from the beginning of the band to the last word that has changed. */
static int64_t band_overrun(const unsigned char *band, uint64_t bits)
{
    for (int i = BAND_WORDS; i > 0; i--)
        if (memcmp(band + (size_t)(i - 1) * sizeof bits, &bits, sizeof bits) != 0)
            return (int64_t)((size_t)i * sizeof bits);
    return 0;
}

static size_t shared_size(const attest_problem *problem)
{
    registers_before(is_thorough);
    size_t size = fixed.is.inner.shared_size(problem);
    registers_after(FUNCTION_SIZES, is_thorough);
    return size;
}

static void call(void (*work)(const attest_task *, void *), const attest_task *task, void *scratch, enum kernel_function function)
{
    if (fixed.is.guard != GUARD_BANDS)
        scratch = scratch_take(wanted, fixed.is.guard, registers_draw());
    else if (is_thorough && registers_draw() >> 63) /* else what an earlier task has left there, as it is where nobody looks */
        rubbish_fill(scratch, wanted < FILLED_MOST ? wanted : FILLED_MOST, registers_draw());
    const bool banded = fixed.is.guard == GUARD_BANDS && is_thorough;
    unsigned char *band = (unsigned char *)scratch + wanted;
    const uint64_t bits = banded ? registers_draw() : 0;
    if (banded)
        band_fill(band, bits);
    registers_before(is_thorough);
    work(task, scratch);
    registers_after(function, is_thorough);
    int64_t overrun = fixed.is.guard != GUARD_BANDS ? scratch_overrun() : banded ? band_overrun(band, bits) : 0;
    if (overrun)
        fixed.is.board->overrun = overrun;
}

/* Where O and LSE of a task are that writes a partial result: nowhere. They are written when the pieces are joined, after all tasks, so
 * that a task which writes them too would not show in the outputs. */
#define NOWHERE ((void *)(uintptr_t)0x200000000000)

static void tile(const attest_task *task, void *scratch)
{
    attest_task part = *task;
    attest_tensors tensors = *task->tensors;
    if (task->partial && is_thorough) {
        tensors.o = NOWHERE;
        tensors.lse = tensors.lse ? NOWHERE : NULL;
        part.tensors = &tensors;
        task = &part;
    }
    call(fixed.is.inner.tile, task, scratch, FUNCTION_TILE);
}

static void prepare(const attest_task *task, void *scratch)
{
    call(fixed.is.inner.prepare, task, scratch, FUNCTION_PREPARE);
}

void kernel_table_choose(bool thorough)
{
    is_thorough = thorough;
}

void kernel_table_compare(void)
{
    if (fixed.is.original && memcmp(fixed.is.original, &fixed.is.inner, sizeof fixed.is.inner) != 0)
        fixed.is.board->swapped = 1;
}

static const char *copy(char *room, size_t size, const char *text)
{
    snprintf(room, size, "%s", text ? text : "");
    return text ? room : NULL;
}

const attest_cpu_kernel *kernel_table_make(const attest_cpu_kernel *kernel, enum guard guard, bool lifted, struct board *board)
{
    attest_cpu_kernel *outer = &fixed.is.outer;
    fixed.is.original = kernel;
    fixed.is.inner = *outer = *kernel;
    fixed.is.guard = guard;
    fixed.is.board = board;
    outer->name = copy(fixed.is.name, sizeof fixed.is.name, kernel->name);
    outer->needs = copy(fixed.is.needs, sizeof fixed.is.needs, kernel->needs);
    outer->summary = copy(fixed.is.summary, sizeof fixed.is.summary, kernel->summary);
    outer->tile = tile;
    outer->scratch_size = scratch_size;
    if (lifted) {
        outer->refuses = 0;
        outer->dtypes = ATTEST_TAKES_F32 | ATTEST_TAKES_F16 | ATTEST_TAKES_BF16;
    }
    if (kernel->prepare)
        outer->prepare = prepare;
    if (kernel->shared_size)
        outer->shared_size = shared_size;
    mprotect(&fixed, sizeof fixed, PROT_READ);
    return outer;
}
