/*
 * state.c - what the system says of a worker (see state.h).
 *
 * All of it is read from /proc while the worker stands still, so nothing that runs in it can hide it. A fact is a text; two states are
 * compared fact by fact, and the first that differs is named. Memory is compared in three ways:
 * - the list of mappings: what was there when the kernel had been loaded, and is not writable or comes from a file, must still be there
 *   with the same protection, and nothing executable may have come;
 * - the pages of code and constants: a page that came from its file and no longer does was written to (/proc/PID/pagemap says which).
 *   Pages that were relocated when they were loaded (tables of pointers, the GOT) are compared by content;
 * - round a single run, the whole list, but for heap and stack.
 */
#include "state.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/session.h"

enum { FACT_COUNT = 15, FACT_TIMERS = 8, MOST_MAPPINGS = 4096, FILE_MOST = 1 << 18, MOST_BYTES = 32 << 20, MOST_VARIABLES = 4096 };

struct mapping {
    uint64_t begin, end;
    char protection[8];
    char path[200];
    bool is_file;
    uint64_t *pages;         /* of memory that nobody may write: its line in pagemap, page by page; or NULL */
    unsigned char **content; /* of its pages that are not those of a file; or NULL */
};

struct state {
    pid_t process;
    char *facts[FACT_COUNT];
    struct mapping *mappings;
    int count;
    double seconds;
    bool has_code; /* pages were read */
};

/* ---- files of /proc --------------------------------------------------------------------------------------------------- */

/* What a file says, to be freed; NULL if it cannot be read. */
static char *read_text(pid_t process, const char *name, size_t *size)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    size_t used = 0, room = 1 << 14;
    char *text = malloc(room + 1);
    for (ssize_t got; text && (got = read(file, text + used, room - used)) > 0;) {
        used += (size_t)got;
        if (used < room || room >= FILE_MOST * 16)
            continue;
        char *grown = realloc(text, 2 * room + 1);
        if (!grown)
            break;
        text = grown;
        room *= 2;
    }
    close(file);
    if (text)
        text[used] = '\0';
    if (size)
        *size = used;
    return text;
}

static char *read_place(pid_t process, const char *name)
{
    char path[300], target[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return strdup(target);
}

/* The lines of a status file that have one of these names, one after the other. To be freed. */
static char *pick_lines(const char *status, const char *const *names, int count)
{
    char *picked = calloc(1, strlen(status) + 2), *at = picked;
    for (const char *line = status; picked && *line;) {
        size_t length = strcspn(line, "\n"), name = strcspn(line, ":");
        for (int i = 0; i < count; i++)
            if (strlen(names[i]) == name && strncmp(line, names[i], name) == 0) {
                memcpy(at, line, length);
                at += length;
                *at++ = '\n';
            }
        line += length + (line[length] == '\n');
    }
    return picked;
}

/* The numbered entries of a folder of the process, in order. `told` appends what is to be said of one of them. */
static char *list_folder(pid_t process, const char *folder, void (*told)(pid_t process, const char *entry, FILE *out))
{
    char path[64], *text = NULL;
    size_t size = 0;
    struct dirent **entries = NULL;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, folder);
    int count = scandir(path, &entries, NULL, versionsort);
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < count; i++) {
        if (out && entries[i]->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%.20s", folder, entries[i]->d_name);
            told(process, path, out);
        }
        free(entries[i]);
    }
    free(entries);
    if (out)
        fclose(out);
    return text;
}

static void tell_file(pid_t process, const char *entry, FILE *out)
{
    char *target = read_place(process, entry);
    fprintf(out, "%s %s\n", strrchr(entry, '/') + 1, target ? target : "");
    free(target);
}

/* Identity, state, mask, processors and priority of a thread. */
static void tell_thread(pid_t process, const char *entry, FILE *out)
{
    static const char *const names[] = {"Pid", "State", "SigPnd", "SigBlk", "Cpus_allowed", "Seccomp"};
    char name[80];
    snprintf(name, sizeof name, "%s/status", entry);
    char *status = read_text(process, name, NULL), *lines = status ? pick_lines(status, names, COUNT_OF(names)) : NULL;
    snprintf(name, sizeof name, "%s/stat", entry);
    char *stat = read_text(process, name, NULL), *at = stat ? strrchr(stat, ')') : NULL;
    long priority = 0, nice = 0, policy = 0;
    /* Fields 18, 19 and 41; the name ends with field 2. */
    if (at &&
        sscanf(at + 1,
               " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
               "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
               &priority, &nice, &policy) >= 2)
        fprintf(out, "%spriority %ld nice %ld policy %ld\n", lines ? lines : "", priority, nice, policy);
    free(status);
    free(lines);
    free(stat);
}

/* Adds up how long the threads have run. */
static void tell_time(pid_t process, const char *entry, FILE *out)
{
    char name[80];
    unsigned long long nanoseconds = 0;
    snprintf(name, sizeof name, "%s/schedstat", entry);
    char *text = read_text(process, name, NULL);
    if (text && sscanf(text, "%llu", &nanoseconds) == 1)
        fprintf(out, "%llu\n", nanoseconds);
    free(text);
}

static double read_seconds(pid_t process)
{
    double seconds = 0;
    char *text = list_folder(process, "task", tell_time);
    for (char *at = text; at && *at; at = strchr(at, '\n') + 1)
        seconds += 1e-9 * strtod(at, NULL);
    free(text);
    return seconds;
}

/* ---- memory ----------------------------------------------------------------------------------------------------------- */

static bool read_memory(pid_t process, uint64_t from, void *to, size_t size)
{
    struct iovec local = {to, size}, remote = {(void *)(uintptr_t)from, size}; /* NOLINT: an address of the other process */
    return process_vm_readv(process, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* The variable `environ`, what it points to, and the words. */
static char *read_environment(pid_t process, uint64_t variable)
{
    char *text = NULL;
    size_t size = 0, count = 0;
    uint64_t at = 0, word = 0;
    FILE *out = open_memstream(&text, &size);
    char *words = read_text(process, "environ", &count);
    for (size_t i = 0; out && words && i < count; i++)
        fputc(words[i] ? words[i] : '\n', out);
    if (out && variable && read_memory(process, variable, &at, sizeof at)) {
        fprintf(out, "at %llx\n", (unsigned long long)at);
        for (int i = 0; at && i < MOST_VARIABLES && read_memory(process, at, &word, sizeof word) && word; i++, at += sizeof word)
            fprintf(out, "%llx\n", (unsigned long long)word);
    }
    if (out)
        fclose(out);
    free(words);
    return text;
}

static char *read_tables(pid_t process, const struct state_places *places)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; out && i < places->count && i < STATE_TABLES; i++) {
        uint64_t words[512];
        uint64_t left = places->tables[i].size, at = places->tables[i].begin;
        for (uint64_t part; left >= 8; left -= part, at += part) {
            part = left < sizeof words ? left / 8 * 8 : sizeof words;
            if (!read_memory(process, at, words, (size_t)part))
                break;
            for (size_t j = 0; j < part / 8; j++)
                fprintf(out, "%llx at %llx\n", (unsigned long long)words[j], (unsigned long long)(at + 8 * j));
        }
    }
    if (out)
        fclose(out);
    return text;
}

static bool is_private_constant(const struct mapping *mapping)
{
    return mapping->protection[0] == 'r' && mapping->protection[1] == '-' && mapping->protection[3] == 'p' &&
           !strstr(mapping->path, "memfd:") && mapping->path[0] != '[' && mapping->end - mapping->begin <= MOST_BYTES;
}

/* A page that is there and does not come from a file. */
static bool is_own_page(uint64_t entry)
{
    const uint64_t present = UINT64_C(1) << 63, swapped = UINT64_C(1) << 62, file = UINT64_C(1) << 61;
    return (entry & (present | swapped)) && !(entry & file);
}

static bool read_pages(struct state *state, struct mapping *mapping, int pagemap)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = (mapping->end - mapping->begin) / page;
    mapping->pages = calloc(count, sizeof *mapping->pages);
    mapping->content = calloc(count, sizeof *mapping->content);
    if (!mapping->pages || !mapping->content ||
        pread(pagemap, mapping->pages, count * 8, (off_t)(mapping->begin / page * 8)) != (ssize_t)(count * 8))
        return false;
    for (size_t i = 0; i < count; i++)
        if (is_own_page(mapping->pages[i]) && (mapping->content[i] = malloc(page)) &&
            !read_memory(state->process, mapping->begin + i * page, mapping->content[i], page))
            return false;
    return true;
}

static void read_mappings(struct state *state)
{
    char *text = read_text(state->process, "maps", NULL), path[64];
    snprintf(path, sizeof path, "/proc/%d/pagemap", (int)state->process);
    int pagemap = open(path, O_RDONLY | O_CLOEXEC);
    state->mappings = calloc(MOST_MAPPINGS, sizeof *state->mappings);
    state->has_code = pagemap >= 0;
    for (char *line = text, *end; line && *line && state->mappings && state->count < MOST_MAPPINGS; line = end + 1) {
        struct mapping *mapping = &state->mappings[state->count];
        unsigned long long first, last, offset, inode;
        int used = 0;
        if (!(end = strchr(line, '\n')))
            break;
        *end = '\0';
        if (sscanf(line, "%llx-%llx %7s %llx %*s %llu %n", &first, &last, mapping->protection, &offset, &inode, &used) < 5)
            continue;
        snprintf(mapping->path, sizeof mapping->path, "%s", used ? line + used : "");
        char *deleted = strstr(mapping->path, " (deleted)"); /* a file that others replace in the meantime is still mapped */
        if (deleted)
            *deleted = '\0';
        mapping->begin = first;
        mapping->end = last;
        mapping->is_file = inode != 0 && !strstr(mapping->path, "memfd:");
        state->count++;
        if (pagemap >= 0 && is_private_constant(mapping) && !read_pages(state, mapping, pagemap))
            state->has_code = false;
    }
    if (pagemap >= 0)
        close(pagemap);
    free(text);
}

/* The mapping of the beginning of the file is where its address 0 is. */
bool state_read_image(pid_t process, const char *path, uint64_t address, void *to, size_t size)
{
    bool good = false;
    char *text = read_text(process, "maps", NULL), *rest = NULL;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && !good; line = strtok_r(NULL, "\n", &rest)) {
        unsigned long long first, offset;
        int used = 0;
        if (sscanf(line, "%llx-%*x %*s %llx %*s %*u %n", &first, &offset, &used) == 2 && used && offset == 0 &&
            strcmp(line + used, path) == 0)
            good = read_memory(process, first + address, to, size);
    }
    free(text);
    return good;
}

/* ---- facts ------------------------------------------------------------------------------------------------------------ */

static const char *const fact_names[FACT_COUNT] = {
    "signal handlers",
    "pending signals",
    "its rights",
    "its file mode mask",
    "its limits",
    "its current folder",
    "its root folder",
    "its personality",
    "its timers",
    "its environment",
    "its open files",
    "its threads (which there are, whether they stand still, signal masks, processors, priorities)",
    "its filter of system calls",
    "the process that traces it",
    "code or constants of the worker: the addresses of the functions that its libraries call (GOT)",
};

struct state *state_take(pid_t process, const struct state_places *places)
{
    static const char *const handlers[] = {"SigCgt", "SigIgn"}, *const pending[] = {"SigPnd", "ShdPnd"}, *const mask[] = {"Umask"},
                             *const filter[] = {"Seccomp"}, *const tracer[] = {"TracerPid"},
                             *const rights[] = {"Uid",    "Gid",    "Groups", "CapInh",    "CapPrm",
                                                "CapEff", "CapBnd", "CapAmb", "NoNewPrivs"};
    struct state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    state->process = process;
    char *status = read_text(process, "status", NULL), **fact = state->facts;
    if (status) {
        fact[0] = pick_lines(status, handlers, COUNT_OF(handlers));
        fact[1] = pick_lines(status, pending, COUNT_OF(pending));
        fact[2] = pick_lines(status, rights, COUNT_OF(rights));
        fact[3] = pick_lines(status, mask, COUNT_OF(mask));
        fact[12] = pick_lines(status, filter, COUNT_OF(filter));
        fact[13] = pick_lines(status, tracer, COUNT_OF(tracer));
    }
    free(status);
    fact[4] = read_text(process, "limits", NULL);
    fact[5] = read_place(process, "cwd");
    fact[6] = read_place(process, "root");
    fact[7] = read_text(process, "personality", NULL);
    fact[FACT_TIMERS] = read_text(process, "timers", NULL);
    fact[9] = read_environment(process, places->variable);
    fact[14] = read_tables(process, places);
    fact[10] = list_folder(process, "fd", tell_file);
    fact[11] = list_folder(process, "task", tell_thread);
    read_mappings(state);
    state->seconds = read_seconds(process);
    return state;
}

void state_free(struct state *state)
{
    if (!state)
        return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < FACT_COUNT; i++)
        free(state->facts[i]);
    for (int i = 0; i < state->count; i++) {
        struct mapping *mapping = &state->mappings[i];
        for (size_t j = 0; mapping->content && j < (mapping->end - mapping->begin) / page; j++)
            free(mapping->content[j]);
        free(mapping->content);
        free(mapping->pages);
    }
    free(state->mappings);
    free(state);
}

bool state_is_whole(const struct state *state)
{
    bool whole = state->has_code && state->count > 0;
    for (int i = 0; i < FACT_COUNT; i++)
        whole = whole && (state->facts[i] || i == FACT_TIMERS); /* which not every system tells */
    return whole;
}

double state_seconds(const struct state *state)
{
    return state->seconds;
}

/* ---- comparing -------------------------------------------------------------------------------------------------------- */

/* The line of `text` that `other` has otherwise, in *line. */
static void find_line(const char *text, const char *other, char *line, size_t size)
{
    while (*text && *other) {
        size_t length = strcspn(text, "\n"), same = strcspn(other, "\n");
        if (length != same || strncmp(text, other, length) != 0)
            break;
        text += length + (text[length] == '\n');
        other += same + (other[same] == '\n');
    }
    snprintf(line, size, "%.*s", (int)strcspn(text, "\n"), text);
    for (char *at = line; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
}

bool state_same(const struct state *before, const struct state *now, char *why, size_t size)
{
    for (int i = 0; i < FACT_COUNT; i++) {
        const char *was = before->facts[i], *is = now->facts[i];
        if (!was || !is || strcmp(was, is) == 0)
            continue;
        char old[80], new[80];
        find_line(was, is, old, sizeof old);
        find_line(is, was, new, sizeof new);
        snprintf(why, size, "it leaves the process in another state: it changed %s: \"%s\" was \"%s\"", fact_names[i], new, old);
        return false;
    }
    return true;
}

static const struct mapping *find_mapping(const struct state *state, const struct mapping *like)
{
    for (int i = 0; i < state->count; i++)
        if (state->mappings[i].begin == like->begin && state->mappings[i].end == like->end)
            return &state->mappings[i];
    return NULL;
}

/* Whether two mappings are the same; if not, what is said of it. */
static bool same_mapping(const struct mapping *was, const struct mapping *is, char *why, size_t size)
{
    const char *name = was->path[0] ? was->path : "memory without a name";
    if (!is || strcmp(was->path, is->path) != 0)
        snprintf(why, size, "it changed code or constants of the worker: %s is no longer mapped where it was", name);
    else if (strcmp(was->protection, is->protection) != 0)
        snprintf(why, size, "it changed code or constants of the worker: the protection of %s is %s and was %s", name,
                 is->protection, was->protection);
    else
        return true;
    return false;
}

static bool same_pages(const struct mapping *was, const struct mapping *is, char *why, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; was->pages && is->pages && i < (was->end - was->begin) / page; i++) {
        if (!is_own_page(is->pages[i]) && !is_own_page(was->pages[i]))
            continue;
        bool kept = was->content[i] && is->content[i] && memcmp(was->content[i], is->content[i], page) == 0;
        bool blank = !was->is_file && !was->content[i] && is->content[i] && !is->content[i][0] &&
                     memcmp(is->content[i], is->content[i] + 1, page - 1) == 0; /* it was read for the first time */
        if (kept || blank)
            continue;
        snprintf(why, size, "it changed code or constants of the worker: page %zu of %s, %s, is not what was loaded", i,
                 was->path[0] ? was->path : "memory without a name", was->protection);
        return false;
    }
    return true;
}

bool state_same_code(const struct state *before, const struct state *now, bool loaded, char *why, size_t size)
{
    for (int i = 0; i < before->count; i++) {
        const struct mapping *was = &before->mappings[i], *is = find_mapping(now, was);
        bool fixed = was->is_file || was->protection[2] == 'x' || was->pages;
        if (fixed && (!same_mapping(was, is, why, size) || !same_pages(was, is, why, size)))
            return false;
    }
    for (int i = 0; i < now->count; i++) {
        const struct mapping *is = &now->mappings[i], *was = find_mapping(before, is);
        if (loaded && !was && is->is_file && is->protection[1] != 'w')
            continue;
        if (is->protection[2] == 'x' && (!was || was->protection[2] != 'x' || is->protection[1] == 'w')) {
            snprintf(why, size, "it made memory executable that was not: %s, %s", is->path[0] ? is->path : "memory without a name",
                     is->protection);
            return false;
        }
    }
    return true;
}

static bool grows(const struct mapping *mapping)
{
    return strcmp(mapping->path, "[heap]") == 0 || strcmp(mapping->path, "[stack]") == 0;
}

bool state_same_mappings(const struct state *before, const struct state *now, char *why, size_t size)
{
    for (int turn = 0; turn < 2; turn++) {
        const struct state *from = turn ? before : now, *in = turn ? now : before;
        for (int i = 0; i < from->count; i++) {
            const struct mapping *one = &from->mappings[i], *other = find_mapping(in, one);
            if (grows(one) || (other && strcmp(one->protection, other->protection) == 0))
                continue;
            snprintf(why, size, "it leaves the process in another state: %s of %llu KiB (%s, %s)",
                     turn     ? "it gave back or changed memory that was not its own,"
                     : !other ? "it left memory mapped,"
                              : "it changed the protection of memory,",
                     (unsigned long long)(one->end - one->begin) >> 10, one->protection,
                     one->path[0] ? one->path : "without a name");
            return false;
        }
    }
    return true;
}
