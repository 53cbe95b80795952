/*
 * scheduler.cpp - threads as fibers, the barriers of CUDA C, what a warp does together, and launches.
 */
#include "emulator.h"

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <new>
#include <set>
#include <sys/mman.h>

emulated_position emulated_here;

namespace emulation
{
constexpr size_t WINDOW = SHARED_MOST + 65536;
constexpr uint64_t MOST_SPINS = 400000;

alignas(1024) unsigned char window[WINDOW]; /* shared memory of the block that runs */
Schedule schedule;
std::vector<Fiber> fibers;
int current, blocks, block_rank, block_stride, block_threads;
Barrier cluster;
uint32_t shared_bytes;
bool stopped;
uint64_t random_state = 88172645463325252u;
std::deque<std::function<void()>> arriving;
const Image *image;
extern bool running;
extern uintptr_t stack_begin;
void atomics_reset();

static std::vector<unsigned char> put_away[MOST_BLOCKS];
static Barrier named[MOST_BLOCKS][MOST_NAMED];
static std::vector<std::deque<Collective>> warps;
static std::vector<Time> warp_times;
static jmp_buf scheduler;
static bool in_fiber;
static char stop_text[1500];
static emulated_index first_block;
static const Launch *launch;
static uint64_t spins;
struct Stopped {
};

uint32_t random_number()
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}

/* ---- hazards ---- */

std::string site_text(const Site &site)
{
    char text[64];
    if (!site.address || !image)
        return "";
    snprintf(text, sizeof text, " @{%lx}", (unsigned long)((const unsigned char *)site.address - image->begin) - 1);
    return text;
}

std::string thread_text(int thread)
{
    char text[96];
    const int rank = rank_of(thread);
    snprintf(text, sizeof text, "block %u %u %u, thread %d", first_block.x + (unsigned)rank, first_block.y, first_block.z,
             thread % block_stride);
    return text;
}

[[noreturn]] static void stop_now()
{
    stopped = true;
    if (in_fiber)
        _longjmp(scheduler, 1);
    throw Stopped();
}

void stop(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(stop_text, sizeof stop_text, format, list);
    va_end(list);
    stop_now();
}

void stop_unknown(const emulated_site &site, const char *what)
{
    snprintf(stop_text, sizeof stop_text, "UNKNOWN %s:%d: %s", site.file, site.line, what);
    stop_now();
}

void stop_exhausted(const char *what)
{
    snprintf(stop_text, sizeof stop_text, "EXHAUSTED there is not enough memory for %s of %zu threads", what, fibers.size());
    stop_now();
}

void note_torn(const Site &site, const Site &other, const std::string &why)
{
    constexpr size_t MOST = 24;
    static std::set<std::pair<const void *, const void *>> noted;
    if (noted.size() < MOST && noted.insert({site.address, other.address}).second)
        fprintf(stderr, "torn: %s [%s]\n", why.c_str(), image->path);
}

/* ---- giving way ---- */

void sleep_until(const uint32_t &generation, const char *doing)
{
    doubt_settle();
    Fiber &fiber = self();
    fiber.waiting = &generation;
    fiber.generation = generation;
    fiber.doing = doing;
    if (!_setjmp(fiber.state))
        _longjmp(scheduler, 1);
}

void sleep_on(const Barrier &barrier, const char *doing)
{
    self().at = &barrier;
    sleep_until(barrier.generation, doing);
    self().at = nullptr;
}

void give_way()
{
    Fiber &fiber = self();
    if (++spins > MOST_SPINS)
        stop("threads wait in a loop for what does not come; one of them is %s%s", thread_text(current).c_str(),
             site_text(Site{fiber.site}).c_str());
    fiber.held = true;
    if (!_setjmp(fiber.state))
        _longjmp(scheduler, 1);
}

void hold_back()
{
    Fiber &fiber = self();
    spins = 0;
    if (schedule.order == SHUFFLED ? random_number() % 2 : schedule.order != LAST_FIRST)
        return;
    fiber.held = true;
    if (!_setjmp(fiber.state))
        _longjmp(scheduler, 1);
}

/* ---- clocks ---- */

void release(Clock &to)
{
    Fiber &fiber = self();
    to.join(fiber.clock);
    begin_epoch(current);
}

void begin_epoch(int thread)
{
    std::vector<Time> &known = fibers[(size_t)thread].clock.known;
    known[(size_t)thread]++;
    known[(size_t)(agents.loads + thread)]++;
}

/* The lanes of a warp execute an instruction together, which none begins before the loads in front of it are done. (Stores need
 * __syncwarp.) */
static void order_loads(int first)
{
    Time times[WARP];
    const size_t at = (size_t)(agents.loads + first);
    for (int lane = 0; lane < WARP; lane++)
        times[lane] = fibers[(size_t)(first + lane)].clock.known[at + (size_t)lane];
    for (int lane = 0; lane < WARP; lane++) {
        Time *known = &fibers[(size_t)(first + lane)].clock.known[at];
        memcpy(known, times, sizeof times);
        known[lane]++;
    }
}

void acquire(const Clock &from)
{
    self().clock.join(from);
}

Access plain_access(bool write, const void *address)
{
    Fiber &fiber = self();
    const int agent = write ? current : agents.loads + current;
    return Access{fiber.clock.known[(size_t)agent], agent, current, &fiber.clock, write, false, false, Site{address},
                  write ? "a store" : "a load"};
}

Access asm_access(bool write, const char *what)
{
    Access access = plain_access(write, self().site);
    access.what = what;
    return access;
}

/* ---- barriers of threads ---- */

static void complete(Barrier &barrier)
{
    barrier.arrived = 0;
    barrier.generation++;
    barrier.done = barrier.pending;
    spins = 0;
}

void count_arrival(Barrier &barrier)
{
    release(barrier.pending);
    if (++barrier.arrived == barrier.participants)
        complete(barrier);
}

static void sync_on(Barrier &barrier, const char *doing)
{
    const uint32_t generation = barrier.generation;
    count_arrival(barrier);
    if (barrier.generation == generation)
        sleep_on(barrier, doing);
    acquire(barrier.done);
}

Barrier &named_barrier(int id, int threads)
{
    if (id < 0 || id >= MOST_NAMED || threads % WARP || threads > block_threads || threads < 0)
        stop("there is no barrier %d of %d threads in a block of %d (%s%s)", id, threads, block_threads,
             thread_text(current).c_str(), site_text(Site{self().site}).c_str());
    Barrier &barrier = named[rank_of(current)][id];
    if (!threads)
        return barrier;
    if (barrier.arrived && barrier.participants != threads)
        stop("barrier %d of %d threads is under way, and a thread comes to it with %d (%s%s)", id, barrier.participants, threads,
             thread_text(current).c_str(), site_text(Site{self().site}).c_str());
    barrier.participants = threads;
    return barrier;
}

/* ---- warps ---- */

const uint64_t *collect(uint32_t mask, uint64_t value, void *pointer, Operation operation, const char *doing)
{
    doubt_settle();
    const int lane = current % WARP;
    std::deque<Collective> &all = warps[(size_t)warp_of(current)];
    Collective *found = nullptr;
    for (Collective &one : all)
        if (one.mask == mask)
            found = &one;
    if (!found) {
        all.push_back(Collective{});
        found = &all.back();
        found->mask = mask;
    }
    if (!(mask >> lane & 1))
        stop("a lane that is not in the mask 0x%x executes %s (%s%s)", mask, doing, thread_text(current).c_str(),
             site_text(Site{self().site}).c_str());
    const uint32_t generation = found->generation;
    uint64_t *values = found->value[generation & 1];
    values[lane] = value;
    found->pointer[lane] = pointer;
    found->arrived |= 1u << lane;
    if (found->arrived == mask) {
        if (mask == 0xffffffffu)
            order_loads(current / WARP * WARP);
        if (operation)
            operation(*found, current / WARP * WARP);
        found->arrived = 0;
        found->generation++;
        spins = 0;
    } else
        sleep_until(found->generation, doing);
    return values;
}

/* Behind __syncwarp all lanes know what each of them did before. */
static void join_lanes(Collective &all, int first)
{
    static Clock joined;
    joined.clear();
    for (int lane = 0; lane < WARP; lane++)
        if (all.mask >> lane & 1)
            joined.join(fibers[(size_t)(first + lane)].clock);
    for (int lane = 0; lane < WARP; lane++)
        if (all.mask >> lane & 1) {
            Clock &clock = fibers[(size_t)(first + lane)].clock;
            clock = joined;
            begin_epoch(first + lane);
        }
}

/* ---- fibers ---- */

static void leave_barriers(int thread)
{
    Fiber &fiber = fibers[(size_t)thread];
    Barrier &block = named[rank_of(thread)][0];
    cluster.participants--;
    if (fiber.cluster_arrived == (int64_t)cluster.generation)
        cluster.arrived--;
    if (cluster.arrived && cluster.arrived == cluster.participants)
        complete(cluster);
    block.participants--;
    if (block.arrived && block.arrived == block.participants)
        complete(block);
    spins = 0;
}

static void set_here(int thread)
{
    const unsigned *size = launch->block, index = (unsigned)(thread % block_stride);
    emulated_here.thread.x = index;
    if (size[1] * size[2] > 1)
        emulated_here.thread = {index % size[0], index / size[0] % size[1], index / size[0] / size[1]};
    emulated_here.block = {first_block.x + (unsigned)rank_of(thread), first_block.y, first_block.z};
}

static void enter()
{
    launch->kernel(launch->parameters);
    doubt_settle();
    Fiber &fiber = self();
    fiber.done = true;
    leave_barriers(current);
    _longjmp(scheduler, 1);
}

/* Calls enter() on another stack, and does not come back. (setcontext would do, but it sets the mask of signals, which a sandbox
 * does not allow.) */
[[noreturn]] static void start_on(char *top)
{
#if defined(__x86_64__)
    __asm__ volatile("movq %0, %%rsp\n\txorl %%ebp, %%ebp\n\tcall *%1" ::"r"(top - 64), "r"((void (*)())enter) : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov sp, %0\n\tmov x29, xzr\n\tblr %1" ::"r"(top - 64), "r"((void (*)())enter) : "memory");
#else
#error "the emulated device needs to know how this processor changes stacks"
#endif
    __builtin_unreachable();
}

static bool runnable(const Fiber &fiber)
{
    return !fiber.done && !fiber.held && (!fiber.waiting || *fiber.waiting != fiber.generation);
}

static void resume(int index)
{
    Fiber &fiber = fibers[(size_t)index];
    current = index;
    stack_begin = (uintptr_t)fiber.stack;
    set_here(index);
    fiber.waiting = nullptr;
    in_fiber = true;
    if (_setjmp(scheduler)) {
        in_fiber = false;
        return;
    }
    if (fiber.started)
        _longjmp(fiber.state, 1);
    fiber.started = true;
    start_on(fiber.stack + STACK_BYTES);
}

bool has_ended(int rank)
{
    for (int index = rank * block_stride; index < (rank + 1) * block_stride; index++)
        if (!fibers[(size_t)index].done)
            return false;
    return true;
}

static void enter_block(int rank)
{
    if (rank == block_rank)
        return;
    memcpy(put_away[block_rank].data(), window, shared_bytes);
    memcpy(window, put_away[rank].data(), shared_bytes);
    block_rank = rank;
}

unsigned char *shared_bytes_of(const Place &place)
{
    return (place.rank == block_rank ? window : put_away[place.rank].data()) + place.offset;
}

static bool run_some(int first, int last)
{
    volatile bool progress = false;
    for (volatile int index = first; index < last && !stopped; index = index + 1)
        if (runnable(fibers[(size_t)index])) {
            resume(index);
            progress = true;
        }
    return progress;
}

/* The threads of the block that runs, as far as they get. */
static bool run_threads()
{
    volatile bool progress = false;
    const int first = block_rank * block_stride, count = block_stride / WARP;
    for (bool more = true; more && !stopped;) {
        more = false;
        if (schedule.order == SIDE_BY_SIDE)
            more = run_some(first, first + block_stride);
        for (int n = 0; schedule.order != SIDE_BY_SIDE && n < count && !stopped; n++) {
            int warp = schedule.order == FIRST_FIRST  ? n
                       : schedule.order == LAST_FIRST ? count - 1 - n
                                                      : (int)(random_number() % (uint32_t)count);
            if (schedule.order == SHUFFLED)
                more = run_some(first + warp * WARP, first + warp * WARP + WARP) || more;
            else
                while (run_some(first + warp * WARP, first + warp * WARP + WARP))
                    more = true;
        }
        if (schedule.order == SHUFFLED && !more) /* none of those that were drawn: look at all */
            more = run_some(first, first + block_stride);
        progress = progress || more;
    }
    return progress;
}

static bool run_blocks()
{
    bool progress = false;
    for (int n = 0; n < blocks && !stopped; n++) {
        int rank = schedule.order == LAST_FIRST ? blocks - 1 - n : n;
        auto first = fibers.begin() + rank * block_stride;
        if (!std::any_of(first, first + block_stride, runnable))
            continue;
        enter_block(rank);
        progress = run_threads() || progress;
    }
    return progress;
}

static bool let_go()
{
    bool any = false;
    for (Fiber &fiber : fibers) {
        any = any || fiber.held;
        fiber.held = false;
    }
    return any;
}

/* Something that is under way comes to its end: what was begun first, or last, or any. */
static bool let_arrive()
{
    if (arriving.empty())
        return false;
    size_t index = schedule.order == LAST_FIRST ? arriving.size() - 1
                   : schedule.order == SHUFFLED ? random_number() % arriving.size()
                                                : 0;
    std::function<void()> event = arriving[index];
    arriving.erase(arriving.begin() + (long)index);
    spins = 0;
    event();
    return true;
}

/* Whether threads have asked in a loop often enough for what only a copy under way can bring. */
static bool patience_ends()
{
    return spins > 2 * fibers.size();
}

[[noreturn]] static void stop_waiting()
{
    std::string text;
    int groups = 0;
    for (int first = 0, last; first < (int)fibers.size(); first = last + 1) {
        const Fiber &fiber = fibers[(size_t)first];
        last = first;
        if (fiber.done)
            continue;
        while (last + 1 < (int)fibers.size() && rank_of(last + 1) == rank_of(first) && !fibers[(size_t)last + 1].done &&
               fibers[(size_t)last + 1].at == fiber.at && fibers[(size_t)last + 1].doing == fiber.doing)
            last++;
        if (++groups > 3)
            continue;
        char line[320];
        int used =
            snprintf(line, sizeof line, "%sthreads %d to %d of block %u wait %s", groups > 1 ? "; " : "", first % block_stride,
                     last % block_stride, first_block.x + (unsigned)rank_of(first), fiber.doing ? fiber.doing : "");
        if (fiber.at)
            snprintf(line + used, sizeof line - (size_t)used, " %u%s (%d of %d have come, %u times complete)", fiber.at->number,
                     site_text(Site{fiber.site}).c_str(), fiber.at->arrived, fiber.at->participants, fiber.at->generation);
        else
            snprintf(line + used, sizeof line - (size_t)used, "%s", site_text(Site{fiber.site}).c_str());
        text += line;
    }
    stop("a deadlock: %s%s", text.c_str(), groups > 3 ? "; and others" : "");
}

static void set_up(int count, int threads)
{
    const size_t all = (size_t)(count * block_stride), warp_count = all / WARP;
    agents.threads = 0;
    agents.copies = (int)all;
    agents.stores = agents.copies + (image->features & USES_COPIES ? (int)all : 1);
    agents.warps = agents.stores + (image->features & USES_STORES ? (int)all : 1);
    agents.products = agents.warps + (int)warp_count;
    agents.barriers = agents.products + (int)warp_count;
    agents.atomics = agents.barriers + (image->features & USES_BARRIERS ? count * MOST_BARRIERS : 1);
    agents.grid = agents.atomics + 1;
    agents.loads = agents.grid + 1;
    agents.count = agents.loads + (int)all;
    proxies = image->features & USES_ASYNC;
    fibers.resize(all);
    warps.assign(warp_count, {});
    warp_times.assign(warp_count, 0);
    for (int rank = 0; rank < count; rank++)
        for (int id = 0; id < MOST_NAMED; id++) {
            named[rank][id] = Barrier{0, id ? 0 : threads, 0, "barrier", (uint32_t)id, {}, {}};
            named[rank][id].pending.clear();
            named[rank][id].done.clear();
        }
    cluster = Barrier{0, count * threads, 0, "the cluster's barrier", 0, {}, {}};
    cluster.pending.clear();
    cluster.done.clear();
    for (size_t index = 0; index < all; index++) {
        Fiber &fiber = fibers[index];
        if (!fiber.stack) {
            void *stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (stack == MAP_FAILED)
                stop_exhausted("the stacks");
            fiber.stack = (char *)stack;
        }
        fiber.started = fiber.held = false;
        fiber.done = (int)index % block_stride >= threads;
        fiber.waiting = nullptr;
        fiber.at = nullptr;
        fiber.doing = nullptr;
        fiber.site = nullptr;
        fiber.spins = 0;
        fiber.cluster_arrived = -1;
        fiber.clock.clear();
        fiber.clock.known[index] = fiber.clock.known[(size_t)agents.loads + index] = 1;
        fiber.acquired.known.clear();
        fiber.released.known.clear();
        fiber.copies_closed = fiber.stores_closed = 0;
        fiber.copies.clear();
        fiber.stores.clear();
    }
}

/* Runs one cluster to its end, from rubbish in shared memory. */
static void run_cluster(int count, int threads, bool again)
{
    blocks = count;
    block_rank = 0;
    block_threads = threads;
    block_stride = (threads + (count > 1 || image->features & USES_PRODUCTS ? GROUP : WARP) - 1);
    block_stride -= block_stride % (count > 1 || image->features & USES_PRODUCTS ? GROUP : WARP);
    run_repeated = again ? run_number : 0;
    run_number++;
    global_atomics = false;
    spins = 0;
    stopped = false;
    memset(window, 0xff, WINDOW);
    /* NaN, large numbers, zero, negative ones, anything: what is read and was not written shows in the bits of one of two orders. */
    const int rubbish[] = {0xff, 0x7b, 0x00, 0xfb, -1};
    for (int rank = 0; rank < count; rank++) {
        const int byte = rubbish[schedule.number];
        put_away[rank].resize(shared_bytes);
        for (unsigned char &one : put_away[rank])
            one = (unsigned char)(byte < 0 ? random_number() : (uint32_t)byte);
    }
    memcpy(window, put_away[0].data(), shared_bytes);
    arriving.clear();
    shared_reset(count, shared_bytes);
    atomics_reset();
    set_up(count, threads);
    barriers_reset();
    copies_reset();
    products_reset(again);
    running = true;
    while (!stopped && (run_blocks() || (!stopped && ((patience_ends() && let_arrive()) || let_go() || let_arrive()))))
        ;
    running = false;
    if (stopped)
        throw Stopped();
    for (const Fiber &fiber : fibers)
        if (!fiber.done)
            stop_waiting();
    copies_check_end();
    products_check_end();
    for (uint32_t at = shared_bytes; at < WINDOW; at++)
        if (count == 1 && window[at] != 0xff)
            stop("byte %u of shared memory was written, of which the block has %u", at, shared_bytes);
}

bool launch_run(const Launch &asked, char *why, size_t size)
{
    static const std::new_handler at_first = std::set_new_handler([] { stop_exhausted("the clocks"); });
    (void)at_first;
    launch = &asked;
    image = asked.image;
    shared_bytes = asked.shared + image->static_bytes;
    if (shared_bytes > WINDOW) {
        snprintf(why, size, "%u bytes of shared memory, of which a block has at most %u", shared_bytes, SHARED_MOST);
        return false;
    }
    const unsigned step = asked.cluster ? asked.cluster : 1;
    const int threads = (int)(asked.block[0] * asked.block[1] * asked.block[2]);
    const bool backwards = schedule.order == LAST_FIRST;
    const uint64_t count = (uint64_t)asked.grid[0] / step * asked.grid[1] * asked.grid[2];
    memory_next_launch(asked.early);
    emulated_here = {};
    emulated_here.block_size = {asked.block[0], asked.block[1], asked.block[2]};
    emulated_here.grid = {asked.grid[0], asked.grid[1], asked.grid[2]};
    constexpr int MOST_REPEATED = 4; /* clusters of a launch */
    int repeated = 0;
    try {
        for (uint64_t n = 0; n < count; n++) {
            uint64_t index = backwards ? count - 1 - n : n;
            const unsigned wide = asked.grid[0] / step;
            first_block = {(unsigned)(index % wide) * step, (unsigned)(index / wide % asked.grid[1]),
                           (unsigned)(index / wide / asked.grid[1])};
            const uint64_t random_before = random_state;
            run_cluster((int)step, threads, false);
            if (products_in_doubt() && !global_atomics && repeated < MOST_REPEATED) {
                repeated++;
                random_state = random_before;
                run_cluster((int)step, threads, true);
            }
        }
    } catch (const Stopped &) {
        running = false;
        if (strncmp(stop_text, "UNKNOWN ", 8) == 0 || strncmp(stop_text, "EXHAUSTED ", 10) == 0)
            snprintf(why, size, "%s", stop_text);
        else
            snprintf(why, size, "%s; %s, order '%s'", stop_text, thread_text(current).c_str(), schedule.name);
        return false;
    }
    return true;
}

/* ---- addresses ---- */

Place shared_place(uint32_t address, uint32_t bytes, uint32_t align, const char *what)
{
    uint32_t rank = address >> BLOCK_SHIFT, offset = address & ((1u << BLOCK_SHIFT) - 1);
    Place place = {rank ? (int)rank - 1 : rank_of(current), offset - SHARED_BASE};
    if (place.rank >= blocks)
        stop("%s at a shared address of block %d of a cluster of %d (%s%s)", what, place.rank, blocks, thread_text(current).c_str(),
             site_text(Site{self().site}).c_str());
    if (offset < SHARED_BASE || place.offset + bytes > shared_bytes)
        stop("%s of %u bytes at shared address %u, outside of the block's %u bytes from %u on (%s%s)", what, bytes, offset,
             shared_bytes, SHARED_BASE, thread_text(current).c_str(), site_text(Site{self().site}).c_str());
    if (align && offset % align)
        stop("a misaligned address: %s of %u bytes at shared address %u, which is not a multiple of %u (%s%s)", what, bytes, offset,
             align, thread_text(current).c_str(), site_text(Site{self().site}).c_str());
    if (rank && place.rank != rank_of(current) && has_ended(place.rank))
        stop("%s at shared memory of block %d of the cluster, which has ended (%s%s)", what, place.rank,
             thread_text(current).c_str(), site_text(Site{self().site}).c_str());
    return place;
}

uint32_t address_of(const Place &place)
{
    return SHARED_BASE + place.offset;
}

/* A warp has done something together: its lanes know, and whoever is behind one of them. */
Time warp_tick(int warp)
{
    Time time = ++warp_times[(size_t)warp];
    for (int lane = 0; lane < WARP; lane++)
        fibers[(size_t)(warp * WARP + lane)].clock.known[(size_t)(agents.warps + warp)] = time;
    return time;
}
} // namespace emulation

using namespace emulation;

extern "C" {
void emulated_barrier(void)
{
    self().site = __builtin_return_address(0);
    sync_on(named[rank_of(current)][0], "at __syncthreads, barrier");
}

int emulated_barrier_reduce(int value, int how)
{
    static int sums[2][MOST_BLOCKS], all[2][MOST_BLOCKS], counted[2][MOST_BLOCKS];
    self().site = __builtin_return_address(0);
    const int rank = rank_of(current), set = (int)(named[rank][0].generation & 1);
    if (!named[rank][0].arrived)
        sums[set][rank] = all[set][rank] = counted[set][rank] = 0;
    sums[set][rank] += value;
    counted[set][rank]++;
    sync_on(named[rank][0], "at __syncthreads, barrier");
    return how == '+' ? sums[set][rank] : how == '&' ? sums[set][rank] == counted[set][rank] : sums[set][rank] > 0;
}

void emulated_syncwarp(unsigned mask)
{
    self().site = __builtin_return_address(0);
    collect(mask, 0, nullptr, join_lanes, "at __syncwarp");
}

void emulated_exchange(unsigned mask, uint64_t value, uint64_t *all)
{
    self().site = __builtin_return_address(0);
    const uint64_t *values = collect(mask, value, nullptr, nullptr, "at a shuffle or vote of a warp");
    memcpy(all, values, WARP * sizeof *all);
}

uint32_t emulated_shared_address(const void *pointer)
{
    const unsigned char *at = (const unsigned char *)pointer;
    return at >= window && at <= window + WINDOW ? SHARED_BASE + (uint32_t)(at - window) : 0;
}

void *emulated_shared_pointer(uint32_t address)
{
    return window + ((address & ((1u << BLOCK_SHIFT) - 1)) - SHARED_BASE);
}

/* Variables in shared memory, if there are any, come before the dynamic part; the image says how much room they have. */
void *emulated_shared_at(unsigned offset)
{
    return window + offset;
}

unsigned emulated_place(unsigned *used, unsigned bytes, unsigned align)
{
    unsigned at = (*used + align - 1) / align * align;
    *used = at + bytes;
    return at;
}

/* Never the same twice. */
long long emulated_clock(void)
{
    static long long ticks;
    return ticks += (long long)(random_number() % 1000) + 1;
}

void emulated_give_way(void)
{
    give_way();
}

void emulated_trap(const char *why)
{
    stop("%s (%s%s)", why, thread_text(current).c_str(), site_text(Site{__builtin_return_address(0)}).c_str());
}
}
