/*
 * copies.cpp - what the hardware copies in the background: cp.async, bulk copies of bytes and of boxes of a tensor, st.async.
 *
 * A copy writes at any time between the instruction and the wait for it. So its place in shared memory belongs to an agent of its
 * own from the instruction on, and to others once they know of its end. The bytes move when the order says: at once, or when nobody
 * can go on without them; until then their place holds NaN.
 */
#include "emulator.h"

#include "tensor_map.h"

namespace emulation
{
static uint32_t map_phase(const MemoryBarrier &barrier)
{
    return barrier.barrier.generation;
}

static std::string here()
{
    return thread_text(current) + site_text(Site{self().site});
}

void copies_reset() {}

/* ---- cp.async ---- */

static void perform(const Fiber::Copy &copy, int rank)
{
    unsigned char *to = shared_bytes_of(Place{rank, copy.to});
    memset(to, 0, (size_t)copy.size);
    memcpy(to, copy.from, (size_t)copy.bytes);
}

void copy_begin(uint32_t to, const void *from, int size, int bytes)
{
    Fiber &fiber = self();
    const Place place = shared_place(to, (uint32_t)size, (uint32_t)size, "cp.async");
    if (place.rank != rank_of(current))
        stop("cp.async to another block of the cluster (%s)", here().c_str());
    if ((uintptr_t)from % (uintptr_t)size)
        stop("a misaligned address: cp.async of %d bytes from 0x%llx (%s)", size, (unsigned long long)(uintptr_t)from,
             here().c_str());
    if (bytes < 0 || bytes > size)
        stop("cp.async of %d bytes, of which %d are to be read (%s)", size, bytes, here().c_str());
    Access access = asm_access(true, "cp.async");
    if (bytes) {
        Access read = access;
        read.write = false;
        global_access((uint64_t)from, (uint32_t)bytes, read);
    }
    access.agent = agents.copies + current;
    access.time = fiber.copies_closed + 1;
    shared_access(place.rank, place.offset, (uint32_t)size, access);
    Fiber::Copy copy = {access.time, place.offset, from, size, bytes, access};
    if (schedule.early)
        perform(copy, place.rank);
    else
        memset(shared_bytes_of(place), 0xff, (size_t)size);
    fiber.copies.push_back(copy);
}

void copies_close()
{
    self().copies_closed++;
}

static void finish_copies(Time last)
{
    Fiber &fiber = self();
    while (!fiber.copies.empty() && fiber.copies.front().group <= last) {
        if (!schedule.early)
            perform(fiber.copies.front(), rank_of(current));
        fiber.copies.pop_front();
    }
    Time &known = fiber.clock.known[(size_t)(agents.copies + current)];
    known = known > last ? known : last;
}

void copies_wait(Time open, bool all)
{
    Fiber &fiber = self();
    if (all)
        copies_close();
    if (all || fiber.copies_closed > open)
        finish_copies(fiber.copies_closed - (all ? 0 : open));
}

/* cp.async.mbarrier.arrive: arrives when the copies so far are done. */
void copies_arrive(uint32_t barrier, bool counts)
{
    copies_close();
    Fiber &fiber = self();
    const Time known = fiber.clock.known[(size_t)(agents.copies + current)];
    finish_copies(fiber.copies_closed);
    if (!counts)
        memory_barrier(barrier, "cp.async.mbarrier.arrive").barrier.participants++;
    memory_barrier_arrive(barrier, 1, 0, true, "cp.async.mbarrier.arrive");
    if (!counts)
        memory_barrier(barrier, "cp.async.mbarrier.arrive").barrier.participants--;
    fiber.clock.known[(size_t)(agents.copies + current)] = known;
}

/* ---- copies that complete on an mbarrier ---- */

typedef std::function<void(unsigned char *to)> Fill;

static void begin_load(int rank, uint32_t offset, uint32_t bytes, uint32_t barrier_offset, const char *what, bool async, Fill fill)
{
    const uint32_t barrier_address = (uint32_t)(rank + 1) << BLOCK_SHIFT | (SHARED_BASE + barrier_offset);
    MemoryBarrier &barrier = memory_barrier(rank == rank_of(current) ? SHARED_BASE + barrier_offset : barrier_address, what);
    if (!barrier.known)
        stop("%s on the mbarrier at shared address %u, whose maker has not executed fence.mbarrier_init or fence.proxy.async (%s)",
             what, SHARED_BASE + barrier_offset, here().c_str());
    const uint32_t phase = map_phase(barrier);
    Access access = asm_access(true, what);
    access.agent = barrier.index;
    access.time = phase + 1;
    access.async = async;
    shared_access(rank, offset, bytes, access);
    if (schedule.early)
        fill(shared_bytes_of(Place{rank, offset}));
    else
        memset(shared_bytes_of(Place{rank, offset}), 0xff, bytes);
    const bool early = schedule.early;
    arriving.push_back([=] {
        if (has_ended(rank))
            stop("block %d of the cluster has ended, and %s to it arrives", rank, what);
        if (!early)
            fill(shared_bytes_of(Place{rank, offset}));
        memory_barrier_complete(rank, barrier_offset, bytes, phase);
    });
}

static uint32_t offset_of(uint32_t address, uint32_t bytes, uint32_t align, const char *what)
{
    return shared_place(address, bytes, align, what).offset;
}

template <typename Each> static void targets(uint32_t address, uint32_t mask, Each each)
{
    if (!mask) {
        each(shared_place(address, 1, 1, "a bulk load").rank);
        return;
    }
    if (mask >> blocks)
        stop("a multicast to blocks 0x%x of a cluster of %d (%s)", mask, blocks, here().c_str());
    for (int n = 1; n <= blocks; n++) {
        int rank = (rank_of(current) + n) % blocks;
        if (mask >> rank & 1)
            each(rank);
    }
}

void bulk_load(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier, uint32_t mask)
{
    if (bytes % 16 || (uintptr_t)from % 16)
        stop("a misaligned address: a bulk copy of %u bytes from 0x%llx: both have to be multiples of 16 (%s)", bytes,
             (unsigned long long)(uintptr_t)from, here().c_str());
    const uint32_t offset = offset_of(to, bytes, 16, "a bulk load"), barrier_offset = offset_of(barrier, 8, 8, "a bulk load");
    if (!bytes)
        return;
    Access read = asm_access(false, "a bulk load");
    global_access((uint64_t)from, bytes, read);
    targets(to, mask, [&](int rank) {
        begin_load(rank, offset, bytes, barrier_offset, "a bulk load", true,
                   [=](unsigned char *place) { memcpy(place, from, bytes); });
    });
}

static uint32_t swizzled(uint32_t address, uint32_t span)
{
    return address ^ ((address >> 7 & (span / 16 - 1)) << 4);
}

static const emulated_map &map_get(const void *map, int rank)
{
    const emulated_map &found = *(const emulated_map *)map;
    if (found.magic != EMULATED_MAP_MAGIC)
        stop("a copy with what is no tensor map (%s)", here().c_str());
    if (rank && found.rank != (uint32_t)rank)
        stop("a copy with %d coordinates and a tensor map of %u dimensions (%s)", rank, found.rank, here().c_str());
    return found;
}

static uint32_t map_bytes(const emulated_map &map)
{
    uint32_t bytes = map.element;
    for (uint32_t d = 0; d < map.rank; d++)
        bytes *= map.box[d];
    return bytes;
}

/* Calls `each` with an offset in the box, as it lies in shared memory at `base`, the place in global memory (NULL outside of the
 * tensor) and a length. */
template <typename Each> static void map_walk(const emulated_map &map, uint32_t base, const int *first, Each each)
{
    uint32_t row_bytes = map.box[0] * map.element, rows = 1;
    const uint32_t piece = 16 % map.element ? map.element : row_bytes % 16 ? map.element : 16;
    for (uint32_t d = 1; d < map.rank; d++)
        rows *= map.box[d];
    for (uint32_t row = 0; row < rows; row++) {
        unsigned char *data = map.data;
        bool inside = true;
        uint32_t rest = row;
        for (uint32_t d = 1; d < map.rank; d++) {
            int64_t at = first[d] + (int64_t)(rest % map.box[d]);
            rest /= map.box[d];
            inside = inside && at >= 0 && at < (int64_t)map.size[d];
            data += at * map.stride[d];
        }
        for (uint32_t byte = 0; byte < row_bytes; byte += piece) {
            uint32_t at = base + row * row_bytes + byte;
            at = (map.swizzle ? swizzled(at, map.swizzle) : at) - base;
            int64_t column = first[0] + (int64_t)(byte / map.element), count = piece / map.element;
            if (inside && column >= 0 && column + count <= (int64_t)map.size[0])
                each(at, data + column * map.element, piece);
            else
                for (int64_t n = 0; n < count; n++)
                    each(at + (uint32_t)n * map.element,
                         inside && column + n >= 0 && column + n < (int64_t)map.size[0] ? data + (column + n) * map.element
                                                                                        : nullptr,
                         map.element);
        }
    }
}

void tensor_load(uint32_t to, const void *handle, int rank, const int *first, uint32_t barrier, uint32_t mask)
{
    const emulated_map map = map_get(handle, rank);
    const uint32_t bytes = map_bytes(map), offset = offset_of(to, bytes, 128, "a bulk tensor load"),
                   barrier_offset = offset_of(barrier, 8, 8, "a bulk tensor load");
    std::vector<int> at(first, first + rank);
    Access read = asm_access(false, "a bulk tensor load");
    map_walk(map, SHARED_BASE + offset, at.data(), [&](uint32_t, unsigned char *from, uint32_t count) {
        if (from)
            global_access((uint64_t)from, count, read);
    });
    targets(to, mask, [&](int target) {
        begin_load(target, offset, bytes, barrier_offset, "a bulk tensor load", true, [=](unsigned char *place) {
            map_walk(map, SHARED_BASE + offset, at.data(), [&](uint32_t where, unsigned char *from, uint32_t count) {
                if (from)
                    memcpy(place + where, from, count);
                else
                    memset(place + where, 0, count);
            });
        });
    });
}

void tensor_prefetch(const void *handle, int rank)
{
    map_get(handle, rank);
}

/* To another block's shared memory. */
void send(uint32_t to, const void *data, uint32_t bytes, uint32_t barrier)
{
    const Place place = shared_place(to, bytes, bytes, "st.async"), at = shared_place(barrier, 8, 8, "st.async");
    if (at.rank != place.rank)
        stop("st.async with an mbarrier of another block (%s)", here().c_str());
    std::vector<unsigned char> copy((const unsigned char *)data, (const unsigned char *)data + bytes);
    begin_load(place.rank, place.offset, bytes, at.offset, "st.async", false,
               [=](unsigned char *there) { memcpy(there, copy.data(), copy.size()); });
}

/* ---- bulk stores ---- */

static void begin_store(const Place &place, uint32_t bytes, const char *what, std::function<void()> finish)
{
    Fiber &fiber = self();
    if (place.rank != rank_of(current))
        stop("%s from another block of the cluster (%s)", what, here().c_str());
    Access access = asm_access(false, what);
    access.agent = agents.stores + current;
    access.time = fiber.stores_closed + 1;
    access.async = true;
    shared_access(place.rank, place.offset, bytes, access);
    fiber.stores.push_back({access.time, finish});
    if (schedule.early) {
        finish();
        fiber.stores.back().finish = [] {};
    }
}

void bulk_store(void *to, uint32_t from, uint32_t bytes)
{
    const Place place = shared_place(from, bytes, 16, "a bulk store");
    if (bytes % 16 || (uintptr_t)to % 16)
        stop("a misaligned address: a bulk store of %u bytes to 0x%llx: both have to be multiples of 16 (%s)", bytes,
             (unsigned long long)(uintptr_t)to, here().c_str());
    Access write = asm_access(true, "a bulk store");
    global_access((uint64_t)to, bytes, write);
    begin_store(place, bytes, "a bulk store", [=] { memcpy(to, shared_bytes_of(place), bytes); });
}

void tensor_store(const void *handle, int rank, const int *first, uint32_t from)
{
    const emulated_map map = map_get(handle, rank);
    const Place place = shared_place(from, map_bytes(map), 128, "a bulk tensor store");
    std::vector<int> at(first, first + rank);
    Access write = asm_access(true, "a bulk tensor store");
    map_walk(map, SHARED_BASE + place.offset, at.data(), [&](uint32_t, unsigned char *to, uint32_t count) {
        if (to)
            global_access((uint64_t)to, count, write);
    });
    begin_store(place, map_bytes(map), "a bulk tensor store", [=] {
        map_walk(map, SHARED_BASE + place.offset, at.data(), [&](uint32_t where, unsigned char *to, uint32_t count) {
            if (to)
                memcpy(to, shared_bytes_of(place) + where, count);
        });
    });
}

void stores_close()
{
    self().stores_closed++;
}

void stores_wait(Time open)
{
    Fiber &fiber = self();
    if (fiber.stores_closed < open)
        return;
    const Time last = fiber.stores_closed - open;
    while (!fiber.stores.empty() && fiber.stores.front().group <= last) {
        fiber.stores.front().finish();
        fiber.stores.pop_front();
    }
    Time &known = fiber.clock.known[(size_t)(agents.stores + current)];
    known = known > last ? known : last;
}

void copies_check_end()
{
    for (size_t thread = 0; thread < fibers.size(); thread++) {
        current = (int)thread;
        if (!fibers[thread].stores.empty())
            stop("a block ends before a bulk store has read shared memory: it needs cp.async.bulk.commit_group and wait_group (%s)",
                 thread_text(current).c_str());
    }
    if (!arriving.empty())
        stop("a block ends with a bulk load under way");
}
} // namespace emulation
