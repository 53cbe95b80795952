/*
 * ptx.h - the text of an asm statement as a list of instructions.
 */
#ifndef EMULATED_PTX_H
#define EMULATED_PTX_H

#include "emulator.h"

namespace emulation
{
constexpr int MOST_OPERANDS = 192, MOST_REGISTERS = 256; /* of the statement, and with those that the text declares */

struct Operand {
    enum Kind { REGISTER, NUMBER, REAL, MEMORY, VECTOR, SPECIAL, NONE, PAIR, LABEL } kind;
    int index;      /* of a register */
    bool negated;   /* a predicate */
    int64_t number; /* NUMBER, or the offset of MEMORY */
    double real;    /* REAL */
    std::string name;
    std::vector<Operand> parts; /* MEMORY: the base, and coordinates; VECTOR, PAIR */
};

/* Words are compared by their digests. */
constexpr uint32_t digest_of(const char *word)
{
    uint32_t digest = 2166136261u;
    for (; *word; word++)
        digest = (digest ^ (uint8_t)*word) * 16777619u;
    return digest;
}
#define WORD(text) (std::integral_constant<uint32_t, digest_of(text)>::value)

struct Type {
    char kind; /* u, s, b, f, h (bf16), p */
    int bits, lanes;
};
Type type_of(const std::string &word);

struct Context;
struct Instruction;
typedef void (*Handler)(Context &context, const Instruction &instruction);

struct Instruction {
    std::vector<std::string> words; /* of the opcode: {"ld", "volatile", "global", "b16"} */
    std::string text;
    int predicate; /* a register, or -1 */
    bool negated;
    std::vector<Operand> operands;
    int target; /* of a branch */
    Handler handler;
    std::vector<uint32_t> digests; /* of the words */
    uint32_t name;                 /* of the first */
    Type type, from;               /* the last word, and of a conversion the one before is `type` */
    bool has(uint32_t word) const
    {
        for (uint32_t one : digests)
            if (one == word)
                return true;
        return false;
    }
};

struct Program {
    std::vector<Instruction> instructions;
    std::string unknown; /* the first instruction that is not emulated; its handler is NULL */
};

struct Context {
    uint64_t registers[MOST_REGISTERS];
    uint64_t written[MOST_REGISTERS / 64]; /* bits */
    emulated_operand *operands;
    int operand_count, next;
    const emulated_site *site;
};

/* The handler of an instruction; NULL if it is not emulated. */
Handler handler_find(const Instruction &instruction);

Program *program_parse(const char *text);

/* ---- operands.cpp ---- */

/* The bits of an operand: a constant becomes those of a number of this kind and so many bits. */
uint64_t get(Context &c, const Operand &o, char kind = 'b', int bits = 64);
void set(Context &c, const Operand &o, uint64_t value, int bits = 64);
float as_float(uint64_t bits);
uint64_t of_float(float value);
int64_t as_signed(uint64_t value, int bits);
uint64_t low(uint64_t value, int bits);
bool is_real(const Type &t);
double number(uint64_t bits, const Type &t); /* in a register of this type; halves are one lane */
uint64_t rounded(double value, const Type &t);

/* ---- arithmetic.cpp ---- */

void run_mov(Context &c, const Instruction &i);
void run_cvta(Context &c, const Instruction &i);
void run_cvt(Context &c, const Instruction &i);
void run_real(Context &c, const Instruction &i);
void run_whole(Context &c, const Instruction &i);
void run_prmt(Context &c, const Instruction &i);
void run_lop3(Context &c, const Instruction &i);
void run_setp(Context &c, const Instruction &i);
void run_selp(Context &c, const Instruction &i);
} // namespace emulation

#endif
