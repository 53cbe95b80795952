/*
 * instructions.cpp - the instructions that touch memory, and those of warps, blocks and clusters; arithmetic.cpp has the others.
 * instructions.def lists them all. What is not in the list, also a word behind the name of an instruction, is outside of the
 * vocabulary, and the emulation gate says so with the line.
 */
#include "ptx.h"

namespace emulation
{
static std::string here()
{
    return thread_text(current) + site_text(Site{self().site});
}

static void run_nothing(Context &, const Instruction &) {}

static void run_zero(Context &c, const Instruction &i)
{
    set(c, i.operands[0], 0);
}

static void run_nanosleep(Context &, const Instruction &)
{
    give_way();
}

static void run_trap(Context &, const Instruction &i)
{
    stop("%s (%s)", i.text.c_str(), here().c_str());
}

/* ---- loads and stores ---- */

extern unsigned char window[];

static uint64_t address_in(Context &c, const Operand &memory)
{
    return get(c, memory.parts[0]) + (uint64_t)memory.number;
}

static uint32_t shared_in(Context &c, const Operand &memory)
{
    return (uint32_t)address_in(c, memory);
}

/* Where an instruction with .shared, .global or neither reads or writes, after the access was checked. */
static unsigned char *touch(Context &c, const Instruction &i, const Operand &memory, uint32_t bytes, bool write)
{
    const bool atomic = i.has(WORD("volatile")) || i.has(WORD("relaxed")) || i.has(WORD("acquire")) || i.has(WORD("release")) ||
                        i.has(WORD("mmio"));
    Access access = asm_access(write, write ? "a store" : "a load");
    access.atomic = atomic;
    uint64_t address = address_in(c, memory);
    bool shared = i.has(WORD("shared")) || i.has(WORD("shared::cta")) || i.has(WORD("shared::cluster"));
    const unsigned char *pointer = (const unsigned char *)address;
    if (!shared && pointer >= window && pointer < window + shared_bytes) {
        shared = true;
        address = emulated_shared_address(pointer);
    }
    if (shared) {
        const Place place = shared_place((uint32_t)address, bytes, bytes, access.what);
        shared_access(place.rank, place.offset, bytes, access);
        return shared_bytes_of(place);
    }
    const char *stack = self().stack;
    if ((const char *)pointer >= stack && (const char *)pointer < stack + STACK_BYTES)
        return (unsigned char *)address;
    if (address % bytes)
        stop("a misaligned address: %s of %u bytes at 0x%llx (%s)", access.what, bytes, (unsigned long long)address,
             here().c_str());
    global_access(address, bytes, access);
    return (unsigned char *)address;
}

static uint32_t vector_length(const Instruction &i)
{
    return i.has(WORD("v2")) ? 2 : i.has(WORD("v4")) ? 4 : i.has(WORD("v8")) ? 8 : 1;
}

static void run_ld(Context &c, const Instruction &i)
{
    const Type t = i.type;
    const uint32_t each = (uint32_t)t.bits / 8, count = vector_length(i);
    const unsigned char *from = touch(c, i, i.operands[1], each * count, false);
    for (uint32_t n = 0; n < count; n++) {
        uint64_t value = 0;
        memcpy(&value, from + n * each, each);
        if (t.kind == 's')
            value = (uint64_t)as_signed(value, t.bits);
        set(c, count > 1 ? i.operands[0].parts[n] : i.operands[0], value, t.bits < 32 ? 64 : t.bits);
    }
    if (i.has(WORD("acquire")))
        emulated_fence(i.has(WORD("cta")) ? 0 : 1);
    if (i.has(WORD("volatile")) || i.has(WORD("acquire")) || i.has(WORD("relaxed")))
        if (++self().spins % 64 == 0)
            give_way();
}

static void run_st(Context &c, const Instruction &i)
{
    const Type t = i.type;
    const uint32_t each = (uint32_t)t.bits / 8, count = vector_length(i);
    if (i.has(WORD("release")))
        emulated_fence(i.has(WORD("cta")) ? 0 : 1);
    unsigned char *to = touch(c, i, i.operands[0], each * count, true);
    for (uint32_t n = 0; n < count; n++) {
        uint64_t value = get(c, count > 1 ? i.operands[1].parts[n] : i.operands[1], t.kind, t.bits);
        memcpy(to + n * each, &value, each);
    }
}

static void run_st_async(Context &c, const Instruction &i)
{
    const Type t = i.type;
    const uint32_t each = (uint32_t)t.bits / 8, count = vector_length(i);
    unsigned char data[32];
    for (uint32_t n = 0; n < count; n++) {
        uint64_t value = get(c, count > 1 ? i.operands[1].parts[n] : i.operands[1], t.kind, t.bits);
        memcpy(data + n * each, &value, each);
    }
    send(shared_in(c, i.operands[0]), data, each * count, shared_in(c, i.operands[2]));
}

static void run_atom(Context &c, const Instruction &i)
{
    const bool returns = i.name == WORD("atom");
    const Type t = i.type;
    const size_t first = returns ? 1 : 0;
    static const struct {
        const char *name;
        int operation;
    } names[] = {{"add", '+'}, {"exch", '='}, {"min", '<'}, {"max", '>'}, {"and", '&'},
                 {"or", '|'},  {"xor", '^'},  {"inc", 'i'}, {"dec", 'd'}, {"cas", 'c'}};
    uint64_t address = address_in(c, i.operands[first]);
    if (i.has(WORD("shared")) || i.has(WORD("shared::cta")))
        address = (uint64_t)emulated_shared_pointer((uint32_t)address);
    for (const auto &one : names)
        if (i.has(digest_of(one.name))) {
            uint64_t value = get(c, i.operands[first + 1], t.kind, t.bits), compare = 0;
            if (one.operation == 'c') {
                compare = value;
                value = get(c, i.operands[first + 2]);
            }
            if (i.has(WORD("release")) || i.has(WORD("acq_rel")))
                emulated_fence(1);
            uint64_t before = emulated_atomic((void *)address,
                                              t.bits / 8 | (t.kind == 'f'   ? 64
                                                            : t.kind == 's' ? 128
                                                                            : 0),
                                              one.operation, value, compare);
            if (i.has(WORD("acquire")) || i.has(WORD("acq_rel")))
                emulated_fence(1);
            if (returns)
                set(c, i.operands[0], before, t.bits);
            return;
        }
    stop_unknown(*c.site, i.text.c_str());
}

/* ---- barriers and fences ---- */

static void run_bar(Context &c, const Instruction &i)
{
    const bool arrives = i.has(WORD("arrive"));
    const int id = (int)get(c, i.operands[0]), threads = i.operands.size() > 1 ? (int)get(c, i.operands[1]) : 0;
    if (!threads && id)
        named_barrier(id, block_threads);
    Barrier &barrier = named_barrier(id, threads);
    const uint32_t generation = barrier.generation;
    count_arrival(barrier);
    if (arrives) {
        if (barrier.generation != generation)
            hold_back();
        return;
    }
    if (barrier.generation == generation)
        sleep_on(barrier, "at barrier");
    acquire(barrier.done);
}

static void run_bar_warp(Context &c, const Instruction &i)
{
    const void *site = self().site;
    emulated_syncwarp((uint32_t)get(c, i.operands[0]));
    self().site = site;
}

static void run_cluster(Context &, const Instruction &i)
{
    Fiber &fiber = self();
    if (i.has(WORD("arrive"))) {
        if (fiber.cluster_arrived >= 0)
            stop("barrier.cluster.arrive a second time, without barrier.cluster.wait (%s)", here().c_str());
        fiber.cluster_arrived = cluster.generation;
        if (!i.has(WORD("relaxed")))
            count_arrival(cluster);
        else {
            Clock before = fiber.clock; /* nothing is promised, but that mbarriers behind their fence are there */
            fiber.clock.clear();
            fiber.clock.known[(size_t)current] = 1;
            count_arrival(cluster);
            fiber.clock = before;
        }
        return;
    }
    if (fiber.cluster_arrived < 0)
        stop("barrier.cluster.wait without barrier.cluster.arrive (%s)", here().c_str());
    if ((int64_t)cluster.generation == fiber.cluster_arrived)
        sleep_on(cluster, "for the cluster's barrier");
    fiber.cluster_arrived = -1;
    acquire(cluster.done);
}

static void run_fence(Context &, const Instruction &i)
{
    Fiber &fiber = self();
    if (i.has(WORD("mbarrier_init")))
        memory_barriers_known();
    else if (i.has(WORD("proxy"))) {
        if (i.has(WORD("async")) || i.has(WORD("async::generic")))
            memory_barriers_known();
        if (proxies) {
            fiber.clock.fenced = fiber.clock.known;
            fiber.clock.known[(size_t)current]++;
        }
    } else
        emulated_fence(i.has(WORD("cta")) ? 0 : 1);
}

static void run_mbarrier(Context &c, const Instruction &i)
{
    const uint32_t what = i.digests[1];
    if (what == WORD("init"))
        return memory_barrier_init(shared_in(c, i.operands[0]), (int)(int32_t)get(c, i.operands[1]));
    if (what == WORD("inval"))
        return memory_barrier_invalidate(shared_in(c, i.operands[0]));
    if (what == WORD("expect_tx"))
        return memory_barrier_arrive(shared_in(c, i.operands[0]), 0, (int64_t)(int32_t)get(c, i.operands[1]), false,
                                     "mbarrier.expect_tx");
    if (what == WORD("complete_tx"))
        return memory_barrier_arrive(shared_in(c, i.operands[0]), 0, -(int64_t)(int32_t)get(c, i.operands[1]), false,
                                     "mbarrier.complete_tx");
    if (what == WORD("arrive")) {
        const bool returns = i.operands[0].kind != Operand::MEMORY;
        const size_t first = returns ? 1 : 0;
        const uint32_t at = shared_in(c, i.operands[first]);
        const int64_t more = i.operands.size() > first + 1 ? (int64_t)(int32_t)get(c, i.operands[first + 1]) : 0;
        const bool expects = i.has(WORD("expect_tx"));
        if (returns && i.operands[0].kind == Operand::REGISTER)
            set(c, i.operands[0], memory_barrier(at, "mbarrier.arrive").barrier.generation);
        return memory_barrier_arrive(at, expects || !more ? 1 : (int)more, expects ? more : 0, true, "mbarrier.arrive");
    }
    const uint32_t at = shared_in(c, i.operands[1]), parity = (uint32_t)get(c, i.operands[2]);
    if (what == WORD("try_wait")) {
        memory_barrier_wait(at, parity);
        set(c, i.operands[0], 1);
        return;
    }
    bool done = memory_barrier_test(at, parity);
    if (!done && ++self().spins % 4 == 0) {
        give_way();
        done = memory_barrier_test(at, parity);
    }
    set(c, i.operands[0], done);
}

static void run_elect(Context &c, const Instruction &i)
{
    const uint32_t mask = (uint32_t)get(c, i.operands.back());
    collect(mask, 0, nullptr, nullptr, "at elect.sync");
    const int chosen = mask >> 5 & 1 ? 5 : __builtin_ctz(mask); /* always the same; no kernel may count on which */
    if (i.operands[0].kind == Operand::PAIR) {
        set(c, i.operands[0].parts[0], (uint64_t)chosen, 32);
        set(c, i.operands[0].parts[1], current % WARP == chosen);
    } else
        set(c, i.operands[0], current % WARP == chosen);
}

static void run_shfl(Context &c, const Instruction &i)
{
    const int lane = current % WARP;
    const uint32_t mask = (uint32_t)get(c, i.operands[4]), control = (uint32_t)get(c, i.operands[3]);
    const uint32_t value = (uint32_t)get(c, i.operands[1], 'b', 32);
    const int step = (int)(get(c, i.operands[2]) & 31), segment = (int)(control >> 8 & 31), clamp = (int)(control & 31);
    const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
    const uint64_t *values = collect(mask, value, nullptr, nullptr, "at shfl.sync");
    int source = i.has(WORD("up"))     ? lane - step
                 : i.has(WORD("down")) ? lane + step
                 : i.has(WORD("bfly")) ? lane ^ step
                                       : least | (step & ~segment);
    bool inside = i.has(WORD("up")) ? source >= most : source <= most;
    if (inside && !(mask >> source & 1))
        stop("a shuffle reads lane %d, which does not take part in it (%s)", source, here().c_str());
    const uint64_t result = inside ? values[source] : value;
    if (i.operands[0].kind == Operand::PAIR) {
        set(c, i.operands[0].parts[0], result, 32);
        set(c, i.operands[0].parts[1], inside);
    } else
        set(c, i.operands[0], result, 32);
}

static void run_vote(Context &c, const Instruction &i)
{
    const uint32_t mask = (uint32_t)get(c, i.operands[2]);
    const uint64_t *values = collect(mask, get(c, i.operands[1]) != 0, nullptr, nullptr, "at vote.sync");
    uint32_t votes = 0;
    for (int lane = 0; lane < WARP; lane++)
        votes |= (mask >> lane & 1) && values[lane] ? 1u << lane : 0;
    set(c, i.operands[0],
        i.has(WORD("ballot")) ? votes
        : i.has(WORD("any"))  ? votes != 0
        : i.has(WORD("all"))  ? votes == mask
                              : votes == mask || !votes);
}

static void run_redux(Context &c, const Instruction &i)
{
    const uint32_t mask = (uint32_t)get(c, i.operands[2]);
    const Type t = i.type;
    if (is_real(t))
        stop_unknown(*c.site, i.text.c_str());
    const uint64_t *values = collect(mask, get(c, i.operands[1]), nullptr, nullptr, "at redux.sync");
    bool first = true;
    uint64_t y = 0;
    for (int lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1) {
            uint64_t x = values[lane];
            bool more = t.kind == 's' ? as_signed(x, 32) > as_signed(y, 32) : (uint32_t)x > (uint32_t)y;
            y = first                ? x
                : i.has(WORD("add")) ? y + x
                : i.has(WORD("max")) ? (more ? x : y)
                : i.has(WORD("min")) ? (more ? y : x)
                : i.has(WORD("and")) ? y & x
                : i.has(WORD("or"))  ? y | x
                                     : y ^ x;
            first = false;
        }
    set(c, i.operands[0], y, 32);
}

/* ---- copies ---- */

static void run_cp_async(Context &c, const Instruction &i)
{
    if (i.digests[2] == WORD("commit_group"))
        return copies_close();
    if (i.digests[2] == WORD("wait_group"))
        return copies_wait((Time)get(c, i.operands[0]), false);
    if (i.digests[2] == WORD("wait_all"))
        return copies_wait(0, true);
    if (i.digests[2] == WORD("mbarrier"))
        return copies_arrive(shared_in(c, i.operands[0]), i.has(WORD("noinc")));
    const int size = (int)get(c, i.operands[2]);
    if (i.operands.size() > 4)
        stop_unknown(*c.site, i.text.c_str());
    int bytes = i.operands.size() > 3 ? (int)(int32_t)get(c, i.operands[3]) : size;
    if (size != 4 && size != 8 && size != 16)
        stop("cp.async of %d bytes (%s)", size, here().c_str());
    copy_begin(shared_in(c, i.operands[0]), (const void *)address_in(c, i.operands[1]), size, bytes);
}

static const void *map_of(Context &c, const Operand &memory, int *first, int *rank)
{
    const Operand &coordinates = memory.parts.at(1);
    *rank = (int)coordinates.parts.size();
    for (int d = 0; d < *rank && d < 5; d++)
        first[d] = (int)(int32_t)get(c, coordinates.parts[(size_t)d]);
    return (const void *)get(c, memory.parts[0]);
}

static void run_cp_async_bulk(Context &c, const Instruction &i)
{
    int first[5] = {0}, rank = 0;
    if (i.digests[3] == WORD("commit_group"))
        return stores_close();
    if (i.digests[3] == WORD("wait_group"))
        return stores_wait((Time)get(c, i.operands[0]));
    if (i.digests[3] == WORD("prefetch")) {
        if (i.digests[4] == WORD("tensor"))
            tensor_prefetch(map_of(c, i.operands[0], first, &rank), rank);
        return;
    }
    const bool multicast = i.has(WORD("multicast::cluster"));
    const size_t tensor = i.digests[3] == WORD("tensor") ? 1 : 0;
    if (tensor && i.digests[5] == WORD("shared::cluster") && (i.digests[6] == WORD("global"))) {
        const void *map = map_of(c, i.operands[1], first, &rank);
        const uint32_t mask = multicast ? (uint32_t)get(c, i.operands[3]) & 0xffff : 0;
        return tensor_load(shared_in(c, i.operands[0]), map, rank, first, shared_in(c, i.operands[2]), mask);
    }
    if (tensor && i.digests[5] == WORD("shared::cta") && i.digests[6] == WORD("global")) {
        const void *map = map_of(c, i.operands[1], first, &rank);
        return tensor_load(shared_in(c, i.operands[0]), map, rank, first, shared_in(c, i.operands[2]), 0);
    }
    if (tensor && i.digests[5] == WORD("global")) {
        const void *map = map_of(c, i.operands[0], first, &rank);
        return tensor_store(map, rank, first, shared_in(c, i.operands[1]));
    }
    if (!tensor && (i.digests[3] == WORD("shared::cluster") || i.digests[3] == WORD("shared::cta")) &&
        i.digests[4] == WORD("global")) {
        const uint32_t mask = multicast ? (uint32_t)get(c, i.operands[4]) & 0xffff : 0;
        return bulk_load(shared_in(c, i.operands[0]), (const void *)address_in(c, i.operands[1]), (uint32_t)get(c, i.operands[2]),
                         shared_in(c, i.operands[3]), mask);
    }
    if (!tensor && i.digests[3] == WORD("global") && i.digests[4] == WORD("shared::cta"))
        return bulk_store((void *)address_in(c, i.operands[0]), shared_in(c, i.operands[1]), (uint32_t)get(c, i.operands[2]));
    stop_unknown(*c.site, i.text.c_str());
}

/* ---- matrices ---- */

static void run_matrix(Context &c, const Instruction &i)
{
    const bool store = i.name == WORD("stmatrix");
    const int count = i.has(WORD("x4")) ? 4 : i.has(WORD("x2")) ? 2 : 1;
    const Operand &registers = i.operands[store ? 1 : 0], &memory = i.operands[store ? 0 : 1];
    uint32_t values[4], *pointers[4];
    if (!i.has(WORD("m8n8")) || !i.has(WORD("b16")))
        stop_unknown(*c.site, i.text.c_str());
    for (int n = 0; n < count; n++) {
        values[n] = (uint32_t)get(c, registers.kind == Operand::VECTOR ? registers.parts[(size_t)n] : registers);
        pointers[n] = &values[n];
    }
    matrices_move(pointers, count, i.has(WORD("trans")), shared_in(c, memory), store);
    for (int n = 0; n < count && !store; n++)
        set(c, registers.kind == Operand::VECTOR ? registers.parts[(size_t)n] : registers, values[n], 32);
}

static void run_mma(Context &c, const Instruction &i)
{
    if (!i.has(WORD("m16n8k16")) || i.words.size() < 9 || i.words[i.words.size() - 4] != "f32" || i.words.back() != "f32" ||
        (!i.has(WORD("f16")) && !i.has(WORD("bf16"))))
        stop_unknown(*c.site, i.text.c_str());
    float sums[4], *pointers[4];
    uint32_t a[4], b[2];
    for (size_t n = 0; n < 4; n++) {
        sums[n] = as_float(get(c, i.operands[3].parts[n], 'f', 32));
        pointers[n] = &sums[n];
        a[n] = (uint32_t)get(c, i.operands[1].parts[n]);
    }
    for (size_t n = 0; n < 2; n++)
        b[n] = (uint32_t)get(c, i.operands[2].parts[n]);
    product_warp(pointers, a, b, i.has(WORD("bf16")));
    for (size_t n = 0; n < 4; n++)
        set(c, i.operands[0].parts[n], of_float(sums[n]), 32);
}

static void run_wgmma(Context &c, const Instruction &i)
{
    const uint32_t what = i.digests[1];
    if (what == WORD("fence"))
        return product_fence();
    if (what == WORD("commit_group"))
        return product_commit();
    if (what == WORD("wait_group"))
        return product_wait((int)get(c, i.operands[0]));
    int columns = 0;
    for (const std::string &word : i.words)
        if (word.compare(0, 4, "m64n") == 0 && word.size() > 6 && word.compare(word.size() - 3, 3, "k16") == 0)
            columns = atoi(word.c_str() + 4);
    if (what != WORD("mma_async") || !columns || i.words[i.words.size() - 3] != "f32")
        stop_unknown(*c.site, i.text.c_str());
    const Operand &d = i.operands[0], &a = i.operands[1];
    const bool registers = a.kind == Operand::VECTOR;
    std::vector<float *> pointers;
    for (const Operand &part : d.parts) {
        if (part.kind != Operand::REGISTER || part.index >= c.operand_count)
            stop_unknown(*c.site, "a wgmma into registers that are declared in the text");
        pointers.push_back((float *)c.operands[part.index].at);
    }
    if ((int)pointers.size() != columns / 2)
        stop("a wgmma of %d columns with %zu accumulators (%s)", columns, pointers.size(), here().c_str());
    uint32_t own[4] = {0, 0, 0, 0};
    for (size_t n = 0; n < 4 && registers; n++)
        own[n] = (uint32_t)get(c, a.parts[n]);
    const size_t last = i.operands.size() - 1;
    if (!registers && get(c, i.operands[last - 1]))
        stop_unknown(*c.site, "a wgmma with a transposed A");
    product_issue(pointers.data(), columns, i.has(WORD("bf16")), get(c, i.operands[last]) != 0, get(c, i.operands[3]) != 0,
                  (float)(int64_t)get(c, i.operands[4]), (float)(int64_t)get(c, i.operands[5]), registers ? own : nullptr,
                  registers ? 0 : get(c, a), get(c, i.operands[2]));
}

/* ---- clusters, grids ---- */

static void run_mapa(Context &c, const Instruction &i)
{
    uint64_t rank = get(c, i.operands[2]), address = get(c, i.operands[1]);
    if (!i.has(WORD("u32")) || !i.has(WORD("shared::cluster")))
        stop_unknown(*c.site, i.text.c_str());
    if (rank >= (uint64_t)blocks)
        stop("mapa of block %llu of a cluster of %d (%s)", (unsigned long long)rank, blocks, here().c_str());
    set(c, i.operands[0], (rank + 1) << BLOCK_SHIFT | (address & ((1u << BLOCK_SHIFT) - 1)), 32);
}

static void run_griddep(Context &, const Instruction &i)
{
    if (i.digests[1] == WORD("wait"))
        self().clock.known[(size_t)agents.grid] = 1;
}

static const struct Row {
    const char *name; /* the instruction, or its first words */
    Handler handler;
    const char *words; /* that may stand behind it, beside types */
} table[] = {
#define INSTRUCTION(name, handler, words) {name, handler, words},
#include "instructions.def"
#undef INSTRUCTION
};

static bool is_type(const std::string &word)
{
    static const char *const types[] = {"pred", "b8",  "b16", "b32", "b64", "b128", "u8",    "u16",  "u32",    "u64",
                                        "s8",   "s16", "s32", "s64", "f16", "f32",  "f16x2", "bf16", "bf16x2", "f64"};
    for (const char *one : types)
        if (word == one)
            return true;
    return false;
}

/* The shape of a wgmma is a word, too: m64n128k16. */
static bool is_shape(const std::string &word)
{
    return word.compare(0, 4, "m64n") == 0 && word.size() > 7 && word.compare(word.size() - 3, 3, "k16") == 0;
}

static bool is_listed(const char *words, const std::string &word)
{
    const std::string all = std::string(" ") + words + " ";
    return all.find(" " + word + " ") != std::string::npos;
}

Handler handler_find(const Instruction &instruction)
{
    std::string name;
    for (const std::string &word : instruction.words)
        name += (name.empty() ? "" : ".") + word;
    for (const Row &row : table) {
        const size_t length = strlen(row.name);
        if (name.compare(0, length, row.name) != 0 || (name.size() > length && name[length] != '.'))
            continue;
        size_t at = 0;
        for (const std::string &word : instruction.words) {
            if (at > length && !is_listed(row.words, word) && !is_type(word) && !(row.handler == run_wgmma && is_shape(word)))
                return nullptr;
            at += word.size() + 1;
        }
        return row.handler;
    }
    return nullptr;
}
} // namespace emulation
