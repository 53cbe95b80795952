/*
 * cuda_expression.c - recursive descent over sums, products and atoms. See cuda_expression.h.
 */
#include "cuda_expression.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DEPTH = 40 };

struct reader {
    const char *at;
    const struct cuda_name *names;
    int name_count, depth;
    char *why;
    size_t why_size;
};

static void skip_blanks(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t')
        reader->at++;
}

static bool next_is(struct reader *reader, char sign)
{
    skip_blanks(reader);
    if (*reader->at != sign)
        return false;
    reader->at++;
    return true;
}

/* Says what is wrong here; false. */
static bool wrong(struct reader *reader, const char *what)
{
    skip_blanks(reader);
    if (*reader->at)
        snprintf(reader->why, reader->why_size, "%s at '%.24s'", what, reader->at);
    else
        snprintf(reader->why, reader->why_size, "%s at the end", what);
    return false;
}

static bool operate(struct reader *reader, char operation, int64_t a, int64_t b, int64_t *value)
{
    bool overflow = false;
    if ((operation == '/' || operation == '%' || operation == 'u') && b <= 0) {
        snprintf(reader->why, reader->why_size, "division by %lld", (long long)b);
        return false;
    }
    switch (operation) {
    case '+':
        overflow = __builtin_add_overflow(a, b, value);
        break;
    case '-':
        overflow = __builtin_sub_overflow(a, b, value);
        break;
    case '*':
        overflow = __builtin_mul_overflow(a, b, value);
        break;
    case '/':
        *value = a / b;
        break;
    case '%':
        *value = a % b;
        break;
    case 'm':
        *value = a < b ? a : b;
        break;
    case 'M':
        *value = a > b ? a : b;
        break;
    default: /* 'u': a rounded up to a multiple of b */
        overflow = __builtin_add_overflow(a, b - 1, value);
        *value = *value / b * b;
    }
    if (overflow)
        snprintf(reader->why, reader->why_size, "the result is too large");
    return !overflow;
}

static bool read_sum(struct reader *reader, int64_t *value);

static bool read_number(struct reader *reader, int64_t *value)
{
    for (*value = 0; isdigit((unsigned char)*reader->at); reader->at++)
        if (!operate(reader, '*', *value, 10, value) || !operate(reader, '+', *value, *reader->at - '0', value))
            return false;
    return isalpha((unsigned char)*reader->at) || *reader->at == '_' ? wrong(reader, "an operator is missing") : true;
}

static bool read_call(struct reader *reader, char operation, int64_t *value)
{
    int64_t a, b;
    if (!next_is(reader, '('))
        return wrong(reader, "'(' is missing");
    if (!read_sum(reader, &a))
        return false;
    if (!next_is(reader, ','))
        return wrong(reader, "',' is missing");
    if (!read_sum(reader, &b))
        return false;
    if (!next_is(reader, ')'))
        return wrong(reader, "')' is missing");
    return operate(reader, operation, a, b, value);
}

static bool read_name(struct reader *reader, int64_t *value)
{
    static const struct {
        const char *name;
        char operation;
    } functions[] = {{"min", 'm'}, {"max", 'M'}, {"up", 'u'}};
    size_t length = 0;
    while (isalnum((unsigned char)reader->at[length]) || reader->at[length] == '_')
        length++;
    const char *name = reader->at;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strlen(functions[i].name) == length && strncmp(name, functions[i].name, length) == 0) {
            reader->at += length;
            return read_call(reader, functions[i].operation, value);
        }
    for (int i = 0; i < reader->name_count; i++)
        if (strlen(reader->names[i].name) == length && strncmp(name, reader->names[i].name, length) == 0) {
            reader->at += length;
            *value = reader->names[i].value;
            return true;
        }
    int used =
        snprintf(reader->why, reader->why_size, "'%.*s' is not known here; known are", (int)(length < 24 ? length : 24), name);
    for (int i = 0; i < reader->name_count && used > 0 && (size_t)used < reader->why_size; i++)
        used += snprintf(reader->why + used, reader->why_size - (size_t)used, " %s", reader->names[i].name);
    return false;
}

static bool read_atom(struct reader *reader, int64_t *value)
{
    skip_blanks(reader);
    if (isdigit((unsigned char)*reader->at))
        return read_number(reader, value);
    if (isalpha((unsigned char)*reader->at) || *reader->at == '_')
        return read_name(reader, value);
    if (!next_is(reader, '('))
        return wrong(reader, "a number, a name or '(' is missing");
    return read_sum(reader, value) && (next_is(reader, ')') || wrong(reader, "')' is missing"));
}

static bool read_product(struct reader *reader, int64_t *value)
{
    if (!read_atom(reader, value))
        return false;
    for (;;) {
        int64_t right;
        char operation = next_is(reader, '*') ? '*' : next_is(reader, '/') ? '/' : next_is(reader, '%') ? '%' : 0;
        if (!operation)
            return true;
        if (!read_atom(reader, &right) || !operate(reader, operation, *value, right, value))
            return false;
    }
}

static bool read_sum(struct reader *reader, int64_t *value)
{
    if (++reader->depth > MOST_DEPTH)
        return wrong(reader, "too many parentheses");
    if (!read_product(reader, value))
        return false;
    for (;;) {
        int64_t right;
        char operation = next_is(reader, '+') ? '+' : next_is(reader, '-') ? '-' : 0;
        if (!operation)
            break;
        if (!read_product(reader, &right) || !operate(reader, operation, *value, right, value))
            return false;
    }
    reader->depth--;
    return true;
}

bool cuda_expression_value(const char *text, const struct cuda_name *names, int count, int64_t *value, char *why, size_t why_size)
{
    struct reader reader = {.at = text, .names = names, .name_count = count, .why = why, .why_size = why_size};
    if (!read_sum(&reader, value))
        return false;
    skip_blanks(&reader);
    return *reader.at ? wrong(&reader, "an operator is missing") : true;
}
