/*
 * emulation.h - enough of CUDA C on the CPU to run kernels: one block at a time, every thread a fiber that gives way at barriers and
 * at what a warp does together. What a GPU would do at the same time is done here in a chosen order, so that a missing barrier shows
 * as bits that depend on the order. What a GPU does in the background is done as late as it may be, and until then its place holds
 * NaN. PTX is not understood: the files of tests/cuda that are called as those of lib/cuda/kernels take their place.
 */
#ifndef EMULATION_H
#define EMULATION_H

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <math.h>
#include <type_traits>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#define __CUDACC__ 1
#define __global__
#define __device__
#define __constant__
#define __shared__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes)

using std::max;
using std::min;

/* CUDA C has these for arguments of different types, too. */
template <typename A, typename B> std::enable_if_t<!std::is_same_v<A, B>, std::common_type_t<A, B>> min(A a, B b)
{
    return std::min<std::common_type_t<A, B>>(a, b);
}

template <typename A, typename B> std::enable_if_t<!std::is_same_v<A, B>, std::common_type_t<A, B>> max(A a, B b)
{
    return std::max<std::common_type_t<A, B>>(a, b);
}

extern unsigned char shared[]; /* what extern __shared__ memory is: kernels have to call it so */

namespace emulation
{
constexpr int STACK = 64 * 1024, WARP = 32, MOST_THREADS = 1024, MOST_NAMED = 16;
constexpr uint32_t SHARED_BASE = 1024, SHARED_MOST = 232448; /* as on a GPU, whose first kilobyte of shared memory is not ours */

struct Place {
    unsigned x, y, z;
};

/* What threads wait for: that `generation` changes. */
struct Barrier {
    int arrived, generation, participants;
    const char *what; /* for those who wait in vain */
    int number;
    int64_t bytes; /* that are expected as well, and have not come: of barriers in shared memory */
};

struct Fiber {
    ucontext_t context;
    jmp_buf state;
    std::vector<char> stack;
    bool started, done;
    Barrier *waiting;
    int generation, exchanges;
};

inline jmp_buf scheduler;
inline std::vector<Fiber> fibers;
inline std::vector<Barrier> warps;
inline Barrier block, named[MOST_NAMED];
inline std::vector<uint32_t> slots[2]; /* values under exchange; two sets, so that one barrier an exchange is enough */
inline int current;
inline Place block_index;
inline bool side_by_side;
inline void (*body)();
inline uint32_t shared_bytes;                      /* of the kernel that runs */
inline std::deque<std::function<void()>> arriving; /* what the GPU does in the background, until it is done */

[[noreturn]] __attribute__((format(printf, 1, 2))) inline void stop(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fflush(stdout);
    fprintf(stderr, "emulation: block %u %u %u, thread %d: ", block_index.x, block_index.y, block_index.z, current);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    _exit(1);
}

/* Gives way until the barrier is in another generation. */
inline void sleep(Barrier &barrier)
{
    Fiber &self = fibers[current];
    self.waiting = &barrier;
    self.generation = barrier.generation;
    if (!_setjmp(self.state))
        _longjmp(scheduler, 1);
}

/* One thread more has come. True for the last one, which does not wait. */
inline bool count(Barrier &barrier)
{
    if (++barrier.arrived != barrier.participants)
        return false;
    barrier.arrived = 0;
    barrier.generation++;
    return true;
}

inline void arrive(Barrier &barrier)
{
    if (!count(barrier))
        sleep(barrier);
}

inline void enter()
{
    body();
    fibers[current].done = true;
    _longjmp(scheduler, 1);
}

inline bool runnable(const Fiber &fiber)
{
    return !fiber.done && (!fiber.waiting || fiber.waiting->generation != fiber.generation);
}

inline void resume(int index)
{
    Fiber &fiber = fibers[index];
    current = index;
    fiber.waiting = nullptr;
    if (_setjmp(scheduler))
        return;
    if (fiber.started)
        _longjmp(fiber.state, 1);
    fiber.started = true;
    setcontext(&fiber.context);
}

/* Resumes fibers first .. last once each; false if none could be. */
inline bool run_some(int first, int last)
{
    volatile bool progress = false;
    for (volatile int index = first; index < last; index++)
        if (runnable(fibers[index])) {
            resume(index);
            progress = true;
        }
    return progress;
}

/* Something that is under way comes to its end: what was begun first, or last. */
inline bool let_arrive()
{
    if (arriving.empty())
        return false;
    std::function<void()> event = side_by_side ? arriving.front() : arriving.back();
    side_by_side ? arriving.pop_front() : arriving.pop_back();
    event();
    return true;
}

inline void report_waiting()
{
    fflush(stdout);
    fprintf(stderr, "emulation: block %u %u %u: threads wait for what does not come:\n", block_index.x, block_index.y,
            block_index.z);
    for (size_t first = 0; first < fibers.size(); first++) {
        const Barrier *barrier = fibers[first].waiting;
        if (fibers[first].done || !barrier || (first && !fibers[first - 1].done && fibers[first - 1].waiting == barrier))
            continue;
        size_t last = first;
        while (last + 1 < fibers.size() && !fibers[last + 1].done && fibers[last + 1].waiting == barrier)
            last++;
        fprintf(stderr, "    threads %zu .. %zu at %s %d: %d of %d have come, %lld bytes have not, %d times complete before\n",
                first, last, barrier->what, barrier->number, barrier->arrived, barrier->participants, (long long)barrier->bytes,
                barrier->generation);
    }
}

inline std::vector<void (*)()> &at_begin_of_block()
{
    static std::vector<void (*)()> list;
    return list;
}

inline std::vector<void (*)()> &at_end_of_block()
{
    static std::vector<void (*)()> list;
    return list;
}

/* Runs `threads` fibers to their end: side by side, or each warp as far as it gets, the last one first. */
inline void run_block(int threads, bool all_together, void (*kernel)())
{
    body = kernel;
    side_by_side = all_together;
    fibers.resize(threads);
    warps.resize(threads / WARP);
    for (int warp = 0; warp < threads / WARP; warp++)
        warps[warp] = Barrier{0, 0, WARP, "an instruction or barrier of warp", warp, 0};
    for (int id = 0; id < MOST_NAMED; id++)
        named[id] = Barrier{0, 0, 0, "named barrier", id, 0};
    block = Barrier{0, 0, threads, "__syncthreads, barrier", 0, 0};
    slots[0].assign(threads, 0);
    slots[1].assign(threads, 0);
    for (Fiber &fiber : fibers) {
        fiber.started = fiber.done = false;
        fiber.waiting = nullptr;
        fiber.exchanges = 0;
        fiber.stack.resize(STACK);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, enter, 0);
    }
    for (void (*event)() : at_begin_of_block())
        event();
    for (bool progress = true; progress;) {
        progress = side_by_side && run_some(0, threads);
        for (int warp = threads / WARP - 1; !side_by_side && warp >= 0; warp--)
            while (run_some(warp * WARP, (warp + 1) * WARP))
                progress = true;
        progress = progress || let_arrive();
    }
    for (const Fiber &fiber : fibers)
        if (!fiber.done) {
            report_waiting();
            _exit(1);
        }
    for (void (*event)() : at_end_of_block())
        event();
}

/* ---- what a warp does together ---- */

/* The last lane that comes does it for all of them. */
template <typename Operation> inline void together(Operation operation)
{
    Barrier &warp = warps[current / WARP];
    if (warp.arrived + 1 == warp.participants)
        operation(current / WARP * WARP);
    arrive(warp);
}

/* All lanes of a warp give a value; each gets that of lane `source`. */
inline uint32_t exchange(uint32_t value, int source)
{
    int self = current, warp = self / WARP;
    std::vector<uint32_t> &set = slots[fibers[self].exchanges++ & 1];
    set[self] = value;
    arrive(warps[warp]);
    return set[warp * WARP + source];
}

inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- shared memory ---- */

/* The bytes at a shared address, which has to be a multiple of `align`. */
inline unsigned char *shared_at(uint32_t address, uint32_t bytes, uint32_t align)
{
    if (address < SHARED_BASE || address - SHARED_BASE + bytes > shared_bytes)
        stop("%u bytes at shared address %u, of %u from %u on", bytes, address, shared_bytes, SHARED_BASE);
    if (address % align)
        stop("shared address %u is not a multiple of %u", address, align);
    return shared + (address - SHARED_BASE);
}

/*
 * Threads write by the generic proxy; bulk copies and wgmma read by the asynchronous one, which may not see what was written before
 * the writer's own proxy_fence. Words that were written by a wrapper and not fenced yet have a writer here. (Writes through plain
 * pointers are not known.)
 */
inline bool proxies_matter; /* the kernel uses the asynchronous proxy */
inline std::vector<uint16_t> writer;
inline std::vector<uint32_t> unfenced[MOST_THREADS];

inline void written(uint32_t address, int bytes, int thread)
{
    for (int word = 0; proxies_matter && word < bytes / 4; word++) {
        uint32_t at = (address - SHARED_BASE) / 4 + word;
        writer[at] = (uint16_t)(thread + 1);
        unfenced[thread].push_back(at);
    }
}

/* ---- cp.async ---- */

struct Copy {
    void *to;
    const void *from;
    int size, bytes;
};
inline std::deque<std::vector<Copy>> copies[MOST_THREADS]; /* of each thread: groups, the last one open */

inline void begin_copy(void *to, const void *from, int size, int bytes)
{
    if ((uintptr_t)to % size || (bytes && (uintptr_t)from % size))
        stop("a copy of %d bytes is not aligned to them", size);
    if (copies[current].empty())
        copies[current].emplace_back();
    copies[current].back().push_back(Copy{to, from, size, bytes});
    memset(to, 0xff, size);
}

inline void close_copies()
{
    auto &groups = copies[current];
    if (groups.empty())
        groups.emplace_back();
    groups.emplace_back();
}

/* Copies are made when their thread waits for them. */
inline void wait_copies(size_t open)
{
    auto &groups = copies[current];
    while (groups.size() > open + 1) {
        for (const Copy &copy : groups.front()) {
            memset(copy.to, 0, copy.size);
            memcpy(copy.to, copy.from, copy.bytes);
            written(SHARED_BASE + (uint32_t)((unsigned char *)copy.to - shared), copy.size, current);
        }
        groups.pop_front();
    }
}

/* What a block has not waited for is nobody's. */
inline void forget_copies()
{
    for (auto &groups : copies)
        groups.clear();
}
inline const bool copies_are_forgotten = (at_end_of_block().push_back(forget_copies), true);
} // namespace emulation

/* ---- words of CUDA C ---- */

inline emulation::Place &blockIdx = emulation::block_index, gridDim;
struct ThreadIndex {
    struct X {
        operator unsigned() const { return (unsigned)emulation::current; }
    } x;
};
inline ThreadIndex threadIdx;

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

inline float2 make_float2(float x, float y)
{
    return float2{x, y};
}

inline float4 make_float4(float x, float y, float z, float w)
{
    return float4{x, y, z, w};
}

inline uint2 make_uint2(uint32_t x, uint32_t y)
{
    return uint2{x, y};
}

inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return uint4{x, y, z, w};
}

inline float __uint_as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

inline float __int_as_float(int64_t bits)
{
    return __uint_as_float((uint32_t)bits);
}

inline uint32_t __float_as_uint(float value)
{
    return emulation::bits_of(value);
}

inline float __fdividef(float a, float b)
{
    return a / b;
}

inline void __syncthreads()
{
    emulation::arrive(emulation::block);
}

inline void __syncwarp()
{
    emulation::arrive(emulation::warps[emulation::current / emulation::WARP]);
}

inline float __shfl_sync(unsigned, float value, int source)
{
    return __uint_as_float(emulation::exchange(emulation::bits_of(value), source));
}

inline int32_t __shfl_sync(unsigned, int32_t value, int source)
{
    return (int32_t)emulation::exchange((uint32_t)value, source);
}

inline float __shfl_xor_sync(unsigned, float value, int step)
{
    return __uint_as_float(emulation::exchange(emulation::bits_of(value), (emulation::current % emulation::WARP) ^ step));
}

inline unsigned __ballot_sync(unsigned, bool here)
{
    int warp = emulation::current / emulation::WARP;
    std::vector<uint32_t> &set = emulation::slots[emulation::fibers[emulation::current].exchanges & 1];
    emulation::exchange(here, 0);
    unsigned all = 0;
    for (int lane = 0; lane < emulation::WARP; lane++)
        all |= set[warp * emulation::WARP + lane] << lane;
    return all;
}

inline bool __any_sync(unsigned mask, bool here)
{
    return __ballot_sync(mask, here) != 0;
}

inline bool __all_sync(unsigned mask, bool here)
{
    return __ballot_sync(mask, !here) == 0;
}

inline uint32_t atomicOr(uint32_t *at, uint32_t bits)
{
    uint32_t before = *at;
    *at |= bits;
    return before;
}

inline int atomicAdd(int *at, int more)
{
    int before = *at;
    *at += more;
    return before;
}

#endif
