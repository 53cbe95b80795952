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
 */
#include "cuda_listing.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTERS = 256, WORDS = REGISTERS / 64, OF_A_PRODUCT = 4, MOST_OPERANDS = 8 };

struct registers {
    uint64_t word[WORDS];
};

enum kind { OTHER, PRODUCT, WAIT, JUMP, CALL, END };

struct instruction {
    enum kind kind;
    bool conditional; /* what follows it in the listing may come next too */
    bool seen;
    long address, target;
    int first, count; /* registers that it writes; of a product: that it reads */
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

/* One function. `waiting` has room for as many numbers as an instruction can change: once for each register, and once at all. */
static void follow(struct instruction *code, int count, int *waiting, struct cuda_listing *listing)
{
    const struct registers none = {{0}};
    int left = 0;
    if (count > 0)
        carry(code, 0, &none, waiting, &left);
    while (left > 0) {
        int n = waiting[--left];
        const struct instruction *here = &code[n];
        struct registers set = here->read;
        if (here->kind == WAIT)
            set = none;
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
    int *waiting = malloc((size_t)lines * (REGISTERS + 1) * sizeof *waiting), count = 0;
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
