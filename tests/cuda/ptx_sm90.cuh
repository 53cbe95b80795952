/*
 * ptx_sm90.cuh - what lib/cuda/kernels/ptx_sm90.cuh has, for the emulation: barriers in shared memory, bulk tensor copies and wgmma.
 *
 * All that is asynchronous is done as late as may be. A bulk load arrives when no thread can go on without it; until then its place
 * holds NaN. A bulk store is done when its thread waits for it. A wgmma is computed, by each warp for its own rows, when the warp
 * waits for it: until then its accumulators are NaN, and what it reads from shared memory is read no sooner.
 */
#ifndef EMULATED_PTX_SM90_CUH
#define EMULATED_PTX_SM90_CUH

#include "ptx.cuh"
#include "matrix.h"
#include "tensor_map.h"

namespace emulation
{
inline const bool proxies_are_watched = (proxies_matter = true);

inline void forget_writers()
{
    for (int rank = 0; rank < blocks; rank++)
        writers[rank].assign(SHARED_MOST / 4, 0);
    for (size_t thread = 0; thread < fibers.size(); thread++)
        unfenced[thread].clear();
}
inline const bool writers_are_forgotten = (at_begin_of_block().push_back(forget_writers), true);

/* Memory that the asynchronous proxy reads. */
inline const unsigned char *proxy_read(uint32_t address, uint32_t bytes, const char *who)
{
    const unsigned char *memory = shared_at(address, bytes, 1);
    const std::vector<uint16_t> &writer = writers[block_rank];
    for (uint32_t word = (address - SHARED_BASE) / 4; word < (address - SHARED_BASE + bytes + 3) / 4; word++)
        if (writer[word])
            stop("%s reads shared address %u, which thread %d wrote and did not proxy_fence", who, SHARED_BASE + word * 4,
                 writer[word] - 1);
    return memory;
}

/* Memory that it will write. */
inline void proxy_write(int rank, uint32_t address, uint32_t bytes)
{
    for (uint32_t word = (address - SHARED_BASE) / 4; word < (address - SHARED_BASE + bytes) / 4; word++)
        if (writers[rank][word])
            stop("a bulk load goes to shared address %u of block %d of the cluster, which thread %d wrote and did not proxy_fence",
                 SHARED_BASE + word * 4, rank, writers[rank][word] - 1);
}

/* The swizzle of 128 bytes: chunks of 16 bytes change places, in a pattern of 1024 bytes. Of 64 and 32 bytes likewise. */
inline uint32_t swizzled(uint32_t address, uint32_t span)
{
    return address ^ ((address >> 7 & (span / 16 - 1)) << 4);
}

/* ---- barriers in shared memory ---- */

struct MemoryBarrier : Barrier { /* generation: phases that are complete; arrived, participants: of the running one */
    bool known;                  /* to the asynchronous proxy: barrier_init_fence was called */
    int maker, made;             /* by this thread, before the cluster's barrier was complete so often */
};
inline std::map<uint32_t, MemoryBarrier> memory_barriers[MOST_BLOCKS];
constexpr int64_t MOST_BYTES = (1 << 20) - 1; /* that a barrier can wait for */
constexpr uint64_t BARRIER_MARK = 0xba881e4ba881e4ff;

inline void forget_barriers()
{
    for (auto &of_block : memory_barriers)
        of_block.clear();
}
inline const bool barriers_are_forgotten = (at_begin_of_block().push_back(forget_barriers), true);

inline MemoryBarrier &barrier_of(int rank, uint32_t at)
{
    unsigned char *memory = shared_of(rank, at, 8, 8);
    auto found = memory_barriers[rank].find(at);
    if (found == memory_barriers[rank].end())
        stop("there is no barrier at shared address %u of block %d of the cluster", at, rank);
    if (memcmp(memory, &BARRIER_MARK, 8) != 0)
        stop("the barrier at shared address %u of block %d of the cluster was written over", at, rank);
    return found->second;
}

inline MemoryBarrier &barrier_at(uint32_t at)
{
    return barrier_of(block_rank, at);
}

/* Another block's barrier is there for sure once the cluster has met since it was made, and until that block may have ended. */
inline MemoryBarrier &barrier_over_there(int rank, uint32_t at)
{
    if (rank < 0 || rank >= blocks)
        stop("block %d of a cluster of %d", rank, blocks);
    if (has_ended(rank))
        stop("block %d of the cluster has ended, and its barrier at shared address %u is used", rank, at);
    MemoryBarrier &barrier = barrier_of(rank, at);
    if (rank != block_rank && cluster.generation <= barrier.made)
        stop("the barrier at shared address %u of block %d of the cluster is used before a cluster_wait says that it is there", at,
             rank);
    return barrier;
}

inline bool barrier_look(MemoryBarrier &barrier)
{
    if (barrier.bytes > MOST_BYTES || barrier.bytes < -MOST_BYTES)
        stop("%lld bytes are awaited at the barrier at shared address %d", (long long)barrier.bytes, barrier.number);
    if (barrier.arrived < barrier.participants || barrier.bytes != 0)
        return false;
    barrier.arrived = 0;
    barrier.generation++;
    return true;
}

inline void barrier_count(MemoryBarrier &barrier, int64_t bytes)
{
    if (barrier.arrived == barrier.participants)
        stop("more than %d threads arrive at the barrier at shared address %d", barrier.participants, barrier.number);
    barrier.bytes += bytes;
    barrier.arrived++;
    if (barrier_look(barrier))
        hold_back();
}
} // namespace emulation

inline void barrier_init(uint32_t at, int arrivals)
{
    using namespace emulation;
    memcpy(shared_at(at, 8, 8), &BARRIER_MARK, 8);
    MemoryBarrier barrier = {};
    barrier.participants = arrivals;
    barrier.what = "the barrier at shared address";
    barrier.number = (int)at;
    barrier.maker = current;
    barrier.made = cluster.generation + (fibers[current].arrived >= 0);
    memory_barriers[block_rank][at] = barrier;
}

inline void barrier_init_fence()
{
    for (auto &entry : emulation::memory_barriers[emulation::block_rank])
        entry.second.known = entry.second.known || entry.second.maker == emulation::current;
}

inline void barrier_expect(uint32_t at, int bytes)
{
    emulation::barrier_count(emulation::barrier_at(at), bytes);
}

inline void barrier_arrive(uint32_t at)
{
    emulation::barrier_count(emulation::barrier_at(at), 0);
}

inline void barrier_arrive_at(uint32_t at, int rank)
{
    emulation::barrier_count(emulation::barrier_over_there(rank, at), 0);
}

inline void barrier_wait(uint32_t at, uint32_t parity)
{
    emulation::MemoryBarrier &barrier = emulation::barrier_at(at);
    while ((barrier.generation & 1) == (int)(parity & 1))
        emulation::sleep(barrier);
}

/* ---- clusters ---- */

inline int cluster_rank()
{
    return emulation::block_rank;
}

inline void cluster_arrive()
{
    using namespace emulation;
    Fiber &self = fibers[current];
    if (self.arrived >= 0)
        stop("cluster_arrive a second time, without cluster_wait");
    self.arrived = cluster.generation;
    count(cluster);
}

inline void cluster_arrive_relaxed()
{
    cluster_arrive();
}

inline void cluster_wait()
{
    using namespace emulation;
    Fiber &self = fibers[current];
    if (self.arrived < 0)
        stop("cluster_wait without cluster_arrive");
    if (cluster.generation == self.arrived)
        sleep(cluster);
    self.arrived = -1;
}

/* ---- bulk tensor copies ---- */


namespace emulation
{
inline const emulated_map &map_get(const attest_tensor_map *map, uint32_t rank)
{
    const emulated_map &found = *reinterpret_cast<const emulated_map *>(map);
    if (found.magic != EMULATED_MAP_MAGIC || found.rank != rank)
        stop("a copy with %u coordinates needs a tensor map of as many dimensions", rank);
    return found;
}

/* Calls `each` with the shared address, the place in global memory (NULL outside of the tensor) and the bytes of each row of the box
 * that is swizzled as one: chunks of 16 bytes. */
template <typename Each> inline void map_walk(const emulated_map &map, uint32_t base, const int *first, Each each)
{
    uint32_t row_bytes = map.box[0] * map.element, rows = 1;
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
        for (uint32_t byte = 0; byte < row_bytes; byte += map.element) {
            int64_t column = first[0] + (int64_t)(byte / map.element);
            uint32_t to = base + row * row_bytes + byte;
            each(map.swizzle ? swizzled(to, map.swizzle) : to,
                 inside && column >= 0 && column < (int64_t)map.size[0] ? data + column * map.element : nullptr);
        }
    }
}

inline uint32_t map_bytes(const emulated_map &map)
{
    uint32_t bytes = map.element;
    for (uint32_t d = 0; d < map.rank; d++)
        bytes *= map.box[d];
    return bytes;
}

/* To shared memory of block `target` of the cluster. */
inline void map_load_to(int target, uint32_t to, const emulated_map &map, uint32_t barrier, const std::vector<int> &first)
{
    uint32_t bytes = map_bytes(map);
    if (!barrier_over_there(target, barrier).known)
        stop("a bulk load on the barrier at shared address %u, whose maker has not called barrier_init_fence", barrier);
    memset(shared_of(target, to, bytes, 128), 0xff, bytes);
    proxy_write(target, to, bytes);
    arriving.push_back([=] {
        if (has_ended(target))
            stop("block %d of the cluster has ended, and a bulk load to it arrives at shared address %u", target, to);
        unsigned char *memory = memory_of(target);
        map_walk(map, to, first.data(), [&](uint32_t at, const unsigned char *from) {
            if (from)
                memcpy(memory + (at - SHARED_BASE), from, map.element);
            else
                memset(memory + (at - SHARED_BASE), 0, map.element);
        });
        MemoryBarrier &complete = barrier_of(target, barrier);
        complete.bytes -= bytes;
        barrier_look(complete);
    });
}

inline void map_load(uint32_t to, const attest_tensor_map *handle, uint32_t barrier, uint32_t rank, const std::vector<int> &first)
{
    map_load_to(block_rank, to, map_get(handle, rank), barrier, first);
}

/* The others' parts are under way first, so that they come first where what was begun first does; else they come last. */
inline void map_load_multicast(uint32_t to, const attest_tensor_map *handle, uint32_t barrier, uint32_t rank,
                               const std::vector<int> &first, uint32_t mask)
{
    if (!mask || mask >> blocks)
        stop("a multicast to blocks 0x%x, of a cluster of %d", mask, blocks);
    for (int n = 1; n <= blocks; n++) {
        int target = (block_rank + n) % blocks;
        if (mask >> target & 1)
            map_load_to(target, to, map_get(handle, rank), barrier, first);
    }
}

/* Of each thread: stores that are not committed, and those that are. */
struct Stores {
    std::vector<std::function<void()>> open, committed;
};
inline Stores stores[MOST_THREADS];

inline void map_store(const attest_tensor_map *handle, uint32_t from, uint32_t rank, const std::vector<int> &first)
{
    const emulated_map map = map_get(handle, rank);
    shared_at(from, map_bytes(map), 128);
    stores[current].open.push_back([=] {
        proxy_read(from, map_bytes(map), "a bulk store");
        map_walk(map, from, first.data(), [&](uint32_t at, unsigned char *to) {
            if (to)
                memcpy(to, shared + (at - SHARED_BASE), map.element);
        });
    });
}

inline void stores_finish()
{
    for (const auto &store : stores[current].committed)
        store();
    stores[current].committed.clear();
}

inline void check_stores()
{
    for (size_t thread = 0; thread < fibers.size(); thread++) {
        current = (int)thread;
        if (!stores[thread].open.empty() || !stores[thread].committed.empty())
            stop("the block ends before shared memory has been read by a bulk store: it needs stores_commit and stores_wait_read");
    }
    if (!arriving.empty())
        stop("the block ends with a bulk load under way");
}
inline const bool stores_are_checked = (at_end_of_block().push_back(check_stores), true);
} // namespace emulation

namespace emulation
{
/* To another block's shared memory, where it arrives as bulk loads do. */
template <typename Value> inline void send(uint32_t to, uint32_t barrier, int rank, Value value)
{
    if (!barrier_over_there(rank, barrier).known)
        stop("bytes for the barrier at shared address %u, whose maker has not called barrier_init_fence", barrier);
    memset(shared_of(rank, to, sizeof value, sizeof value), 0xff, sizeof value);
    arriving.push_back([=] {
        if (has_ended(rank))
            stop("block %d of the cluster has ended, and what was sent to it arrives at shared address %u", rank, to);
        memcpy(memory_of(rank) + (to - SHARED_BASE), &value, sizeof value);
        MemoryBarrier &complete = barrier_of(rank, barrier);
        complete.bytes -= (int64_t)sizeof value;
        barrier_look(complete);
    });
}
} // namespace emulation

inline void send_16(uint32_t to, uint32_t barrier, int rank, float4 value)
{
    emulation::send(to, barrier, rank, value);
}

inline void send_8(uint32_t to, uint32_t barrier, int rank, float2 value)
{
    emulation::send(to, barrier, rank, value);
}

inline void map_prefetch(const attest_tensor_map *map)
{
    if (reinterpret_cast<const emulated_map *>(map)->magic != EMULATED_MAP_MAGIC)
        emulation::stop("a prefetch of what is no tensor map");
}

inline void map_load_4(uint32_t to, const attest_tensor_map *map, uint32_t barrier, int c0, int c1, int c2, int c3)
{
    emulation::map_load(to, map, barrier, 4, {c0, c1, c2, c3});
}

inline void map_load_4_multicast(uint32_t to, const attest_tensor_map *map, uint32_t barrier, int c0, int c1, int c2, int c3,
                                 uint16_t blocks)
{
    emulation::map_load_multicast(to, map, barrier, 4, {c0, c1, c2, c3}, blocks);
}

inline void map_load_5(uint32_t to, const attest_tensor_map *map, uint32_t barrier, int c0, int c1, int c2, int c3, int c4)
{
    emulation::map_load(to, map, barrier, 5, {c0, c1, c2, c3, c4});
}

inline void map_store_4(const attest_tensor_map *map, uint32_t from, int c0, int c1, int c2, int c3)
{
    emulation::map_store(map, from, 4, {c0, c1, c2, c3});
}

inline void map_store_5(const attest_tensor_map *map, uint32_t from, int c0, int c1, int c2, int c3, int c4)
{
    emulation::map_store(map, from, 5, {c0, c1, c2, c3, c4});
}

inline void stores_commit()
{
    emulation::Stores &own = emulation::stores[emulation::current];
    own.committed.insert(own.committed.end(), own.open.begin(), own.open.end());
    own.open.clear();
}

inline void stores_wait_read()
{
    emulation::stores_finish();
}

inline void stores_wait()
{
    emulation::stores_finish();
}

inline void proxy_fence()
{
    using namespace emulation;
    for (uint32_t word : unfenced[current])
        if (writers[block_rank][word] == current - block_first + 1)
            writers[block_rank][word] = 0;
    unfenced[current].clear();
}

/* ---- barriers of some of the threads, and registers ---- */

namespace emulation
{
inline Barrier &named_for(int id, int threads)
{
    if (id < 0 || id >= MOST_NAMED || threads % WARP)
        stop("a barrier %d of %d threads", id, threads);
    Barrier &barrier = named[id];
    if (id && barrier.arrived && barrier.participants != threads)
        stop("barrier %d of %d threads is under way, and a thread comes to it with %d", id, barrier.participants, threads);
    if (id)
        barrier.participants = threads;
    return barrier;
}
} // namespace emulation

inline void named_barrier(int id, int threads)
{
    emulation::arrive(emulation::named_for(id, threads));
}

inline void named_barrier_arrive(int id, int threads)
{
    if (emulation::count(emulation::named_for(id, threads)))
        emulation::hold_back();
}

template <int N> inline void registers_more()
{
    static_assert(N % 8 == 0 && N >= 24 && N <= 256, "setmaxnreg");
}

template <int N> inline void registers_less()
{
    static_assert(N % 8 == 0 && N >= 24 && N <= 256, "setmaxnreg");
}

/* One lane of the warp, always the same; no kernel may count on which. */
inline bool elect_one()
{
    __syncwarp();
    return emulation::current % emulation::WARP == 5;
}

inline void store_matrix_x4(uint32_t to, const uint32_t (&matrix)[4])
{
    uint32_t copy[4] = {matrix[0], matrix[1], matrix[2], matrix[3]};
    emulation::move_matrices(copy, to, false, true);
}

/* ---- wgmma ---- */

namespace emulation
{
constexpr int GROUP = 4 * WARP;

/* The accumulators of one product or of a chain of them, while they are under way. The thread's own are NaN then. */
struct Accumulators {
    float *own;
    std::vector<float> value;
    int pending;
};

struct Product {
    Accumulators *c;
    int columns;
    bool transposed, accumulate, from_registers;
    uint64_t a, b;
    uint32_t registers[4];
    int group; /* as committed; -1: not yet */
};

struct Products {
    std::deque<Product> queue;
    std::map<float *, Accumulators> accumulators;
    int groups; /* that were committed */
    size_t issued;
    bool fenced;
};
inline Products products[MOST_THREADS];

inline void forget_products()
{
    for (size_t thread = 0; thread < fibers.size(); thread++)
        products[thread] = Products();
}
inline const bool products_are_forgotten = (at_begin_of_block().push_back(forget_products), true);

inline void check_products()
{
    for (size_t thread = 0; thread < fibers.size(); thread++) {
        current = (int)thread;
        if (!products[thread].queue.empty())
            stop("the block ends with a wgmma that was not waited for");
        if (products[thread].issued != products[thread / GROUP * GROUP].issued)
            stop("threads of a warpgroup issue different numbers of wgmma");
    }
}
inline const bool products_are_checked = (at_end_of_block().push_back(check_products), true);

constexpr uint32_t UNDER_WAY = 0x7fd5a5c3; /* NaN */

/* What the four warps of a group have issued: all of them the same. */
struct Issued {
    uint64_t a, b;
    int columns;
    bool transposed, accumulate;
    uint64_t digest; /* of A in shared memory when a warp first read it, or 0 */

    bool operator==(const Issued &other) const
    {
        return a == other.a && b == other.b && columns == other.columns && transposed == other.transposed &&
               accumulate == other.accumulate;
    }
};
inline std::vector<Issued> issued[MOST_THREADS / GROUP];

inline void forget_issued()
{
    for (auto &list : issued)
        list.clear();
}
inline const bool issued_are_forgotten = (at_begin_of_block().push_back(forget_issued), true);

/* The number of this one among those of the thread is `number`. */
inline void compare_issued(size_t number, const Issued &one)
{
    std::vector<Issued> &all = issued[current / GROUP];
    if (number == all.size())
        all.push_back(one);
    else if (!(all[number] == one))
        stop("threads of a warpgroup issue different wgmma");
}

inline void issue(float *c, int columns, bool transposed, bool accumulate, const uint32_t *registers, uint64_t a, uint64_t b)
{
    Products &own = products[current];
    if (!own.fenced)
        stop("a wgmma without wgmma_fence before it, since the last wgmma_wait");
    compare_issued(own.issued++, Issued{a, b, columns, transposed, accumulate, 0});
    if (b >> 62 != 1 || (!registers && a >> 62 != 1))
        stop("a wgmma with something that is no descriptor, or of another swizzle");
    Accumulators &sums = own.accumulators[c];
    if (!sums.pending) {
        sums.own = c;
        sums.value.assign(c, c + columns / 2);
    } else if ((int)sums.value.size() != columns / 2)
        stop("a wgmma with accumulators of another one under way, of another shape");
    for (int i = 0; i < columns / 2; i++) {
        if (sums.pending && bits_of(c[i]) != UNDER_WAY)
            stop("accumulator %d of a wgmma under way was written", i);
        memcpy(&c[i], &UNDER_WAY, sizeof c[i]);
    }
    sums.pending++;
    Product product = {&sums, columns, transposed, accumulate, registers != nullptr, a, b, {}, -1};
    if (registers)
        memcpy(product.registers, registers, sizeof product.registers);
    own.queue.push_back(product);
}

inline uint32_t descriptor_address(uint64_t descriptor)
{
    return (uint32_t)(descriptor & 0x3fff) << 4;
}

constexpr int CHUNK = 8; /* elements in 16 bytes, which stay together */

/* Element (line, k) of a matrix in shared memory and those behind it: line is a row of A or a column of B. K-major: eight lines of 128
 * bytes lie behind each other, and the next eight `stride` further; a chunk goes along k. Else eight k of 64 lines lie behind each
 * other, the next eight k `stride` further, and the next 64 lines `leading` further; a chunk goes along lines. */
inline const uint16_t *matrix_chunk(uint64_t descriptor, bool k_major, int line, int k)
{
    static uint16_t chunk[CHUNK];
    uint32_t leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4, stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4;
    uint32_t offset =
        k_major ? line % 8 * 128 + line / 8 * stride + k * 2 : line % 64 * 2 + line / 64 * leading + k % 8 * 128 + k / 8 * stride;
    memcpy(chunk, proxy_read(swizzled(descriptor_address(descriptor) + offset, 128), sizeof chunk, "a wgmma"), sizeof chunk);
    return chunk;
}

/* A of one warp, from shared memory, and B. */
inline void read_a(Matrices &matrices, uint64_t descriptor, int top)
{
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < STEP; k += CHUNK) {
            const uint16_t *chunk = matrix_chunk(descriptor, true, top + row, k);
            for (int n = 0; n < CHUNK; n++)
                matrices.a[row][k + n] = element_value(chunk[n]);
        }
}

inline void read_b(Matrices &matrices, uint64_t descriptor, bool k_major, int columns)
{
    const int k_step = k_major ? CHUNK : 1, column_step = k_major ? 1 : CHUNK;
    for (int column = 0; column < columns; column += column_step)
        for (int k = 0; k < STEP; k += k_step) {
            const uint16_t *chunk = matrix_chunk(descriptor, k_major, column, k);
            for (int n = 0; n < CHUNK; n++)
                matrices.b[k_major ? k + n : k][k_major ? column : column + n] = element_value(chunk[n]);
        }
}

/* Who of a warpgroup reads which rows of A is nobody's business: all of it has to stay as it is until the last warp is done. */
inline void check_a(const Product &one, Issued &as_issued)
{
    const uint32_t stride = (uint32_t)(one.a >> 32 & 0x3fff) << 4;
    uint64_t digest = 1, bits;
    for (uint32_t half = 0; half < 64 * 4; half++) {
        uint32_t row = half / 4, at = descriptor_address(one.a) + row % 8 * 128 + row / 8 * stride + half % 4 * 8;
        memcpy(&bits, proxy_read(swizzled(at, 128), sizeof bits, "a wgmma"), sizeof bits);
        digest = (digest ^ bits) * 0x100000001b3 ^ digest >> 32;
    }
    if (as_issued.digest && as_issued.digest != digest)
        stop("the A of a wgmma was written before all warps of the warpgroup had waited for it");
    as_issued.digest = digest;
}

/* What product `index` of the queues is to this warp: 16 of the 64 rows. */
inline void multiply_rows(int first_thread, size_t index)
{
    static Matrices matrices;
    const Products &own = products[first_thread];
    const Product &one = own.queue[index];
    const int top = first_thread / WARP % 4 * 16;
    if (!one.from_registers) {
        check_a(one, issued[first_thread / GROUP][own.issued - own.queue.size() + index]);
        read_a(matrices, one.a, top);
    }
    for (int lane = 0; lane < WARP && one.from_registers; lane++)
        for (int i = 0; i < 4; i++)
            for (int half = 0; half < 2; half++)
                matrices.a[lane / 4 + i % 2 * 8][lane % 4 * 2 + half + i / 2 * 8] =
                    element_value((uint16_t)(products[first_thread + lane].queue[index].registers[i] >> 16 * half));
    read_b(matrices, one.b, !one.transposed, one.columns);
    /* A lane has two columns of every eight, of two rows. */
    const auto each_pair = [&](auto visit) {
        for (int lane = 0; lane < WARP; lane++) {
            float *own_pair = products[first_thread + lane].queue[index].c->value.data();
            for (int column = lane % 4 * 2; column < one.columns; column += 8)
                for (int row = lane / 4; row < 16; row += 8, own_pair += 2)
                    visit(own_pair, &matrices.c[row][column]);
        }
    };
    each_pair([&](const float *own_pair, float *pair) {
        pair[0] = one.accumulate ? own_pair[0] : 0;
        pair[1] = one.accumulate ? own_pair[1] : 0;
    });
    multiply_add(matrices, one.columns);
    each_pair([](float *own_pair, const float *pair) {
        own_pair[0] = pair[0];
        own_pair[1] = pair[1];
    });
}

/* For each lane, after the warp has computed `count` products. */
inline void take_products(int thread, size_t count)
{
    Products &own = products[thread];
    for (; count; count--) {
        Accumulators *sums = own.queue.front().c;
        own.queue.pop_front();
        if (--sums->pending)
            continue;
        for (size_t i = 0; i < sums->value.size(); i++)
            if (bits_of(sums->own[i]) != UNDER_WAY) {
                current = thread;
                stop("accumulator %zu of a wgmma under way was written", i);
            }
        std::copy(sums->value.begin(), sums->value.end(), sums->own);
        own.accumulators.erase(sums->own);
    }
}

inline void wait_products(int open)
{
    products[current].fenced = false;
    together([&](int first_thread) {
        const Products &one = products[first_thread];
        size_t count = 0;
        while (count < one.queue.size() && one.queue[count].group >= 0 && one.queue[count].group < one.groups - open)
            count++;
        for (int lane = 1; lane < WARP; lane++)
            if (products[first_thread + lane].queue.size() != one.queue.size() ||
                products[first_thread + lane].groups != one.groups)
                stop("lanes of a warp have issued different wgmma");
        for (size_t index = 0; index < count; index++)
            multiply_rows(first_thread, index);
        for (int lane = 0; lane < WARP; lane++)
            take_products(first_thread + lane, count);
    });
}
} // namespace emulation

inline uint64_t descriptor(uint32_t at, int leading_bytes, int stride_bytes)
{
    if ((at | leading_bytes | stride_bytes) % 16)
        emulation::stop("a descriptor of (%u, %d, %d), which are not multiples of 16", at, leading_bytes, stride_bytes);
    return (uint64_t)(at >> 4 & 0x3fff) | (uint64_t)(leading_bytes >> 4 & 0x3fff) << 16 |
           (uint64_t)(stride_bytes >> 4 & 0x3fff) << 32 | (uint64_t)1 << 62;
}

inline void wgmma_fence()
{
    emulation::products[emulation::current].fenced = true;
}

inline void wgmma_commit()
{
    emulation::Products &own = emulation::products[emulation::current];
    for (emulation::Product &product : own.queue)
        product.group = product.group < 0 ? own.groups : product.group;
    own.groups++;
}

template <int groups> inline void wgmma_wait()
{
    emulation::wait_products(groups);
}

/* What a product has under way is NaN here, and nothing moves. */
template <int count> inline void settle(float (&)[count]) {}

inline void pin(float) {}

template <int N, bool B_TRANSPOSED> inline void wgmma_ss(float (&c)[N / 2], uint64_t a, uint64_t b, bool accumulate)
{
    static_assert(N % 8 == 0 && N >= 8 && N <= 256, "wgmma has 8 to 256 columns");
    emulation::issue(c, N, B_TRANSPOSED, accumulate, nullptr, a, b);
}

template <int N, bool B_TRANSPOSED> inline void wgmma_rs(float (&c)[N / 2], const uint32_t (&a)[4], uint64_t b, bool accumulate)
{
    static_assert(N % 8 == 0 && N >= 8 && N <= 256, "wgmma has 8 to 256 columns");
    emulation::issue(c, N, B_TRANSPOSED, accumulate, a, 0, b);
}

#endif
