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
} // namespace emulation

#endif
