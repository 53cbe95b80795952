/*
 * cuda_listing.c - see cuda_listing.h.
 *
 * A line of a listing is an address, as a comment, and an instruction, such as
 *
 *     1ae0   @!P0 HGMMA.64x128x16.F32 R88, R152, gdesc[UR16].tnspB, R88, gsb0 ;
 *
 * What products may still read is a set of registers, empty at the start of a function; a product adds its four, a wait for all
 * products empties it. It is carried along every path until nothing changes any more. A call is followed into the function and past
 * it; what comes behind BSYNC is the next instruction.
 *
 * In the same way a second set is carried: registers, R and UR, that may hold something else than (a half of) the driver's descriptor.
 * At the start that is all of them; loading the descriptor takes a register out, moves copy, and every other result puts it in.
 */
#include "cuda_listing.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTERS = 256, UNIFORM = 128, OF_A_PRODUCT = 4, MOST_OPERANDS = 8 };

/* Registers are numbered: those that products read, those that may hold another descriptor, and of these the uniform ones. */
enum { OTHER_R = REGISTERS, OTHER_UR = OTHER_R + REGISTERS, NUMBERS = OTHER_UR + UNIFORM, WORDS = NUMBERS / 64 };

struct registers {
    uint64_t word[WORDS];
};

enum kind { OTHER, PRODUCT, WAIT, JUMP, CALL, END };

struct instruction {
    enum kind kind;
    bool conditional; /* what follows it in the listing may come next too */
    bool seen;
    long address, target;
    int first, count;                         /* registers that it writes; of a product: that it reads */
    int result, results;                      /* the same for descriptors: numbers from OTHER_R on */
    enum source { ANY, DRIVER, COPY } source; /* of the result */
    int copied;                               /* number from OTHER_R on */
    int descriptor;                           /* uniform register that it names; -1: none */
    const char *text;
    int length;
    struct registers read; /* by products that may be under way when it is reached */
};

/* ---- lines ------------------------------------------------------------------------------------------------------------------- */

struct operands {
    const char *at[MOST_OPERANDS];
    int length[MOST_OPERANDS];
    int count;
};

static bool begins(const char *text, const char *words)
{
    return strncmp(text, words, strlen(words)) == 0;
}

/* The number of a register such as R12; -1 if the operand is something else. */
static int register_of(const struct operands *operands, int n)
{
    char *end;
    if (n >= operands->count || operands->at[n][0] != 'R' || operands->at[n][1] < '0' || operands->at[n][1] > '9')
        return -1;
    long number = strtol(operands->at[n] + 1, &end, 10);
    return end == operands->at[n] + operands->length[n] && number < REGISTERS - 1 ? (int)number : -1;
}

static bool is_predicate(const struct operands *operands, int n)
{
    const char *at = operands->at[n] + (operands->at[n][0] == 'U');
    int length = operands->length[n] - (operands->at[n][0] == 'U');
    return length == 2 && at[0] == 'P' && (at[1] == 'T' || (at[1] >= '0' && at[1] <= '9'));
}

static struct operands operands_of(const char *text, const char *end)
{
    struct operands operands = {.count = 0};
    while (text < end && operands.count < MOST_OPERANDS) {
        while (text < end && (*text == ' ' || *text == ','))
            text++;
        const char *comma = memchr(text, ',', (size_t)(end - text)), *last = comma ? comma : end;
        while (last > text && last[-1] == ' ')
            last--;
        if (last > text) {
            operands.at[operands.count] = text;
            operands.length[operands.count++] = (int)(last - text);
        }
        text = comma ? comma : end;
    }
    return operands;
}

static bool has_word(const char *operation, int length, const char *word)
{
    return memmem(operation, (size_t)length, word, strlen(word)) != NULL;
}

/* How many registers a result takes. */
static int width_of(const char *operation, int length)
{
    bool matrices = begins(operation, "LDSM") || begins(operation, "HMMA");
    if (has_word(operation, length, ".128") || (matrices && operation[length - 1] == '4') ||
        (begins(operation, "HMMA") && has_word(operation, length, ".F32")))
        return 4;
    bool wide = has_word(operation, length, ".64") || has_word(operation, length, ".WIDE") || matrices ||
                begins(operation, "DADD") || begins(operation, "DMUL") || begins(operation, "DFMA");
    return wide ? 2 : 1;
}

/* Their first operand may be a register, and they do not write it. */
static bool writes_nothing(const char *operation)
{
    static const char *const words[] = {"ST",   "RED", "BAR",  "BSSY",  "BSYNC",  "BREAK", "SYNCS.ARRIVE",
                                        "WARP", "NOP", "UTMA", "FENCE", "MEMBAR", "CCTL",  "NANOSLEEP"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins(operation, words[i]))
            return true;
    return false;
}

static void set_result(struct instruction *instruction, const char *operation, int length, const struct operands *operands)
{
    int place = operands->count > 0 && is_predicate(operands, 0) ? 1 : 0, number = register_of(operands, place);
    if (number < 0 || writes_nothing(operation))
        return;
    instruction->first = number;
    instruction->count = width_of(operation, length);
}

/* Numbers from OTHER_R on of an operand that is a register; -1 if it is something else. */
static int number_of(const struct operands *operands, int n)
{
    if (n >= operands->count)
        return -1;
    struct operands one = {{operands->at[n]}, {operands->length[n]}, 1};
    const char *reuse = memmem(one.at[0], (size_t)one.length[0], ".reuse", 6);
    if (reuse)
        one.length[0] = (int)(reuse - one.at[0]);
    bool uniform = one.at[0][0] == 'U';
    one.at[0] += uniform;
    one.length[0] -= uniform;
    int number = register_of(&one, 0);
    return number < 0 || (uniform && number >= UNIFORM) ? -1 : (uniform ? OTHER_UR : OTHER_R) + number;
}

/* The words of constant bank 0 in which the driver leaves the descriptor, by architecture: 8.x, 9.0, 10.0 and 12.0. */
static bool is_descriptor(const char *operand, int length)
{
    static const char *const words[] = {"c[0x0][0x118]", "c[0x0][0x11c]", "c[0x0][0x208]",
                                        "c[0x0][0x20c]", "c[0x0][0x358]", "c[0x0][0x35c]"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if ((size_t)length == strlen(words[i]) && begins(operand, words[i]))
            return true;
    return false;
}

/* Halves of policies that pin nothing: 0, evict_first and evict_normal. */
static bool is_harmless(const char *operand, int length)
{
    static const char *const values[] = {"0x0", "URZ", "RZ", "0x12f00000", "0x10000000"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if ((size_t)length == strlen(values[i]) && begins(operand, values[i]))
            return true;
    return false;
}

/* What an instruction does to descriptors. */
static void set_descriptor(struct instruction *instruction, const char *operation, int length, const struct operands *operands)
{
    static const char *const moves[] = {"MOV",  "UMOV", "R2UR",   "IMAD.MOV.U32", "IMAD.U32", "LDC",
                                        "ULDC", "LDCU", "LDC.64", "ULDC.64",      "LDCU.64"};
    const char *desc = memmem(instruction->text, (size_t)instruction->length, " desc[UR", 8);
    instruction->descriptor = desc ? (int)strtol(desc + 8, NULL, 10) : -1;
    instruction->result = -1;
    int place = operands->count > 0 && is_predicate(operands, 0) ? 1 : 0, number = number_of(operands, place);
    if (number < 0 || writes_nothing(operation))
        return;
    instruction->result = number;
    instruction->results = width_of(operation, length);
    if (number + instruction->results > (number < OTHER_UR ? OTHER_UR : NUMBERS))
        instruction->results = 1;
    bool moves_on = false;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        moves_on = moves_on || ((size_t)length == strlen(moves[i]) && begins(operation, moves[i]));
    if (!moves_on || operands->count < place + 2)
        return;
    int last = operands->count - 1;
    if (is_descriptor(operands->at[last], operands->length[last]) || is_harmless(operands->at[last], operands->length[last]))
        instruction->source = DRIVER;
    else if ((instruction->copied = number_of(operands, last)) >= 0 && instruction->results == 1)
        instruction->source = COPY;
}

static void set_target(struct instruction *instruction, const struct operands *operands)
{
    for (int n = 0; n < operands->count; n++)
        if (begins(operands->at[n], "0x"))
            instruction->target = strtol(operands->at[n], NULL, 16);
    instruction->conditional = instruction->conditional || operands->count > 1;
}

/* Reads an instruction from a line; false if there is none in it. */
static bool instruction_read(const char *line, const char *end, struct instruction *instruction)
{
    while (line < end && (*line == ' ' || *line == '\t'))
        line++;
    if (end - line < 8 || !begins(line, "/*") || begins(line, "/* "))
        return false;
    char *after;
    long address = strtol(line + 2, &after, 16);
    const char *stop = memchr(line, ';', (size_t)(end - line));
    if (!begins(after, "*/") || !stop)
        return false;
    *instruction = (struct instruction){.address = address, .target = -1, .first = -1};
    line = after + 2;
    while (line < stop && *line == ' ')
        line++;
    instruction->text = line;
    instruction->length = (int)(stop - line);
    while (instruction->length > 0 && line[instruction->length - 1] == ' ')
        instruction->length--;
    if (*line == '@') {
        instruction->conditional = true;
        while (line < stop && *line != ' ')
            line++;
        while (line < stop && *line == ' ')
            line++;
    }
    const char *space = memchr(line, ' ', (size_t)(stop - line));
    int length = (int)((space ? space : stop) - line);
    struct operands operands = operands_of(line + length, stop);
    set_descriptor(instruction, line, length, &operands);
    if (begins(line, "HGMMA")) {
        int matrix = register_of(&operands, 1);
        instruction->kind = matrix >= 0 ? PRODUCT : OTHER;
        instruction->first = matrix;
        instruction->count = OF_A_PRODUCT;
        if (matrix < 0)
            instruction->count = 0;
    } else if (begins(line, "WARPGROUP.DEPBAR")) {
        instruction->kind = operands.count > 1 && begins(operands.at[1], "0x0") && operands.length[1] == 3 ? WAIT : OTHER;
    } else if (begins(line, "BRA") || begins(line, "CALL")) {
        instruction->kind = begins(line, "CALL") ? CALL : JUMP;
        set_target(instruction, &operands);
    } else if (begins(line, "EXIT") || begins(line, "RET")) {
        instruction->kind = END;
    } else {
        set_result(instruction, line, length, &operands);
    }
    return true;
}

/* ---- paths ------------------------------------------------------------------------------------------------------------------- */

static bool meets(const struct registers *set, int first, int count)
{
    for (int r = first; r < first + count && r < REGISTERS; r++)
        if (set->word[r / 64] >> r % 64 & 1)
            return true;
    return false;
}

/* The instruction at an address; -1 if there is none. They are in the order of their addresses. */
static int find(const struct instruction *code, int count, long address)
{
    int low = 0, high = count - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        if (code[middle].address == address)
            return middle;
        if (code[middle].address < address)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return -1;
}

/* The set goes on to instruction `n`, which is looked at (again) if that is new to it. */
static void carry(struct instruction *code, int n, const struct registers *set, int *waiting, int *count)
{
    bool more = !code[n].seen;
    for (int i = 0; i < WORDS; i++) {
        more = more || (set->word[i] & ~code[n].read.word[i]);
        code[n].read.word[i] |= set->word[i];
    }
    if (more) {
        code[n].seen = true;
        waiting[(*count)++] = n;
    }
}

static bool has(const struct registers *set, int number)
{
    return set->word[number / 64] >> number % 64 & 1;
}

/* The set of registers with another descriptor, behind an instruction. */
static void descriptors_after(const struct instruction *here, struct registers *set)
{
    for (int n = here->result; n >= 0 && n < here->result + here->results; n++) {
        uint64_t bit = (uint64_t)1 << n % 64;
        bool other = here->source == ANY || (here->source == COPY && has(set, here->copied));
        if (other)
            set->word[n / 64] |= bit;
        else if (!here->conditional)
            set->word[n / 64] &= ~bit;
    }
}

/* One function. `waiting` has room for as many numbers as an instruction can change: once for each number, and once at all. */
static void follow(struct instruction *code, int count, int *waiting, struct cuda_listing *listing)
{
    struct registers start = {{0}};
    int left = 0;
    for (int n = OTHER_R; n < NUMBERS; n++)
        start.word[n / 64] |= (uint64_t)1 << n % 64;
    if (count > 0)
        carry(code, 0, &start, waiting, &left);
    while (left > 0) {
        int n = waiting[--left];
        const struct instruction *here = &code[n];
        struct registers set = here->read;
        for (int i = 0; here->kind == WAIT && i < OTHER_R / 64; i++)
            set.word[i] = 0;
        descriptors_after(here, &set);
        for (int r = here->first; here->kind == PRODUCT && r < here->first + here->count; r++)
            set.word[r / 64] |= (uint64_t)1 << r % 64;
        int target = here->target >= 0 ? find(code, count, here->target) : -1;
        if (target >= 0)
            carry(code, target, &set, waiting, &left);
        bool stops = (here->kind == JUMP || here->kind == END) && !here->conditional;
        if (!stops && n + 1 < count)
            carry(code, n + 1, &set, waiting, &left);
    }
    for (int n = 0; n < count; n++) {
        const struct instruction *here = &code[n];
        listing->products += here->kind == PRODUCT;
        int descriptor = here->descriptor >= 0 && here->descriptor < UNIFORM - 1 ? OTHER_UR + here->descriptor : -1;
        if (here->seen && descriptor >= 0 && (has(&here->read, descriptor) || has(&here->read, descriptor + 1)) &&
            listing->policies++ == 0)
            snprintf(listing->policy, sizeof listing->policy, "%#lx %.*s", here->address, here->length, here->text);
        if (here->kind != OTHER || here->count == 0 || !meets(&here->read, here->first, here->count))
            continue;
        if (listing->early++ == 0)
            snprintf(listing->first, sizeof listing->first, "%#lx %.*s", here->address, here->length, here->text);
    }
    listing->instructions += count;
}

bool cuda_listing_read(const char *text, struct cuda_listing *listing)
{
    *listing = (struct cuda_listing){0};
    int lines = 1;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    struct instruction *code = calloc((size_t)lines, sizeof *code);
    int *waiting = malloc((size_t)lines * (NUMBERS + 1) * sizeof *waiting), count = 0;
    bool good = code && waiting;
    for (const char *line = text; good && line;) {
        const char *newline = strchr(line, '\n'), *end = newline ? newline : line + strlen(line);
        struct instruction instruction;
        if (instruction_read(line, end, &instruction)) {
            if (count > 0 && instruction.address <= code[count - 1].address) { /* the next function */
                follow(code, count, waiting, listing);
                count = 0;
            }
            code[count++] = instruction;
        }
        line = newline ? newline + 1 : NULL;
    }
    if (good)
        follow(code, count, waiting, listing);
    free(code);
    free(waiting);
    return good;
}
