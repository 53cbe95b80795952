/*
 * cuda_source.c - see cuda_source.h.
 */
#include "cuda_source.h"

#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/session.h"

enum { MOST_FILES = 256, MOST_SOURCE = 4 << 20 };

static const char *const pragmas[] = {
#define PRAGMA(pattern) pattern,
#include "cuda/cuda_purity.def"
};

static const char *const orders[] = {
#define ORDER(pattern) pattern,
#include "cuda/cuda_purity.def"
};

static const struct {
    const char *word, *reason;
} directives[] = {
#define DIRECTIVE_NO(word, reason) {word, reason},
#include "cuda/cuda_purity.def"
};

static bool begins(const char *text, const char *words)
{
    return strncmp(text, words, strlen(words)) == 0;
}

/* ---- whose file is it ------------------------------------------------------------------------------------------------------------ */

enum owner { CANDIDATE, SYSTEM, STRANGER };

/* Whether `path` lies below `folder`, both with links resolved. */
static bool is_below(const char *path, const char *folder)
{
    char whole[PATH_MAX];
    if (!realpath(folder, whole))
        return false;
    size_t length = strlen(whole);
    return strncmp(path, whole, length) == 0 && path[length] == '/';
}

/* The folder of a file, `up` folders above it. */
static void folder_of(const char *path, int up, char folder[PATH_MAX])
{
    if (!realpath(path, folder))
        snprintf(folder, PATH_MAX, "%s", path);
    for (; up >= 0; up--) {
        char *slash = strrchr(folder, '/');
        if (slash)
            *slash = '\0';
        else
            strcpy(folder, ".");
    }
}

static enum owner owner_of(const char *name, const struct cuda_places *places)
{
    static const char *const system[] = {"/usr/include", "/usr/lib", "/usr/local/cuda", "/usr/local/include", "/opt/cuda"};
    char path[PATH_MAX], folder[PATH_MAX];
    if (name[0] == '<') /* <built-in>, <command-line> */
        return CANDIDATE;
    if (!realpath(name, path))
        return STRANGER;
    folder_of(places->source, 0, folder);
    if (is_below(path, folder))
        return CANDIDATE;
    if (is_below(path, places->headers) || (strcmp(places->headers, "include") == 0 && is_below(path, "lib/cuda")))
        return CANDIDATE;
    folder_of(places->nvcc, 1, folder);
    if (is_below(path, folder))
        return SYSTEM;
    for (int i = 0; i < COUNT_OF(system); i++)
        if (is_below(path, system[i]))
            return SYSTEM;
    return STRANGER;
}

/* ---- line directives, which would make a line look like one of another file ------------------------------------------------------- */

/* Whether the directive that may begin at `at`, the rest of a line, names a line: # 3 "file" or #line. */
static bool names_line(const char *at)
{
    int sign = begins(at, "#") ? 1 : begins(at, "%:") ? 2 : begins(at, "?\?=") ? 3 : 0;
    if (!sign)
        return false;
    at += sign;
    at += strspn(at, " \t");
    if (begins(at, "line") && !isalnum((unsigned char)at[4]) && at[4] != '_')
        return true;
    size_t digits = strspn(at, "0123456789");
    at += digits;
    return digits && at[strspn(at, " \t")] == '"';
}

/* Joins lines that end in a backslash, as the preprocessor does, in place. What is cut out comes back as empty lines behind them. */
static void join_lines(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        int cut = 0;
        for (; *from && *from != '\n'; from++)
            if (from[0] == '\\' && from[1] == '\n') {
                from++;
                cut++;
            } else {
                *to++ = *from;
            }
        for (cut += *from == '\n'; cut > 0; cut--)
            *to++ = '\n';
        from += *from == '\n';
    }
    *to = '\0';
}

/* The first line of a file with such a directive; 0 if there is none. What stands before it on its line can only be a comment. */
static int line_directive(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(MOST_SOURCE) : NULL;
    int found = 0, line = 1;
    bool alone = true; /* nothing but blanks and the end of a comment before it */
    if (text) {
        text[fread(text, 1, MOST_SOURCE - 1, file)] = '\0';
        join_lines(text);
    }
    for (const char *at = text; at && *at && !found; at++) {
        if (alone && names_line(at))
            found = line;
        line += *at == '\n';
        if (*at == '\n' || (*at == '/' && at > text && at[-1] == '*'))
            alone = true;
        else if (*at != ' ' && *at != '\t')
            alone = false;
    }
    if (file)
        fclose(file);
    free(text);
    return found;
}

/* ---- the preprocessed text --------------------------------------------------------------------------------------------------------- */

struct reading {
    const struct cuda_places *places;
    char names[MOST_FILES][256]; /* files that were seen, with their owners */
    enum owner owners[MOST_FILES];
    int count;
    int current; /* index of the file that the text comes from; -1 before the first */
    int line;
    char *why;
    size_t size;
};

static bool judge_file(struct reading *reading, const char *name, int from_line)
{
    const char *from = reading->current >= 0 ? reading->names[reading->current] : "";
    for (int i = 0; i < reading->count; i++)
        if (strcmp(reading->names[i], name) == 0) {
            reading->current = i;
            return true;
        }
    enum owner owner = owner_of(name, reading->places);
    int line = owner == CANDIDATE && name[0] != '<' ? line_directive(name) : 0;
    if (owner == STRANGER)
        snprintf(
            reading->why, reading->size,
            "%s:%d: it includes %s, which is neither beside the source nor of attest, the toolkit or the system; copy it there",
            from, from_line, name);
    else if (line)
        snprintf(reading->why, reading->size,
                 "%s:%d: a directive that gives lines another name hides where they come from; leave it out", name, line);
    else if (reading->count == MOST_FILES)
        reading->count--; /* the last one is read again when it is met again */
    if (owner == STRANGER || line)
        return false;
    snprintf(reading->names[reading->count], sizeof reading->names[0], "%s", name);
    reading->owners[reading->count] = owner;
    reading->current = reading->count++;
    return true;
}

/* # 12 "file" 1 3 */
static bool judge_marker(struct reading *reading, const char *text)
{
    char name[256], *after;
    long line = strtol(text + 2, &after, 10);
    if (sscanf(after, " \"%255[^\"]\"", name) != 1)
        return true;
    bool good = judge_file(reading, name, reading->line);
    reading->line = (int)line - 1;
    return good;
}

static bool judge_pragma(struct reading *reading, const char *text, int length)
{
    char words[200];
    snprintf(words, sizeof words, "%.*s", length, text);
    for (int i = 0; i < COUNT_OF(pragmas); i++)
        if (fnmatch(pragmas[i], words, 0) == 0)
            return true;
    snprintf(reading->why, reading->size,
             "%s:%d: #pragma %.80s: a kernel compiles without warnings, and silences none; pragmas for loops alone are allowed",
             reading->names[reading->current], reading->line, words);
    return false;
}

bool cuda_source_judge(const char *text, const struct cuda_places *places, char *why, size_t why_size)
{
    static const char pragma[] = "#pragma ";
    struct reading *reading = calloc(1, sizeof *reading);
    bool good = reading != NULL;
    if (!reading) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    reading->places = places;
    reading->current = -1;
    reading->why = why;
    reading->size = why_size;
    for (const char *line = text; line && *line && good;) {
        const char *newline = strchr(line, '\n'), *end = newline ? newline : line + strlen(line), *at = line;
        reading->line++;
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        if (begins(line, "# ") && isdigit((unsigned char)line[2]))
            good = judge_marker(reading, line);
        else if (begins(at, pragma) && reading->current >= 0 && reading->owners[reading->current] != SYSTEM) {
            at += sizeof pragma - 1;
            at += strspn(at, " \t");
            good = judge_pragma(reading, at, (int)(end - at));
        }
        line = newline ? newline + 1 : NULL;
    }
    free(reading);
    return good;
}

/* ---- PTX ----------------------------------------------------------------------------------------------------------------------------- */

/* .pragma "words"; at `at`, behind the directive. */
static bool judge_order(const char *at, char *why, size_t size)
{
    char words[80] = "";
    at += strspn(at, " \t\n\"");
    snprintf(words, sizeof words, "%.*s", (int)strcspn(at, "\"\n;"), at);
    for (int i = 0; i < COUNT_OF(orders); i++)
        if (fnmatch(orders[i], words, 0) == 0)
            return true;
    snprintf(why, size, ".pragma \"%s\" is an order to the assembler that is not allowed; leave it out", words);
    return false;
}

static bool judge_word(const char *word, size_t length, bool inside, char *why, size_t size)
{
    if (length == 7 && begins(word, ".pragma"))
        return judge_order(word + length, why, size);
    for (int i = 0; inside && i < COUNT_OF(directives); i++)
        if (strlen(directives[i].word) == length && begins(word, directives[i].word)) {
            snprintf(why, size, "text of an asm statement has %s: %s; the line is '%.*s'", directives[i].word, directives[i].reason,
                     (int)strcspn(word, "\n") < 60 ? (int)strcspn(word, "\n") : 60, word);
            return false;
        }
    return true;
}

bool cuda_ptx_judge(const char *text, bool compiled, char *why, size_t why_size)
{
    static const char begin[] = "// begin inline asm", end[] = "// end inline asm";
    bool inside = false;
    for (const char *at = text; *at;) {
        if (compiled && (begins(at, begin) || begins(at, end))) {
            if (begins(at, begin) == inside) {
                snprintf(why, why_size,
                         "text of an asm statement has the compiler's mark for where it begins or ends; leave it out");
                return false;
            }
            inside = !inside;
        }
        if (begins(at, "//")) {
            at += strcspn(at, "\n");
            continue;
        }
        if (begins(at, "/*")) {
            const char *close = strstr(at + 2, "*/");
            at = close ? close + 2 : at + strlen(at);
            continue;
        }
        size_t length = strcspn(at, " \t\r\n;{}[](),:\"");
        if (length && !judge_word(at, length, inside, why, why_size))
            return false;
        at += length ? length : 1;
    }
    return true;
}
