/*
 * source_rules.c - see source_rules.h.
 *
 * The preprocessor writes lines `# 12 "file.h" 3` that say where text comes from; 3 marks a header of the system. Headers of the
 * system have pragmas and attributes of their own (intrinsics do), so they have wider rules, but only if they lie in a folder of the
 * system. So that a kernel cannot write such lines itself, every file of its own is read as it stands, too: no #line, no `# 12`, no
 * trigraphs, no redefinition of names that belong to the compiler or the C library, with which it could change a system header.
 *
 * In the text of the kernel itself: pragmas are those of `pragmas`, attributes those of source_attributes.def, asm statements are
 * empty (they keep the compiler from moving code, and nothing else), nothing is thread-local, and no builtin looks at the caller.
 */
#include "source_rules.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/regular_file.h"
#include "base/session.h"

enum { MOST_FILES = 512, NAME_SIZE = 512, MOST_SOURCE = 64 << 20 };

struct scan {
    const char *at;
    char file[NAME_SIZE];
    long line;
    bool system; /* the text here is that of a system header */
    bool broken; /* a directive in the middle of a statement was wrong */
    const char *folder;
    char *seen[MOST_FILES];
    int seen_count;
    char *why;
    size_t why_size;
};

static bool wrong(const struct scan *scan, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(const struct scan *scan, const char *format, ...)
{
    int used = snprintf(scan->why, scan->why_size, "%.200s:%ld: ", scan->file, scan->line);
    va_list arguments;
    va_start(arguments, format);
    if (used >= 0 && (size_t)used < scan->why_size)
        vsnprintf(scan->why + used, scan->why_size - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- words ------------------------------------------------------------------------------------------------------------------ */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool same(const char *word, size_t length, const char *text)
{
    return strlen(text) == length && strncmp(word, text, length) == 0;
}

static bool among(const char *word, size_t length, const char *const *list, int count)
{
    for (int i = 0; i < count; i++)
        if (same(word, length, list[i]))
            return true;
    return false;
}

/* Skips a string or a character constant at `at`; returns what is behind it. */
static const char *skip_quoted(const char *at)
{
    char quote = *at++;
    while (*at && *at != quote && *at != '\n')
        at += at[0] == '\\' && at[1] ? 2 : 1;
    return *at == quote ? at + 1 : at;
}

static bool read_directive(struct scan *scan);

/* Skips blanks, line ends, and the directives that the preprocessor leaves between them, even within a statement. */
static void skip_blank(struct scan *scan)
{
    while (*scan->at && isspace((unsigned char)*scan->at)) {
        bool end = *scan->at == '\n';
        scan->line += end;
        scan->at++;
        if (end && *scan->at == '#')
            scan->broken = scan->broken || !read_directive(scan);
    }
}

/* ---- pragmas ---------------------------------------------------------------------------------------------------------------- */

static bool judge_pragma(const struct scan *scan, const char *text)
{
    static const char *const pragmas[] = {"GCC unroll",       "GCC ivdep", "GCC novector", "omp simd",
                                          "omp declare simd", "pack",      "once"};
    static const char *const of_system[] = {
        "GCC push_options", "GCC pop_options", "GCC target", "GCC diagnostic", "GCC visibility",
        "GCC warning",      "push_macro",      "pop_macro",  "STDC",           "GCC system_header"};
    char line[128];
    size_t used = 0;
    for (text += strspn(text, " \t"); *text && *text != '\n' && used < sizeof line - 1; text++)
        if (!isspace((unsigned char)*text) || (used && line[used - 1] != ' '))
            line[used++] = isspace((unsigned char)*text) ? ' ' : *text;
    line[used] = '\0';
    for (int i = 0; i < COUNT_OF(pragmas); i++)
        if (strncmp(line, pragmas[i], strlen(pragmas[i])) == 0)
            return true;
    for (int i = 0; scan->system && i < COUNT_OF(of_system); i++)
        if (strncmp(line, of_system[i], strlen(of_system[i])) == 0)
            return true;
    return wrong(scan, "#pragma %.60s is not one that a kernel may have: it can turn off warnings or change how code is compiled",
                 line);
}

/* ---- attributes, asm, names ------------------------------------------------------------------------------------------------- */

static bool judge_attribute(const struct scan *scan, const char *word, size_t length)
{
    static const char *const allowed[] = {
#define ATTRIBUTE(name) #name,
#define FORBIDDEN(name, does)
#include "source_attributes.def"
#undef ATTRIBUTE
#undef FORBIDDEN
    };
    static const struct {
        const char *name, *does;
    } forbidden[] = {
#define ATTRIBUTE(name)
#define FORBIDDEN(name, does) {#name, does},
#include "source_attributes.def"
#undef ATTRIBUTE
#undef FORBIDDEN
    };
    if (length > 4 && strncmp(word, "__", 2) == 0 && strncmp(word + length - 2, "__", 2) == 0) {
        word += 2;
        length -= 4;
    }
    if (among(word, length, allowed, COUNT_OF(allowed)))
        return true;
    for (int i = 0; i < COUNT_OF(forbidden); i++)
        if (same(word, length, forbidden[i].name) && !(scan->system && strcmp(forbidden[i].name, "weak") == 0))
            return wrong(scan, "the attribute %s %s; a kernel must not have it", forbidden[i].name, forbidden[i].does);
    return scan->system || wrong(scan, "the attribute %.*s is not on the list of those that a kernel may have", (int)length, word);
}

/* __attribute__ ((a, b (1, 2))): looks at a and b. */
static bool read_attributes(struct scan *scan)
{
    int depth = 0;
    bool first = false;
    for (;;) {
        skip_blank(scan);
        char c = *scan->at;
        if (!c || (depth == 0 && c != '('))
            return true;
        if (c == '"' || c == '\'') {
            scan->at = skip_quoted(scan->at);
        } else if (c == '(') {
            first = ++depth == 2;
            scan->at++;
        } else if (c == ')') {
            scan->at++;
            if (--depth == 0)
                return true;
        } else if (c == ',') {
            first = depth == 2;
            scan->at++;
        } else if (is_name(c)) {
            size_t length = 0;
            while (is_name(scan->at[length]))
                length++;
            if (first && depth == 2 && !judge_attribute(scan, scan->at, length))
                return false;
            first = false;
            scan->at += length;
        } else {
            scan->at++;
        }
    }
}

/* Instructions that compilers have no builtins for: their own headers write them as asm, in macros. */
static bool is_vocabulary(const char *text)
{
    static const char *const words[] = {"ldtilecfg",  "sttilecfg", "tilerelease", "tileloadd", "tileloaddt1",
                                        "tilestored", "tilezero",  "tdpbf16ps",   "tdpfp16ps", "tdpbssd",
                                        "tdpbsud",    "tdpbusd",   "tdpbuud"};
    size_t length = 0;
    text += *text == '{';
    while (is_name(text[length]))
        length++;
    if (!among(text, length, words, COUNT_OF(words)))
        return false;
    for (const char *at = text; *at; at++)
        if (!is_name(*at) && !strchr(" %{}|(),[]*+", *at))
            return false;
    return true;
}

/* asm [volatile] ("..." ...): empty, or an instruction of the vocabulary; in a system header anything without a directive of the
 * assembler: the name of a function, or an instruction, which the image is judged by. */
static bool read_asm(struct scan *scan)
{
    static const char *const qualifiers[] = {"volatile", "__volatile__", "__volatile", "inline", "__inline__", "__inline"};
    char text[256];
    size_t used = 0;
    bool fits = true, plain = true;
    for (;;) {
        skip_blank(scan);
        size_t length = 0;
        while (is_name(scan->at[length]))
            length++;
        if (!length)
            break;
        if (!among(scan->at, length, qualifiers, COUNT_OF(qualifiers)))
            return wrong(scan, "asm %.*s is not what a kernel may have: only empty asm statements are", (int)length, scan->at);
        scan->at += length;
    }
    bool opened = *scan->at == '(';
    scan->at += opened;
    for (skip_blank(scan); *scan->at == '"'; skip_blank(scan)) {
        const char *end = skip_quoted(scan->at);
        for (const char *at = scan->at + 1; at < end - 1; at++) {
            bool tab = at[0] == '\\' && at[1] == 't';
            plain = plain && *at != '.';
            fits = fits && used < sizeof text - 1;
            if (fits)
                text[used++] = tab ? ' ' : *at;
            at += tab;
        }
        scan->at = end;
    }
    text[used] = '\0';
    if (opened && (*scan->at == ':' || *scan->at == ')') && fits && (!used || is_vocabulary(text)))
        return true;
    return (scan->system && plain) ||
           wrong(scan,
                 "asm with instructions or directives in it: a kernel may have empty asm statements alone, and uses intrinsics");
}

static bool judge_word(struct scan *scan, const char *word, size_t length)
{
    static const char *const attributes[] = {"__attribute__", "__attribute"};
    static const char *const assemblers[] = {"asm", "__asm__", "__asm"};
    static const char *const threads[] = {"_Thread_local", "__thread", "thread_local"};
    static const char *const looking[] = {"__builtin_return_address",
                                          "__builtin_frame_address",
                                          "__builtin_extract_return_addr",
                                          "__builtin_frob_return_addr",
                                          "__builtin_thread_pointer",
                                          "__builtin_set_thread_pointer",
                                          "__builtin_apply",
                                          "__builtin_apply_args",
                                          "__builtin_return",
                                          "__builtin_dwarf_cfa",
                                          "__builtin_eh_return",
                                          "__builtin_unwind_init",
                                          "__builtin_init_dwarf_reg_size_table",
                                          "__builtin_cpu_init",
                                          "__builtin_cpu_supports",
                                          "__builtin_cpu_is",
                                          "__builtin_setjmp",
                                          "__builtin_longjmp",
                                          "__seg_fs",
                                          "__seg_gs"};
    if (among(word, length, attributes, COUNT_OF(attributes)))
        return read_attributes(scan);
    if (among(word, length, assemblers, COUNT_OF(assemblers)))
        return read_asm(scan);
    if (same(word, length, "_Pragma") || same(word, length, "__pragma"))
        return wrong(scan, "_Pragma is made of pieces here; write #pragma");
    if (scan->system)
        return true;
    if (among(word, length, threads, COUNT_OF(threads)))
        return wrong(scan, "%.*s: a kernel has no thread-local storage; it keeps no state between calls", (int)length, word);
    if (among(word, length, looking, COUNT_OF(looking)))
        return wrong(scan, "%.*s looks at the caller, the thread or the processor; a kernel is a function of its arguments alone",
                     (int)length, word);
    return true;
}

/* ---- a file as it stands ---------------------------------------------------------------------------------------------------- */

static bool judge_defined(const struct scan *scan, const char *name, size_t length)
{
    static const char *const keywords[] = {"auto",    "break",    "case",   "char",   "const",    "continue", "default",
                                           "do",      "double",   "else",   "enum",   "extern",   "float",    "for",
                                           "goto",    "if",       "inline", "int",    "long",     "register", "return",
                                           "short",   "restrict", "signed", "sizeof", "static",   "struct",   "switch",
                                           "typedef", "union",    "void",   "while",  "unsigned", "volatile"};
    bool feature = length > 8 && strncmp(name + length - 7, "_SOURCE", 7) == 0;
    if (among(name, length, keywords, COUNT_OF(keywords)) || (length > 1 && name[0] == '_' && !feature))
        return wrong(scan, "it defines or undefines %.*s, which belongs to the compiler or the C library", (int)length, name);
    return true;
}

/* A directive; `text` is behind its '#', on one line, without comments. */
static bool judge_directive(const struct scan *scan, const char *text)
{
    size_t length = 0;
    text += strspn(text, " \t\f\v");
    if (isdigit((unsigned char)*text))
        return wrong(scan, "a line marker (# %.20s): where text comes from is said by the preprocessor alone", text);
    while (is_name(text[length]))
        length++;
    const char *rest = text + length + strspn(text + length, " \t\f\v");
    if (same(text, length, "line"))
        return wrong(scan, "#line: where text comes from is said by the preprocessor alone");
    if (same(text, length, "embed"))
        return wrong(scan, "#embed puts a file into the image");
    if (same(text, length, "pragma"))
        return judge_pragma(scan, rest);
    if (same(text, length, "define") || same(text, length, "undef")) {
        size_t name = 0;
        while (is_name(rest[name]))
            name++;
        return judge_defined(scan, rest, name);
    }
    return true;
}

/* Reads a string for _Pragma("..."). */
static bool judge_operator(const struct scan *scan, const char *at)
{
    char text[256];
    size_t used = 0;
    at += strspn(at, " \t\n(");
    if (*at != '"')
        return wrong(scan, "_Pragma without a string; write #pragma");
    for (at++; *at && *at != '"' && used < sizeof text - 1; at++)
        if (*at != '\\')
            text[used++] = *at;
    text[used] = '\0';
    return judge_pragma(scan, text);
}

/* Joins lines that end in a backslash, in place. The line ends that go come back behind the next one, so that lines keep their
 * numbers from there on. */
static void join_lines(char *text)
{
    char *to = text;
    int owed = 0;
    for (const char *at = text; *at; at++) {
        const char *end = at + 1 + (*at == '\\' ? strspn(at + 1, " \t\r\f\v") : 0);
        if (*at == '\\' && *end == '\n') {
            owed++;
            at = end;
            continue;
        }
        *to++ = *at;
        for (; *at == '\n' && owed > 0; owed--)
            *to++ = '\n';
    }
    *to = '\0';
}

/* Puts a blank for each comment, in place; line ends in it come back behind the next one, because a directive goes on behind it. */
static void blank_comments(char *text)
{
    char *to = text;
    int owed = 0;
    for (const char *at = text; *at;) {
        const char *end = at + 1;
        if (*at == '"' || *at == '\'') {
            end = skip_quoted(at);
        } else if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
            continue;
        } else if (at[0] == '/' && at[1] == '*') {
            for (at += 2; *at && !(at[0] == '*' && at[1] == '/'); at++)
                owed += *at == '\n';
            at += *at ? 2 : 0;
            *to++ = ' ';
            continue;
        }
        bool line = *at == '\n';
        while (at < end)
            *to++ = *at++;
        for (; line && owed > 0; owed--)
            *to++ = '\n';
    }
    *to = '\0';
}

static bool has_trigraph(const char *text)
{
    for (const char *at = text; (at = strstr(at, "??")); at++)
        if (at[2] && strchr("=/'()!<>-", at[2]))
            return true;
    return false;
}

static bool read_file(const struct scan *from, const char *name)
{
    struct scan scan = {.line = 1, .why = from->why, .why_size = from->why_size};
    static const char *const endings[] = {".c", ".h", ".inc", ".def"};
    const char *dot = strrchr(name, '.');
    size_t size = 0;
    snprintf(scan.file, sizeof scan.file, "%s", name);
    if (!dot || !among(dot, strlen(dot), endings, COUNT_OF(endings)))
        return wrong(from, "it includes %.200s, which is no header: names of files end in .h, .c, .inc or .def", name);
    char *text = regular_file_read(name, MOST_SOURCE, &size, scan.why, scan.why_size);
    if (!text)
        return false;
    bool good = true, start = true;
    if (strlen(text) != size)
        good = wrong(&scan, "it has a zero byte");
    else if (has_trigraph(text))
        good = wrong(&scan, "it has trigraphs");
    if (good) {
        join_lines(text);
        blank_comments(text);
    }
    for (const char *at = text; good && *at;) {
        if (*at == '\n') {
            scan.line++;
            start = true;
            at++;
        } else if (isspace((unsigned char)*at)) {
            at++;
        } else if (start && (*at == '#' || (at[0] == '%' && at[1] == ':'))) {
            good = judge_directive(&scan, at + (*at == '#' ? 1 : 2));
            start = false;
            at += *at == '#' ? 1 : 2;
        } else if (*at == '"' || *at == '\'') {
            start = false;
            at = skip_quoted(at);
        } else if (is_name(*at)) {
            size_t length = 0;
            while (is_name(at[length]))
                length++;
            if (same(at, length, "_Pragma"))
                good = judge_operator(&scan, at + length);
            start = false;
            at += length;
        } else {
            start = false;
            at++;
        }
    }
    free(text);
    return good;
}

/* ---- line markers ----------------------------------------------------------------------------------------------------------- */

static bool is_of_system(const struct scan *scan, const char *name)
{
    static const char *const folders[] = {"/usr/", "/lib/", "/lib64/", "/opt/", "/nix/", "/gnu/"};
    if (strstr(name, "/../"))
        return false;
    for (int i = 0; i < COUNT_OF(folders); i++)
        if (strncmp(name, folders[i], strlen(folders[i])) == 0)
            return true;
    return *scan->folder && strncmp(name, scan->folder, strlen(scan->folder)) == 0;
}

static bool see_file(struct scan *scan, const char *name)
{
    for (int i = 0; i < scan->seen_count; i++)
        if (strcmp(scan->seen[i], name) == 0)
            return true;
    if (scan->seen_count == MOST_FILES)
        return wrong(scan, "it includes more than %d files", MOST_FILES);
    scan->seen[scan->seen_count] = strdup(name);
    if (!scan->seen[scan->seen_count])
        return wrong(scan, "out of memory");
    scan->seen_count++;
    return read_file(scan, name);
}

/* # 12 "file.h" 1 3 4 */
static bool read_marker(struct scan *scan, const char *text)
{
    char name[NAME_SIZE], *end = NULL;
    size_t used = 0;
    long line = strtol(text, &end, 10);
    const char *at = end + strspn(end, " ");
    if (*at != '"')
        return wrong(scan, "a line marker without a name");
    for (at++; *at && *at != '"' && *at != '\n' && used < sizeof name - 1; at++) {
        at += at[0] == '\\' && at[1];
        name[used++] = *at;
    }
    name[used] = '\0';
    bool flagged = false;
    for (at += *at == '"'; *at && *at != '\n'; at++)
        flagged = flagged || (*at == '3' && !isdigit((unsigned char)at[1]));
    bool made = strcmp(name, "<built-in>") == 0 || strcmp(name, "<command-line>") == 0,
         system = made || (flagged && is_of_system(scan, name)), folder = used && name[used - 1] == '/';
    if (!system && !folder && !see_file(scan, name))
        return false;
    snprintf(scan->file, sizeof scan->file, "%s", name);
    scan->line = line - 1; /* the line end of the marker itself is counted next */
    scan->system = system;
    return true;
}

/* At the '#' of a line of preprocessed text: a marker or a pragma. Goes on to the end of the line. */
static bool read_directive(struct scan *scan)
{
    const char *rest = scan->at + 1 + strspn(scan->at + 1, " \t");
    bool good = isdigit((unsigned char)*rest)     ? read_marker(scan, rest)
                : strncmp(rest, "pragma", 6) == 0 ? judge_pragma(scan, rest + 6)
                : strncmp(rest, "ident", 5) == 0  ? true
                                                  : wrong(scan, "a directive that is not known: #%.20s", rest);
    scan->at += strcspn(scan->at, "\n");
    return good;
}

/* Comments of preprocessed text, in place: blanks and line ends stay. */
static void erase_comments(char *text)
{
    for (char *at = text; *at;) {
        if (*at == '"' || *at == '\'') {
            at += skip_quoted(at) - at;
        } else if (at[0] == '/' && at[1] == '/') {
            for (; *at && *at != '\n'; at++)
                *at = ' ';
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            for (end = end ? end + 2 : at + strlen(at); at < end; at++)
                *at = *at == '\n' ? '\n' : ' ';
        } else {
            at++;
        }
    }
}

static bool check_text(const char *text, const char *system, char *why, size_t why_size)
{
    struct scan scan = {.at = text, .folder = system, .file = "the source", .why = why, .why_size = why_size};
    bool good = true, start = true;
    char before = 0;
    while (good && *scan.at) {
        const char *at = scan.at;
        if (*at == '\n') {
            scan.line++;
            scan.at++;
            start = true;
        } else if (isspace((unsigned char)*at)) {
            scan.at++;
        } else if (start && *at == '#') {
            good = read_directive(&scan);
            before = 0;
        } else if (*at == '"' || *at == '\'') {
            scan.at = skip_quoted(at);
            start = false;
            before = '"';
        } else if (is_name(*at)) {
            size_t length = 0;
            while (is_name(at[length]))
                length++;
            scan.at += length;
            start = false;
            before = 'a';
            if (!isdigit((unsigned char)*at))
                good = judge_word(&scan, at, length) && !scan.broken;
        } else {
            bool opens = *at == '[' || (at[0] == '<' && at[1] == ':');
            if (opens && before == '[')
                good = wrong(&scan, "an attribute in [[ ]]: write __attribute__");
            before = opens ? '[' : *at;
            scan.at += opens && *at == '<' ? 2 : 1;
            start = false;
        }
    }
    for (int i = 0; i < scan.seen_count; i++)
        free(scan.seen[i]);
    return good;
}

bool source_rules_check(const char *text, const char *system, char *why, size_t why_size)
{
    char *bare = strdup(text);
    if (bare)
        erase_comments(bare);
    else
        snprintf(why, why_size, "out of memory for the text of the source");
    bool good = bare && check_text(bare, system, why, why_size);
    free(bare);
    return good;
}
