/*
 * scratch.c - guarded scratch memory (see scratch.h).
 *
 * The library gives each thread a part of the workspace, rounded up to pages, so that a kernel which writes beyond its own
 * scratch_size would only reach memory that nobody looks at. Here a table of our own stands between the library and the kernel and
 * hands each task other memory, whose end is known to the byte. Alignment leaves fewer than 64 bytes before the page; they are
 * compared.
 */
#include "scratch.h"

#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 64, BAND = 0xa7, RUBBISH = 0xff };

static const attest_cpu_kernel *inner;
static enum guard side;
static struct board *notes;
static size_t wanted; /* bytes, of the plan that runs: the library asks at the beginning of each run */

struct room {
    unsigned char *base; /* of the mapping, a page that cannot be touched included at either end */
    size_t pages;        /* bytes between these pages */
    unsigned char *scratch;
};
static _Thread_local struct room room;

static size_t remember_size(const attest_problem *problem, int64_t tile_rows)
{
    return wanted = inner->scratch_size(problem, tile_rows);
}

static unsigned char *take_scratch(size_t page, size_t *slack)
{
    size_t used = (wanted + ALIGN - 1) / ALIGN * ALIGN, pages = (used + page - 1) / page * page;
    if (pages != room.pages || !room.base) {
        if (room.base)
            munmap(room.base, room.pages + 2 * page);
        room.pages = pages;
        room.base = mmap(NULL, pages + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room.base == MAP_FAILED || mprotect(room.base + page, pages, PROT_READ | PROT_WRITE) != 0)
            _exit(EXIT_MEMORY); /* the supervisor knows what this means */
    }
    unsigned char *scratch = room.base + page + (side == GUARD_END ? pages - used : 0);
    *slack = (size_t)(room.base + page + pages - (scratch + wanted));
    memset(scratch, RUBBISH, wanted);
    memset(scratch + wanted, BAND, *slack);
    room.scratch = scratch;
    return scratch;
}

static void check_slack(const unsigned char *scratch, size_t slack)
{
    for (size_t i = 0; i < slack; i++)
        if (scratch[wanted + i] != BAND) {
            notes->overrun = (int64_t)i + 1;
            return;
        }
}

static void guarded(void (*work)(const attest_task *, void *), const attest_task *task)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), slack;
    unsigned char *scratch = take_scratch(page, &slack);
    work(task, scratch);
    check_slack(scratch, slack);
}

static void guarded_tile(const attest_task *task, void *scratch)
{
    (void)scratch;
    guarded(inner->tile, task);
}

static void guarded_prepare(const attest_task *task, void *scratch)
{
    (void)scratch;
    guarded(inner->prepare, task);
}

void scratch_range(uint64_t *begin, uint64_t *end)
{
    *begin = (uint64_t)(uintptr_t)room.scratch;
    *end = room.scratch ? *begin + wanted : 0;
}

const attest_cpu_kernel *scratch_guard(const attest_cpu_kernel *kernel, enum guard guard, struct board *board)
{
    static attest_cpu_kernel outer;
    inner = kernel;
    side = guard;
    notes = board;
    outer = *kernel;
    outer.tile = guarded_tile;
    outer.scratch_size = remember_size;
    if (kernel->prepare)
        outer.prepare = guarded_prepare;
    return &outer;
}
