/*
 * operands.cpp - what an instruction reads and writes: registers of an asm statement, constants, special registers, and the numbers
 * that their bits stand for.
 */
#include "ptx.h"

namespace emulation
{
static uint64_t special(const Context &c, const std::string &name)
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
    stop_unknown(*c.site, ("the special register %" + name).c_str());
}

float as_float(uint64_t bits)
{
    return __uint_as_float((uint32_t)bits);
}

uint64_t of_float(float value)
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

uint64_t get(Context &c, const Operand &o, char kind, int bits)
{
    switch (o.kind) {
    case Operand::REGISTER:
        return o.negated ? !c.registers[o.index] : c.registers[o.index];
    case Operand::NUMBER:
        return kind == 'f' ? bits == 64 ? of_double((double)o.number) : of_float((float)o.number) : (uint64_t)o.number;
    case Operand::REAL:
        return bits == 64 ? of_double(o.real) : of_float((float)o.real);
    case Operand::SPECIAL:
        return special(c, o.name);
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

void set(Context &c, const Operand &o, uint64_t value, int bits)
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

int64_t as_signed(uint64_t value, int bits)
{
    return bits >= 64 ? (int64_t)value : (int64_t)(value << (64 - bits)) >> (64 - bits);
}

uint64_t low(uint64_t value, int bits)
{
    return bits >= 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

double number(uint64_t bits, const Type &t)
{
    if (t.kind == 'f')
        return t.bits == 64 ? as_double(bits) : t.bits == 16 ? (double)emulated_from_f16((uint16_t)bits) : (double)as_float(bits);
    if (t.kind == 'h')
        return (double)as_float((uint64_t)(uint16_t)bits << 16);
    return t.kind == 's' ? (double)as_signed(bits, t.bits) : (double)low(bits, t.bits);
}

uint64_t rounded(double value, const Type &t)
{
    if (t.kind == 'f')
        return t.bits == 64 ? of_double(value) : t.bits == 16 ? emulated_to_f16((float)value) : of_float((float)value);
    return emulated_to_bf16((float)value);
}

bool is_real(const Type &t)
{
    return t.kind == 'f' || t.kind == 'h';
}
} // namespace emulation
