/*
 * build.c - compiles C kernels. See build.h.
 *
 * The headers of the kernel ABI are those of the source tree where there is one (./include), and otherwise copies that this program
 * carries, so that a kernel can be proven from any folder with nothing installed but the program and a compiler.
 */
#include "build.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "embedded.h"
#include "evidence/digest.h"
#include "report.h"
#include "tool.h"

enum { MOST_ARGUMENTS = 128 };
#define COMPILE_SECONDS 600 /* a kernel of the library takes 20 s with sanitizers, and ten times that on a busy machine */

/* No line information, no build id, no symbols: nothing that would tell one folder or one machine from another. */
static const char *const common_flags =
    "-std=c11 -D_GNU_SOURCE -DATTEST_STANDALONE -O3 -Wall -Wextra -Wshadow -Werror -shared -fPIC "
    "-fvisibility=hidden";
static const char *const plain_flags = "-s -Wl,--build-id=none";
static const char *const sanitizer_flags =
    "-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-error";

/* ---- commands -------------------------------------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Reads what the command prints until it closes its end, or until the time is over. */
static bool read_output(int stream, double seconds, char *log, size_t log_size)
{
    double end = now() + seconds;
    size_t used = 0;
    for (;;) {
        char buffer[4096];
        double left = end - now();
        struct pollfd waiting = {.fd = stream, .events = POLLIN};
        if (left <= 0 || poll(&waiting, 1, (int)(left * 1000) + 1) == 0)
            return false;
        ssize_t got = read(stream, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return true;
        size_t room = log_size > used + 1 ? log_size - used - 1 : 0, taken = (size_t)got < room ? (size_t)got : room;
        memcpy(log + used, buffer, taken);
        used += taken;
        if (log_size)
            log[used] = '\0';
    }
}

int build_command(char *const argv[], double seconds, char *log, size_t log_size)
{
    int stream[2], status;
    if (log_size)
        log[0] = '\0';
    if (pipe(stream) != 0)
        return 127;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        dup2(stream[1], STDOUT_FILENO);
        dup2(stream[1], STDERR_FILENO);
        close(stream[0]);
        close(stream[1]);
        setenv("LC_ALL", "C", 1);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(stream[1]);
    if (child < 0) {
        close(stream[0]);
        return 127;
    }
    bool ended = read_output(stream[0], seconds, log, log_size);
    if (!ended)
        kill(-child, SIGKILL);
    close(stream[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (!ended)
        return 124;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Appends the words of `text`, which is cut into pieces, to a command. */
static void add_words(char **argv, int *count, char *text)
{
    char *rest = NULL;
    for (char *word = strtok_r(text, " \t\n", &rest); word && *count < MOST_ARGUMENTS - 1; word = strtok_r(NULL, " \t\n", &rest))
        argv[(*count)++] = word;
}

/* ---- the headers ------------------------------------------------------------------------------------------------------------- */

static char carried[64]; /* folder with the carried headers; "" until it is needed */

static void remove_carried(void)
{
    char path[128];
    for (int i = 0; i < embedded_header_count; i++) {
        snprintf(path, sizeof path, "%s/%s", carried, embedded_headers[i].name);
        unlink(path);
    }
    rmdir(carried);
}

/* The folder to find attest_kernel.h in; NULL if it could not be made. */
static const char *header_folder(void)
{
    if (access("include/attest_kernel.h", R_OK) == 0)
        return "include";
    if (carried[0])
        return carried;
    const char *base = getenv("TMPDIR");
    snprintf(carried, sizeof carried, "%.40s/attest-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(carried)) {
        carried[0] = '\0';
        return NULL;
    }
    atexit(remove_carried);
    for (int i = 0; i < embedded_header_count; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", carried, embedded_headers[i].name);
        FILE *file = fopen(path, "wb");
        if (!file)
            return NULL;
        fwrite(embedded_headers[i].data, 1, (size_t)(embedded_headers[i].end - embedded_headers[i].data), file);
        if (fclose(file) != 0)
            return NULL;
    }
    return carried;
}

/* ---- compiling --------------------------------------------------------------------------------------------------------------- */

static char *compiler(void)
{
    char *named = getenv("ATTEST_CC");
    return named && *named ? named : (char *)(uintptr_t) "gcc";
}

void build_compiler(char *text, size_t size)
{
    char *argv[] = {compiler(), (char *)(uintptr_t) "--version", NULL};
    if (build_command(argv, 60, text, size) != 0)
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
}

char *build_flags(const char *flags)
{
    size_t size = strlen(common_flags) + strlen(plain_flags) + strlen(flags) + 3;
    char *all = malloc(size);
    if (all)
        snprintf(all, size, "%s %s%s%s", common_flags, plain_flags, *flags ? " " : "", flags);
    return all;
}

/* Runs the compiler with three strings of flags and some words. */
static int compile(const char *common, const char *own, const char *more, const char *const *words, char *log, size_t log_size)
{
    char *argv[MOST_ARGUMENTS] = {compiler()}, include[128];
    int count = 1;
    const char *folder = header_folder();
    if (!folder) {
        snprintf(log, log_size, "the headers of attest could not be written to a temporary folder: %s", strerror(errno));
        return 127;
    }
    snprintf(include, sizeof include, "-I%s", folder);
    char *texts[] = {strdup(common), strdup(own), strdup(more)};
    for (int i = 0; i < COUNT_OF(texts); i++)
        if (texts[i])
            add_words(argv, &count, texts[i]);
    argv[count++] = include;
    for (; *words && count < MOST_ARGUMENTS - 1; words++)
        argv[count++] = (char *)(uintptr_t)*words;
    argv[count] = NULL;
    int status = build_command(argv, COMPILE_SECONDS, log, log_size);
    for (int i = 0; i < COUNT_OF(texts); i++)
        free(texts[i]);
    return status;
}

static bool copy_file(const char *from, const char *to)
{
    char buffer[1 << 16];
    size_t got;
    FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
    bool copied = out != NULL;
    while (copied && (got = fread(buffer, 1, sizeof buffer, in)) > 0)
        copied = fwrite(buffer, 1, got, out) == got;
    copied = copied && !ferror(in);
    if (in)
        fclose(in);
    return out && fclose(out) == 0 && copied;
}

/* What was built by this process, by what it was built from: several kernels of the library have one source. */
enum { MOST_BUILT = 32 };
static struct built {
    char key[DIGEST_TEXT], path[64];
} built[MOST_BUILT];
static int built_count;

static void remove_built(void)
{
    for (int i = 0; i < built_count; i++)
        unlink(built[i].path);
}

static void remember(const char *key, const char *image)
{
    struct built *entry = &built[built_count];
    const char *base = getenv("TMPDIR");
    if (!*key || built_count == MOST_BUILT)
        return;
    snprintf(entry->path, sizeof entry->path, "%.40s/attest-built-XXXXXX", base && *base ? base : "/tmp");
    int file = mkstemp(entry->path);
    if (file < 0)
        return;
    close(file);
    if (built_count++ == 0)
        atexit(remove_built);
    snprintf(entry->key, sizeof entry->key, "%s", copy_file(image, entry->path) ? key : "");
}

static void build_key(const char *source, const char *flags, bool sanitized, char key[DIGEST_TEXT])
{
    char version[256];
    json_t *sources = build_sources(source, flags);
    build_compiler(version, sizeof version);
    json_t *parts = json_pack("{s:O, s:s, s:s, s:s, s:b}", "sources", sources, "source", source, "flags", flags, "compiler",
                              version, "sanitized", sanitized);
    key[0] = '\0';
    if (sources && parts)
        digest_of_json(parts, key);
    json_decref(parts);
    json_decref(sources);
}

bool build_image(const char *source, const char *flags, const char *out, bool sanitized, char *log, size_t log_size)
{
    const char *words[] = {source, "-o", out, "-lm", NULL};
    char key[DIGEST_TEXT];
    build_key(source, flags, sanitized, key);
    for (int i = 0; i < built_count; i++)
        if (*key && strcmp(built[i].key, key) == 0 && copy_file(built[i].path, out)) {
            if (log_size)
                log[0] = '\0'; /* warnings are errors: there was nothing to say */
            return true;
        }
    bool done = compile(common_flags, flags, sanitized ? sanitizer_flags : plain_flags, words, log, log_size) == 0;
    if (done)
        remember(key, out);
    return done;
}

void build_first_error(const char *log, char *text, size_t size)
{
    const char *at = strstr(log, "error:");
    while (at && at > log && at[-1] != '\n')
        at--;
    if (!at)
        at = log;
    snprintf(text, size, "%.*s", (int)strcspn(at, "\n"), at);
}

/* What a header is called in a record: its path in the source tree, or its bare name if it is one that the program carries. */
static const char *recorded_name(const char *path)
{
    size_t length = strlen(carried);
    if (length && strncmp(path, carried, length) == 0)
        return path + length + 1;
    return strncmp(path, "./", 2) == 0 ? path + 2 : path;
}

json_t *build_sources(const char *source, const char *flags)
{
    enum { ROOM = 1 << 16 };
    char *rule = malloc(ROOM), *rest = NULL;
    const char *words[] = {"-MM", source, NULL};
    if (!rule || compile(common_flags, flags, "", words, rule, ROOM) != 0) {
        free(rule);
        return NULL;
    }
    json_t *sources = json_object();
    for (char *word = strtok_r(rule, " \\\n", &rest); word; word = strtok_r(NULL, " \\\n", &rest)) {
        char digest[DIGEST_TEXT];
        if (word[strlen(word) - 1] == ':')
            continue;
        if (!digest_of_file(word, digest)) {
            json_decref(sources);
            sources = NULL;
            break;
        }
        json_put(sources, recorded_name(word), json_string(digest));
    }
    free(rule);
    return sources;
}
