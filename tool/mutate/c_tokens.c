/*
 * c_tokens.c - see c_tokens.h. A lexer that goes over the text once, and a pass that matches brackets.
 */
#include "c_tokens.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Longest first. */
static const char *const marks[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=",
                                    "&&",  "||",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::", "##"};

/* Calls and declarations whose arguments are no code of the kernel. */
static const char *const frozen_names[] = {"_Static_assert", "static_assert",     "__attribute__",      "asm",    "__asm__",
                                           "__asm",          "__launch_bounds__", "__builtin_prefetch", "_Pragma"};

bool token_is(const struct tokens *tokens, int i, const char *spelling)
{
    return i >= 0 && i < tokens->count && token_length(tokens, i) == strlen(spelling) &&
           memcmp(tokens->text + tokens->list[i].begin, spelling, strlen(spelling)) == 0;
}

bool token_is_kind(const struct tokens *tokens, int i, enum token_kind kind)
{
    return i >= 0 && i < tokens->count && tokens->list[i].kind == kind;
}

size_t token_length(const struct tokens *tokens, int i)
{
    return tokens->list[i].end - tokens->list[i].begin;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The length of a line splice at `at` (a backslash at the end of a line), or 0. */
static size_t splice(const struct tokens *tokens, size_t at)
{
    if (at >= tokens->size || tokens->text[at] != '\\')
        return 0;
    size_t carriage = at + 1 < tokens->size && tokens->text[at + 1] == '\r';
    return at + 1 + carriage < tokens->size && tokens->text[at + 1 + carriage] == '\n' ? 2 + carriage : 0;
}

/* Behind a comment that begins at `at`; `at` if none does. */
static size_t skip_comment(const struct tokens *tokens, size_t at)
{
    const char *text = tokens->text;
    if (at + 1 >= tokens->size || text[at] != '/' || (text[at + 1] != '*' && text[at + 1] != '/'))
        return at;
    bool line = text[at + 1] == '/';
    for (at += 2; at < tokens->size; at++) {
        if (line && splice(tokens, at))
            at += splice(tokens, at) - 1;
        else if (line && text[at] == '\n')
            return at;
        else if (!line && text[at] == '*' && at + 1 < tokens->size && text[at + 1] == '/')
            return at + 2;
    }
    return at;
}

/* Behind a string or a character that begins at `at`. */
static size_t skip_text(const struct tokens *tokens, size_t at)
{
    char quote = tokens->text[at++];
    while (at < tokens->size && tokens->text[at] != quote && tokens->text[at] != '\n')
        at += tokens->text[at] == '\\' ? 2 : 1;
    return at < tokens->size ? at + 1 : tokens->size;
}

/* Behind the directive whose # is at `at`, its continued lines included. */
static size_t skip_directive(const struct tokens *tokens, size_t at)
{
    while (at < tokens->size && tokens->text[at] != '\n') {
        size_t comment = skip_comment(tokens, at), spliced = splice(tokens, at);
        at = comment > at ? comment : at + (spliced ? spliced : 1);
    }
    return at;
}

/* If the directive at `at` is a #define: where its body begins, behind the name and the parameters. Else 0. */
static size_t define_body(const struct tokens *tokens, size_t at)
{
    const char *text = tokens->text;
    size_t end = tokens->size;
    for (at++; at < end && (text[at] == ' ' || text[at] == '\t'); at++)
        ;
    if (end - at < 7 || memcmp(text + at, "define", 6) != 0 || is_name(text[at + 6]))
        return 0;
    for (at += 6; at < end && (text[at] == ' ' || text[at] == '\t'); at++)
        ;
    while (at < end && is_name(text[at]))
        at++;
    if (at < end && text[at] == '(')
        while (at < end && text[at] != '\n' && text[at++] != ')')
            ;
    return at;
}

static size_t token_end(const struct tokens *tokens, size_t at, enum token_kind *kind)
{
    const char *text = tokens->text;
    size_t end = tokens->size;
    bool number = isdigit((unsigned char)text[at]) || (text[at] == '.' && at + 1 < end && isdigit((unsigned char)text[at + 1]));
    *kind = number ? TOKEN_NUMBER : is_name(text[at]) ? TOKEN_NAME : TOKEN_MARK;
    if (text[at] == '"' || text[at] == '\'') {
        *kind = TOKEN_TEXT;
        return skip_text(tokens, at);
    }
    if (number) { /* a preprocessing number: signs belong to it behind an exponent's letter */
        bool hexadecimal = text[at] == '0' && at + 1 < end && (text[at + 1] | 32) == 'x';
        for (; at < end && (is_name(text[at]) || text[at] == '.'); at++) {
            char letter = (char)(text[at] | 32);
            bool exponent = letter == 'p' || (letter == 'e' && !hexadecimal);
            at += exponent && at + 1 < end && (text[at + 1] == '+' || text[at + 1] == '-');
        }
        return at;
    }
    if (*kind == TOKEN_NAME) {
        while (at < end && is_name(text[at]))
            at++;
        return at;
    }
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (end - at >= strlen(marks[i]) && memcmp(text + at, marks[i], strlen(marks[i])) == 0)
            return at + strlen(marks[i]);
    return at + 1;
}

static bool add(struct tokens *tokens, int *room, struct token token)
{
    if (tokens->count == *room) {
        int more = *room ? 2 * *room : 1024;
        struct token *grown = realloc(tokens->list, (size_t)more * sizeof *grown);
        if (!grown)
            return false;
        tokens->list = grown;
        *room = more;
    }
    tokens->list[tokens->count++] = token;
    return true;
}

/* Partners and parents. A bracket that is never closed, or never opened, has no partner. Bodies of #define are apart. */
static bool match_brackets(struct tokens *tokens)
{
    int *open = malloc((size_t)(tokens->count + 1) * sizeof *open), depth = 0, outside = 0;
    if (!open)
        return false;
    for (int i = 0; i < tokens->count; i++) {
        struct token *token = &tokens->list[i];
        char c = token->kind == TOKEN_MARK ? tokens->text[token->begin] : ' ';
        if (i > 0 && token->directive != tokens->list[i - 1].directive) {
            outside = token->directive ? depth : outside;
            depth = token->directive ? depth : outside;
        }
        bool closes = c == ')' || c == ']' || c == '}';
        if (closes && depth > (token->directive ? outside : 0)) {
            token->partner = open[--depth];
            tokens->list[token->partner].partner = i;
        }
        token->parent = depth > (token->directive ? outside : 0) ? open[depth - 1] : -1;
        if (c == '(' || c == '[' || c == '{')
            open[depth++] = i;
    }
    free(open);
    return true;
}

static void freeze(struct tokens *tokens)
{
    for (int i = 0; i < tokens->count; i++)
        for (size_t n = 0; n < sizeof frozen_names / sizeof *frozen_names; n++) {
            if (!token_is(tokens, i, frozen_names[n]))
                continue;
            int bracket = i + 1;
            while (token_is_kind(tokens, bracket, TOKEN_NAME)) /* asm volatile */
                bracket++;
            int last = token_is(tokens, bracket, "(") ? tokens->list[bracket].partner : i;
            for (int t = i; t <= last; t++)
                tokens->list[t].frozen = true;
        }
}

bool tokens_read(struct tokens *tokens, const char *text, size_t size)
{
    *tokens = (struct tokens){.text = text, .size = size};
    int room = 0;
    size_t body_end = 0; /* of the #define that is being read */
    bool line_begins = true;
    for (size_t at = 0; at < size;) {
        size_t spliced = splice(tokens, at), comment = skip_comment(tokens, at);
        if (spliced || comment > at || isspace((unsigned char)text[at])) {
            line_begins = !spliced && comment == at && text[at] == '\n' ? true : line_begins;
            at = comment > at ? comment : at + (spliced ? spliced : 1);
            continue;
        }
        if (text[at] == '#' && line_begins) {
            size_t end = skip_directive(tokens, at), body = define_body(tokens, at);
            body_end = body ? end : 0;
            at = body ? body : end;
            line_begins = false;
            continue;
        }
        line_begins = false;
        struct token token = {.begin = at, .partner = -1, .parent = -1, .directive = at < body_end};
        token.end = token_end(tokens, at, &token.kind);
        at = token.end;
        if (!add(tokens, &room, token)) {
            tokens_free(tokens);
            return false;
        }
    }
    if (!match_brackets(tokens)) {
        tokens_free(tokens);
        return false;
    }
    freeze(tokens);
    return true;
}

void tokens_free(struct tokens *tokens)
{
    free(tokens->list);
    *tokens = (struct tokens){0};
}
