/*
 * scratch.c - guarded scratch memory (see scratch.h).
 *
 * The library gives each thread a part of the workspace, rounded up to pages, so that a kernel which writes beyond its own
 * scratch_size would only reach memory that nobody looks at. Here each task gets other memory, whose end is known to the byte.
 * Alignment leaves fewer than 64 bytes before the page; they are compared.
 */
#include "scratch.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rubbish.h"

enum { ALIGN = 64 };

struct room {
    unsigned char *base; /* of the mapping, a page that cannot be touched included at either end */
    size_t pages;        /* bytes between these pages */
    unsigned char *scratch;
    size_t size, slack; /* bytes of scratch, and behind it */
    unsigned char band; /* what is there */
};
static _Thread_local struct room room;

void *scratch_take(size_t size, enum guard guard, uint64_t seed)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), used = (size + ALIGN - 1) / ALIGN * ALIGN, pages = (used + page - 1) / page * page;
    if (pages != room.pages || !room.base) {
        if (room.base)
            munmap(room.base, room.pages + 2 * page);
        room.pages = pages;
        room.base = mmap(NULL, pages + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
        if (room.base == MAP_FAILED || mmap(room.base, page, PROT_NONE, how, -1, 0) == MAP_FAILED ||
            mmap(room.base + page + pages, page, PROT_NONE, how, -1, 0) == MAP_FAILED)
            _exit(EXIT_MEMORY); /* the supervisor knows what this means */
    }
    room.scratch = room.base + page + (guard == GUARD_END ? pages - used : 0);
    room.size = size;
    room.slack = (size_t)(room.base + page + pages - (room.scratch + size));
    room.band = rubbish_band(seed >> 32);
    rubbish_fill(room.scratch, size, seed);
    memset(room.scratch + size, room.band, room.slack);
    return room.scratch;
}

int64_t scratch_overrun(void)
{
    for (size_t i = 0; i < room.slack; i++)
        if (room.scratch[room.size + i] != room.band)
            return (int64_t)i + 1;
    return 0;
}

void scratch_range(uint64_t *begin, uint64_t *end)
{
    *begin = (uint64_t)(uintptr_t)room.scratch;
    *end = room.scratch ? *begin + room.size : 0;
}
