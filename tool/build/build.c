/*
 * build.c - compiles C kernels. See build.h.
 *
 * A source is preprocessed once, and that text is what every image is compiled from: the one that ships, the one with sanitizers, the
 * one with names. So no macro tells these builds apart. Before that the text is judged (source_rules.c), as are the flags that the
 * source asks for (compiler_flags.c), and all of it runs in a sandbox: the compiler reads the folders of the system, of the source, of
 * attest's headers and those that -I names, and writes to a folder of its own.
 *
 * The headers of the kernel ABI are those of the source tree where there is one (./include), and otherwise copies that this program
 * carries, so that a kernel can be proven from any folder with nothing installed but the program and a compiler.
 */
#include "build.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/subprocess.h"
#include "build_ahead.h"
#include "clause_lines.h"
#include "compiler_flags.h"
#include "base/embedded.h"
#include "base/digest.h"
#include "evidence/objects.h"
#include "base/regular_file.h"
#include "base/report.h"
#include "run/sandbox.h"
#include "source_rules.h"
#include "base/session.h"

enum { MOST_ARGUMENTS = 128, MOST_FOLDERS = 24, COMPILE_GB = 12, FILE_GB = 1, MOST_TEXT = 256 << 20 };
#define COMPILE_SECONDS 600 /* a kernel of the library takes 20 s with sanitizers, and ten times that on a busy machine */

/* No line information, no build id, no symbols: nothing that would tell one folder or one machine from another. */
static const char *const common_flags =
    "-std=c11 -D_GNU_SOURCE -DATTEST_STANDALONE -O3 -Wall -Wextra -Wshadow -Werror -shared -fPIC "
    "-fvisibility=hidden";
static const char *const kind_flags[] = {
    [BUILD_SHIPPED] = "-s -Wl,--build-id=none",
    [BUILD_CHECKED] = "-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-error",
    [BUILD_NAMED] = "-Wl,--build-id=none",
    [BUILD_QUICK] = "-Og -w -s -Wl,--build-id=none",
    [BUILD_RAW] = "-O0 -w -s -Wl,--build-id=none",
    [BUILD_COVERED] = "-Og -g -w -fsanitize-coverage=trace-pc",
};

/* What an image that is BUILD_COVERED calls; compiled apart, because it must not call itself. */
static const char *const covered_text =
    "extern const char __ehdr_start[] __attribute__((visibility(\"hidden\")));\n"
    "__attribute__((visibility(\"protected\"))) unsigned char " BUILD_RAN "[%d];\n"
    "__attribute__((visibility(\"protected\"))) void " BUILD_CALLED "(void)\n"
    "{\n"
    "    unsigned long at = (unsigned long)((const char *)__builtin_return_address(0) - __ehdr_start);\n"
    "    if (at < sizeof " BUILD_RAN ")\n"
    "        " BUILD_RAN "[at] = 1;\n"
    "}\n";

/* ---- commands -------------------------------------------------------------------------------------------------------------- */

/* Reads what the command prints until it closes its end, or until the time is over. */
static bool read_output(int stream, double seconds, char *log, size_t log_size)
{
    double end = seconds_now() + seconds;
    size_t used = 0;
    for (;;) {
        char buffer[4096];
        double left = end - seconds_now();
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

/* What a command may do beyond computing; NULL folders: everything. */
struct confinement {
    const char *readable[MOST_FOLDERS], *writable[2]; /* ended by NULL */
};

static int run_command(char *const argv[], double seconds, const struct confinement *confinement, char *log, size_t log_size)
{
    int stream[2], status;
    pid_t parent = getpid();
    if (log_size)
        log[0] = '\0';
    if (pipe2(stream, O_CLOEXEC) != 0)
        return 127;
    pid_t child = subprocess_fork(SIGKILL);
    if (child == 0) {
        setpgid(0, 0);
        dup2(stream[1], STDOUT_FILENO);
        dup2(stream[1], STDERR_FILENO);
        close(stream[0]);
        close(stream[1]);
        setenv("LC_ALL", "C", 1);
        if (confinement) {
            setenv("TMPDIR", confinement->writable[0], 1);
            sandbox_before_compiler(parent, (unsigned long)COMPILE_GB << 30, (unsigned long)FILE_GB << 30, (unsigned long)seconds);
            sandbox_folders(confinement->readable, confinement->writable);
        }
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
    status = subprocess_wait(child);
    if (!ended)
        return 124;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int build_command(char *const argv[], double seconds, char *log, size_t log_size)
{
    return run_command(argv, seconds, NULL, log, log_size);
}

int build_command_confined(char *const argv[], const char *const *readable, const char *writable, double seconds, char *log,
                           size_t log_size)
{
    struct confinement confinement = {.writable = {writable}};
    for (int i = 0; i < MOST_FOLDERS - 1 && readable[i]; i++)
        confinement.readable[i] = readable[i];
    return run_command(argv, seconds, &confinement, log, log_size);
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
    if (!embedded_write(embedded_headers, embedded_header_count, carried))
        return NULL;
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
    const char *shipped = kind_flags[BUILD_SHIPPED];
    size_t size = strlen(common_flags) + strlen(shipped) + strlen(flags) + 3;
    char *all = malloc(size);
    if (all)
        snprintf(all, size, "%s %s%s%s", common_flags, shipped, *flags ? " " : "", flags);
    return all;
}

/* The folder of a path: "." or what is before the last slash. To be freed. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

/* What the compiler of a source may read: in the source tree of attest also the library and the mutants, whose
 * headers kernels include. */
static void confine(struct confinement *confinement, const char *folder, char *const *argv, const char *headers, const char *work)
{
    int count = 0;
    confinement->readable[count++] = folder;
    confinement->readable[count++] = headers;
    if (strcmp(headers, "include") == 0) {
        confinement->readable[count++] = "lib";
        confinement->readable[count++] = "mutants";
    }
    for (; *argv && count < MOST_FOLDERS - 2; argv++)
        if (strncmp(*argv, "-I", 2) == 0)
            confinement->readable[count++] = *argv + 2;
    confinement->readable[count++] = work;
    confinement->writable[0] = work;
}

/* Runs the compiler on a source (or on text that was made of it) with three strings of flags and some words, which name files in the
 * folder `work` alone beside the source. */
static int compile(const char *source, const char *common, const char *own, const char *more, const char *const *words,
                   const char *work, char *log, size_t log_size)
{
    char *argv[MOST_ARGUMENTS] = {compiler()}, include[128], why[512];
    struct confinement confinement = {0};
    int count = 1;
    const char *folder = header_folder();
    if (!folder) {
        snprintf(log, log_size, "the headers of attest could not be written to a temporary folder: %s", strerror(errno));
        return 127;
    }
    if (!compiler_flags_check(own, why, sizeof why)) {
        snprintf(log, log_size, "error: %s", why);
        return 1;
    }
    snprintf(include, sizeof include, "-I%s", folder);
    char *texts[] = {strdup(common), strdup(own), strdup(more)}, *beside = folder_of(source);
    for (int i = 0; i < COUNT_OF(texts); i++)
        if (texts[i])
            add_words(argv, &count, texts[i]);
    argv[count++] = include;
    for (; *words && count < MOST_ARGUMENTS - 1; words++)
        argv[count++] = (char *)(uintptr_t)*words;
    argv[count] = NULL;
    confine(&confinement, beside ? beside : ".", argv, folder, work);
    int status = run_command(argv, COMPILE_SECONDS, &confinement, log, log_size);
    for (int i = 0; i < COUNT_OF(texts); i++)
        free(texts[i]);
    free(beside);
    return status;
}

/* A folder for one run of a compiler; to be removed by folder_remove and freed. */
static char *work_folder(char *log, size_t log_size)
{
    const char *base = getenv("TMPDIR");
    char *folder = NULL;
    if (asprintf(&folder, "%s/attest-compile-XXXXXX", base && *base ? base : "/tmp") < 0)
        return NULL;
    if (mkdtemp(folder))
        return folder;
    snprintf(log, log_size, "no temporary folder: %s", strerror(errno));
    free(folder);
    return NULL;
}

static void leave_folder(char *folder)
{
    if (folder)
        folder_remove(folder);
    free(folder);
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
    snprintf(entry->key, sizeof entry->key, "%s", file_copy(image, entry->path) ? key : "");
}

/* `what` is the kind of image, or -1 for the text that they are made of. */
static void build_key(const char *source, const char *flags, int what, char key[DIGEST_TEXT])
{
    char version[256];
    json_t *sources = build_sources(source, flags);
    build_compiler(version, sizeof version);
    json_t *parts = json_pack("{s:O, s:s, s:s, s:s, s:i}", "sources", sources, "source", source, "flags", flags, "compiler",
                              version, "what", what);
    key[0] = '\0';
    if (sources && parts)
        digest_of_json(parts, key);
    json_decref(parts);
    json_decref(sources);
}

/* Copies what was built before. */
static bool recall(const char *key, const char *out)
{
    for (int i = 0; i < built_count; i++)
        if (*key && strcmp(built[i].key, key) == 0 && file_copy(built[i].path, out))
            return true;
    return false;
}

/* The folder of the compiler's own headers, or "". */
static const char *compiler_headers(void)
{
    static char folder[512];
    char *argv[] = {compiler(), (char *)(uintptr_t) "-print-file-name=include", NULL};
    if (!*folder && (build_command(argv, 60, folder, sizeof folder) != 0 || folder[0] != '/'))
        folder[0] = '\0';
    folder[strcspn(folder, "\n")] = '\0';
    return folder;
}

static bool rules_ignored;

void build_ignore_rules(void)
{
    rules_ignored = true;
}

/* Preprocesses the source into a file of `work`, once in this process, and judges the text. Comments stay: one that says that a case
 * falls through keeps the compiler from warning of it. */
static bool preprocess(const char *source, const char *flags, const char *work, const char *text, char *log, size_t log_size)
{
    const char *words[] = {"-Wdate-time", "-E", "-C", source, "-o", text, NULL};
    char key[DIGEST_TEXT], why[640];
    size_t size;
    build_key(source, flags, -1, key);
    if (recall(key, text))
        return true;
    if (compile(source, common_flags, flags, "", words, work, log, log_size) != 0)
        return false;
    char *bytes = regular_file_read(text, MOST_TEXT, &size, why, sizeof why);
    bool good = bytes && (source_rules_check(bytes, compiler_headers(), why, sizeof why) || rules_ignored);
    free(bytes);
    if (!good)
        snprintf(log, log_size, "error: %s", why);
    else
        remember(key, text);
    return good;
}

static bool write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    bool written = file && fputs(text, file) >= 0;
    return file && fclose(file) == 0 && written;
}

/* A line for each clause of the text; and the function that its blocks call. */
static bool prepare_covered(const char *text, const char *work, char *object, size_t object_size, char *log, size_t log_size)
{
    char source[600], stub[1024], why[512];
    size_t size;
    struct clause_lines lines = {0};
    char *bytes = regular_file_read(text, MOST_TEXT, &size, why, sizeof why);
    bool good = bytes && clause_lines_make(&lines, bytes) && write_file(text, lines.text);
    clause_lines_free(&lines);
    free(bytes);
    snprintf(source, sizeof source, "%.500s/called.c", work);
    snprintf(object, object_size, "%.500s/called.o", work);
    snprintf(stub, sizeof stub, covered_text, BUILD_RAN_SIZE);
    const char *words[] = {"-c", source, "-o", object, NULL};
    return good && write_file(source, stub) &&
           compile(source, "-std=gnu11 -O1 -fPIC -fvisibility=hidden", "", "", words, work, log, log_size) == 0;
}

char *build_text(const char *source, const char *flags, char *log, size_t log_size)
{
    char *work = work_folder(log, log_size), *text = NULL, *bytes = NULL;
    size_t size;
    if (work && asprintf(&text, "%s/kernel.i", work) >= 0 && preprocess(source, flags, work, text, log, log_size))
        bytes = regular_file_read(text, MOST_TEXT, &size, log, log_size);
    free(text);
    leave_folder(work);
    return bytes;
}

bool build_image(const char *source, const char *flags, const char *out, enum build_kind kind, char *log, size_t log_size)
{
    char object[600] = "", key[DIGEST_TEXT], why[512];
    if (log_size)
        log[0] = '\0';
    int file = regular_file_descriptor(source, why, sizeof why);
    if (file < 0) {
        snprintf(log, log_size, "error: %s", why);
        return false;
    }
    close(file);
    build_key(source, flags, (int)kind, key);
    if (recall(key, out)) /* warnings are errors: there was nothing to say */
        return true;
    if (build_ahead_take(source, flags, kind, out)) {
        remember(key, out);
        return true;
    }
    char *work = work_folder(log, log_size), *text = NULL, *image = NULL;
    bool done = work && asprintf(&text, "%s/kernel.i", work) >= 0 && asprintf(&image, "%s/kernel.so", work) >= 0;
    done = done && preprocess(source, flags, work, text, log, log_size) &&
           (kind != BUILD_COVERED || prepare_covered(text, work, object, sizeof object, log, log_size));
    const char *words[] = {text, "-o", image, "-lm", *object ? object : NULL, NULL};
    done = done && compile(source, common_flags, flags, kind_flags[kind], words, work, log, log_size) == 0;
    if (done && !file_copy(image, out)) {
        snprintf(log, log_size, "error: %s cannot be written: %s", out, strerror(errno));
        done = false;
    }
    if (done)
        remember(key, out);
    free(text);
    free(image);
    leave_folder(work);
    return done;
}

bool build_empty_image(const char *out, char *log, size_t log_size)
{
    char *work = work_folder(log, log_size), *text = NULL, *image = NULL;
    bool done = work && asprintf(&text, "%s/empty.i", work) >= 0 && asprintf(&image, "%s/empty.so", work) >= 0;
    FILE *file = done ? fopen(text, "w") : NULL;
    done = file && fclose(file) == 0;
    const char *words[] = {text, "-o", image, NULL};
    done = done && compile(text, common_flags, "", kind_flags[BUILD_SHIPPED], words, work, log, log_size) == 0 &&
           file_copy(image, out);
    free(text);
    free(image);
    leave_folder(work);
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
    char *work = work_folder(rule, rule ? ROOM : 0);
    const char *words[] = {"-MM", source, NULL};
    bool done = rule && work && compile(source, common_flags, flags, "", words, work, rule, ROOM) == 0;
    leave_folder(work);
    if (!done) {
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
