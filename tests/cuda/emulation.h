/*
 * emulation.h - enough of CUDA C on the CPU to run a kernel that uses little of it: one block at a time, every thread a fiber that
 * gives way at barriers and shuffles. What a GPU would do at the same time is done here in a chosen order, so that a missing
 * barrier shows as bits that depend on the order. PTX is not understood: the test puts C in its place.
 */
#ifndef EMULATION_H
#define EMULATION_H

#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <math.h>
#include <ucontext.h>
#include <vector>

#define __CUDACC__ 1
#define __global__
#define __device__
#define __constant__
#define __shared__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes)

using std::max;
using std::min;

namespace emulation
{
constexpr int STACK = 64 * 1024, WARP = 32;

struct Place {
    unsigned x, y, z;
};

struct Barrier {
    int arrived, generation, participants;
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
inline Barrier block;
inline std::vector<uint32_t> slots[2]; /* values under exchange; two sets, so that one barrier an exchange is enough */
inline int current;
inline void (*body)();

inline void arrive(Barrier &barrier)
{
    Fiber &self = fibers[current];
    if (++barrier.arrived == barrier.participants) {
        barrier.arrived = 0;
        barrier.generation++;
        return;
    }
    self.waiting = &barrier;
    self.generation = barrier.generation;
    if (!_setjmp(self.state))
        _longjmp(scheduler, 1);
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

/* Runs `threads` fibers to their end: side by side, or each warp as far as it gets, the last one first. */
inline void run_block(int threads, bool side_by_side, void (*kernel)())
{
    body = kernel;
    fibers.resize(threads);
    warps.assign(threads / WARP, Barrier{0, 0, WARP});
    block = Barrier{0, 0, threads};
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
    for (bool progress = true; progress;) {
        progress = side_by_side && run_some(0, threads);
        for (int warp = threads / WARP - 1; !side_by_side && warp >= 0; warp--)
            while (run_some(warp * WARP, (warp + 1) * WARP))
                progress = true;
    }
    for (const Fiber &fiber : fibers)
        if (!fiber.done) {
            fprintf(stderr, "emulation: a thread waits at a barrier that the others do not come to\n");
            abort();
        }
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
} // namespace emulation

inline emulation::Place blockIdx, gridDim;
struct ThreadIndex {
    struct X {
        operator unsigned() const { return (unsigned)emulation::current; }
    } x;
};
inline ThreadIndex threadIdx;

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

inline float __fdividef(float a, float b)
{
    return a / b;
}

inline void __syncthreads()
{
    emulation::arrive(emulation::block);
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

#endif
