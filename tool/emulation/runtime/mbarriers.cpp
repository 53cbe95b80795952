/*
 * mbarriers.cpp - barriers in shared memory. A phase is complete when all arrivals and all bytes that were announced have come. What
 * arrived threads did happens before what waits for the phase; so do the copies that completed in it.
 */
#include "emulator.h"

namespace emulation
{
static std::map<uint32_t, MemoryBarrier> barriers[MOST_BLOCKS];
static int made[MOST_BLOCKS];
constexpr int64_t MOST_BYTES = (1 << 20) - 1;
constexpr uint64_t MARK = 0xba881e4ba881e4ff;

void barriers_reset()
{
    for (int rank = 0; rank < MOST_BLOCKS; rank++) {
        barriers[rank].clear();
        made[rank] = 0;
    }
}

static std::string here()
{
    return thread_text(current) + site_text(Site{self().site});
}

static MemoryBarrier &find(const Place &place, const char *what)
{
    auto found = barriers[place.rank].find(place.offset);
    if (found == barriers[place.rank].end())
        stop("%s at shared address %u, where no mbarrier was made (%s)", what, address_of(place), here().c_str());
    return found->second;
}

MemoryBarrier &memory_barrier(uint32_t address, const char *what)
{
    const Place place = shared_place(address, 8, 8, what);
    MemoryBarrier &barrier = find(place, what);
    if (place.rank != rank_of(current) && cluster.generation <= barrier.made_at)
        stop("%s at the mbarrier at shared address %u of block %d of the cluster, before a barrier of the cluster says that it is "
             "there (%s)",
             what, address_of(place), place.rank, here().c_str());
    if (barrier.made > self().clock.known[(size_t)barrier.maker] && place.rank == rank_of(current))
        stop("%s at the mbarrier at shared address %u, which %s made without a barrier between them (%s)", what, address_of(place),
             thread_text(barrier.maker).c_str(), here().c_str());
    return barrier;
}

void memory_barrier_init(uint32_t address, int arrivals)
{
    const Place place = shared_place(address, 8, 8, "mbarrier.init");
    const int rank = place.rank;
    if (rank != rank_of(current))
        stop("mbarrier.init in another block of the cluster (%s)", here().c_str());
    auto found = barriers[rank].find(place.offset);
    if (found != barriers[rank].end())
        stop("mbarrier.init at shared address %u, where an mbarrier is already (%s)", address_of(place), here().c_str());
    if (arrivals < 1 || arrivals > (int)MOST_BYTES)
        stop("an mbarrier of %d arrivals (%s)", arrivals, here().c_str());
    if (made[rank] == MOST_BARRIERS)
        stop("more than %d mbarriers in a block (%s)", MOST_BARRIERS, here().c_str());
    Access access = asm_access(true, "mbarrier.init");
    shared_access(rank, place.offset, 8, access);
    memcpy(shared_bytes_of(place), &MARK, 8);
    MemoryBarrier barrier = {};
    barrier.barrier.participants = arrivals;
    barrier.barrier.what = "the mbarrier at shared address";
    barrier.barrier.number = address_of(place);
    barrier.barrier.pending.clear();
    barrier.barrier.done.clear();
    barrier.index = agents.barriers + rank * MOST_BARRIERS + made[rank]++;
    barrier.maker = current;
    barrier.made = access.time;
    barrier.made_at = cluster.generation + (self().cluster_arrived >= 0);
    barriers[rank].emplace(place.offset, barrier);
    shared_mark_barrier(rank, place.offset, true);
}

void memory_barrier_invalidate(uint32_t address)
{
    const Place place = shared_place(address, 8, 8, "mbarrier.inval");
    find(place, "mbarrier.inval");
    barriers[place.rank].erase(place.offset);
    shared_mark_barrier(place.rank, place.offset, false);
}

void memory_barriers_known()
{
    for (auto &entry : barriers[rank_of(current)])
        entry.second.known = entry.second.known || entry.second.maker == current;
}

static bool look(MemoryBarrier &barrier)
{
    if (barrier.bytes > MOST_BYTES || barrier.bytes < -MOST_BYTES)
        stop("%lld bytes are awaited at the mbarrier at shared address %u", (long long)barrier.bytes, barrier.barrier.number);
    if (barrier.barrier.arrived < barrier.barrier.participants || barrier.bytes != 0)
        return false;
    barrier.barrier.arrived = 0;
    barrier.barrier.generation++;
    Clock &done = barrier.barrier.done;
    done.join(barrier.barrier.pending);
    done.known[(size_t)barrier.index] = barrier.barrier.generation;
    return true;
}

void memory_barrier_arrive(uint32_t address, int count, int64_t bytes, bool arrives, const char *what)
{
    MemoryBarrier &barrier = memory_barrier(address, what);
    if (arrives && barrier.barrier.arrived + count > barrier.barrier.participants)
        stop("more than %d arrivals at the mbarrier at shared address %u in one phase (%s)", barrier.barrier.participants,
             barrier.barrier.number, here().c_str());
    barrier.bytes += bytes;
    if (arrives) {
        barrier.barrier.arrived += count;
        release(barrier.barrier.pending);
    }
    if (look(barrier))
        hold_back();
}

/* Bytes of a copy that was begun in phase `phase` have come. */
void memory_barrier_complete(int rank, uint32_t offset, int64_t bytes, uint32_t phase)
{
    auto found = barriers[rank].find(offset);
    if (found == barriers[rank].end() || has_ended(rank))
        stop("a copy completes on the mbarrier at shared address %u, which is not there any more", SHARED_BASE + offset);
    MemoryBarrier &barrier = found->second;
    if (barrier.barrier.generation != phase)
        stop("a copy of %lld bytes completes on the mbarrier at shared address %u after the phase that it was begun in has ended: "
             "the "
             "phase announced fewer bytes than were copied",
             (long long)bytes, SHARED_BASE + offset);
    barrier.bytes -= bytes;
    look(barrier);
}

static void passed(MemoryBarrier &barrier)
{
    acquire(barrier.barrier.done);
}

bool memory_barrier_test(uint32_t address, uint32_t parity)
{
    MemoryBarrier &barrier = memory_barrier(address, "a wait");
    if ((barrier.barrier.generation & 1) == (parity & 1))
        return false;
    passed(barrier);
    return true;
}

void memory_barrier_wait(uint32_t address, uint32_t parity)
{
    MemoryBarrier &barrier = memory_barrier(address, "a wait");
    while ((barrier.barrier.generation & 1) == (parity & 1))
        sleep_on(barrier.barrier, "for the mbarrier at shared address");
    passed(barrier);
}
} // namespace emulation
