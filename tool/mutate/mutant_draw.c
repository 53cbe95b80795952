/*
 * mutant_draw.c - see mutant_draw.h.
 *
 * The sites of a kernel are those of its source and of the headers that it is made of: lib/cpu, lib/cuda/kernels, the helpers of
 * attest_kernel*.h; for a kernel from elsewhere, what lies beside it. The one-instruction wrappers of CUDA (ptx*.cuh, mma*.cuh)
 * have none: they are the vocabulary, and not the kernel. Values that a kernel declares as free to be tuned (attest-space) are no
 * sites either.
 */
#include "mutant_draw.h"

#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"

enum { STREAM_KERNEL = 7001, STREAM_CLASS, STREAM_SITE, MOST_MISSES = 2000 };

/* ---- files ------------------------------------------------------------------------------------------------------------------ */

static char *read_text(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    long length = 0;
    if (file && fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0 && (text = malloc((size_t)length + 1))) {
        rewind(file);
        *size = fread(text, 1, (size_t)length, file);
        text[*size] = '\0';
    }
    if (file)
        fclose(file);
    return text;
}

/* "lib/cpu/../internal.h" is "lib/internal.h". In place. */
static void normalise(char *path)
{
    char *up;
    while ((up = strstr(path, "/../")) && up > path) {
        char *begin = up;
        while (begin > path && begin[-1] != '/')
            begin--;
        memmove(begin, up + 4, strlen(up + 4) + 1);
    }
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Whether a file belongs to the kernel `source`, so that mutants may change it. */
static bool has_sites(const char *path, const char *source)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t folder = strrchr(source, '/') ? (size_t)(strrchr(source, '/') - source) : 0;
    if (begins_with(name, "ptx") || begins_with(name, "mma"))
        return false;
    if (begins_with(path, "include/"))
        return begins_with(path, "include/attest_kernel") && begins_with(source, "lib/");
    return (strncmp(path, source, folder) == 0 && path[folder] != '\0' && !strchr(path + folder + (folder > 0), '/'));
}

static struct mutant_file *file_open(struct mutant_field *field, const char *path)
{
    for (int i = 0; i < field->file_count; i++)
        if (strcmp(field->files[i]->path, path) == 0)
            return field->files[i];
    struct mutant_file *file = calloc(1, sizeof *file);
    if (!file || field->file_count == (int)(sizeof field->files / sizeof *field->files) || !(file->path = strdup(path)) ||
        !(file->text = read_text(path, &file->size))) {
        if (file)
            free(file->path);
        free(file);
        return NULL;
    }
    return field->files[field->file_count++] = file;
}

/* The file that a line of a source includes, if it is one of ours; else "". A macro that is the name of a file counts as including it:
 * it is made for that. */
static void included(const char *line, const char *from, char *path, size_t size)
{
    const char *slash = strrchr(from, '/');
    path[0] = '\0';
    line += strspn(line, " \t");
    if (*line++ != '#')
        return;
    line += strspn(line, " \t");
    if (begins_with(line, "include"))
        line += 7 + strspn(line + 7, " \t");
    else if (begins_with(line, "define"))
        line += strcspn(line, "\"\n");
    else
        return;
    int length = (int)strcspn(line + 1, "\">\n");
    if (*line == '"')
        snprintf(path, size, "%.*s%.*s", slash ? (int)(slash - from + 1) : 0, from, length, line + 1);
    else if (*line == '<' && begins_with(line + 1, "attest"))
        snprintf(path, size, "include/%.*s", length, line + 1);
    normalise(path);
    if (access(path, R_OK) != 0)
        path[0] = '\0';
}

/* Adds a file and what it includes. A header that cannot be found is the compiler's business. */
static void add_files(struct mutant_field *field, struct mutant_kernel *kernel, const char *path, const char *source)
{
    struct mutant_file *file = file_open(field, path);
    for (int i = 0; i < kernel->file_count; i++)
        if (kernel->files[i] == file)
            return;
    if (!file || kernel->file_count == MOST_KERNEL_FILES)
        return;
    bool sites = has_sites(path, source);
    file->wanted = file->wanted || sites;
    kernel->sites[kernel->file_count] = sites;
    kernel->files[kernel->file_count++] = file;
    for (const char *line = file->text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char other[512];
        included(line, path, other, sizeof other);
        if (*other)
            add_files(field, kernel, other, source);
    }
}

/* ---- kernels ---------------------------------------------------------------------------------------------------------------- */

static void add_kernel(struct mutant_field *field, const char *word, const char *source, bool cuda)
{
    struct mutant_kernel *kernel = &field->kernels[field->kernel_count];
    if (field->kernel_count == MOST_KERNELS || access(source, R_OK) != 0)
        return;
    *kernel = (struct mutant_kernel){.word = strdup(word), .cuda = cuda};
    add_files(field, kernel, source, source);
    field->kernel_count += kernel->word && kernel->file_count > 0;
}

/* cpu_fwd_f32_avx512 has the source lib/cpu/cpu_fwd_avx512.c, and cuda_fwd_f16_sm80 lib/cuda/kernels/cuda_fwd_sm80.cu. */
static void add_shipped(struct mutant_field *field, const char *name, bool cuda)
{
    static const char *const dtypes[] = {"_f32_", "_f16_", "_bf16_"};
    char source[256];
    for (int i = 0; i < COUNT_OF(dtypes); i++) {
        const char *at = strstr(name, dtypes[i]);
        if (!at)
            continue;
        snprintf(source, sizeof source, cuda ? "lib/cuda/kernels/%.*s_%s.cu" : "lib/cpu/%.*s_%s.c", (int)(at - name), name,
                 at + strlen(dtypes[i]));
        add_kernel(field, name, source, cuda);
    }
}

/* A CUDA kernel by its file: without a GPU the library may have none. */
static void add_cuda_sources(struct mutant_field *field, const char *pattern)
{
    glob_t found = {0};
    if (glob("lib/cuda/kernels/cuda_fwd_*.cu", 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            const char *name = strrchr(found.gl_pathv[i], '/') + 1;
            char stem[64];
            snprintf(stem, sizeof stem, "%.*s", (int)strcspn(name, "."), name);
            if (fnmatch(pattern, stem, 0) == 0)
                add_kernel(field, found.gl_pathv[i], found.gl_pathv[i], true);
        }
    globfree(&found);
}

static void add_kernels(struct session *session, struct mutant_field *field, const char *pattern)
{
    attest_kernel_info info = {.size = sizeof info};
    for (size_t i = 0; i < attest_kernel_count(); i++) {
        char missing[64];
        if (attest_kernel_get(i, &info) != ATTEST_OK || strcmp(info.backend, "cpu") != 0)
            continue;
        kernel_missing(session, &info, missing, sizeof missing);
        if (!*missing && (!pattern || fnmatch(pattern, info.name, 0) == 0))
            add_shipped(field, info.name, false);
    }
    if (!pattern || fnmatch(pattern, "kernel_cpu", 0) == 0)
        add_kernel(field, "templates/kernel_cpu.c", "templates/kernel_cpu.c", false);
    if (pattern)
        add_cuda_sources(field, pattern);
}

static void add_file_kernel(struct mutant_field *field, const char *path)
{
    const char *ending = strrchr(path, '.');
    add_kernel(field, path + strspn(path, "/"), path, ending && strcmp(ending, ".cu") == 0);
}

/* ---- sites ------------------------------------------------------------------------------------------------------------------ */

/* The names that the first comment of a kernel declares as free to be tuned, separated by spaces. */
static void tuned_names(const char *text, char *names, size_t size)
{
    static const char mark[] = "attest-space:";
    size_t used = strlen(names);
    const char *end = strstr(text, "*/");
    for (const char *at = text; (at = strstr(at, mark)) && at < end; at++) {
        const char *name = at + sizeof mark - 1 + strspn(at + sizeof mark - 1, " \t");
        int length = (int)strcspn(name, " \t\n");
        if (used + (size_t)length + 2 < size)
            used += (size_t)snprintf(names + used, size - used, "%.*s ", length, name);
    }
}

/* All texts behind each other: the names that a mutant may put in. To be freed. */
static char *all_texts(const struct mutant_field *field)
{
    size_t size = 1, used = 0;
    for (int i = 0; i < field->file_count; i++)
        size += field->files[i]->size + 1;
    char *texts = malloc(size);
    for (int i = 0; texts && i < field->file_count; i++)
        used += (size_t)snprintf(texts + used, size - used, "%s\n", field->files[i]->text);
    return texts;
}

static bool find_sites(struct mutant_field *field)
{
    char tuned[2048] = "", *texts = all_texts(field);
    bool good = texts != NULL;
    for (int i = 0; i < field->file_count; i++)
        tuned_names(field->files[i]->text, tuned, sizeof tuned);
    for (int i = 0; good && i < field->file_count; i++) {
        struct mutant_file *file = field->files[i];
        struct edits_options options = {.vocabulary = texts, .fixed = tuned, .cuda = strstr(file->path, ".cu") != NULL};
        good = !file->wanted || edits_find(&file->edits, file->text, file->size, &options);
    }
    free(texts);
    return good;
}

enum exit_code mutant_field_open(struct session *session, const char *pattern, uint64_t seed, struct mutant_field *field)
{
    *field = (struct mutant_field){.seed = seed};
    if (pattern && strchr(pattern, '.') && access(pattern, R_OK) == 0)
        add_file_kernel(field, pattern);
    else
        add_kernels(session, field, pattern);
    if (field->kernel_count == 0)
        return give_up(session, EXIT_USAGE,
                       "run this in the root of attest's source tree; attest list names the kernels, and a file ends in .c or .cu",
                       "there is no kernel to make mutants of that matches '%s' and runs here", pattern ? pattern : "*");
    if (!find_sites(field))
        return give_up(session, EXIT_LACKING, NULL, "out of memory");
    return EXIT_PASS;
}

void mutant_field_close(struct mutant_field *field)
{
    for (int i = 0; i < field->file_count; i++) {
        edits_free(&field->files[i]->edits);
        free(field->files[i]->path);
        free(field->files[i]->text);
        free(field->files[i]);
    }
    for (int i = 0; i < field->kernel_count; i++)
        free(field->kernels[i].word);
    free(field->drawn);
    *field = (struct mutant_field){0};
}

/* ---- draws ------------------------------------------------------------------------------------------------------------------ */

/* The n-th site of a class in the files of a kernel; with a negative n counts them all. */
static int64_t site(const struct mutant_kernel *kernel, const char *class, int64_t n, struct mutant_draw *draw)
{
    int64_t count = 0;
    for (int f = 0; f < kernel->file_count; f++) {
        const struct mutant_file *file = kernel->files[f];
        for (int i = 0; i < file->edits.count && kernel->sites[f]; i++)
            if (strcmp(mutation_operators[file->edits.list[i].operator_index].class, class) == 0 && count++ == n) {
                draw->file = file;
                draw->edit = &file->edits.list[i];
                return count;
            }
    }
    return count;
}

static bool is_repeated(struct mutant_field *field, const struct mutant_draw *draw)
{
    uint64_t key =
        random_bits((uint64_t)(draw->kernel - field->kernels), (uint64_t)(uintptr_t)draw->edit, (uint64_t)(uintptr_t)draw->file);
    for (int64_t i = 0; i < field->drawn_count; i++)
        if (field->drawn[i] == key)
            return true;
    if (field->drawn_count == field->drawn_room) {
        int64_t room = field->drawn_room ? 2 * field->drawn_room : 1024;
        uint64_t *grown = realloc(field->drawn, (size_t)room * sizeof *grown);
        if (!grown)
            return true;
        field->drawn = grown;
        field->drawn_room = room;
    }
    field->drawn[field->drawn_count++] = key;
    return false;
}

bool mutant_next(struct mutant_field *field, struct mutant_draw *draw)
{
    for (int misses = 0; misses < MOST_MISSES; misses++) {
        uint64_t n = (uint64_t)++draw->number;
        const char *classes[MOST_CLASSES], *class;
        int count = 0;
        draw->kernel = &field->kernels[random_bits(field->seed, STREAM_KERNEL, n) % (uint64_t)field->kernel_count];
        for (int i = 0; (class = mutation_class(i)) && count < MOST_CLASSES; i++)
            if (site(draw->kernel, class, -1, draw) > 0)
                classes[count++] = class;
        if (count == 0)
            return false;
        class = classes[random_bits(field->seed, STREAM_CLASS, n) % (uint64_t)count];
        int64_t sites = site(draw->kernel, class, -1, draw);
        site(draw->kernel, class, (int64_t)(random_bits(field->seed, STREAM_SITE, n) % (uint64_t)sites), draw);
        if (!is_repeated(field, draw))
            return true;
    }
    return false;
}
