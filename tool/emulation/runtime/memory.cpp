/*
 * memory.cpp - the global memory of the emulated device, and the plain loads and stores of a kernel.
 *
 * The image is compiled with the instrumentation of ThreadSanitizer, whose functions are these: every plain access comes here first.
 * An address is that of a thread's own stack, of the image's constants, of shared memory or of an allocation, or it is a hazard.
 * Words of allocations have who wrote them last, in which launch and block, and which of their bytes hold anything: bytes that the
 * host has copied or a kernel has written. What the host only fills with a byte, to poison it, counts as holding nothing.
 */
#include "emulator.h"

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace emulation
{
Memory memory;
emulated_position here;

struct Word {
    uint32_t launch, run; /* run: number of the cluster that wrote it */
    Time time;
    int16_t thread;
    uint8_t valid, written; /* a bit for each byte; written: in `launch` */
    bool outside;           /* of the tensors: see memory_tensor */
    const void *site;
};

struct Allocation {
    uint64_t begin, end;
    size_t mapped, shadow_bytes;
    Word *words;
};
static std::vector<Allocation> allocations;
static size_t last_found;
static uint32_t launch_number;
static bool launched_early;
uint32_t run_number, run_repeated;
bool global_atomics;

static Allocation *find(uint64_t address)
{
    if (last_found < allocations.size() && address >= allocations[last_found].begin && address < allocations[last_found].end)
        return &allocations[last_found];
    for (size_t i = 0; i < allocations.size(); i++)
        if (address >= allocations[i].begin && address < allocations[i].end) {
            last_found = i;
            return &allocations[i];
        }
    return nullptr;
}

bool is_global(uint64_t address, uint64_t bytes)
{
    const Allocation *found = find(address);
    return found && address + bytes <= found->end;
}

/* Pages that are there once they are touched. A process may have less private memory than a tensor has addresses whose elements lie far
 * apart, and that has little in it: such memory is shared, with nobody. */
static void *reserve(size_t bytes, bool far)
{
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, (far ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

uint64_t memory_allocate(size_t bytes)
{
    constexpr size_t FAR = (size_t)1 << 32;
    constexpr size_t PAGE = 4096;
    Allocation made = {};
    made.mapped = (bytes + PAGE - 1) / PAGE * PAGE + 2 * PAGE;
    made.shadow_bytes = (bytes / 4 + 2) * sizeof(Word);
    void *memory = reserve(made.mapped, bytes > FAR), *shadow = reserve(made.shadow_bytes, bytes > FAR);
    if (memory == MAP_FAILED || shadow == MAP_FAILED) {
        if (memory != MAP_FAILED)
            munmap(memory, made.mapped);
        return 0;
    }
    made.begin = (uint64_t)memory + PAGE;
    made.end = made.begin + bytes;
    made.words = (Word *)shadow;
    allocations.push_back(made);
    return made.begin;
}

bool memory_free(uint64_t address)
{
    for (size_t i = 0; i < allocations.size(); i++)
        if (allocations[i].begin == address) {
            munmap((void *)(allocations[i].begin - 4096), allocations[i].mapped);
            munmap(allocations[i].words, allocations[i].shadow_bytes);
            allocations.erase(allocations.begin() + (long)i);
            return true;
        }
    return !address;
}

bool memory_mark(uint64_t address, size_t bytes, bool valid)
{
    Allocation *found = find(address);
    if (!found || address + bytes > found->end)
        return !bytes;
    uint64_t at = address - found->begin, end = at + bytes;
    for (; at < end && at % 4; at++)
        found->words[at / 4].valid =
            (uint8_t)(valid ? found->words[at / 4].valid | 1 << at % 4 : found->words[at / 4].valid & ~(1 << at % 4));
    for (; at + 4 <= end; at += 4)
        found->words[at / 4] = Word{0, 0, 0, 0, (uint8_t)(valid ? 15 : 0), 0, false, nullptr};
    for (; at < end; at++)
        found->words[at / 4].valid =
            (uint8_t)(valid ? found->words[at / 4].valid | 1 << at % 4 : found->words[at / 4].valid & ~(1 << at % 4));
    return true;
}

/* Of an allocation, only the tensors that are named are a kernel's. */
void memory_tensor(uint64_t address, size_t bytes, bool output, bool first)
{
    Allocation *found = find(address);
    if (!found || address + bytes > found->end)
        return;
    if (first)
        for (uint64_t at = 0; at < found->end - found->begin; at += 4)
            found->words[at / 4].outside = true;
    for (uint64_t at = (address - found->begin) / 4 * 4; at < address - found->begin + bytes; at += 4) {
        found->words[at / 4].outside = false;
        if (output)
            found->words[at / 4].valid = 0;
    }
}

void memory_next_launch(bool early)
{
    launch_number++;
    launched_early = early;
}

[[noreturn]] static void stop_outside(uint64_t address, uint32_t bytes, const Access &access)
{
    const Allocation *near = nullptr;
    for (const Allocation &one : allocations)
        if ((address >= one.end && address - one.end < 4096) || (address < one.begin && one.begin - address <= 4096))
            near = &one;
    char where[128] = "";
    if (near && address >= near->end)
        snprintf(where, sizeof where, ", %llu bytes behind the end of an allocation of %llu",
                 (unsigned long long)(address - near->end), (unsigned long long)(near->end - near->begin));
    else if (near)
        snprintf(where, sizeof where, ", %llu bytes before the start of an allocation of %llu",
                 (unsigned long long)(near->begin - address), (unsigned long long)(near->end - near->begin));
    else if (address < 65536)
        snprintf(where, sizeof where, ": a null pointer");
    stop("an illegal address: %s of %u bytes at 0x%llx%s, which is outside of every tensor (%s%s)", access.what, bytes,
         (unsigned long long)address, where, thread_text(access.thread).c_str(), site_text(access.site).c_str());
}

void global_access(uint64_t address, uint32_t bytes, const Access &access)
{
    memory.accesses++;
    Allocation *found = find(address);
    if (!found || address + bytes > found->end)
        stop_outside(address, bytes, access);
    const uint64_t begin = address - found->begin, end = begin + bytes;
    const std::vector<Time> &known = access.clock->known;
    for (uint64_t at = begin / 4 * 4; at < end; at += 4) {
        uint8_t mask = 15;
        if (at < begin)
            mask &= (uint8_t)(15 << (begin - at));
        if (at + 4 > end)
            mask &= (uint8_t)(15 >> (at + 4 - end));
        Word &word = found->words[at / 4];
        if (word.outside)
            stop("an illegal address: %s of %u bytes in global memory is outside of every tensor (%s%s)", access.what, bytes,
                 thread_text(access.thread).c_str(), site_text(access.site).c_str());
        if (!access.write && (word.valid & mask) != mask)
            stop("%s reads byte %llu of an allocation of %llu in global memory, which nothing was written to (%s%s)", access.what,
                 (unsigned long long)at, (unsigned long long)(found->end - found->begin), thread_text(access.thread).c_str(),
                 site_text(access.site).c_str());
        if (word.written & mask && !access.atomic && !(run_repeated && word.run == run_repeated)) {
            if (word.launch == launch_number) {
                bool ordered =
                    word.run == run_number ? word.time <= known[(size_t)word.thread] : word.run <= known[(size_t)agents.atomics];
                if (!ordered) {
                    char text[700];
                    snprintf(text, sizeof text,
                             "a race on global memory: %s (%s%s) and a store by %s%s to the same bytes are not ordered",
                             access.what, thread_text(access.thread).c_str(), site_text(access.site).c_str(),
                             word.run == run_number ? thread_text(word.thread).c_str() : "another block",
                             word.site ? site_text(Site{word.site}).c_str() : "");
                    if (!access.write || access.async)
                        stop("%s", text);
                    doubt_add((const void *)(found->begin + at), 4, text);
                }
            }
        }
        if (launched_early && !known[(size_t)agents.grid])
            stop("%s touches global memory, which the grid before this one may have written or may still read, without waiting for "
                 "it "
                 "(griddepcontrol.wait; %s%s)",
                 access.what, thread_text(access.thread).c_str(), site_text(access.site).c_str());
        if (access.write) {
            word.written = (uint8_t)(word.launch == launch_number && word.run == run_number ? word.written | mask : mask);
            word.launch = launch_number;
            word.run = run_number;
            word.time = access.time;
            word.thread = (int16_t)access.thread;
            word.site = access.site.address;
            word.valid |= mask;
            if (access.atomic)
                word.written = 0;
        }
    }
}

/* ---- stores of the same value ---- */

bool in_doubt;
struct Doubt {
    const unsigned char *at;
    std::vector<unsigned char> before;
    std::string text;
    Torn product;
};
static std::vector<Doubt> doubts;

void doubt_add(const void *at, uint32_t bytes, const std::string &text, const Torn &product)
{
    const unsigned char *from = (const unsigned char *)at;
    doubts.push_back({from, std::vector<unsigned char>(from, from + bytes), text, product});
    in_doubt = true;
}

void doubt_settle_all()
{
    std::vector<Doubt> all;
    all.swap(doubts);
    in_doubt = false;
    for (const Doubt &one : all)
        if (memcmp(one.at, one.before.data(), one.before.size()) != 0) {
            if (one.product.warp < 0)
                stop("%s", one.text.c_str());
            product_torn(one.product, one.text);
        }
}

/* ---- plain loads and stores ---- */

static std::map<const void *, Clock> atomic_places;
void atomics_reset()
{
    atomic_places.clear();
}

bool running;
uintptr_t stack_begin; /* of the thread that runs */
extern unsigned char window[];

static void checked(const void *pointer, uint32_t bytes, bool write, bool atomic, const void *caller, bool aligned)
{
    if (!running)
        return;
    doubt_settle();
    const unsigned char *at = (const unsigned char *)pointer;
    if ((at >= (const unsigned char *)&emulated_here && at < (const unsigned char *)(&emulated_here + 1)) ||
        (at >= image->begin && at < image->end))
        return;
    Access access = plain_access(write, caller);
    access.atomic = atomic;
    if (atomic)
        access.what = write ? "a volatile store" : "a volatile load";
    if (aligned && bytes > 1 && bytes <= 16 && (bytes & (bytes - 1)) == 0 && (uintptr_t)at % bytes)
        stop("a misaligned address: %s of %u bytes (%s%s)", access.what, bytes, thread_text(access.thread).c_str(),
             site_text(access.site).c_str());
    if (at >= window && at < window + SHARED_MOST + 65536) {
        uint32_t offset = (uint32_t)(at - window);
        if (offset + bytes > shared_bytes)
            stop("%s of %u bytes at byte %u of shared memory, of which the block has %u (%s%s)", access.what, bytes, offset,
                 shared_bytes, thread_text(access.thread).c_str(), site_text(access.site).c_str());
        shared_access(block_rank, offset, bytes, access);
        if (atomic && !write && ++self().spins % 64 == 0)
            give_way();
        return;
    }
    global_access((uint64_t)at, bytes, access);
    if (atomic && !write && ++self().spins % 64 == 0)
        give_way();
}

/* Most accesses are to the thread's own stack. */
__attribute__((always_inline)) static inline void plain(const void *pointer, uint32_t bytes, bool write, bool atomic,
                                                        const void *caller, bool aligned = true)
{
    if ((uintptr_t)pointer - stack_begin >= STACK_BYTES)
        checked(pointer, bytes, write, atomic, caller, aligned);
}
} // namespace emulation

using namespace emulation;

extern "C" {
#define INSTRUMENTED(bytes)                                                                                                        \
    void __tsan_read##bytes(void *at)                                                                                              \
    {                                                                                                                              \
        plain(at, bytes, false, false, __builtin_return_address(0));                                                               \
    }                                                                                                                              \
    void __tsan_write##bytes(void *at)                                                                                             \
    {                                                                                                                              \
        plain(at, bytes, true, false, __builtin_return_address(0));                                                                \
    }                                                                                                                              \
    void __tsan_volatile_read##bytes(void *at)                                                                                     \
    {                                                                                                                              \
        plain(at, bytes, false, true, __builtin_return_address(0));                                                                \
    }                                                                                                                              \
    void __tsan_volatile_write##bytes(void *at)                                                                                    \
    {                                                                                                                              \
        plain(at, bytes, true, true, __builtin_return_address(0));                                                                 \
    }
INSTRUMENTED(1)
INSTRUMENTED(2)
INSTRUMENTED(4)
INSTRUMENTED(8)
INSTRUMENTED(16)
/* An index outside of an array whose size the compiler knows: registers of a thread, which no load or store goes to. The compiler says
 * where; what follows in its struct, types, is not needed. */
struct bounds_place {
    const char *file;
    uint32_t line, column;
};
void __ubsan_handle_out_of_bounds(const bounds_place *place, uintptr_t index)
{
    const char *name = strrchr(place->file, '/');
    stop("index %lld is outside of its array (%s:%u)", (long long)index, name ? name + 1 : place->file, place->line);
}
/* Members of a struct that the compiler moves together. */
#define UNALIGNED(bytes)                                                                                                           \
    void __tsan_unaligned_read##bytes(void *at)                                                                                    \
    {                                                                                                                              \
        plain(at, bytes, false, false, __builtin_return_address(0), false);                                                        \
    }                                                                                                                              \
    void __tsan_unaligned_write##bytes(void *at)                                                                                   \
    {                                                                                                                              \
        plain(at, bytes, true, false, __builtin_return_address(0), false);                                                         \
    }                                                                                                                              \
    void __tsan_unaligned_volatile_read##bytes(void *at)                                                                           \
    {                                                                                                                              \
        plain(at, bytes, false, true, __builtin_return_address(0), false);                                                         \
    }                                                                                                                              \
    void __tsan_unaligned_volatile_write##bytes(void *at)                                                                          \
    {                                                                                                                              \
        plain(at, bytes, true, true, __builtin_return_address(0), false);                                                          \
    }
UNALIGNED(2)
UNALIGNED(4)
UNALIGNED(8)
UNALIGNED(16)
void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void __tsan_read_range(void *at, long bytes)
{
    plain(at, (uint32_t)bytes, false, false, __builtin_return_address(0), false);
}
void __tsan_write_range(void *at, long bytes)
{
    plain(at, (uint32_t)bytes, true, false, __builtin_return_address(0), false);
}

void emulated_touch(const void *at, size_t bytes, int write)
{
    if (bytes)
        plain(at, (uint32_t)bytes, write != 0, false, __builtin_return_address(0), false);
}

uint64_t emulated_atomic(void *at, int kind, int operation, uint64_t value, uint64_t compare)
{
    const uint32_t bytes = (uint32_t)kind & 15;
    const bool is_float = kind & 64, is_signed = kind & 128;
    Fiber &fiber = self();
    Access access = plain_access(true, __builtin_return_address(0));
    access.atomic = true;
    access.what = "an atomic operation";
    const unsigned char *place = (const unsigned char *)at;
    if ((uintptr_t)at % bytes)
        stop("a misaligned address: an atomic operation of %u bytes", bytes);
    const bool is_shared = place >= window && place < window + shared_bytes;
    if (is_shared) {
        Access read = access;
        read.write = false;
        shared_access(block_rank, (uint32_t)(place - window), bytes, read);
        shared_access(block_rank, (uint32_t)(place - window), bytes, access);
    } else {
        global_atomics = true;
        Access read = access;
        read.write = false;
        global_access((uint64_t)at, bytes, read);
        global_access((uint64_t)at, bytes, access);
    }
    /* What was done before a fence before this is seen by whoever does the same here later, and then has a fence. */
    Clock &met = atomic_places[at];
    if (met.known.size() != fiber.clock.known.size())
        met.clear();
    if (fiber.acquired.known.size() != fiber.clock.known.size())
        fiber.acquired.clear();
    fiber.acquired.join(met);
    if (!is_shared && fiber.acquired.known.size() > (size_t)agents.atomics)
        fiber.acquired.known[(size_t)agents.atomics] = run_number;
    if (fiber.released.known.size() == fiber.clock.known.size())
        met.join(fiber.released);
    uint64_t before = 0, after;
    memcpy(&before, at, bytes);
    auto number = [&](uint64_t bits) {
        float narrow;
        double wide;
        memcpy(&narrow, &bits, 4);
        memcpy(&wide, &bits, 8);
        return bytes == 4 ? (double)narrow : wide;
    };
    auto whole = [&](uint64_t bits) {
        return bytes == 4 ? (is_signed ? (int64_t)(int32_t)bits : (int64_t)(uint32_t)bits) : (int64_t)bits;
    };
    switch (operation) {
    case '+':
        after = before + value;
        if (is_float && bytes == 4) {
            float sum = (float)number(before) + (float)number(value);
            after = 0;
            memcpy(&after, &sum, 4);
        } else if (is_float) {
            double sum = number(before) + number(value);
            memcpy(&after, &sum, 8);
        }
        break;
    case '-':
        after = before - value;
        break;
    case '=':
        after = value;
        break;
    case '<':
        after = whole(value) < whole(before) ? value : before;
        break;
    case '>':
        after = whole(value) > whole(before) ? value : before;
        break;
    case '&':
        after = before & value;
        break;
    case '|':
        after = before | value;
        break;
    case '^':
        after = before ^ value;
        break;
    case 'i':
        after = before >= value ? 0 : before + 1;
        break;
    case 'd':
        after = before == 0 || before > value ? value : before - 1;
        break;
    default:
        after = before == compare ? value : before;
        break;
    }
    memcpy(at, &after, bytes);
    give_way();
    return before;
}

void emulated_fence(int)
{
    Fiber &fiber = self();
    if (fiber.acquired.known.size() == fiber.clock.known.size())
        fiber.clock.join(fiber.acquired);
    fiber.released = fiber.clock;
    begin_epoch(current);
}
}
