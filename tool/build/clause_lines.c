/*
 * clause_lines.c - see clause_lines.h.
 */
#include "clause_lines.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    struct clause_lines *lines;
    const char *at, *file;
    int line;
    bool is_own, failed;
    bool blank; /* the clause has no text yet */
};

static void put(struct reading *reading, const char *text, size_t size)
{
    memcpy(reading->lines->text + reading->lines->size, text, size); /* there is room: see clause_lines_make */
    reading->lines->size += size;
}

/* Ends the clause here. */
static void next_clause(struct reading *reading)
{
    struct clause_lines *lines = reading->lines;
    if (lines->count)
        put(reading, "\n", 1);
    if (lines->count == lines->room) {
        int room = lines->room ? 2 * lines->room : 1 << 16;
        struct clause *grown = realloc(lines->clauses, (size_t)room * sizeof *grown);
        if (!grown) {
            reading->failed = true;
            return;
        }
        lines->clauses = grown;
        lines->room = room;
    }
    lines->clauses[lines->count++] = (struct clause){reading->file, reading->line, reading->is_own, lines->size};
    reading->blank = true;
}

/* `# 12 "file.h" 3`: what follows is of line 12 of that file; 3 marks a header of the system. */
static bool read_marker(struct reading *reading, const char *end)
{
    char name[1024];
    int line, used = 0;
    struct clause_lines *lines = reading->lines;
    if (sscanf(reading->at, "# %d \"%1023[^\"]\"%n", &line, name, &used) != 2 || !used)
        return false;
    reading->line = line - 1; /* the end of this line is yet to be counted */
    int n = 0;
    while (n < lines->file_count && strcmp(lines->files[n], name) != 0)
        n++;
    if (n == lines->file_count) {
        char **grown = realloc(lines->files, ((size_t)n + 1) * sizeof *grown), *copy = strdup(name);
        lines->files = grown ? grown : lines->files;
        if (!grown || !copy) {
            free(copy);
            reading->failed = true;
            return true;
        }
        lines->files[lines->file_count++] = copy;
    }
    reading->file = lines->files[n];
    const char *base = strrchr(name, '/');
    base = base ? base + 1 : name;
    const char *flags = reading->at + used;
    bool system = false;
    for (; flags < end; flags++)
        system = system || *flags == '3';
    reading->is_own = !system && name[0] != '<' && strcmp(base, "attest.h") != 0 && strncmp(base, "attest_kernel", 13) != 0;
    return true;
}

/* At a '#' that begins a line: markers are left out, and pragmas keep a line of their own. */
static void read_directive(struct reading *reading)
{
    const char *end = reading->at + strcspn(reading->at, "\n");
    if (!read_marker(reading, end)) {
        next_clause(reading);
        put(reading, reading->at, (size_t)(end - reading->at));
        next_clause(reading);
    }
    reading->at = end;
}

static void skip_comment(struct reading *reading)
{
    const char *end = reading->at[1] == '/' ? strchr(reading->at, '\n') : strstr(reading->at + 2, "*/");
    end = !end ? reading->at + strlen(reading->at) : reading->at[1] == '/' ? end : end + 2;
    for (; reading->at < end; reading->at++)
        reading->line += *reading->at == '\n';
    put(reading, " ", 1);
}

static void copy_quoted(struct reading *reading)
{
    const char *end = reading->at + 1;
    while (*end && *end != *reading->at && *end != '\n')
        end += end[0] == '\\' && end[1] ? 2 : 1;
    end += *end == *reading->at;
    put(reading, reading->at, (size_t)(end - reading->at));
    reading->at = end;
    reading->blank = false;
}

static void read_text(struct reading *reading)
{
    bool begins = true; /* a line */
    next_clause(reading);
    while (*reading->at && !reading->failed) {
        const char c = *reading->at;
        if (c == '\n') {
            reading->at++;
            reading->line++;
            begins = true;
            if (reading->blank)
                reading->lines->clauses[reading->lines->count - 1].line = reading->line;
            else
                next_clause(reading);
            continue;
        }
        if (c == '#' && begins) {
            read_directive(reading);
        } else if (c == '/' && (reading->at[1] == '/' || reading->at[1] == '*')) {
            skip_comment(reading);
            begins = false;
        } else if (c == '"' || c == '\'') {
            copy_quoted(reading);
            begins = false;
        } else {
            const bool twice = (c == '&' || c == '|') && reading->at[1] == c;
            put(reading, reading->at, twice ? 2 : 1);
            reading->at += twice ? 2 : 1;
            begins = begins && isspace((unsigned char)c);
            reading->blank = reading->blank && isspace((unsigned char)c);
            if (twice || strchr(";{}?:", c))
                next_clause(reading);
        }
        if (reading->blank) { /* the clause begins where its text does */
            struct clause *clause = &reading->lines->clauses[reading->lines->count - 1];
            clause->file = reading->file;
            clause->line = reading->line;
            clause->is_own = reading->is_own;
        }
    }
}

bool clause_lines_make(struct clause_lines *lines, const char *preprocessed)
{
    *lines = (struct clause_lines){.text = malloc(2 * strlen(preprocessed) + 64)}; /* a new line at most behind every character */
    struct reading reading = {.lines = lines, .at = preprocessed, .file = "", .line = 1, .failed = !lines->text};
    if (!reading.failed)
        read_text(&reading);
    if (!reading.failed) {
        put(&reading, "\n", 1);
        lines->text[lines->size] = '\0';
    }
    return !reading.failed;
}

void clause_lines_free(struct clause_lines *lines)
{
    for (int i = 0; i < lines->file_count; i++)
        free(lines->files[i]);
    free(lines->files);
    free(lines->clauses);
    free(lines->text);
    *lines = (struct clause_lines){0};
}

void clause_print(const struct clause_lines *lines, int clause, char *text, size_t size)
{
    size_t used = 0;
    for (const char *at = lines->text + lines->clauses[clause].begin; *at && *at != '\n' && used + 1 < size; at++)
        if (!isspace((unsigned char)*at) || (used && text[used - 1] != ' '))
            text[used++] = isspace((unsigned char)*at) ? ' ' : *at;
    while (used && text[used - 1] == ' ')
        used--;
    text[used] = '\0';
}
