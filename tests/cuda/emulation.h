/*
 * emulation.h - enough of CUDA C on the CPU to run kernels: one block or cluster at a time, every thread a fiber that gives way at barriers
 * and at what a warp does together. What a GPU would do at the same time is done here in a chosen order, so that a missing barrier shows
 * as bits that depend on the order. What a GPU does in the background is done as late as it may be, and until then its place holds
 * NaN. PTX is not understood: the files of tests/cuda that are called as those of lib/cuda/kernels take their place.
 */
#ifndef EMULATION_H
#define EMULATION_H

#include "standard.h"

#define __CUDACC__ 1
#define __global__
#define __device__
#define __constant__
#define __shared__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__    inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
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
constexpr int STACK = 64 * 1024, WARP = 32, MOST_NAMED = 16, MOST_BLOCKS = 16; /* of a cluster */
constexpr int MOST_THREADS = MOST_BLOCKS * 1024;                               /* likewise */
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
    bool started, done, held;
    Barrier *waiting;
    int generation, exchanges;
    int arrived; /* the generation of the cluster's barrier that it has arrived at and not waited for, or -1 */
};

inline jmp_buf scheduler;
inline std::vector<Fiber> fibers;
inline std::vector<Barrier> warps;
inline Barrier all_named[MOST_BLOCKS][MOST_NAMED], cluster;
inline std::vector<uint32_t> slots[2]; /* values under exchange; two sets, so that one barrier an exchange is enough */
inline int current;                    /* fiber: thread current - block_first of its block */
inline Place block_index;
enum Order { LAST_FIRST, SIDE_BY_SIDE, FIRST_FIRST };
inline Order order; /* of warps, and of blocks: each as far as it gets, or all warps side by side */
inline void (*body)();
inline uint32_t shared_bytes;                      /* of the kernel that runs */
inline std::deque<std::function<void()>> arriving; /* what the GPU does in the background, until it is done */

/* Of the blocks of a cluster, the one that runs has its shared memory in `shared`, and those that do not have it here. Their threads
 * are fibers rank * block_stride .. */
inline std::vector<unsigned char> put_away[MOST_BLOCKS];
inline int blocks, block_rank, block_first, block_stride;
inline Barrier *named = all_named[0]; /* of the block that runs; 0 is that of all its threads */

inline unsigned char *memory_of(int rank)
{
    return rank == block_rank ? shared : put_away[rank].data();
}

inline void enter_block(int rank)
{
    if (rank == block_rank)
        return;
    memcpy(put_away[block_rank].data(), shared, shared_bytes);
    memcpy(shared, put_away[rank].data(), shared_bytes);
    block_index.x += rank - block_rank;
    block_rank = rank;
    block_first = rank * block_stride;
    named = all_named[rank];
}

[[noreturn]] __attribute__((format(printf, 1, 2))) inline void stop(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fflush(stdout);
    fprintf(stderr, "emulation: block %u %u %u, thread %d: ", block_index.x + (unsigned)(current / block_stride - block_rank),
            block_index.y, block_index.z, current % block_stride);
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

/* Behind an arrival that others have waited for: in one order those now get as far as they can before this thread goes on. What it
 * should have done before it arrived, it does too late. In the others it goes on before anybody else does. */
inline void hold_back()
{
    Fiber &self = fibers[current];
    if (order != LAST_FIRST)
        return;
    self.held = true;
    if (!_setjmp(self.state))
        _longjmp(scheduler, 1);
}

inline void arrive(Barrier &barrier)
{
    if (!count(barrier))
        sleep(barrier);
}

/* A thread that has ended need not come to the cluster's barrier. */
inline void leave_cluster(const Fiber &fiber)
{
    cluster.participants--;
    if (fiber.arrived == cluster.generation)
        cluster.arrived--;
    if (cluster.arrived && cluster.arrived == cluster.participants) {
        cluster.arrived = 0;
        cluster.generation++;
    }
}

inline void enter()
{
    body();
    fibers[current].done = true;
    leave_cluster(fibers[current]);
    _longjmp(scheduler, 1);
}

inline bool runnable(const Fiber &fiber)
{
    return !fiber.done && !fiber.held && (!fiber.waiting || fiber.waiting->generation != fiber.generation);
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

inline bool has_ended(int rank)
{
    for (int index = rank * block_stride; index < (rank + 1) * block_stride; index++)
        if (!fibers[index].done)
            return false;
    return true;
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

/* The threads of the block that runs, as far as they get. */
inline bool run_threads()
{
    volatile bool progress = false;
    const int last = block_first + block_stride, count = order == SIDE_BY_SIDE ? 0 : block_stride / WARP;
    for (bool more = true; more;) {
        more = order == SIDE_BY_SIDE && run_some(block_first, last);
        for (int n = 0; n < count; n++) {
            int first = block_first + (order == FIRST_FIRST ? n : count - 1 - n) * WARP;
            while (run_some(first, first + WARP))
                more = true;
        }
        progress = progress || more;
    }
    return progress;
}

/* The blocks of the cluster, each as far as it gets. */
inline bool run_blocks()
{
    bool progress = false;
    for (int n = 0; n < blocks; n++) {
        int rank = order == LAST_FIRST ? blocks - 1 - n : n;
        auto first = fibers.begin() + rank * block_stride;
        if (!std::any_of(first, first + block_stride, runnable))
            continue;
        enter_block(rank);
        progress = run_threads() || progress;
    }
    return progress;
}

/* Threads that were held back go on. */
inline bool let_go()
{
    bool any = false;
    for (Fiber &fiber : fibers) {
        any = any || fiber.held;
        fiber.held = false;
    }
    return any;
}

/* Something that is under way comes to its end: what was begun first, or last. */
inline bool let_arrive()
{
    if (arriving.empty())
        return false;
    std::function<void()> event = order == LAST_FIRST ? arriving.back() : arriving.front();
    order == LAST_FIRST ? arriving.pop_back() : arriving.pop_front();
    event();
    return true;
}

inline void report_waiting()
{
    fflush(stdout);
    for (int rank = 0; rank < blocks; rank++) {
        if (has_ended(rank))
            continue;
        fprintf(stderr, "emulation: block %u %u %u: threads wait for what does not come:\n",
                block_index.x - (unsigned)block_rank + (unsigned)rank, block_index.y, block_index.z);
        const Fiber *threads = &fibers[rank * block_stride];
        for (int first = 0, last; first < block_stride; first = last + 1) {
            const Barrier *barrier = threads[first].waiting;
            last = first;
            if (threads[first].done || !barrier)
                continue;
            while (last + 1 < block_stride && !threads[last + 1].done && threads[last + 1].waiting == barrier)
                last++;
            fprintf(stderr, "    threads %d .. %d at %s %d: %d of %d have come, %lld bytes have not, %d times complete before\n",
                    first, last, barrier->what, barrier->number, barrier->arrived, barrier->participants, (long long)barrier->bytes,
                    barrier->generation);
        }
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

/* Runs `count` blocks of `threads` fibers each to their end, from rubbish in shared memory. block_index is that of the first. */
inline void run_cluster(int count, int threads, Order in_order, void (*kernel)())
{
    constexpr int WARPGROUP = 4 * WARP;
    body = kernel;
    order = in_order;
    blocks = count;
    block_rank = block_first = 0;
    block_stride = count == 1 ? threads : (threads + WARPGROUP - 1) / WARPGROUP * WARPGROUP;
    named = all_named[0];
    memset(shared, 0xff, shared_bytes);
    for (int rank = 1; rank < blocks; rank++)
        put_away[rank].assign(shared_bytes, 0xff);
    put_away[0].resize(shared_bytes);
    fibers.resize(blocks * block_stride);
    warps.resize(fibers.size() / WARP);
    for (size_t warp = 0; warp < warps.size(); warp++)
        warps[warp] = Barrier{0, 0, WARP, "an instruction or barrier of warp", (int)warp % (block_stride / WARP), 0};
    for (Barrier(&of_block)[MOST_NAMED] : all_named) {
        for (int id = 1; id < MOST_NAMED; id++)
            of_block[id] = Barrier{0, 0, 0, "named barrier", id, 0};
        of_block[0] = Barrier{0, 0, threads, "__syncthreads, barrier", 0, 0};
    }
    cluster = Barrier{0, 0, blocks * threads, "cluster_wait, barrier", 0, 0};
    slots[0].assign(fibers.size(), 0);
    slots[1].assign(fibers.size(), 0);
    for (size_t index = 0; index < fibers.size(); index++) {
        Fiber &fiber = fibers[index];
        fiber.started = fiber.held = false;
        fiber.done = (int)index % block_stride >= threads;
        fiber.waiting = nullptr;
        fiber.exchanges = 0;
        fiber.arrived = -1;
        fiber.stack.resize(STACK);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, enter, 0);
    }
    for (void (*event)() : at_begin_of_block())
        event();
    while (run_blocks() || let_go() || let_arrive())
        ;
    for (const Fiber &fiber : fibers)
        if (!fiber.done) {
            report_waiting();
            _exit(1);
        }
    for (void (*event)() : at_end_of_block())
        event();
    enter_block(0);
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

/* The bytes at a shared address of block `rank`, which has to be a multiple of `align`. */
inline unsigned char *shared_of(int rank, uint32_t address, uint32_t bytes, uint32_t align)
{
    if (address < SHARED_BASE || address - SHARED_BASE + bytes > shared_bytes)
        stop("%u bytes at shared address %u, of %u from %u on", bytes, address, shared_bytes, SHARED_BASE);
    if (address % align)
        stop("shared address %u is not a multiple of %u", address, align);
    return memory_of(rank) + (address - SHARED_BASE);
}

inline unsigned char *shared_at(uint32_t address, uint32_t bytes, uint32_t align)
{
    return shared_of(block_rank, address, bytes, align);
}

/*
 * Threads write by the generic proxy; bulk copies and wgmma read by the asynchronous one, which may not see what was written before
 * the writer's own proxy_fence. Words that were written by a wrapper and not fenced yet have a writer here. (Writes through plain
 * pointers are not known.)
 */
inline bool proxies_matter; /* the kernel uses the asynchronous proxy */
inline std::vector<uint16_t> writers[MOST_BLOCKS];
inline std::vector<uint32_t> unfenced[MOST_THREADS];

inline void written(uint32_t address, int bytes, int thread)
{
    for (int word = 0; proxies_matter && word < bytes / 4; word++) {
        uint32_t at = (address - SHARED_BASE) / 4 + word;
        writers[block_rank][at] = (uint16_t)(thread - block_first + 1);
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
    for (size_t thread = 0; thread < fibers.size(); thread++)
        copies[thread].clear();
}
inline const bool copies_are_forgotten = (at_end_of_block().push_back(forget_copies), true);
} // namespace emulation

/* ---- words of CUDA C ---- */

inline emulation::Place &blockIdx = emulation::block_index, gridDim;
struct ThreadIndex {
    struct X {
        operator unsigned() const { return (unsigned)(emulation::current - emulation::block_first); }
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

/* Products that are rounded, and not the first half of a fused multiply-add, as nvcc makes of others. */
__attribute__((noinline)) inline float __fmul_rn(float a, float b)
{
    return a * b;
}

inline void __syncthreads()
{
    emulation::arrive(emulation::named[0]);
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

inline uint32_t __shfl_xor_sync(unsigned, uint32_t value, int step)
{
    return emulation::exchange(value, (emulation::current % emulation::WARP) ^ step);
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

inline int __clz(int value)
{
    return value ? __builtin_clz((unsigned)value) : 32;
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

// Threads run one at a time here, and see what others wrote.
inline void __threadfence_block() {}

#endif
