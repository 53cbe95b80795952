/*
 * kernel_constants.c - see kernel_constants.h.
 *
 * Of a CPU kernel the code that ships is read, not the source: what the compiler folded is there as the number that it came to, and no spelling hides
 * it. An immediate operand of a comparison is a threshold, and so are both ends of a range, which compilers make into a subtraction and
 * one comparison; a factor is what a remainder is taken of, or a ratio is compared with. Operands of other additions, masks and moves come behind them. A displacement
 * counts as what it adds in `lea`. Of a CUDA kernel the preprocessed text is read, in which numbers next to a comparison or a remainder come
 * first.
 */
#include "kernel_constants.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "code_listing.h"
#include "elf_image.h"
#include "base/session.h"

#define MOST_VALUE (INT64_C(1) << 21)

/* The first word of an instruction is this one, with or without a letter for its width. */
static bool is_word(const struct code_line *line, const char *word)
{
    size_t length = strlen(word);
    const char *at = line->mnemonic;
    return strncmp(at, word, length) == 0 &&
           (at[length] == ' ' || (at[length] && strchr("bwlq", at[length]) && at[length + 1] == ' '));
}

static bool is_any(const struct code_line *line, const char *const *words, int count)
{
    for (int n = 0; n < count; n++)
        if (is_word(line, words[n]))
            return true;
    return false;
}

/* What an instruction adds or compares with: its immediate operand, or the displacement of a `lea`. 0: nothing. */
static int64_t operand(const struct code_line *line)
{
    const char *dollar = strchr(line->mnemonic, '$');
    const char *space = strchr(line->mnemonic, ' ');
    if (dollar)
        return (int64_t)strtoull(dollar + 1, NULL, 16);
    if (!is_word(line, "lea") || !space || line->refers)
        return 0;
    bool negative = space[1] == '-';
    int64_t value = (int64_t)strtoull(space + 1 + negative, NULL, 16);
    return negative ? -value : value;
}

static void add_whole(struct kernel_constants *constants, int64_t value)
{
    value = value < 0 && value > -MOST_VALUE ? -value : value;
    for (int n = 0; n < constants->whole_count; n++)
        if (constants->whole[n] == value)
            return;
    if (value >= 2 && value <= MOST_VALUE && constants->whole_count < MOST_WHOLE_CONSTANTS)
        constants->whole[constants->whole_count++] = value;
}

static void add_real(struct kernel_constants *constants, float value)
{
    for (int n = 0; n < constants->real_count; n++)
        if (constants->real[n] == fabsf(value))
            return;
    if (fabsf(value) > 1e-9f && fabsf(value) < 1e18f && constants->real_count < MOST_REAL_CONSTANTS)
        constants->real[constants->real_count++] = fabsf(value);
}

/* Scalar float32 instructions with an operand in read-only data: their first word ends in "ss". */
static void read_real(const struct elf_image *image, const struct code_line *line, struct kernel_constants *constants)
{
    size_t word = strcspn(line->mnemonic, " ");
    const unsigned char *bytes = line->refers && word > 3 && strncmp(line->mnemonic + word - 2, "ss", 2) == 0
                                     ? elf_at(image, line->target, sizeof(float))
                                     : NULL;
    float value = 0;
    if (bytes) {
        memcpy(&value, bytes, sizeof value);
        add_real(constants, value);
    }
}

/* ---- factors ------------------------------------------------------------------------------------------------------------- */

/* Compilers multiply by a constant with shifts, additions and `lea`. What a register holds, as a multiple of what was in some register
 * before, is followed from instruction to instruction; where code is jumped to, some of it is wrong, which costs a number too many. */
enum { REGISTERS = 16 };
struct multiple {
    int64_t of, times; /* `of` is a number for each value that is not a multiple of another */
};
struct factors {
    struct multiple registers[REGISTERS];
    int64_t values;
};

/* The register whose name begins at `text`, "%rax" or "%r10d"; -1: none of the general ones. */
static int register_at(const char *text)
{
    static const char *const names[] = {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"};
    if (*text++ != '%')
        return -1;
    if (*text == 'r' && isdigit((unsigned char)text[1]))
        return atoi(text + 1) % REGISTERS;
    text += *text == 'r' || *text == 'e';
    for (int n = 0; n < COUNT_OF(names); n++)
        if (strncmp(text, names[n], 2) == 0 && !isalnum((unsigned char)text[2]))
            return n;
    return -1;
}

static void forget(struct factors *factors, int number)
{
    if (number >= 0)
        factors->registers[number] = (struct multiple){++factors->values, 1};
}

static bool add_multiple(struct multiple *to, struct multiple what, int64_t times)
{
    if (to->of != what.of || llabs(what.times) > MOST_VALUE)
        return false;
    to->times += times * what.times;
    return true;
}

/* `lea D(%base,%index,scale),%to` */
static bool follow_lea(const struct factors *factors, const char *operands, struct multiple *to)
{
    const char *open = strchr(operands, '('), *comma = open ? strchr(open, ',') : NULL, *close = open ? strchr(open, ')') : NULL;
    if (!close || !comma || comma > close)
        return false;
    const int base = register_at(open + 1), index = register_at(comma + 1);
    const char *second = strchr(comma + 1, ',');
    const int64_t scale = second && second < close ? strtoll(second + 1, NULL, 10) : 1;
    if (index < 0)
        return false;
    *to = factors->registers[index];
    to->times *= scale;
    return base < 0 || add_multiple(to, factors->registers[base], 1);
}

static void follow(struct factors *factors, const struct code_line *line, struct kernel_constants *constants)
{
    static const char *const reading[] = {"cmp", "test", "push"};
    const char *operands = line->mnemonic + strcspn(line->mnemonic, " "), *last = strrchr(operands, ',');
    const char *target = last && last[1] == '%' ? last + 1 : operands + strspn(operands, " ");
    const int to = register_at(target), from = register_at(operands + strspn(operands, " "));
    if (strncmp(line->mnemonic, "call", 4) == 0)
        for (int n = 0; n < REGISTERS; n++)
            forget(factors, n);
    if (to < 0 || line->branches || is_any(line, reading, COUNT_OF(reading)))
        return;
    struct multiple made = factors->registers[to];
    bool known = false;
    if (is_word(line, "lea"))
        known = follow_lea(factors, operands, &made);
    else if (is_word(line, "mov") && from >= 0)
        made = factors->registers[from], known = true;
    else if ((is_word(line, "shl") || is_word(line, "sal")) && operand(line) > 0 && operand(line) < 21)
        made.times *= INT64_C(1) << operand(line), known = true;
    else if ((is_word(line, "add") || is_word(line, "sub")) && from >= 0)
        known = add_multiple(&made, factors->registers[from], is_word(line, "add") ? 1 : -1);
    if (!known || llabs(made.times) > MOST_VALUE || made.times == 0) {
        forget(factors, to);
        return;
    }
    factors->registers[to] = made;
    if (made.times & (made.times - 1))
        add_whole(constants, made.times);
}

/* ---- comparisons --------------------------------------------------------------------------------------------------------- */

/* Adds what the instruction at `n` compares with. */
static void read_comparison(const struct code_listing *listing, int n, struct kernel_constants *constants)
{
    static const char *const shifting[] = {"sub", "add", "lea"};
    enum { LOOK_BACK = 4 };
    const struct code_line *line = &listing->lines[n];
    if (is_word(line, "imul"))
        add_whole(constants, operand(line));
    if (!is_word(line, "cmp"))
        return;
    const int64_t threshold = operand(line);
    add_whole(constants, threshold);
    for (int back = 1; back <= LOOK_BACK && back <= n; back++) {
        const struct code_line *before = line - back;
        int64_t shift = is_any(before, shifting, COUNT_OF(shifting)) ? operand(before) : 0;
        if (before->branches)
            break;
        if (shift && llabs(shift) < MOST_VALUE && threshold >= 0 && threshold < MOST_VALUE) {
            add_whole(constants, shift);
            add_whole(constants, llabs(shift) + threshold);
        }
    }
}

bool kernel_constants_of_image(const char *path, struct kernel_constants *constants, char *why, size_t why_size)
{
    static const char *const others[] = {"test", "and", "sub", "add", "mov", "lea"};
    struct elf_image image = {0};
    struct code_listing listing = {0};
    *constants = (struct kernel_constants){0};
    struct factors factors = {.values = 0};
    for (int n = 0; n < REGISTERS; n++)
        forget(&factors, n);
    bool good = elf_read(path, &image, why, why_size) && code_listing_make(path, &image, &listing, why, why_size);
    for (int pass = 0; pass < 2 && good; pass++) {
        for (int n = 0; n < listing.count; n++) {
            const struct code_line *line = &listing.lines[n];
            if (pass == 0) {
                read_comparison(&listing, n, constants);
                follow(&factors, line, constants);
                read_real(&image, line, constants);
            } else if (is_any(line, others, COUNT_OF(others))) {
                add_whole(constants, operand(line));
            }
        }
        if (pass == 0)
            constants->compared = constants->whole_count;
    }
    code_listing_free(&listing);
    elf_free(&image);
    return good;
}

/* ---- text ---------------------------------------------------------------------------------------------------------------- */

static bool is_wordy(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Whether a comparison or a remainder stands right before `from`, or right behind `end`. */
static bool is_compared(const char *line, const char *from, const char *end)
{
    while (from > line && from[-1] == ' ')
        from--;
    end += strspn(end, "uUlL ");
    return (from > line && strchr("<>=%", from[-1]) && !(from - 1 > line && from[-1] == '=' && !strchr("<>=!", from[-2])) &&
            !(from - 1 > line && from[-1] != '=' && from[-1] == from[-2])) ||
           (*end && strchr("<>", *end) && end[1] != *end) || ((*end == '=' || *end == '!') && end[1] == '=');
}

static void read_line(const char *line, bool compared, struct kernel_constants *constants)
{
    for (const char *at = line; *at;) {
        char *end = NULL;
        bool begins = isdigit((unsigned char)*at) && (at == line || !is_wordy(at[-1]));
        long long value = begins ? strtoll(at, &end, 0) : 0;
        if (begins && *end != '.' && *end != 'e' && is_compared(line, at, end) == compared)
            add_whole(constants, value);
        for (at = begins ? end : at + 1; begins && is_wordy(*at);)
            at++;
    }
}

void kernel_constants_of_text(const char *text, size_t size, const char *source, struct kernel_constants *constants)
{
    const char *slash = strrchr(source, '/');
    const size_t length = slash ? (size_t)(slash - source) : 0; /* of the folder; 0: the current one */
    *constants = (struct kernel_constants){0};
    char *copy = NULL;
    for (int pass = 0; pass < 2; pass++) {
        bool own = false;
        char *rest = NULL;
        free(copy);
        copy = strndup(text, size);
        for (char *line = copy ? strtok_r(copy, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
            const char *name = line[0] == '#' ? strchr(line, '"') : NULL;
            if (name) {
                const char *file = name + 1 + length;
                own =
                    strncmp(name + 1, source, length) == 0 && (length == 0 || *file++ == '/') && !strchr(file, '/') && *file != '<';
            } else if (own && line[0] != '#') {
                read_line(line, pass == 0, constants);
            }
        }
        if (pass == 0)
            constants->compared = constants->whole_count;
    }
    free(copy);
}

void kernel_constants_add(struct kernel_constants *constants, const struct kernel_constants *more)
{
    const struct kernel_constants before = *constants;
    *constants = (struct kernel_constants){0};
    for (int n = 0; n < before.compared; n++)
        add_whole(constants, before.whole[n]);
    for (int n = 0; n < more->compared; n++)
        add_whole(constants, more->whole[n]);
    constants->compared = constants->whole_count;
    for (int n = before.compared; n < before.whole_count; n++)
        add_whole(constants, before.whole[n]);
    for (int n = more->compared; n < more->whole_count; n++)
        add_whole(constants, more->whole[n]);
    for (int n = 0; n < before.real_count; n++)
        add_real(constants, before.real[n]);
    for (int n = 0; n < more->real_count; n++)
        add_real(constants, more->real[n]);
}
