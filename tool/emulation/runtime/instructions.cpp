/*
 * instructions.cpp - the instructions of PTX that are emulated: a row in the table at the end for each, by the first words of its
 * name. What is not in the table is outside of the vocabulary, and the emulation gate says so with the line.
 */
#include "ptx.h"

#include <algorithm>

namespace emulation
{
static std::string here()
{
    return thread_text(current) + site_text(Site{self().site});
}

/* ---- operands ---- */

static uint64_t special(const std::string &name)
{
    const emulated_position &at = emulated_here;
    const emulated_index *indices[] = {&at.thread, &at.block_size, &at.block, &at.grid};
    const char *names[] = {"tid.", "ntid.", "ctaid.", "nctaid."};
    for (int i = 0; i < 4; i++)
        if (name.compare(0, strlen(names[i]), names[i]) == 0) {
            char axis = name.back();
            return axis == 'x' ? indices[i]->x : axis == 'y' ? indices[i]->y : indices[i]->z;
        }
    const unsigned lane = (unsigned)(current % WARP);
    if (name == "laneid")
        return lane;
    if (name == "warpid")
        return (unsigned)(current % block_stride / WARP);
    if (name == "cluster_ctarank" || name == "cluster_ctaid.x")
        return (unsigned)rank_of(current);
    if (name == "cluster_nctarank" || name == "cluster_nctaid.x")
        return (unsigned)blocks;
    if (name == "cluster_ctaid.y" || name == "cluster_ctaid.z")
        return 0;
    if (name == "nsmid")
        return 2;
    if (name == "smid")
        return 0;
    if (name == "lanemask_eq")
        return 1u << lane;
    if (name == "lanemask_lt")
        return (1u << lane) - 1;
    if (name == "lanemask_le")
        return (2u << lane) - 1;
    if (name == "lanemask_gt")
        return ~((2u << lane) - 1);
    if (name == "lanemask_ge")
        return ~((1u << lane) - 1);
    if (name.compare(0, 5, "clock") == 0 || name.compare(0, 11, "globaltimer") == 0) {
        static uint64_t ticks = 1;
        return ticks += random_number() % 1000 + 1;
    }
    return ~UINT64_C(0);
}

static float as_float(uint64_t bits)
{
    return __uint_as_float((uint32_t)bits);
}

static uint64_t of_float(float value)
{
    return __float_as_uint(value);
}

static uint64_t of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t get(Context &c, const Operand &o, char kind = 'b', int bits = 64)
{
    switch (o.kind) {
    case Operand::REGISTER:
        return o.negated ? !c.registers[o.index] : c.registers[o.index];
    case Operand::NUMBER:
        return kind == 'f' ? bits == 64 ? of_double((double)o.number) : of_float((float)o.number) : (uint64_t)o.number;
    case Operand::REAL:
        return bits == 64 ? of_double(o.real) : of_float((float)o.real);
    case Operand::SPECIAL:
        return special(o.name);
    case Operand::VECTOR: { /* packed, the first lowest */
        uint64_t value = 0;
        int each = bits / (int)o.parts.size();
        for (size_t i = 0; i < o.parts.size(); i++)
            value |= (get(c, o.parts[i]) & (each >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << each) - 1)) << (each * (int)i);
        return value;
    }
    case Operand::LABEL:
        if (o.name == "true" || o.name == "WARP_SZ")
            return o.name == "true" ? 1 : 32;
        stop_unknown(*c.site, ("the operand " + o.name).c_str());
    default:
        return 0;
    }
}

static void set(Context &c, const Operand &o, uint64_t value, int bits = 64)
{
    if (o.kind == Operand::REGISTER) {
        c.registers[o.index] = bits >= 64 ? value : value & ((UINT64_C(1) << bits) - 1);
        c.written[o.index / 64] |= UINT64_C(1) << (o.index % 64);
    } else if (o.kind == Operand::VECTOR) {
        int each = bits / (int)o.parts.size();
        for (size_t i = 0; i < o.parts.size(); i++)
            set(c, o.parts[i], value >> (each * (int)i), each);
    } else if (o.kind == Operand::PAIR)
        set(c, o.parts[0], value, bits);
}

static int64_t as_signed(uint64_t value, int bits)
{
    return bits >= 64 ? (int64_t)value : (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static uint64_t low(uint64_t value, int bits)
{
    return bits >= 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

/* A number in a register of this type; halves are one lane. */
static double number(uint64_t bits, const Type &t)
{
    if (t.kind == 'f')
        return t.bits == 64 ? as_double(bits) : t.bits == 16 ? (double)emulated_from_f16((uint16_t)bits) : (double)as_float(bits);
    if (t.kind == 'h')
        return (double)as_float((uint64_t)(uint16_t)bits << 16);
    return t.kind == 's' ? (double)as_signed(bits, t.bits) : (double)low(bits, t.bits);
}

static uint64_t rounded(double value, const Type &t)
{
    if (t.kind == 'f')
        return t.bits == 64 ? of_double(value) : t.bits == 16 ? emulated_to_f16((float)value) : of_float((float)value);
    return emulated_to_bf16((float)value);
}

static bool is_real(const Type &t)
{
    return t.kind == 'f' || t.kind == 'h';
}

/* ---- moving and arithmetic ---- */

static void run_mov(Context &c, const Instruction &i)
{
    const Type t = i.type;
    set(c, i.operands[0], get(c, i.operands[1], t.kind, t.bits), t.kind == 'p' ? 64 : t.bits);
}

static void run_cvta(Context &c, const Instruction &i)
{
    const uint64_t value = get(c, i.operands[1]);
    if (i.has(WORD("to")) && (i.has(WORD("shared")) || i.has(WORD("shared::cta"))))
        set(c, i.operands[0], emulated_shared_address((const void *)value));
    else if (!i.has(WORD("to")) && i.has(WORD("shared")))
        set(c, i.operands[0], (uint64_t)emulated_shared_pointer((uint32_t)value));
    else
        set(c, i.operands[0], value);
}

static void run_cvt(Context &c, const Instruction &i)
{
    const Type from = i.from, to = i.type;
    const bool ftz = i.has(WORD("ftz"));
    if (to.lanes == 2) {
        double high = number(get(c, i.operands[1], from.kind, from.bits), from),
               down = number(get(c, i.operands[2], from.kind, from.bits), from);
        if (i.has(WORD("relu")))
            high = high > 0 ? high : 0, down = down > 0 ? down : 0;
        Type lane = to;
        lane.lanes = 1;
        set(c, i.operands[0], rounded(high, lane) << 16 | rounded(down, lane), 32);
        return;
    }
    const uint64_t bits = get(c, i.operands[1], from.kind, from.bits);
    if (is_real(to)) {
        double value = is_real(from)      ? number(bits, from)
                       : from.kind == 's' ? (double)as_signed(bits, from.bits)
                                          : (double)low(bits, from.bits);
        if (i.has(WORD("rni")))
            value = nearbyint(value);
        else if (i.has(WORD("rzi")))
            value = trunc(value);
        else if (i.has(WORD("rmi")))
            value = floor(value);
        else if (i.has(WORD("rpi")))
            value = ceil(value);
        else if (i.has(WORD("rz")) && to.kind == 'f' && to.bits == 32) {
            float near = (float)value;
            value = fabs((double)near) > fabs(value) ? (double)nextafterf(near, 0) : (double)near;
        }
        if (i.has(WORD("sat")))
            value = value > 1 ? 1 : value > 0 ? value : 0;
        if (ftz && fabs(value) < 0x1p-126)
            value = 0;
        set(c, i.operands[0], rounded(value, to), to.bits);
        return;
    }
    int64_t value;
    if (is_real(from)) {
        double real = number(bits, from);
        real = i.has(WORD("rni"))   ? nearbyint(real)
               : i.has(WORD("rmi")) ? floor(real)
               : i.has(WORD("rpi")) ? ceil(real)
                                    : trunc(real);
        double most = ldexp(1, to.kind == 's' ? to.bits - 1 : to.bits) - 1, least = to.kind == 's' ? -most - 1 : 0;
        real = std::isnan(real) ? 0 : real > most ? most : real < least ? least : real;
        value = to.kind == 's' ? (int64_t)real : (int64_t)(uint64_t)real;
    } else
        value = from.kind == 's' ? as_signed(bits, from.bits) : (int64_t)low(bits, from.bits);
    set(c, i.operands[0], (uint64_t)value, to.bits);
}

static double arithmetic(uint32_t name, double a, double b, double d)
{
    if (name == WORD("add"))
        return a + b;
    if (name == WORD("sub"))
        return a - b;
    if (name == WORD("mul"))
        return a * b;
    if (name == WORD("fma") || name == WORD("mad"))
        return fma(a, b, d);
    if (name == WORD("min"))
        return fmin(a, b);
    if (name == WORD("max"))
        return fmax(a, b);
    if (name == WORD("div"))
        return a / b;
    if (name == WORD("neg"))
        return -a;
    if (name == WORD("abs"))
        return fabs(a);
    if (name == WORD("ex2"))
        return exp2((double)(float)a);
    if (name == WORD("lg2"))
        return log2(a);
    if (name == WORD("rcp"))
        return 1 / a;
    if (name == WORD("sqrt"))
        return sqrt(a);
    if (name == WORD("rsqrt"))
        return 1 / sqrt(a);
    if (name == WORD("tanh"))
        return tanh(a);
    if (name == WORD("sin"))
        return sin(a);
    return cos(a);
}

static void run_real(Context &c, const Instruction &i)
{
    Type t = i.type;
    const int lanes = t.lanes;
    t.lanes = 1;
    uint64_t result = 0, in[3] = {0, 0, 0};
    for (size_t n = 1; n < i.operands.size() && n < 4; n++)
        in[n - 1] = get(c, i.operands[n], t.kind, t.bits == 16 ? 32 : t.bits);
    for (int lane = 0; lane < lanes; lane++) {
        double x[3];
        for (int n = 0; n < 3; n++) {
            x[n] = number(in[n] >> 16 * lane, t);
            if (i.has(WORD("ftz")) && t.bits == 32 && fabs(x[n]) < 0x1p-126)
                x[n] = 0;
        }
        double y;
        if (t.bits == 32 && (i.name == WORD("add") || i.name == WORD("sub") || i.name == WORD("mul") || i.name == WORD("fma") ||
                             i.name == WORD("mad"))) {
            float a = (float)x[0], b = (float)x[1];
            y = (double)(i.name == WORD("add")   ? a + b
                         : i.name == WORD("sub") ? a - b
                         : i.name == WORD("mul") ? a * b
                                                 : fmaf(a, b, (float)x[2]));
        } else if (t.bits == 32 && i.name == WORD("ex2"))
            y = (double)exp2f((float)x[0]);
        else if (i.operands.size() == 4 && (i.name == WORD("max") || i.name == WORD("min")))
            y = arithmetic(i.name, arithmetic(i.name, x[0], x[1], 0), x[2], 0);
        else
            y = arithmetic(i.name, x[0], x[1], x[2]);
        if (i.has(WORD("sat")))
            y = y > 1 ? 1 : y > 0 ? y : 0;
        if (i.has(WORD("ftz")) && t.bits == 32 && fabs(y) < 0x1p-126)
            y = 0;
        result |= (rounded(y, t) & (t.bits == 16 ? 0xffff : ~UINT64_C(0))) << 16 * lane;
    }
    set(c, i.operands[0], result, t.bits * lanes);
}

static void run_whole(Context &c, const Instruction &i)
{
    const Type t = i.type;
    if (is_real(t))
        return run_real(c, i);
    const uint32_t name = i.name;
    uint64_t in[3] = {0, 0, 0};
    for (size_t n = 1; n < i.operands.size() && n < 4; n++)
        in[n - 1] = get(c, i.operands[n]);
    const bool is_signed = t.kind == 's';
    const int64_t a = is_signed ? as_signed(in[0], t.bits) : (int64_t)low(in[0], t.bits),
                  b = is_signed ? as_signed(in[1], t.bits) : (int64_t)low(in[1], t.bits);
    const uint64_t ua = low(in[0], t.bits), ub = low(in[1], t.bits);
    uint64_t y = 0;
    int bits = t.kind == 'p' ? 64 : t.bits;
    if (name == WORD("add"))
        y = in[0] + in[1];
    else if (name == WORD("sub"))
        y = in[0] - in[1];
    else if (name == WORD("mul") || name == WORD("mad")) {
        unsigned __int128 product = is_signed ? (unsigned __int128)((__int128)a * b) : (unsigned __int128)ua * ub;
        y = i.has(WORD("hi")) ? (uint64_t)(product >> t.bits) : (uint64_t)product;
        bits = i.has(WORD("wide")) ? 2 * t.bits : t.bits;
        if (name == WORD("mad"))
            y += in[2];
    } else if (name == WORD("div"))
        y = !ub ? ~UINT64_C(0) : is_signed ? (uint64_t)(a / b) : ua / ub;
    else if (name == WORD("rem"))
        y = !ub ? ua : is_signed ? (uint64_t)(a % b) : ua % ub;
    else if (name == WORD("min"))
        y = is_signed ? (uint64_t)std::min(a, b) : std::min(ua, ub);
    else if (name == WORD("max"))
        y = is_signed ? (uint64_t)std::max(a, b) : std::max(ua, ub);
    else if (name == WORD("neg"))
        y = (uint64_t)-a;
    else if (name == WORD("abs"))
        y = (uint64_t)(a < 0 ? -a : a);
    else if (name == WORD("and"))
        y = in[0] & in[1];
    else if (name == WORD("or"))
        y = in[0] | in[1];
    else if (name == WORD("xor"))
        y = in[0] ^ in[1];
    else if (name == WORD("not"))
        y = t.kind == 'p' ? !in[0] : ~in[0];
    else if (name == WORD("shl"))
        y = low(in[1], 32) >= (uint64_t)t.bits ? 0 : in[0] << low(in[1], 32);
    else if (name == WORD("shr")) {
        uint64_t shift = low(in[1], 32);
        y = is_signed                   ? (uint64_t)(a >> (shift >= (uint64_t)t.bits ? t.bits - 1 : (int)shift))
            : shift >= (uint64_t)t.bits ? 0
                                        : ua >> shift;
    } else if (name == WORD("clz"))
        y = ua ? (uint64_t)(__builtin_clzll(ua) - (64 - t.bits)) : (uint64_t)t.bits, bits = 32;
    else if (name == WORD("popc"))
        y = (uint64_t)__builtin_popcountll(ua), bits = 32;
    else if (name == WORD("brev"))
        y = __brev((uint32_t)ua);
    else if (name == WORD("bfind"))
        y = ua ? (uint64_t)(63 - __builtin_clzll(ua)) : 0xffffffff, bits = 32;
    else
        stop_unknown(*c.site, i.text.c_str());
    set(c, i.operands[0], y, bits);
}

static void run_prmt(Context &c, const Instruction &i)
{
    set(c, i.operands[0],
        __byte_perm((uint32_t)get(c, i.operands[1]), (uint32_t)get(c, i.operands[2]), (uint32_t)get(c, i.operands[3])), 32);
}

static void run_lop3(Context &c, const Instruction &i)
{
    uint32_t a = (uint32_t)get(c, i.operands[1]), b = (uint32_t)get(c, i.operands[2]), d = (uint32_t)get(c, i.operands[3]), y = 0;
    uint64_t table = get(c, i.operands[4]);
    for (int bit = 0; bit < 32; bit++)
        y |= (uint32_t)(table >> ((a >> bit & 1) * 4 + (b >> bit & 1) * 2 + (d >> bit & 1)) & 1) << bit;
    set(c, i.operands[0], y, 32);
}

static void run_setp(Context &c, const Instruction &i)
{
    const Type t = i.type;
    const uint32_t how = i.digests[1];
    const uint64_t a = get(c, i.operands[1], t.kind, t.bits), b = get(c, i.operands[2], t.kind, t.bits);
    bool y;
    if (is_real(t)) {
        double x = number(a, t), z = number(b, t);
        bool unordered = std::isnan(x) || std::isnan(z);
        const std::string &full = i.words[1];
        std::string plain = full.size() == 3 && full.back() == 'u' ? full.substr(0, 2) : full;
        y = plain == "eq"    ? x == z
            : plain == "ne"  ? !unordered && x != z
            : plain == "lt"  ? x < z
            : plain == "le"  ? x <= z
            : plain == "gt"  ? x > z
            : plain == "ge"  ? x >= z
            : plain == "num" ? !unordered
                             : unordered;
        y = y || (full != plain && unordered);
    } else {
        int64_t x = as_signed(a, t.bits), z = as_signed(b, t.bits);
        uint64_t ux = low(a, t.bits), uz = low(b, t.bits);
        bool s = t.kind == 's';
        y = how == WORD("eq")                        ? ux == uz
            : how == WORD("ne")                      ? ux != uz
            : how == WORD("lt") || how == WORD("lo") ? (s ? x < z : ux < uz)
            : how == WORD("le") || how == WORD("ls") ? (s ? x <= z : ux <= uz)
            : how == WORD("gt") || how == WORD("hi") ? (s ? x > z : ux > uz)
                                                     : (s ? x >= z : ux >= uz);
    }
    if (i.operands.size() > 3) {
        bool other = get(c, i.operands[3]) != 0;
        y = i.has(WORD("and")) ? y && other : i.has(WORD("or")) ? y || other : y != other;
    }
    set(c, i.operands[0], y);
    if (i.operands[0].kind == Operand::PAIR)
        set(c, i.operands[0].parts[1], !y);
}

static void run_selp(Context &c, const Instruction &i)
{
    const Type t = i.type;
    set(c, i.operands[0], get(c, i.operands[3]) ? get(c, i.operands[1], t.kind, t.bits) : get(c, i.operands[2], t.kind, t.bits),
        t.bits);
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
        emulated_fence(1);
    if (i.has(WORD("volatile")) || i.has(WORD("acquire")) || i.has(WORD("relaxed")))
        if (++self().spins % 64 == 0)
            give_way();
}

static void run_st(Context &c, const Instruction &i)
{
    const Type t = i.type;
    const uint32_t each = (uint32_t)t.bits / 8, count = vector_length(i);
    if (i.has(WORD("release")))
        emulated_fence(1);
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
    if (i.has(WORD("red")))
        stop_unknown(*c.site, i.text.c_str());
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
    if (i.operands.size() > 4 || i.has(WORD("L2::cache_hint")))
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
        if (i.has(WORD("im2col")))
            stop_unknown(*c.site, i.text.c_str());
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
    if (what != WORD("mma_async") || !columns || i.has(WORD("sp")) || i.words[i.words.size() - 3] != "f32")
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
        self().grid_waited = true;
}

static const struct {
    const char *name; /* the instruction, or its first words */
    Handler handler;
} table[] = {
    {"cp.async.bulk", run_cp_async_bulk},
    {"cp.async", run_cp_async},
    {"st.async", run_st_async},
    {"bar.warp.sync", run_bar_warp},
    {"barrier.cluster", run_cluster},
    {"bar", run_bar},
    {"barrier", run_bar},
    {"mov", run_mov},
    {"cvta", run_cvta},
    {"cvt", run_cvt},
    {"add", run_whole},
    {"sub", run_whole},
    {"mul", run_whole},
    {"mad", run_whole},
    {"fma", run_whole},
    {"div", run_whole},
    {"rem", run_whole},
    {"min", run_whole},
    {"max", run_whole},
    {"neg", run_whole},
    {"abs", run_whole},
    {"and", run_whole},
    {"or", run_whole},
    {"xor", run_whole},
    {"not", run_whole},
    {"shl", run_whole},
    {"shr", run_whole},
    {"clz", run_whole},
    {"popc", run_whole},
    {"brev", run_whole},
    {"bfind", run_whole},
    {"prmt", run_prmt},
    {"lop3", run_lop3},
    {"ex2", run_real},
    {"lg2", run_real},
    {"rcp", run_real},
    {"sqrt", run_real},
    {"rsqrt", run_real},
    {"tanh", run_real},
    {"sin", run_real},
    {"cos", run_real},
    {"setp", run_setp},
    {"selp", run_selp},
    {"ld", run_ld},
    {"ldu", run_ld},
    {"st", run_st},
    {"atom", run_atom},
    {"red", run_atom},
    {"fence", run_fence},
    {"membar", run_fence},
    {"mbarrier", run_mbarrier},
    {"elect", run_elect},
    {"shfl", run_shfl},
    {"vote", run_vote},
    {"redux", run_redux},
    {"activemask", run_zero},
    {"ldmatrix", run_matrix},
    {"stmatrix", run_matrix},
    {"mma", run_mma},
    {"wgmma", run_wgmma},
    {"mapa", run_mapa},
    {"griddepcontrol", run_griddep},
    {"setmaxnreg", run_nothing},
    {"prefetch", run_nothing},
    {"prefetchu", run_nothing},
    {"discard", run_nothing},
    {"applypriority", run_nothing},
    {"createpolicy", run_zero},
    {"nanosleep", run_nanosleep},
    {"trap", run_trap},
    {"brkpt", run_trap},
    {"pmevent", run_nothing},
};

Handler handler_find(const Instruction &instruction)
{
    std::string name;
    for (const std::string &word : instruction.words)
        name += (name.empty() ? "" : ".") + word;
    for (const auto &row : table) {
        size_t length = strlen(row.name);
        if (name.compare(0, length, row.name) == 0 && (name.size() == length || name[length] == '.'))
            return row.handler;
    }
    return nullptr;
}
} // namespace emulation
