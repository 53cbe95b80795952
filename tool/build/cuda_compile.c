/*
 * cuda_compile.c - see cuda_compile.h.
 */
#include "cuda_compile.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build.h"
#include "cuda_flags.h"
#include "base/digest.h"
#include "base/session.h"

enum { MOST_ARGUMENTS = 64 };

static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text; /* for argv, which nobody writes to */
}

/* ---- finding ------------------------------------------------------------------------------------------------------------------
 */

/* FOLDER/NAME if that is a program, to be freed. */
static char *in_folder(const char *folder, size_t length, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%.*s/%s", (int)length, folder, name) < 0)
        return NULL;
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* Folders that depend on where the program was started, such as ".", are left out: a candidate may lie there. */
static char *in_path(const char *name)
{
    const char *path = getenv("PATH");
    char *copy = strdup(path ? path : ""), *rest = NULL, *found = NULL;
    for (char *folder = copy ? strtok_r(copy, ":", &rest) : NULL; folder && !found; folder = strtok_r(NULL, ":", &rest))
        found = folder[0] == '/' ? in_folder(folder, strlen(folder), name) : NULL;
    free(copy);
    return found;
}

/* Where scripts/cuda_tools.sh puts them: build/cuda-tools for build/attest. False if the program does not know where it lies. */
static bool folder_of_tools(char folder[PATH_MAX])
{
    static const char below[] = "/cuda-tools";
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - sizeof below);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        strcpy(slash, below);
    return slash != NULL;
}

static char *beside_program(const char *name)
{
    char folder[PATH_MAX];
    if (!folder_of_tools(folder))
        return NULL;
    strcpy(folder + strlen(folder), "/bin");
    return in_folder(folder, strlen(folder), name);
}

/* The newest of those in the places where the toolkit is installed. */
static char *in_toolkit(const char *name)
{
    static const char *const folders[] = {"/usr/local/cuda/bin", "/usr/local/cuda-*/bin"};
    char *found = NULL;
    for (int i = 0; i < COUNT_OF(folders) && !found; i++) {
        char pattern[256];
        const char *newest = NULL;
        glob_t paths = {0};
        snprintf(pattern, sizeof pattern, "%s/%s", folders[i], name);
        if (glob(pattern, 0, NULL, &paths) == 0)
            for (size_t p = 0; p < paths.gl_pathc; p++)
                if (access(paths.gl_pathv[p], X_OK) == 0 && (!newest || strverscmp(paths.gl_pathv[p], newest) > 0))
                    newest = paths.gl_pathv[p];
        found = newest ? strdup(newest) : NULL;
        globfree(&paths);
    }
    return found;
}

static char *beside_compiler(const char *name)
{
    char *nvcc = strcmp(name, "nvcc") == 0 ? NULL : cuda_tool_find("nvcc"), *slash = nvcc ? strrchr(nvcc, '/') : NULL;
    char *found = slash ? in_folder(nvcc, (size_t)(slash - nvcc), name) : NULL;
    free(nvcc);
    return found;
}

char *cuda_tool_find(const char *name)
{
    static char *(*const places[])(const char *name) = {in_path, beside_program, beside_compiler, in_toolkit};
    const char *named = getenv("ATTEST_NVCC");
    if (named && *named && strcmp(name, "nvcc") == 0)
        return strdup(named);
    char *found = NULL;
    for (int i = 0; i < COUNT_OF(places) && !found; i++)
        found = places[i](name);
    return found;
}

void cuda_tool_missing(const char *name, char *text, size_t size)
{
    static const struct {
        const char *name, *remedy;
    } remedies[] = {
        {"nvcc", "install the CUDA toolkit, or set ATTEST_NVCC to the path of nvcc"},
        {"ptxas", "install the CUDA toolkit, or set ATTEST_NVCC to the path of nvcc"},
        {"compute-sanitizer", "it comes with the CUDA toolkit, in the package cuda-sanitizer of NVIDIA's repository"},
        {"ncu", "it is part of Nsight Compute, in the package cuda-nsight-compute of NVIDIA's repository"},
    };
    char folder[PATH_MAX];
    if (!folder_of_tools(folder))
        strcpy(folder, "cuda-tools");
    int used =
        snprintf(text, size, "%s is neither in PATH, nor in %s/bin, nor beside nvcc, nor in /usr/local/cuda*/bin; ", name, folder);
    if (used < 0 || (size_t)used >= size)
        return;
    text += used;
    size -= (size_t)used;
    for (int i = 0; i < COUNT_OF(remedies); i++)
        if (strcmp(remedies[i].name, name) == 0) {
            snprintf(text, size, "%s", remedies[i].remedy);
            return;
        }
    snprintf(text, size, "'scripts/cuda_tools.sh %s' gets it from PyPI", folder);
}

void cuda_compiler_version(const char *nvcc, char *text, size_t size)
{
    char log[2048], *argv[] = {text_of(nvcc), text_of("--version"), NULL};
    const char *release = build_command(argv, 20, log, sizeof log) == 0 ? strstr(log, "release ") : NULL;
    snprintf(text, size, release ? "nvcc %.*s" : "%.*s", release ? (int)strcspn(release, "\n") : 0, release ? release : "");
}

/* ---- compiling ----------------------------------------------------------------------------------------------------------------
 */

char *cuda_compile_flags(const char *flags)
{
    char *all = NULL;
    return asprintf(&all, "%s%s%s", CUDA_COMMON_FLAGS, *flags ? " " : "", flags) < 0 ? NULL : all;
}

static void add_words(char **argv, int *count, char *text)
{
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word && *count < MOST_ARGUMENTS - 1; word = strtok_r(NULL, " ", &rest))
        argv[(*count)++] = word;
}

/* Whether the sandbox lets a tool be used: those of the system, in /usr and /opt. */
static bool is_of_system(const char *tool)
{
    char path[PATH_MAX];
    return realpath(tool, path) && (strncmp(path, "/usr/", 5) == 0 || strncmp(path, "/opt/", 5) == 0);
}

/* The folder of a file. */
static void folder_of(const char *path, char folder[PATH_MAX])
{
    snprintf(folder, PATH_MAX, "%s", path);
    char *slash = strrchr(folder, '/');
    strcpy(slash ? slash : folder, slash ? "" : ".");
    if (slash == folder)
        strcpy(folder, "/");
}

/* Runs a tool of the toolkit that makes `out` of `source`, in the compilers' sandbox: it reads their folders and those of the headers and
 * writes to the folder of `out`. A toolkit in a folder of somebody's own, which the sandbox does not know, runs without. */
static int run_confined(char *const argv[], const char *source, const char *headers, const char *out, double seconds, char *log,
                        size_t log_size)
{
    char from[PATH_MAX], to[PATH_MAX];
    folder_of(source, from);
    folder_of(out, to);
    const char *readable[] = {from, headers, strcmp(headers, "include") == 0 ? "lib/cuda" : NULL, NULL};
    return is_of_system(argv[0]) ? build_command_confined(argv, readable, to, seconds, log, log_size)
                                 : build_command(argv, seconds, log, log_size);
}

/* Runs nvcc with the flags of one image and some words more; what it makes of `source` goes to the folder of `out`, NULL: nowhere. */
static int run_compiler(const char *nvcc, const char *flags, const char *headers, const struct cuda_configuration *configuration,
                        const char *const *words, const char *source, const char *out, double seconds, char *log, size_t log_size)
{
    const int64_t *n = configuration->numbers;
    const char *arch = cuda_limits[configuration->arch].name + strlen("sm_");
    char *argv[MOST_ARGUMENTS] = {text_of(nvcc)}, *all = cuda_compile_flags(flags), *own = NULL;
    int count = 1, status = 127;
    if (asprintf(&own, CUDA_IMAGE_FLAGS, arch, arch, configuration->dtype, configuration->dim, (long long)n[CUDA_TILE_Q],
                 (long long)n[CUDA_TILE_KV], (long long)n[CUDA_STAGES], (long long)n[CUDA_THREADS]) < 0)
        own = NULL;
    if (all && own) {
        add_words(argv, &count, all);
        add_words(argv, &count, own);
        argv[count++] = text_of("-I");
        argv[count++] = text_of(headers);
        while (*words && count < MOST_ARGUMENTS - 1)
            argv[count++] = text_of(*words++);
        argv[count] = NULL;
        status =
            out ? run_confined(argv, source, headers, out, seconds, log, log_size) : build_command(argv, seconds, log, log_size);
    }
    free(all);
    free(own);
    return status;
}

int cuda_compile(const char *nvcc, const char *source, const char *flags, const char *headers,
                 const struct cuda_configuration *configuration, const char *out, const char *keep, double seconds, char *log,
                 size_t log_size)
{
    const char *words[] = {"-cubin", source, "-o", out, keep ? "--keep" : NULL, "--keep-dir", keep, NULL};
    return run_compiler(nvcc, flags, headers, configuration, words, source, out, seconds, log, log_size);
}

int cuda_assemble(const char *ptxas, const char *source, int arch, const char *out, double seconds, char *log, size_t log_size)
{
    char target[32];
    snprintf(target, sizeof target, "-arch=%s", cuda_limits[arch].name);
    char *argv[] = {text_of(ptxas),
                    text_of("-O3"),
                    text_of("-v"),
                    text_of("-warn-spills"),
                    text_of("-warn-lmem-usage"),
                    text_of("-Werror"),
                    text_of(target),
                    text_of(source),
                    text_of("-o"),
                    text_of(out),
                    NULL};
    return run_confined(argv, source, "include", out, seconds, log, log_size);
}

/* What a file is called in a record: its path, or its bare name if it is one of the headers that the program brought. */
static const char *recorded_name(const char *path, const char *headers)
{
    size_t length = strlen(headers);
    if (headers[0] == '/' && strncmp(path, headers, length) == 0 && path[length] == '/')
        return path + length + 1;
    return strncmp(path, "./", 2) == 0 ? path + 2 : path;
}

json_t *cuda_compile_sources(const char *nvcc, const char *source, const char *flags, const char *headers,
                             const struct cuda_configuration *configuration, double seconds)
{
    enum { ROOM = 1 << 17 };
    const char *words[] = {"-MM", source, NULL}, *slash = strrchr(nvcc, '/');
    char *rule = malloc(ROOM), *rest = NULL;
    if (!rule || run_compiler(nvcc, flags, headers, configuration, words, source, NULL, seconds, rule, ROOM) != 0) {
        free(rule);
        return NULL;
    }
    json_t *sources = json_object();
    for (char *word = strtok_r(rule, " \\\n", &rest); word; word = strtok_r(NULL, " \\\n", &rest)) {
        char digest[DIGEST_TEXT];
        size_t length = strlen(word);
        bool of_system = strncmp(word, "/usr/", 5) == 0 || strstr(word, "/../targets/");
        of_system = of_system || (slash && strncmp(word, nvcc, (size_t)(slash - nvcc)) == 0);
        if (of_system || length < 3 || word[length - 1] == ':' || strcmp(word + length - 2, ".o") == 0)
            continue;
        if (!digest_of_file(word, digest)) {
            json_decref(sources);
            sources = NULL;
            break;
        }
        json_put(sources, recorded_name(word, headers), json_string(digest));
    }
    free(rule);
    return sources;
}

void cuda_first_error(const char *log, char *text, size_t size)
{
    const char *chosen = log, *warning = NULL;
    for (const char *line = log; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        size_t length = strcspn(line, "\n");
        if (!warning && memmem(line, length, "arning: ", 8))
            warning = line;
        if (memmem(line, length, "error", 5)) {
            /* Of a warning that has no number the compiler says only afterwards that it is an error. */
            chosen = warning && memmem(line, length, "warning treated as error", 24) ? warning : line;
            break;
        }
    }
    snprintf(text, size, "%.*s", (int)strcspn(chosen, "\n"), chosen);
}

/* ---- what ptxas says ------------------------------------------------------------------------------------------------------------
 */

/* The number before `unit` in a line, such as 72 in "Used 72 registers, ..."; -1 if the line has none. */
static int64_t number_before(const char *line, size_t length, const char *unit)
{
    const char *at = memmem(line, length, unit, strlen(unit));
    if (!at || at == line || at[-1] != ' ')
        return -1;
    at--;
    int64_t value = 0, scale = 1;
    const char *digit = at;
    while (digit > line && digit[-1] >= '0' && digit[-1] <= '9' && scale < INT64_MAX / 100) {
        value += (*--digit - '0') * scale;
        scale *= 10;
    }
    return digit == at ? -1 : value;
}

/* The text between the first pair of quotes. */
static const char *quoted(const char *line, size_t length, char *text, size_t size)
{
    const char *open = memchr(line, '\'', length),
               *close = open ? memchr(open + 1, '\'', length - (size_t)(open + 1 - line)) : NULL;
    snprintf(text, size, "%.*s", close ? (int)(close - open - 1) : 0, close ? open + 1 : "");
    return close ? close + 1 : NULL;
}

/* A function that is called counts with the entry it was compiled for: nothing may spill anywhere. */
static void add(int64_t *sum, int64_t more)
{
    if (more >= 0)
        *sum = *sum < 0 ? more : *sum + more;
}

int cuda_ptxas_parse(const char *log, struct cuda_ptxas *entries, int most)
{
    int count = 0;
    for (const char *line = log, *next; line && *line; line = next) {
        size_t length = strcspn(line, "\n");
        next = line[length] ? line + length + 1 : NULL;
        if (memmem(line, length, "Compiling entry function", 24)) {
            struct cuda_ptxas fresh = {"", "", -1, -1, -1, -1, -1, -1};
            const char *after = quoted(line, length, fresh.name, sizeof fresh.name);
            if (after)
                quoted(after, length - (size_t)(after - line), fresh.arch, sizeof fresh.arch);
            if (count < most)
                entries[count] = fresh;
            count++;
        } else if (count && count <= most) {
            struct cuda_ptxas *entry = &entries[count - 1];
            add(&entry->stack, number_before(line, length, "bytes stack frame"));
            add(&entry->spill_stores, number_before(line, length, "bytes spill stores"));
            add(&entry->spill_loads, number_before(line, length, "bytes spill loads"));
            if (memmem(line, length, ": Used ", 7)) {
                int64_t shared = number_before(line, length, "bytes smem"), barriers = number_before(line, length, "barriers");
                entry->registers = number_before(line, length, "registers");
                entry->shared = shared < 0 ? 0 : shared;
                entry->barriers = barriers < 0 ? 0 : barriers;
            }
        }
    }
    return count;
}
