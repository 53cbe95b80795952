/*
 * operators.c - the table of operators, the search for their sites, and those operators that change single tokens.
 */
#include "operators.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "finder.h"

#define OPERATOR(name, class, text) {#name, #class, text},
const struct mutation_operator mutation_operators[] = {
#include "mutation_operators.def"
};
#undef OPERATOR

#define OPERATOR(name, class, text) find_##name,
static void (*const finders[])(struct finder *finder, int i) = {
#include "mutation_operators.def"
};
#undef OPERATOR
const int mutation_operator_count = (int)(sizeof finders / sizeof *finders);

const char *mutation_class(int n)
{
    for (int i = 0; i < mutation_operator_count; i++)
        if ((i == 0 || strcmp(mutation_operators[i].class, mutation_operators[i - 1].class) != 0) && n-- == 0)
            return mutation_operators[i].class;
    return NULL;
}

/* ---- edits ----------------------------------------------------------------------------------------------------------------- */

static bool is_known_edit(const struct finder *finder, size_t begin, size_t end, const char *text)
{
    const struct edits *edits = finder->edits;
    if (end - begin == strlen(text) && memcmp(finder->tokens.text + begin, text, end - begin) == 0)
        return true; /* no change at all */
    for (int i = edits->count - 1; i >= 0; i--)
        if (edits->list[i].begin == begin && edits->list[i].end == end && strcmp(edits->list[i].text, text) == 0)
            return true;
    return false;
}

/* Whether the bytes reach over a condition of the preprocessor: what is on its two sides is not one piece of code. */
static bool spans_condition(const struct finder *finder, size_t begin, size_t end)
{
    const char *text = finder->tokens.text;
    for (size_t at = begin; at + 1 < end; at++) {
        const char *line = text + at + 1 + strspn(text + at + 1, " \t");
        if (text[at] != '\n' || *line != '#')
            continue;
        line += 1 + strspn(line + 1, " \t");
        if (strncmp(line, "if", 2) == 0 || strncmp(line, "el", 2) == 0 || strncmp(line, "endif", 5) == 0)
            return true;
    }
    return false;
}

static void add_edit(struct finder *finder, size_t begin, size_t end, char *text)
{
    struct edits *edits = finder->edits;
    if (!text || is_known_edit(finder, begin, end, text) || spans_condition(finder, begin, end)) {
        finder->failed = finder->failed || !text;
        free(text);
        return;
    }
    if (edits->count == edits->room) {
        int room = edits->room ? 2 * edits->room : 512;
        struct edit *grown = realloc(edits->list, (size_t)room * sizeof *grown);
        if (!grown) {
            finder->failed = true;
            free(text);
            return;
        }
        edits->list = grown;
        edits->room = room;
    }
    edits->list[edits->count++] = (struct edit){begin, end, text, finder->operator_index};
}

void finder_emit_bytes(struct finder *finder, size_t begin, size_t end, const char *format, ...)
{
    va_list arguments;
    char *text;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    add_edit(finder, begin, end, text);
}

void finder_emit(struct finder *finder, int first, int last, const char *format, ...)
{
    va_list arguments;
    char *text;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    add_edit(finder, finder->tokens.list[first].begin, finder->tokens.list[last].end, text);
}

bool edits_find(struct edits *edits, const char *text, size_t size, const struct edits_options *options)
{
    struct finder finder = {.options = options, .edits = edits};
    *edits = (struct edits){0};
    if (!tokens_read(&finder.tokens, text, size))
        return false;
    for (int op = 0; op < mutation_operator_count; op++) {
        finder.operator_index = op;
        for (int i = 0; i < finder.tokens.count; i++)
            if (!finder.tokens.list[i].frozen)
                finders[op](&finder, i);
    }
    tokens_free(&finder.tokens);
    if (finder.failed)
        edits_free(edits);
    return !finder.failed;
}

void edits_free(struct edits *edits)
{
    for (int i = 0; i < edits->count; i++)
        free(edits->list[i].text);
    free(edits->list);
    *edits = (struct edits){0};
}

char *edit_apply(const struct edit *edit, const char *text, size_t size)
{
    size_t length = strlen(edit->text), tail = size - edit->end;
    char *result = malloc(edit->begin + length + tail + 1);
    if (!result)
        return NULL;
    memcpy(result, text, edit->begin);
    memcpy(result + edit->begin, edit->text, length);
    memcpy(result + edit->begin + length, text + edit->end, tail);
    result[edit->begin + length + tail] = '\0';
    return result;
}

/* ---- looking at tokens ------------------------------------------------------------------------------------------------------ */

bool finder_is(const struct finder *finder, int i, const char *spelling)
{
    return token_is(&finder->tokens, i, spelling);
}

/* Whether `word` is one of the words of `words`. */
static bool is_word(const char *words, const char *word, size_t length)
{
    for (const char *at = words; at && *at;) {
        size_t n = strcspn(at, " ");
        if (n == length && memcmp(at, word, n) == 0)
            return true;
        at += n;
        at += strspn(at, " ");
    }
    return false;
}

bool finder_is_one_of(const struct finder *finder, int i, const char *words)
{
    const struct tokens *tokens = &finder->tokens;
    return i >= 0 && i < tokens->count && is_word(words, tokens->text + tokens->list[i].begin, token_length(tokens, i));
}

static bool is_type(const struct finder *finder, int i)
{
    const struct tokens *tokens = &finder->tokens;
    if (!token_is_kind(tokens, i, TOKEN_NAME))
        return false;
    size_t length = token_length(tokens, i);
    const char *name = tokens->text + tokens->list[i].begin;
    return (length > 2 && memcmp(name + length - 2, "_t", 2) == 0) || (length > 3 && memcmp(name, "__m", 3) == 0) ||
           finder_is_one_of(finder, i,
                            "void char short int long float double bool const unsigned signed struct volatile vf vi vm restrict "
                            "attest_problem attest_task attest_row attest_tensors attest_tensor_map __half");
}

bool finder_ends_operand(const struct finder *finder, int i)
{
    if (token_is_kind(&finder->tokens, i, TOKEN_NUMBER) || finder_is(finder, i, ")") || finder_is(finder, i, "]"))
        return true;
    return token_is_kind(&finder->tokens, i, TOKEN_NAME) && !is_type(finder, i) &&
           !finder_is_one_of(finder, i, "return case else do sizeof goto");
}

bool finder_is_binary(const struct finder *finder, int i)
{
    bool struct_pointer = finder_is(finder, i, "*") && finder_is(finder, i - 2, "struct");
    int open = finder_is(finder, i - 1, ")") ? finder->tokens.list[i - 1].partner : -1;
    bool head = open > 0 && finder_is_one_of(finder, open - 1, "if for while switch");
    return finder_ends_operand(finder, i - 1) && !struct_pointer && !head;
}

bool finder_is_call(const struct finder *finder, int i)
{
    return token_is_kind(&finder->tokens, i, TOKEN_NAME) && finder_is(finder, i + 1, "(") &&
           finder->tokens.list[i + 1].partner > 0 &&
           !finder_is_one_of(finder, i, "if for while switch return sizeof defined _Alignof alignof") && !is_type(finder, i) &&
           !(finder_is(finder, i - 1, "*") && is_type(finder, i - 2)) && /* and no declaration */
           (!token_is_kind(&finder->tokens, i - 1, TOKEN_NAME) || finder_is_one_of(finder, i - 1, "return else case do"));
}

/* ---- constants -------------------------------------------------------------------------------------------------------------- */

static bool is_float_number(const char *number, size_t length)
{
    bool hexadecimal = length > 1 && number[0] == '0' && (number[1] | 32) == 'x';
    for (size_t i = 0; i < length; i++) {
        char letter = (char)(number[i] | 32);
        if (number[i] == '.' || letter == 'p' || (!hexadecimal && (letter == 'e' || letter == 'f')))
            return true;
    }
    return false;
}

/* A number that is given to a name which is free to be tuned: NAME = 8, or the body of #define NAME. */
static bool is_tuned(const struct finder *finder, int i)
{
    const struct tokens *tokens = &finder->tokens;
    if (!finder->options->fixed)
        return false;
    if (finder_is(finder, i - 1, "="))
        return token_is_kind(tokens, i - 2, TOKEN_NAME) && finder_is_one_of(finder, i - 2, finder->options->fixed);
    if (!tokens->list[i].directive)
        return false;
    size_t line = tokens->list[i].begin;
    while (line > 0 && tokens->text[line - 1] != '\n')
        line--;
    const char *at = tokens->text + line + strspn(tokens->text + line, " #\t");
    if (strncmp(at, "define", 6) != 0)
        return false;
    at += 6 + strspn(at + 6, " \t");
    return is_word(finder->options->fixed, at, strcspn(at, " \t("));
}

/* The value of a plain decimal number; false for any other. */
static bool decimal(const struct finder *finder, int i, long *value)
{
    const struct tokens *tokens = &finder->tokens;
    const char *number = tokens->text + tokens->list[i].begin;
    size_t length = token_length(tokens, i);
    for (size_t n = 0; n < length; n++)
        if (!isdigit((unsigned char)number[n]) || n > 8)
            return false;
    *value = strtol(number, NULL, 10);
    return length == 1 || number[0] != '0';
}

static bool is_integer_site(const struct finder *finder, int i)
{
    const struct tokens *tokens = &finder->tokens;
    return token_is_kind(tokens, i, TOKEN_NUMBER) && !is_tuned(finder, i) &&
           !is_float_number(tokens->text + tokens->list[i].begin, token_length(tokens, i));
}

void find_constant_near(struct finder *finder, int i)
{
    long value;
    if (!is_integer_site(finder, i))
        return;
    if (decimal(finder, i, &value)) {
        finder_emit(finder, i, i, "%ld", value + 1);
        finder_emit(finder, i, i, value > 0 ? "%ld" : "(%ld)", value - 1);
    } else {
        finder_emit(finder, i, i, "(%.*s + 1)", SPELLED(finder, i, i));
        finder_emit(finder, i, i, "(%.*s - 1)", SPELLED(finder, i, i));
    }
}

void find_constant_wrong(struct finder *finder, int i)
{
    long value;
    if (!is_integer_site(finder, i))
        return;
    bool plain = decimal(finder, i, &value);
    finder_emit(finder, i, i, "0");
    finder_emit(finder, i, i, "1");
    if (plain && value > 0) {
        finder_emit(finder, i, i, "%ld", 2 * value);
        finder_emit(finder, i, i, "%ld", value / 2);
        finder_emit(finder, i, i, "(-%ld)", value);
    } else if (!plain) {
        finder_emit(finder, i, i, "(%.*s * 2)", SPELLED(finder, i, i));
        finder_emit(finder, i, i, "(%.*s / 2)", SPELLED(finder, i, i));
    }
}

void find_number_wrong(struct finder *finder, int i)
{
    const struct tokens *tokens = &finder->tokens;
    if (!token_is_kind(tokens, i, TOKEN_NUMBER) || is_tuned(finder, i) ||
        !is_float_number(tokens->text + tokens->list[i].begin, token_length(tokens, i)))
        return;
    bool single = (tokens->text[tokens->list[i].end - 1] | 32) == 'f';
    const char *suffix = single ? "f" : "";
    finder_emit(finder, i, i, "0.0%s", suffix);
    finder_emit(finder, i, i, "1.0%s", suffix);
    finder_emit(finder, i, i, "(2 * %.*s)", SPELLED(finder, i, i));
    finder_emit(finder, i, i, "(%.*s / 2)", SPELLED(finder, i, i));
    finder_emit(finder, i, i, "(-%.*s)", SPELLED(finder, i, i));
}

/* ---- operators --------------------------------------------------------------------------------------------------------------- */

struct pair {
    const char *from, *to;
};

/* Emits what a table makes of token i, either way if `both`. */
static void swap_by(struct finder *finder, int i, const struct pair *pairs, int count, bool both)
{
    for (int n = 0; n < count; n++) {
        if (finder_is(finder, i, pairs[n].from))
            finder_emit(finder, i, i, "%s", pairs[n].to);
        else if (both && finder_is(finder, i, pairs[n].to))
            finder_emit(finder, i, i, "%s", pairs[n].from);
    }
}
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

void find_comparison_shifted(struct finder *finder, int i)
{
    static const struct pair pairs[] = {{"<", "<="}, {">", ">="}};
    if (finder_is_binary(finder, i))
        swap_by(finder, i, pairs, COUNT(pairs), true);
}

void find_comparison_flipped(struct finder *finder, int i)
{
    static const struct pair pairs[] = {{"==", "!="}, {"<", ">="}, {">", "<="}, {"<", ">"}, {"<=", ">="}};
    if (finder_is_binary(finder, i))
        swap_by(finder, i, pairs, COUNT(pairs), true);
}

void find_arithmetic_swapped(struct finder *finder, int i)
{
    static const struct pair pairs[] = {{"+", "-"},   {"*", "/"},   {"<<", ">>"},   {"&", "|"},   {"&&", "||"},
                                        {"+=", "-="}, {"*=", "/="}, {"<<=", ">>="}, {"&=", "|="}, {"^", "&"}};
    static const struct pair remainders[] = {{"%", "/"}, {"%", "*"}};
    static const struct pair counts[] = {{"++", "--"}};
    if (finder_is_binary(finder, i) && !finder_is(finder, i + 1, ")")) {
        swap_by(finder, i, pairs, COUNT(pairs), true);
        swap_by(finder, i, remainders, COUNT(remainders), false);
    }
    swap_by(finder, i, counts, COUNT(counts), true);
}

void find_unary_dropped(struct finder *finder, int i)
{
    if (!finder_is_one_of(finder, i, "! - ~") || finder_is_binary(finder, i))
        return;
    finder_emit_bytes(finder, finder->tokens.list[i].begin, finder->tokens.list[i].end, "%s", "");
}

/* ---- names ------------------------------------------------------------------------------------------------------------------- */

/* Whether the name stands somewhere in the vocabulary. */
static bool is_known_name(const struct finder *finder, const char *name)
{
    const char *text = finder->options->vocabulary ? finder->options->vocabulary : finder->tokens.text;
    size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, name)); at++) {
        bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (begins && !(isalnum((unsigned char)at[length]) || at[length] == '_'))
            return true;
    }
    return false;
}

/* Emits the name at i with each of its parts (between underscores) replaced by its counterparts in the table, where that is a known
 * name too. */
static void swap_parts(struct finder *finder, int i, const struct pair *pairs, int count)
{
    const struct tokens *tokens = &finder->tokens;
    const char *name = tokens->text + tokens->list[i].begin;
    size_t length = token_length(tokens, i);
    for (size_t from = 0; from <= length;) {
        size_t to = from;
        while (to < length && name[to] != '_')
            to++;
        for (int n = 0; n < 2 * count && to > from; n++) {
            const char *old = n % 2 ? pairs[n / 2].to : pairs[n / 2].from, *new = n % 2 ? pairs[n / 2].from : pairs[n / 2].to;
            char changed[128];
            if (strlen(old) != to - from || memcmp(old, name + from, to - from) != 0)
                continue;
            snprintf(changed, sizeof changed, "%.*s%s%.*s", (int)from, name, new, (int)(length - to), name + to);
            if (is_known_name(finder, changed))
                finder_emit(finder, i, i, "%s", changed);
        }
        from = to + 1;
    }
}

void find_call_swapped(struct finder *finder, int i)
{
    static const struct pair pairs[] = {
        {"max", "min"},    {"fmaxf", "fminf"},       {"fmax", "fmin"},    {"add", "sub"},      {"mul", "div"},    {"lo", "hi"},
        {"low", "high"},   {"unpacklo", "unpackhi"}, {"less", "greater"}, {"equal", "less"},   {"even", "odd"},   {"f16", "bf16"},
        {"F16", "BF16"},   {"left", "right"},        {"LEFT", "RIGHT"},   {"begin", "end"},    {"first", "end"},  {"from", "to"},
        {"rows", "keys"},  {"row", "key"},           {"slli", "srli"},    {"or", "and"},       {"exp", "exp2"},   {"expf", "exp2f"},
        {"logf", "log2f"}, {"batch", "head"},        {"heads", "batch"},  {"small", "large"},  {"first", "last"}, {"now", "before"},
        {"true", "false"}, {"abs", "neg"},           {"all", "any"},      {"count", "first"},  {"page", "slot"},  {"x", "y"},
        {"up", "down"},    {"full", "free"},         {"FULL", "FREE"},    {"INFINITY", "NAN"},
    };
    if (token_is_kind(&finder->tokens, i, TOKEN_NAME) && !is_type(finder, i - 1))
        swap_parts(finder, i, pairs, COUNT(pairs));
}

void find_tensor_swapped(struct finder *finder, int i)
{
    static const struct pair pairs[] = {{"q", "k"}, {"q", "v"}, {"q", "o"}, {"k", "v"}, {"k", "o"},   {"v", "o"},
                                        {"Q", "K"}, {"Q", "V"}, {"Q", "O"}, {"K", "V"}, {"kv", "q"},  {"KV", "Q"},
                                        {"m", "l"}, {"m", "s"}, {"l", "s"}, {"i", "j"}, {"o", "lse"}, {"dim", "dim_v"}};
    if (token_is_kind(&finder->tokens, i, TOKEN_NAME) && !is_type(finder, i - 1))
        swap_parts(finder, i, pairs, COUNT(pairs));
}

/* ---- types ------------------------------------------------------------------------------------------------------------------- */

void find_type_narrowed(struct finder *finder, int i)
{
    static const struct pair pairs[] = {
        {"int64_t", "int32_t"}, {"int64_t", "int16_t"},   {"double", "float"},      {"size_t", "int"},       {"int32_t", "int16_t"},
        {"int", "short"},       {"uint64_t", "uint32_t"}, {"uint32_t", "uint16_t"}, {"uint16_t", "uint8_t"}, {"long", "int"},
        {"int64_t", "int8_t"},  {"int32_t", "int8_t"},    {"int", "signed char"}};
    if (!finder_is(finder, i + 1, "*"))
        swap_by(finder, i, pairs, COUNT(pairs), false);
}
