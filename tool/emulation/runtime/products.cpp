/*
 * products.cpp - what a warp or a warpgroup does with matrices: ldmatrix, stmatrix, mma.sync, wgmma, and nvcuda::wmma.
 *
 * A wgmma reads shared memory at any time between the instruction and the wait for it, by the asynchronous proxy: each of its warps
 * is an agent that reads all of A and B from the instruction on. It is computed when the warp waits for it, or at once, as the order
 * says; until then its accumulators are NaN, and whoever touches them is found out.
 */
#include "emulator.h"

#include "tensor_core.h"

namespace emulation
{
extern unsigned char window[];
constexpr uint32_t UNDER_WAY = 0x7fd5a5c3; /* NaN */

static std::string here()
{
    return thread_text(current) + site_text(Site{self().site});
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float element(uint16_t bits, bool bf16)
{
    return bf16 ? __uint_as_float((uint32_t)bits << 16) : emulated_from_f16(bits);
}

/* ---- ldmatrix and stmatrix ---- */

struct Move {
    uint32_t **registers;
    uint32_t address;
    int count;
    bool transposed, store;
};

/* Row n % 8 of matrix n / 8 lies where lane n says; element (row, column) of matrix i belongs into half column % 2 of register i of
 * lane row * 4 + column / 2, and of a transposed one that of (column, row). */
static void move(Collective &all, int first)
{
    const Move &own = *(Move *)all.pointer[0];
    const int warp = warp_of(first);
    const Time time = own.store ? 0 : warp_tick(warp);
    for (int line = 0; line < own.count * 8; line++) {
        const Move &lane = *(Move *)all.pointer[line];
        const char *what = own.store ? "stmatrix" : "ldmatrix";
        const int before = current;
        current = first + line;
        const Place place = shared_place(lane.address, 16, 16, what);
        Access access = asm_access(own.store, what);
        if (!own.store) {
            access.agent = agents.warps + warp;
            access.time = time;
        }
        shared_access(place.rank, place.offset, 16, access);
        current = before;
        unsigned char *memory = shared_bytes_of(place);
        for (int column = 0; column < 8; column++) {
            int row = line % 8, owner = own.transposed ? column * 4 + row / 2 : row * 4 + column / 2;
            unsigned char *half = (unsigned char *)((Move *)all.pointer[owner])->registers[line / 8] +
                                  (own.transposed ? row % 2 : column % 2) * sizeof(uint16_t);
            if (own.store)
                memcpy(memory + column * 2, half, sizeof(uint16_t));
            else
                memcpy(half, memory + column * 2, sizeof(uint16_t));
        }
    }
}

void matrices_move(uint32_t **registers, int count, bool transposed, uint32_t address, bool store)
{
    Move own = {registers, address, count, transposed, store};
    collect(0xffffffffu, 0, &own, move, store ? "at stmatrix" : "at ldmatrix");
}

/* ---- mma.sync ---- */

struct Fragments {
    float **c;
    const uint32_t *a, *b;
    bool bf16;
};

static void multiply_fragments(Collective &all, int)
{
    static Matrices matrices;
    for (int lane = 0; lane < WARP; lane++) {
        const Fragments &own = *(Fragments *)all.pointer[lane];
        const int row = lane / 4, column = lane % 4 * 2;
        for (int half = 0; half < 2; half++) {
            for (int i = 0; i < 4; i++)
                matrices.a[row + i % 2 * 8][column + half + i / 2 * 8] = element((uint16_t)(own.a[i] >> 16 * half), own.bf16);
            for (int i = 0; i < 2; i++)
                matrices.b[column + half + i * 8][row] = element((uint16_t)(own.b[i] >> 16 * half), own.bf16);
        }
        for (int i = 0; i < 4; i++)
            matrices.c[row + i / 2 * 8][column + i % 2] = *own.c[i];
    }
    multiply_add(matrices, 8);
    for (int lane = 0; lane < WARP; lane++)
        for (int i = 0; i < 4; i++)
            *((Fragments *)all.pointer[lane])->c[i] = matrices.c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}

void product_warp(float **c, const uint32_t *a, const uint32_t *b, bool bf16)
{
    Fragments own = {c, a, b, bf16};
    collect(0xffffffffu, 0, &own, multiply_fragments, "at mma.sync");
}

/* ---- wgmma ---- */

struct Chain { /* accumulators, of one product or of several in turn, while they are under way */
    std::vector<float *> at[WARP];
    std::vector<float> value[WARP];
    int pending;
};

struct Product {
    Chain *chain;
    int columns;
    bool bf16, transposed, accumulate, from_registers, computed;
    float scale;
    uint64_t a, b;
    uint32_t registers[WARP][4];
    Time group;
    bool torn; /* what it read was not what it should be */
    Site site;
};

struct Issue { /* as one thread gives it */
    float **c;
    int columns;
    bool bf16, transposed, accumulate;
    float scale;
    const uint32_t *registers;
    uint64_t a, b;
};

struct WarpProducts {
    std::deque<Product> queue;
    std::map<float *, Chain> chains;
    Time closed;
    size_t issued;
    bool fenced;
};
struct Overwritten {
    Site other;
    std::string why;
};
typedef std::map<std::pair<int, Time>, Overwritten> Groups; /* by warp and group */
static Groups in_doubt_now, without_result;
static std::vector<WarpProducts> products;
static std::vector<std::vector<Issue>> group_issued;

bool products_in_doubt()
{
    return !in_doubt_now.empty();
}

void products_reset(bool again)
{
    without_result.clear();
    if (again)
        without_result.swap(in_doubt_now);
    in_doubt_now.clear();
    products.assign(fibers.size() / WARP, WarpProducts());
    group_issued.assign(fibers.size() / GROUP + 1, {});
}

static void tick(Collective &, int first)
{
    products[(size_t)warp_of(first)].fenced = true;
}

void product_fence()
{
    collect(0xffffffffu, 0, nullptr, tick, "at wgmma.fence");
}

static void commit(Collective &, int first)
{
    WarpProducts &own = products[(size_t)warp_of(first)];
    own.closed++;
}

void product_commit()
{
    collect(0xffffffffu, 0, nullptr, commit, "at wgmma.commit_group");
}

static uint32_t swizzled(uint32_t address)
{
    return address ^ ((address >> 7 & 7) << 4);
}

/* Calls `each` with the offset in shared memory of every 16 bytes of a matrix: line is a row of A or a column of B. K-major: eight
 * lines of 128 bytes lie behind each other, and the next eight `stride` further; a chunk goes along k. Else eight k of 64 lines lie
 * behind each other, the next eight k `stride` further, and the next 64 lines `leading` further; a chunk goes along lines. */
template <typename Each> static void matrix_walk(uint64_t descriptor, bool k_major, int lines, Each each)
{
    const uint32_t base = (uint32_t)(descriptor & 0x3fff) << 4, leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                   stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4;
    for (int line = 0; line < lines; line += k_major ? 1 : 8)
        for (int k = 0; k < STEP; k += k_major ? 8 : 1) {
            uint32_t offset =
                k_major ? (uint32_t)(line % 8 * 128 + k * 2) + (uint32_t)(line / 8) * stride
                        : (uint32_t)(line % 64 * 2 + k % 8 * 128) + (uint32_t)(line / 64) * leading + (uint32_t)(k / 8) * stride;
            each(line, k, swizzled(base + offset));
        }
}

static void multiply(WarpProducts &own, Product &one, int first)
{
    static Matrices matrices;
    (void)own;
    const int top = first / WARP % 4 * 16, rank = rank_of(first);
    auto chunk_at = [&](uint32_t address) {
        static uint16_t chunk[8];
        memcpy(chunk, shared_bytes_of(Place{rank, address - SHARED_BASE}), sizeof chunk);
        return chunk;
    };
    if (!one.from_registers)
        matrix_walk(one.a, true, 64, [&](int line, int k, uint32_t address) {
            if (line < top || line >= top + 16)
                return;
            const uint16_t *chunk = chunk_at(address);
            for (int n = 0; n < 8; n++)
                matrices.a[line - top][k + n] = one.scale * element(chunk[n], one.bf16);
        });
    for (int lane = 0; lane < WARP && one.from_registers; lane++)
        for (int i = 0; i < 4; i++)
            for (int half = 0; half < 2; half++)
                matrices.a[lane / 4 + i % 2 * 8][lane % 4 * 2 + half + i / 2 * 8] =
                    one.scale * element((uint16_t)(one.registers[lane][i] >> 16 * half), one.bf16);
    matrix_walk(one.b, !one.transposed, one.columns, [&](int line, int k, uint32_t address) {
        const uint16_t *chunk = chunk_at(address);
        for (int n = 0; n < 8; n++)
            matrices.b[one.transposed ? k : k + n][one.transposed ? line + n : line] = element(chunk[n], one.bf16);
    });
    const auto each_pair = [&](auto visit) {
        for (int lane = 0; lane < WARP; lane++) {
            float *pair = one.chain->value[lane].data();
            for (int column = lane % 4 * 2; column < one.columns; column += 8)
                for (int row = lane / 4; row < 16; row += 8, pair += 2)
                    visit(pair, &matrices.c[row][column]);
        }
    };
    each_pair([&](const float *pair, float *c) {
        c[0] = one.accumulate ? pair[0] : 0;
        c[1] = one.accumulate ? pair[1] : 0;
    });
    multiply_add(matrices, one.columns);
    each_pair([](float *pair, const float *c) {
        pair[0] = c[0];
        pair[1] = c[1];
    });
    one.computed = true;
}

static void check_reads(const Product &one, int first)
{
    const int warp = warp_of(first), rank = rank_of(first);
    /* What any lane of the warp has waited for, the warp has. */
    static Clock joined;
    joined.clear();
    for (int lane = 0; lane < WARP; lane++)
        joined.join(fibers[(size_t)(first + lane)].clock);
    Access access = asm_access(false, "wgmma");
    access.agent = agents.products + warp;
    access.time = one.group;
    access.clock = &joined;
    access.async = true;
    auto read = [&](int, int, uint32_t address) {
        const Place place = shared_place(address, 16, 16, "wgmma");
        shared_access(rank, place.offset, 16, access);
    };
    if (!one.from_registers)
        matrix_walk(one.a, true, 64, read);
    matrix_walk(one.b, !one.transposed, one.columns, read);
}

static void issue(Collective &all, int first)
{
    WarpProducts &own = products[(size_t)warp_of(first)];
    const Issue &one = *(Issue *)all.pointer[0];
    if (!own.fenced)
        stop("a wgmma without wgmma.fence before it since the last wait (%s)", here().c_str());
    if (one.b >> 62 != 1 || (!one.registers && one.a >> 62 != 1))
        stop("a wgmma with something that is no descriptor, or of another swizzle than 128 bytes (%s)", here().c_str());
    std::vector<Issue> &group = group_issued[(size_t)(first / GROUP)];
    if (own.issued == group.size())
        group.push_back(one);
    const Issue &same = group[own.issued++];
    for (int lane = 0; lane < WARP; lane++) {
        const Issue &other = *(Issue *)all.pointer[lane];
        if (other.a != same.a || other.b != same.b || other.columns != same.columns || other.transposed != same.transposed ||
            other.accumulate != same.accumulate)
            stop("threads of a warpgroup issue different wgmma (%s)", here().c_str());
    }
    Chain &chain = own.chains[one.c[0]];
    for (int lane = 0; lane < WARP; lane++) {
        const Issue &other = *(Issue *)all.pointer[lane];
        if (!chain.pending) {
            chain.at[lane].assign(other.c, other.c + one.columns / 2);
            chain.value[lane].resize((size_t)one.columns / 2);
            for (int i = 0; i < one.columns / 2; i++)
                chain.value[lane][(size_t)i] = *other.c[i];
        } else if ((int)chain.at[lane].size() != one.columns / 2)
            stop("a wgmma with accumulators of another one under way, of another shape (%s)", here().c_str());
        for (int i = 0; i < one.columns / 2; i++) {
            if (chain.pending && bits_of(*other.c[i]) != UNDER_WAY)
                stop("accumulator %d of a wgmma under way was written before the wait for it (%s)", i, here().c_str());
            memcpy(other.c[i], &UNDER_WAY, sizeof UNDER_WAY);
        }
    }
    chain.pending++;
    Product product = {&chain, one.columns, one.bf16, one.transposed, one.accumulate, one.registers != nullptr, false, one.scale,
                       one.a,  one.b,       {},       own.closed + 1, false,          Site{self().site}};
    for (int lane = 0; lane < WARP && one.registers; lane++)
        memcpy(product.registers[lane], ((Issue *)all.pointer[lane])->registers, sizeof product.registers[lane]);
    const auto found = without_result.find({warp_of(first), product.group});
    if (found != without_result.end()) {
        product.torn = true;
        note_torn(product.site, found->second.other, found->second.why);
    }
    own.queue.push_back(product);
    check_reads(own.queue.back(), first);
    if (schedule.early)
        multiply(own, own.queue.back(), first);
}

void product_issue(float **c, int columns, bool bf16, bool transposed, bool accumulate, float scale_a, float scale_b,
                   const uint32_t *registers, uint64_t a, uint64_t b)
{
    Issue own = {c, columns, bf16, transposed, accumulate, scale_a * scale_b, registers, a, b};
    collect(0xffffffffu, 0, &own, issue, "at wgmma");
}

static void wait(Collective &all, int first)
{
    const int warp = warp_of(first);
    WarpProducts &own = products[(size_t)warp];
    const Time open = (Time)(uintptr_t)all.pointer[0], last = own.closed > open ? own.closed - open : 0;
    own.fenced = false;
    while (!own.queue.empty() && own.queue.front().group <= last) {
        Product &one = own.queue.front();
        if (!one.computed)
            multiply(own, one, first);
        for (int lane = 0; lane < WARP && one.torn; lane++)
            for (float &value : one.chain->value[lane])
                memcpy(&value, &UNDER_WAY, sizeof UNDER_WAY);
        Chain &chain = *one.chain;
        own.queue.pop_front();
        if (--chain.pending)
            continue;
        float *key = chain.at[0][0];
        for (int lane = 0; lane < WARP; lane++)
            for (size_t i = 0; i < chain.at[lane].size(); i++) {
                if (bits_of(*chain.at[lane][i]) != UNDER_WAY)
                    stop("accumulator %zu of a wgmma under way was written before the wait for it (%s)", i, here().c_str());
                *chain.at[lane][i] = chain.value[lane][i];
            }
        own.chains.erase(key);
    }
    for (int lane = 0; lane < WARP; lane++) {
        Time &known = fibers[(size_t)(first + lane)].clock.known[(size_t)(agents.products + warp)];
        known = known > last ? known : last;
    }
}

void product_torn(const Torn &product, const std::string &why)
{
    bool under_way = false;
    for (Product &one : products[(size_t)product.warp].queue)
        if (one.group == product.group) {
            under_way = one.torn = true;
            note_torn(one.site, product.other, why);
        }
    if (!under_way)
        in_doubt_now.insert({{product.warp, product.group}, {product.other, why}});
}

void product_wait(int open)
{
    collect(0xffffffffu, 0, (void *)(uintptr_t)open, wait, "at wgmma.wait_group");
}

void products_check_end()
{
    for (size_t warp = 0; warp < products.size(); warp++) {
        current = (int)warp * WARP;
        if (!products[warp].queue.empty())
            stop("a block ends with a wgmma that was not waited for (%s)", thread_text(current).c_str());
        if (products[warp].issued != products[warp / 4 * 4].issued)
            stop("warps of a warpgroup issue different numbers of wgmma (%s)", thread_text(current).c_str());
    }
}

/* ---- nvcuda::wmma ---- */

struct FragmentMove {
    unsigned char *own;
};
struct FragmentShape {
    const unsigned char *at;
    unsigned pitch;
    int rows, columns, element;
    bool column_major, store;
};
static FragmentShape shape;

static void touch(const unsigned char *at, uint32_t bytes, const Access &access)
{
    if (at >= window && at < window + shared_bytes)
        shared_access(block_rank, (uint32_t)(at - window), bytes, access);
    else
        global_access((uint64_t)at, bytes, access);
}

static void move_fragment(Collective &all, int first)
{
    const Time time = warp_tick(warp_of(first));
    Access access = asm_access(shape.store, shape.store ? "store_matrix_sync" : "load_matrix_sync");
    access.agent = agents.warps + warp_of(first);
    access.time = time;
    const int each = shape.rows * shape.columns / WARP;
    for (int index = 0; index < shape.rows * shape.columns; index++) {
        int row = index / shape.columns, column = index % shape.columns;
        size_t place = shape.column_major ? (size_t)column * shape.pitch + (size_t)row : (size_t)row * shape.pitch + (size_t)column;
        unsigned char *memory = (unsigned char *)shape.at + place * (size_t)shape.element;
        unsigned char *own = (unsigned char *)all.pointer[index / each] + index % each * shape.element;
        touch(memory, (uint32_t)shape.element, access);
        if (shape.store)
            memcpy(memory, own, (size_t)shape.element);
        else
            memcpy(own, memory, (size_t)shape.element);
    }
}

struct Operands {
    const float *a, *b;
    float *c;
};

static void multiply_wmma(Collective &all, int)
{
    static Matrices matrices;
    for (int index = 0; index < 256; index++) {
        const Operands &own = *(Operands *)all.pointer[index / 8];
        matrices.a[index / 16][index % 16] = own.a[index % 8];
        matrices.b[index / 16][index % 16] = own.b[index % 8];
        matrices.c[index / 16][index % 16] = own.c[index % 8];
    }
    multiply_add(matrices, 16);
    for (int index = 0; index < 256; index++)
        ((Operands *)all.pointer[index / 8])->c[index % 8] = matrices.c[index / 16][index % 16];
}
} // namespace emulation

using namespace emulation;

extern "C" {
static void fragment(const void *at, unsigned pitch, int rows, int columns, int element, const unsigned char *own,
                     bool column_major, bool store)
{
    shape = {(const unsigned char *)at, pitch, rows, columns, element, column_major, store};
    collect(0xffffffffu, 0, (void *)(uintptr_t)own, move_fragment, store ? "at store_matrix_sync" : "at load_matrix_sync");
}

void emulated_load_fragment(const void *at, unsigned pitch, int rows, int columns, int element, unsigned char *to,
                            bool column_major)
{
    self().site = __builtin_return_address(0);
    fragment(at, pitch, rows, columns, element, to, column_major, false);
}

void emulated_store_fragment(void *at, unsigned pitch, int rows, int columns, int element, const unsigned char *from,
                             bool column_major)
{
    self().site = __builtin_return_address(0);
    fragment(at, pitch, rows, columns, element, from, column_major, true);
}

void emulated_fragment_product(const float *a, const float *b, float *c)
{
    self().site = __builtin_return_address(0);
    Operands own = {a, b, c};
    collect(0xffffffffu, 0, &own, multiply_wmma, "at mma_sync");
}

float emulated_from_f16(uint16_t bits)
{
    static const std::vector<float> values = [] {
        std::vector<float> all(1 << 16);
        for (uint32_t n = 0; n < 1 << 16; n++) {
            const uint32_t exponent = n >> 10 & 31, fraction = n & 1023, sign = n >> 15 << 31;
            if (exponent == 31)
                all[n] = __uint_as_float(sign | 0x7f800000 | fraction << 13);
            else if (exponent)
                all[n] = __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
            else
                all[n] = (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
        }
        return all;
    }();
    return values[bits];
}

uint16_t emulated_to_f16(float value)
{
    const uint32_t bits = __float_as_uint(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t)0x7fff;
    if (magnitude >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) { /* denormal: a whole number of 2^-24, rounded to the nearest even */
        double scaled = (double)__uint_as_float(magnitude) * 0x1p24;
        return (uint16_t)(sign | (uint32_t)nearbyint(scaled));
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((rounded >> 13) - (112 << 10)));
}

uint16_t emulated_to_bf16(float value)
{
    const uint32_t bits = __float_as_uint(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
}
