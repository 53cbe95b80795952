/*
 * rewrite.c - see rewrite.h. One pass over the tokens:
 *
 *   asm volatile("text" : "=r"(a) : "r"(b) : "memory")   ->  a call with the number of the text and its operands
 *   extern __shared__ T name[];                          ->  a reference to the dynamic shared memory
 *   __shared__ T a[3], b;                                ->  a struct with a place in shared memory, and references to its members
 *   __cluster_dims__(n)                                  ->  nothing; n is in the image
 *
 * At the end come a table of all asm texts with their places in the source, and the functions that a launch calls.
 */
#include "rewrite.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ASM_OPERANDS = 192, MOST_NAMES = 16 };

struct text_range {
    const char *begin, *end;
};

struct rewriting {
    const char *at, *end;
    FILE *out, *sites;
    char file[512];
    int line;
    bool system; /* in a header of the system */
    int depth;   /* of braces */
    int site_count, shared_count;
    bool has_statics, has_combine;
    struct text_range cluster;
    char *why;
    size_t why_size;
};

static bool fail(struct rewriting *r, const char *what)
{
    snprintf(r->why, r->why_size, "%s:%d: %s", r->file, r->line, what);
    return false;
}

/* ---- tokens ------------------------------------------------------------------------------------------------------------ */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Behind a string or character literal that begins at `at`. */
static const char *skip_literal(const char *at, const char *end)
{
    char quote = *at++;
    while (at < end && *at != quote)
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at < end ? at + 1 : end;
}

/* Behind white space, lines that say where text comes from, and pragmas. */
static const char *skip_space(const char *at, const char *end)
{
    while (at < end) {
        if (isspace((unsigned char)*at))
            at++;
        else if (*at == '#')
            while (at < end && *at != '\n')
                at++;
        else
            break;
    }
    return at;
}

static const char *skip_word(const char *at, const char *end)
{
    while (at < end && is_word(*at))
        at++;
    return at;
}

static bool word_is(const char *at, const char *end, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(end - at) >= length && strncmp(at, word, length) == 0 && (at + length == end || !is_word(at[length]));
}

/* Behind the bracket that closes the one at `at`. */
static const char *skip_bracket(const char *at, const char *end)
{
    int depth = 0;
    while (at < end) {
        if (*at == '"' || *at == '\'') {
            at = skip_literal(at, end);
            continue;
        }
        depth += strchr("([{", *at) ? 1 : strchr(")]}", *at) ? -1 : 0;
        at++;
        if (!depth)
            break;
    }
    return at;
}

/* Moves on, counting lines. */
static void advance(struct rewriting *r, const char *to)
{
    for (; r->at < to; r->at++)
        r->line += *r->at == '\n';
}

static void copy(struct rewriting *r, const char *to)
{
    fwrite(r->at, 1, (size_t)(to - r->at), r->out);
    advance(r, to);
}

/* # 12 "file" 1 3 */
static void read_marker(struct rewriting *r)
{
    const char *line = r->at, *stop = memchr(line, '\n', (size_t)(r->end - line));
    int number, used = 0;
    stop = stop ? stop : r->end;
    copy(r, stop < r->end ? stop + 1 : stop);
    char start[32]; /* sscanf looks for the end of its text first */
    snprintf(start, sizeof start, "%.*s", (int)(stop - line < 31 ? stop - line : 31), line);
    if (sscanf(start, "# %d \"%n", &number, &used) == 1 && used) {
        const char *name = line + used, *quote = memchr(name, '"', (size_t)(stop - name));
        if (!quote)
            return;
        snprintf(r->file, sizeof r->file, "%.*s", (int)(quote - name), name);
        r->line = number;
        r->system = false;
        for (const char *flag = quote; flag < stop; flag++)
            r->system = r->system || *flag == '3';
    }
}

/* ---- asm --------------------------------------------------------------------------------------------------------------- */

struct asm_operand {
    struct text_range name, constraint, value;
    bool output;
};

/* Writes the literals of a text, with %[name] as the number of the operand of that name. */
static void write_literals(FILE *out, struct text_range text, const struct asm_operand *operands, int count)
{
    for (const char *at = text.begin; at < text.end; at++) {
        const char *close = at + 1 < text.end && at[0] == '%' && at[1] == '[' ? memchr(at, ']', (size_t)(text.end - at)) : NULL;
        int found = -1;
        for (int i = 0; close && i < count; i++)
            if (operands[i].name.end - operands[i].name.begin == close - at - 2 &&
                strncmp(operands[i].name.begin, at + 2, (size_t)(close - at - 2)) == 0)
                found = i;
        if (found >= 0) {
            fprintf(out, "%%%d", found);
            at = close;
        } else if (*at == '#') { /* a line of the preprocessor between literals */
            while (at < text.end && *at != '\n')
                at++;
        } else {
            fputc(*at, out);
        }
    }
}

/* One operand, [name] "constraint" (value); false at its end if there is none. */
static const char *read_operand(const char *at, const char *end, struct asm_operand *operand)
{
    at = skip_space(at, end);
    if (at < end && *at == '[') {
        const char *close = skip_bracket(at, end);
        operand->name = (struct text_range){at + 1, close - 1};
        at = skip_space(close, end);
    }
    if (at >= end || *at != '"')
        return NULL;
    const char *close = skip_literal(at, end);
    operand->constraint = (struct text_range){at + 1, close - 1};
    at = skip_space(close, end);
    if (at >= end || *at != '(')
        return NULL;
    close = skip_bracket(at, end);
    operand->value = (struct text_range){at, close};
    return skip_space(close, end);
}

static void write_operand(FILE *out, const struct asm_operand *operand)
{
    const char *letter = operand->constraint.begin;
    bool both = false;
    while (letter < operand->constraint.end && !isalnum((unsigned char)*letter)) {
        both = both || *letter == '+';
        letter++;
    }
    char constraint = letter < operand->constraint.end ? *letter : 'r';
    int size = (int)(operand->value.end - operand->value.begin);
    if (operand->output)
        fprintf(out, "emulated_out('%c', '%c', %.*s), ", constraint, both ? 'b' : 'w', size, operand->value.begin);
    else
        fprintf(out, "emulated_in('%c', %.*s), ", constraint, size, operand->value.begin);
}

static bool rewrite_asm(struct rewriting *r)
{
    struct asm_operand operands[MOST_ASM_OPERANDS];
    const char *at = skip_space(skip_word(r->at, r->end), r->end);
    int count = 0, part = 0;
    while (at < r->end && is_word(*at))
        at = skip_space(skip_word(at, r->end), r->end); /* volatile */
    if (at >= r->end || *at != '(')
        return fail(r, "an asm without its text");
    const char *close = skip_bracket(at, r->end), *inside = at + 1, *end = close - 1;
    if (r->depth == 0)
        return fail(r, "asm outside of a function");
    struct text_range text = {inside, inside};
    while (inside < end) {
        inside = skip_space(inside, end);
        if (inside >= end)
            break;
        if (*inside == '"' && part == 0) {
            inside = skip_literal(inside, end);
            text.end = inside;
        } else if (*inside == ':') {
            part++;
            inside++;
        } else if (*inside == ',') {
            inside++;
        } else if (part == 3) { /* what is clobbered */
            inside = *inside == '"' ? skip_literal(inside, end) : inside + 1;
        } else {
            if (part < 1 || part > 2 || count == MOST_ASM_OPERANDS)
                return fail(r, "an asm that cannot be read");
            operands[count] = (struct asm_operand){.output = part == 1};
            inside = read_operand(inside, end, &operands[count++]);
            if (!inside)
                return fail(r, "an operand of an asm that cannot be read");
        }
    }
    int number = r->site_count++;
    fprintf(r->sites, "    {");
    static const char nothing[] = "\"\"";
    write_literals(r->sites, text.end > text.begin ? text : (struct text_range){nothing, &nothing[2]}, operands, count);
    fprintf(r->sites, ", \"%s\", %d},\n", r->file, r->line);
    fprintf(r->out, "do { ");
    if (count) {
        fprintf(r->out, "emulated_operand emulated_operands[] = {");
        for (int i = 0; i < count; i++)
            write_operand(r->out, &operands[i]);
        fprintf(r->out, "}; ");
    }
    fprintf(r->out, "emulated_execute(emulated_sites, %d, %s, %d); } while (0)", number, count ? "emulated_operands" : "nullptr",
            count);
    for (const char *line = r->at; line < close; line++) /* the lines stay where they are */
        if (*line == '\n')
            fputc('\n', r->out);
    advance(r, close);
    return true;
}

/* ---- shared memory ----------------------------------------------------------------------------------------------------- */

/* A declaration up to its semicolon, with the words that say where it lies taken out. */
static char *declaration(const char *at, const char *end, bool keep_alignment)
{
    char *made = malloc((size_t)(end - at) + 2), *to = made;
    while (made && at < end) {
        if (word_is(at, end, "__shared__") || word_is(at, end, "extern") || word_is(at, end, "static") ||
            word_is(at, end, "volatile_")) {
            at = skip_word(at, end);
        } else if (!keep_alignment && (word_is(at, end, "alignas") || word_is(at, end, "__attribute__"))) {
            at = skip_space(skip_word(at, end), end);
            at = at < end && *at == '(' ? skip_bracket(at, end) : at;
        } else if (*at == '#') {
            while (at < end && *at != '\n')
                at++;
        } else if (is_word(*at)) {
            const char *next = skip_word(at, end);
            memcpy(to, at, (size_t)(next - at));
            to += next - at;
            at = next;
        } else {
            *to++ = *at++;
        }
    }
    if (made)
        *to = '\0';
    return made;
}

/* The names that a declaration declares. */
static int declared_names(const char *text, struct text_range *names)
{
    int count = 0, angles = 0;
    struct text_range last = {NULL, NULL};
    const char *end = text + strlen(text);
    bool named = false;
    for (const char *at = text; at < end;) {
        if (is_word(*at)) {
            const char *next = skip_word(at, end);
            if (!angles && !named)
                last = (struct text_range){at, next};
            at = next;
        } else if (*at == '(' || *at == '{') {
            at = skip_bracket(at, end);
        } else if (*at == '[') {
            named = true;
            at = skip_bracket(at, end);
        } else {
            angles += *at == '<' ? 1 : *at == '>' ? -1 : 0;
            if (*at == ',' && !angles) {
                if (last.begin && count < MOST_NAMES)
                    names[count++] = last;
                named = false;
            }
            at++;
        }
    }
    if (last.begin && count < MOST_NAMES)
        names[count++] = last;
    return count;
}

static bool rewrite_shared(struct rewriting *r, const char *stop)
{
    bool dynamic = false;
    for (const char *at = r->at; at < stop;) {
        if (is_word(*at)) {
            dynamic = dynamic || word_is(at, stop, "extern");
            at = skip_word(at, stop);
        } else {
            at++;
        }
    }
    struct text_range names[MOST_NAMES];
    char *text = declaration(r->at, stop, !dynamic);
    int count = text ? declared_names(text, names) : 0, number = r->shared_count++;
    if (!count) {
        free(text);
        return fail(r, "a __shared__ variable that cannot be read");
    }
    if (dynamic) {
        int length = (int)(names[0].end - names[0].begin);
        fprintf(r->out, "auto &%.*s = *(%.*s (*)[262144])emulated_shared_at(emulated_static_bytes)", length, names[0].begin,
                (int)(names[0].begin - text), text);
    } else {
        r->has_statics = true;
        fprintf(
            r->out,
            "struct emulated_shared_%d { %s; }; static const unsigned emulated_place_%d = emulated_place(&emulated_static_used, "
            "sizeof(emulated_shared_%d), alignof(emulated_shared_%d))",
            number, text, number, number, number);
        for (int i = 0; i < count; i++) {
            int length = (int)(names[i].end - names[i].begin);
            fprintf(r->out, "; auto &%.*s = ((emulated_shared_%d *)emulated_shared_at(emulated_place_%d))->%.*s", length,
                    names[i].begin, number, number, length, names[i].begin);
        }
    }
    for (const char *line = r->at; line < stop; line++)
        if (*line == '\n')
            fputc('\n', r->out);
    advance(r, stop);
    free(text);
    return true;
}

/* The end of a declaration that begins here, if it is one of a variable in shared memory. */
static const char *shared_declaration(const struct rewriting *r)
{
    bool shared = false;
    for (const char *at = r->at; at < r->end;) {
        if (*at == ';')
            return shared ? at : NULL;
        if (*at == '"' || (!shared && (*at == '{' || *at == '=')))
            return NULL;
        if (*at == '(' || *at == '{' || *at == '[')
            at = skip_bracket(at, r->end);
        else if (is_word(*at)) {
            shared = shared || word_is(at, r->end, "__shared__");
            at = skip_word(at, r->end);
        } else
            at++;
    }
    return NULL;
}

/* ---- all of it --------------------------------------------------------------------------------------------------------- */

static bool rewrite_word(struct rewriting *r)
{
    const char *next = skip_word(r->at, r->end), *stop;
    if (r->system) {
        copy(r, next);
        return true;
    }
    if (word_is(r->at, r->end, "asm") || word_is(r->at, r->end, "__asm__") || word_is(r->at, r->end, "__asm"))
        return rewrite_asm(r);
    if ((word_is(r->at, r->end, "extern") || word_is(r->at, r->end, "static") || word_is(r->at, r->end, "__shared__") ||
         word_is(r->at, r->end, "alignas")) &&
        (stop = shared_declaration(r)))
        return rewrite_shared(r, stop);
    if (word_is(r->at, r->end, "__cluster_dims__")) {
        const char *open = skip_space(next, r->end);
        if (open < r->end && *open == '(') {
            const char *close = skip_bracket(open, r->end), *comma = memchr(open, ',', (size_t)(close - open));
            r->cluster = (struct text_range){open + 1, comma ? comma : close - 1};
            advance(r, close);
            return true;
        }
    }
    r->has_combine = r->has_combine || word_is(r->at, r->end, "attest_combine");
    copy(r, next);
    return true;
}

static bool rewrite_all(struct rewriting *r)
{
    while (r->at < r->end) {
        char c = *r->at;
        if (c == '#' && (r->line >= 0)) {
            read_marker(r);
        } else if (c == '"' || c == '\'') {
            copy(r, skip_literal(r->at, r->end));
        } else if (isdigit((unsigned char)c)) { /* 1'000 has a quote that begins nothing */
            const char *next = r->at;
            while (next < r->end && (is_word(*next) || *next == '\'' || *next == '.'))
                next++;
            copy(r, next);
        } else if (is_word(c)) {
            if (!rewrite_word(r))
                return false;
        } else {
            r->depth += c == '{' ? 1 : c == '}' ? -1 : 0;
            copy(r, r->at + 1);
        }
    }
    return true;
}

static void write_end(struct rewriting *r, const char *sites)
{
    fprintf(r->out,
            "\nextern \"C\" const emulated_site emulated_sites[] = {\n%s    {\"\", \"\", 0}};\n"
            "extern \"C\" const int emulated_site_count = %d;\n"
            "extern \"C\" const unsigned emulated_static_bytes = %d;\n"
            "extern \"C\" const unsigned emulated_cluster = %.*s;\n"
            "unsigned emulated_static_used;\n"
            "extern \"C\" void emulated_enter_attest_kernel(void **p) { emulated_call(attest_kernel, p); }\n",
            sites, r->site_count, r->has_statics ? 49152 : 0, r->cluster.begin ? (int)(r->cluster.end - r->cluster.begin) : 1,
            r->cluster.begin ? r->cluster.begin : "0");
    if (r->has_combine)
        fprintf(r->out, "extern \"C\" void emulated_enter_attest_combine(void **p) { emulated_call(attest_combine, p); }\n");
}

char *rewrite_kernel(const char *text, size_t size, char *why, size_t why_size)
{
    char *made = NULL, *sites = NULL;
    size_t made_size = 0, sites_size = 0;
    struct rewriting r = {.at = text, .end = text + size, .why = why, .why_size = why_size, .line = 1};
    r.out = open_memstream(&made, &made_size);
    r.sites = open_memstream(&sites, &sites_size);
    bool good = r.out && r.sites;
    if (!good)
        snprintf(why, why_size, "out of memory");
    good = good && rewrite_all(&r);
    if (r.sites)
        good = fclose(r.sites) == 0 && good;
    if (good)
        write_end(&r, sites);
    if (r.out)
        good = fclose(r.out) == 0 && good;
    free(sites);
    if (good)
        return made;
    free(made);
    return NULL;
}
