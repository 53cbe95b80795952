/*
 * emulator.h - the emulated device from the inside. One cluster of blocks runs at a time; every thread of it is a fiber that gives
 * way at barriers and at what a warp does together, in an order that the launch chooses (scheduler.cpp). What a GPU does in the
 * background is done as late or as early as it may be. Every access to shared and global memory goes through clocks.cpp and
 * memory.cpp, which say whether it is ordered behind what it depends on.
 */
#ifndef EMULATED_EMULATOR_H
#define EMULATED_EMULATOR_H

#include "../device/emulated_device.h"

#undef memcpy
#undef memmove
#undef memset

#include <csetjmp>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace emulation
{
constexpr size_t STACK_BYTES = 128 * 1024;                                                   /* of a thread */
constexpr int WARP = 32, GROUP = 128, MOST_NAMED = 16, MOST_BLOCKS = 16, MOST_BARRIERS = 96; /* of a cluster, of a block */
constexpr uint32_t SHARED_BASE = 1024, SHARED_MOST = 232448; /* the first kilobyte of shared memory is the hardware's */
constexpr uint32_t BLOCK_SHIFT = 24;                         /* a shared::cluster address has the block's rank + 1 above this bit */

/* ---- clocks.cpp: what happens before what ---- */

/* A clock is a number for each agent: a thread, what a thread or a warp has under way, a barrier that copies complete on. What an
 * agent did at time t has happened before whatever has a clock with at least t in the agent's place. */
typedef uint32_t Time;
struct Clock {
    std::vector<Time> known;  /* ordered behind */
    std::vector<Time> fenced; /* and behind a proxy fence */
    void join(const Clock &other);
    void clear();
};
struct Agents { /* where each kind begins in a clock; a thread's loads have a time of their own */
    int threads, copies, stores, warps, products, barriers, atomics, grid, loads,
        count; /* grid: the one before, 1 once it was waited for */
};
extern Agents agents;
extern bool proxies; /* the image uses the asynchronous proxy */

struct Site { /* of an access in the program: behind a call in the image */
    const void *address;
};

struct Access {
    Time time;
    int agent, thread;
    const Clock *clock; /* of the one who begins it */
    bool write, async, atomic;
    Site site;
    const char *what; /* "a plain store", "a bulk load" ... */
};

/* Checks and notes an access to bytes of shared memory of block `rank`. */
void shared_access(int rank, uint32_t offset, uint32_t bytes, const Access &access);
void shared_reset(int blocks, uint32_t bytes);
void shared_mark_barrier(int rank, uint32_t offset, bool set); /* plain accesses to it are hazards */

/* Prints a note, "torn: ...", that says why a result may be wrong: once for each pair of places in the program. */
void note_torn(const Site &site, const Site &other, const std::string &why);

/* ---- memory.cpp ---- */

/* A group of products of a warp which read what another access, from `other`, wrote without an order between them. */
struct Torn {
    int warp; /* -1: none */
    Time group;
    Site other;
};

/* Two threads store to the same bytes without an order between them, which is a race unless they store the same; or one stores over what
 * a product reads, which has no result then unless they are the same: settled when the store has been done. */
void doubt_add(const void *at, uint32_t bytes, const std::string &text, const Torn &product = {-1, 0, {}});
void doubt_settle_all();
extern bool in_doubt;
inline void doubt_settle()
{
    if (in_doubt)
        doubt_settle_all();
}

void global_access(uint64_t address, uint32_t bytes, const Access &access); /* stops if it is nobody's memory */
bool is_global(uint64_t address, uint64_t bytes);
uint64_t memory_allocate(size_t bytes);
bool memory_free(uint64_t address);
bool memory_mark(uint64_t address, size_t bytes, bool valid); /* false: outside of every allocation */
void memory_tensor(uint64_t address, size_t bytes, bool output, bool first);
void memory_next_launch(bool early);
struct Memory {
    uint64_t accesses; /* that were checked */
};
extern Memory memory;

/* ---- scheduler.cpp ---- */

struct Barrier { /* threads wait until `generation` changes */
    int arrived, participants;
    uint32_t generation;
    const char *what;
    uint32_t number;
    Clock pending, done; /* of those who have arrived */
};

struct MemoryBarrier { /* an mbarrier; generation: phases that are complete */
    Barrier barrier;
    int64_t bytes; /* that are awaited */
    bool known;    /* to the asynchronous proxy */
    int index;     /* among the agents */
    int maker;
    Time made;
    uint32_t made_at; /* generation of the cluster's barrier */
};

struct Collective { /* lanes of a warp that do something together */
    uint32_t mask, arrived, generation;
    uint64_t value[2][WARP]; /* of this round and the one before, which some lanes may still read */
    void *pointer[WARP];
};

struct Fiber {
    jmp_buf state;
    char *stack;
    bool started, done, held;
    const uint32_t *waiting; /* a generation */
    uint32_t generation;
    const Barrier *at; /* for who waits in vain */
    const char *doing;
    Clock clock;
    int64_t cluster_arrived; /* generation of the cluster's barrier that it has arrived at and not waited for, or -1 */
    Clock acquired;          /* by atomic reads, until a fence */
    Clock released;          /* at the last fence */
    uint32_t spins;
    const void *site; /* behind the call of the asm statement that it executes */
    /* cp.async and bulk stores: groups that are closed */
    Time copies_closed, stores_closed;
    struct Copy {
        Time group;
        uint32_t to;
        const void *from;
        int size, bytes;
        Access access;
    };
    std::deque<Copy> copies;
    struct Store {
        Time group;
        std::function<void()> finish;
    };
    std::deque<Store> stores;
};

enum Order { LAST_FIRST, SIDE_BY_SIDE, FIRST_FIRST, SHUFFLED };
struct Schedule {
    Order order;
    bool early;
    const char *name;
    int number;
};
extern Schedule schedule;
extern std::vector<Fiber> fibers;
extern int current, blocks, block_rank, block_stride, block_threads;
extern Barrier cluster;
extern uint32_t shared_bytes; /* static and dynamic */
extern bool stopped;
extern uint64_t random_state;
uint32_t random_number();
extern std::deque<std::function<void()>> arriving; /* copies under way that complete on an mbarrier */

struct Image {
    void *library;
    uint32_t static_bytes; /* room for variables in shared memory, before the dynamic part */
    uint32_t features, cluster;
    const unsigned char *begin, *end; /* of its code and data */
    char path[512];
};
enum Features { USES_COPIES = 1, USES_STORES = 2, USES_ASYNC = 4, USES_PRODUCTS = 8, USES_BARRIERS = 16 };
extern const Image *image;

struct Launch {
    const Image *image;
    void (*kernel)(void **);
    void **parameters;
    unsigned grid[3], block[3], shared, cluster;
    bool early;
};
/* Runs a grid. False, with a sentence, if there was a hazard. */
bool launch_run(const Launch &launch, char *why, size_t size);

[[noreturn]] void stop(const char *format, ...) __attribute__((format(printf, 1, 2))); /* a hazard ends the launch */
[[noreturn]] void stop_unknown(const emulated_site &site, const char *what);           /* an instruction that is not emulated */
[[noreturn]] void stop_exhausted(const char *what);                                    /* this machine lacks memory for it */
std::string site_text(const Site &site);
std::string thread_text(int thread);

inline Fiber &self()
{
    return fibers[(size_t)current];
}
inline int rank_of(int thread)
{
    return thread / block_stride;
}
inline int warp_of(int thread)
{
    return thread / WARP;
}

void sleep_on(const Barrier &barrier, const char *doing);
void sleep_until(const uint32_t &generation, const char *doing);
void give_way();         /* others run first */
void hold_back();        /* behind an arrival: in some orders others now get as far as they can */
void release(Clock &to); /* what this thread did so far happens before what acquires `to` */
void acquire(const Clock &from);
void begin_epoch(int thread);         /* what it does from now on is not ordered before what knows of it so far */
void count_arrival(Barrier &barrier); /* of this thread; completes the barrier if it is the last */
Barrier &named_barrier(int id, int threads);
bool has_ended(int rank);
Time warp_tick(int warp);
Access plain_access(bool write, const void *address); /* of the running thread */
Access asm_access(bool write, const char *what);

/* Lanes of `mask` come together, each with a value and a pointer; the last one calls `operation`, if there is one, for all of them.
 * Returns the values of all lanes. */
typedef void (*Operation)(Collective &, int first_thread);
const uint64_t *collect(uint32_t mask, uint64_t value, void *pointer, Operation operation, const char *doing);

/* The bytes at a shared address; stops if they are not there. */
struct Place {
    int rank;
    uint32_t offset;
};
Place shared_place(uint32_t address, uint32_t bytes, uint32_t align, const char *what);
unsigned char *shared_bytes_of(const Place &place);
uint32_t address_of(const Place &place);

/* ---- mbarriers.cpp ---- */

void barriers_reset();
MemoryBarrier &memory_barrier(uint32_t address, const char *what); /* stops if there is none, or it may not be used yet */
void memory_barrier_init(uint32_t address, int arrivals);
void memory_barrier_invalidate(uint32_t address);
void memory_barrier_arrive(uint32_t address, int count, int64_t bytes, bool arrives, const char *what);
void memory_barrier_complete(int rank, uint32_t offset, int64_t bytes, uint32_t phase);
bool memory_barrier_test(uint32_t address, uint32_t parity);
void memory_barrier_wait(uint32_t address, uint32_t parity);
void memory_barriers_known(); /* barrier_init_fence */

/* ---- copies.cpp ---- */

void copies_reset();
void copies_check_end();
void copy_begin(uint32_t to, const void *from, int size, int bytes);
void copies_close();
void copies_wait(Time open, bool all);
void copies_arrive(uint32_t barrier, bool counts);
void bulk_load(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier, uint32_t mask);
void bulk_store(void *to, uint32_t from, uint32_t bytes);
void tensor_load(uint32_t to, const void *map, int rank, const int *first, uint32_t barrier, uint32_t mask);
void tensor_store(const void *map, int rank, const int *first, uint32_t from);
void tensor_prefetch(const void *map, int rank);
void send(uint32_t to, const void *data, uint32_t bytes, uint32_t barrier);
void stores_close();
void stores_wait(Time open);

/* ---- products.cpp ---- */

void products_reset(bool again);
void products_check_end();
/* Whether a copy or a store came, without an order, over what a wgmma had read that was waited for: had it been faster, the wgmma would
 * have no result. A kernel may multiply for nobody; so the cluster is run `again`, and these have none. */
bool products_in_doubt();
void matrices_move(uint32_t **registers, int count, bool transposed, uint32_t address, bool store);
void product_warp(float **c, const uint32_t *a, const uint32_t *b, bool bf16);
void product_fence();
void product_issue(float **c, int columns, bool bf16, bool transposed, bool accumulate, float scale_a, float scale_b,
                   const uint32_t *registers, uint64_t a, uint64_t b);
void product_commit();
void product_wait(int open);
/* What these products read is not what it should be: if they are still under way, their results are NaN from now on. (Kernels may begin
 * products for nobody, of whatever lies there; what counts is whether the result is used.) */
void product_torn(const Torn &product, const std::string &why);
extern uint32_t run_number, run_repeated; /* of clusters; the one that runs again, or 0 */
extern bool global_atomics;               /* there were some in this run */

/* ---- approximate.cpp ---- */

/* A result that an instruction may give which is off by as much as the PTX ISA allows: `value` with an error of at most `units` in its
 * last place, which depends on the operands and the seed. What is not finite, or zero, is exact. */
float approximate(double value, float a, float b, int units);
extern uint64_t approximation_seed;

/* ---- ptx.cpp, instructions.cpp ---- */

struct Program;
const Program *program_of(const emulated_site *sites, int site);
void program_run(const Program &program, const emulated_site &site, emulated_operand *operands, int count);
} // namespace emulation

#endif
