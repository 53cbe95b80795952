/*
 * arithmetic.cpp - the instructions that only compute: moves, conversions, arithmetic, comparisons.
 */
#include "ptx.h"

#include <algorithm>

namespace emulation
{
void run_mov(Context &c, const Instruction &i)
{
    const Type t = i.type;
    set(c, i.operands[0], get(c, i.operands[1], t.kind, t.bits), t.kind == 'p' ? 64 : t.bits);
}

void run_cvta(Context &c, const Instruction &i)
{
    const uint64_t value = get(c, i.operands[1]);
    if (i.has(WORD("to")) && (i.has(WORD("shared")) || i.has(WORD("shared::cta"))))
        set(c, i.operands[0], emulated_shared_address((const void *)value));
    else if (!i.has(WORD("to")) && i.has(WORD("shared")))
        set(c, i.operands[0], (uint64_t)emulated_shared_pointer((uint32_t)value));
    else
        set(c, i.operands[0], value);
}

/* To the nearest, or toward zero, where the number next to it is the one whose bits are one less; with relu, none below zero. */
static uint64_t converted(const Instruction &i, double value, const Type &to)
{
    if (i.has(WORD("relu")) && value < 0)
        value = 0;
    const uint64_t bits = rounded(value, to);
    return i.has(WORD("rz")) && !std::isnan(value) && fabs(number(bits, to)) > fabs(value) ? bits - 1 : bits;
}

void run_cvt(Context &c, const Instruction &i)
{
    const Type from = i.from, to = i.type;
    const bool ftz = i.has(WORD("ftz"));
    if (to.lanes == 2) {
        double high = number(get(c, i.operands[1], from.kind, from.bits), from),
               down = number(get(c, i.operands[2], from.kind, from.bits), from);
        Type lane = to;
        lane.lanes = 1;
        set(c, i.operands[0], converted(i, high, lane) << 16 | converted(i, down, lane), 32);
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
        if (i.has(WORD("sat")))
            value = value > 1 ? 1 : value > 0 ? value : 0;
        if (ftz && fabs(value) < 0x1p-126)
            value = 0;
        set(c, i.operands[0], converted(i, value, to), to.bits);
        return;
    }
    int64_t value;
    if (i.has(WORD("sat")) && !is_real(from))
        stop_unknown(*c.site, i.text.c_str());
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

void run_real(Context &c, const Instruction &i)
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
        } else if (t.bits == 32 && t.kind == 'f' && (i.has(WORD("approx")) || i.has(WORD("full")))) {
            const int units = i.name == WORD("tanh")                           ? 1 << 12
                              : i.name == WORD("sin") || i.name == WORD("cos") ? 8
                              : i.name == WORD("div") || i.name == WORD("lg2") ? 2
                                                                               : 1;
            y = arithmetic(i.name, x[0], x[1], x[2]);
            if (!(i.name == WORD("ex2") && x[0] == 0)) /* which is 1 */
                y = (double)approximate(y, (float)x[0], (float)x[1], units);
        } else if (t.bits == 32 && i.name == WORD("ex2"))
            y = (double)exp2f((float)x[0]);
        else if (i.operands.size() == 4 && (i.name == WORD("max") || i.name == WORD("min")))
            y = arithmetic(i.name, arithmetic(i.name, x[0], x[1], 0), x[2], 0);
        else
            y = arithmetic(i.name, x[0], x[1], x[2]);
        if (i.has(WORD("NaN")) && (std::isnan(x[0]) || std::isnan(x[1]) || std::isnan(x[2])))
            y = NAN;
        if (i.has(WORD("sat")))
            y = y > 1 ? 1 : y > 0 ? y : 0;
        if (i.has(WORD("ftz")) && t.bits == 32 && fabs(y) < 0x1p-126)
            y = 0;
        result |= (rounded(y, t) & (t.bits == 16 ? 0xffff : ~UINT64_C(0))) << 16 * lane;
    }
    set(c, i.operands[0], result, t.bits * lanes);
}

void run_whole(Context &c, const Instruction &i)
{
    const Type t = i.type;
    if (is_real(t))
        return run_real(c, i);
    const uint32_t name = i.name;
    if (i.has(WORD("sat")))
        stop_unknown(*c.site, i.text.c_str());
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
    else if (name == WORD("bfind")) {
        const uint64_t of = is_signed && a < 0 ? ~(uint64_t)a : ua;
        y = of ? (uint64_t)(63 - __builtin_clzll(of)) : 0xffffffff, bits = 32;
    } else
        stop_unknown(*c.site, i.text.c_str());
    set(c, i.operands[0], y, bits);
}

void run_prmt(Context &c, const Instruction &i)
{
    set(c, i.operands[0],
        __byte_perm((uint32_t)get(c, i.operands[1]), (uint32_t)get(c, i.operands[2]), (uint32_t)get(c, i.operands[3])), 32);
}

void run_lop3(Context &c, const Instruction &i)
{
    uint32_t a = (uint32_t)get(c, i.operands[1]), b = (uint32_t)get(c, i.operands[2]), d = (uint32_t)get(c, i.operands[3]), y = 0;
    uint64_t table = get(c, i.operands[4]);
    for (int bit = 0; bit < 32; bit++)
        y |= (uint32_t)(table >> ((a >> bit & 1) * 4 + (b >> bit & 1) * 2 + (d >> bit & 1)) & 1) << bit;
    set(c, i.operands[0], y, 32);
}

void run_setp(Context &c, const Instruction &i)
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

void run_selp(Context &c, const Instruction &i)
{
    const Type t = i.type;
    set(c, i.operands[0], get(c, i.operands[3]) ? get(c, i.operands[1], t.kind, t.bits) : get(c, i.operands[2], t.kind, t.bits),
        t.bits);
}
} // namespace emulation
