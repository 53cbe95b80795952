/*
 * cuda_emulation.c - see cuda_emulation.h.
 *
 * Every image is preprocessed with the macros that nvcc has, rewritten (tool/emulation/rewrite.h), and compiled by a C++ compiler
 * (ATTEST_CXX, or g++) with the instrumentation of ThreadSanitizer, whose functions the emulated device has. Images with the same
 * text are compiled once.
 */
#include "cuda_emulation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "build.h"
#include "cuda_index.h"
#include "embedded.h"
#include "emulation/rewrite.h"
#include "evidence/digest.h"
#include "gate.h"

enum { MOST_IMAGES = 256, MOST_WORDS = 96, COMPILE_SECONDS = 240, LOG_SIZE = 1 << 14 };

struct emulated_image {
    struct cuda_configuration configuration;
    char name[80]; /* of its files, without an ending */
    char digest[DIGEST_TEXT];
    int same; /* the first image with the same text */
    enum verdict verdict;
    char why[512];
};

static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text; /* for argv, which nobody writes to */
}

static const char *compiler(void)
{
    const char *named = getenv("ATTEST_CXX");
    return named && *named ? named : "g++";
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- files ------------------------------------------------------------------------------------------------------------- */

static bool write_bytes(const char *folder, const char *name, const char *data, size_t size)
{
    char *path = NULL;
    FILE *file = asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : fopen(path, "wb");
    bool written = file && fwrite(data, 1, size, file) == size;
    written = file && fclose(file) == 0 && written;
    free(path);
    return written;
}

static bool write_embedded(const char *folder, const struct embedded *file)
{
    return write_bytes(folder, file->name, file->data, (size_t)(file->end - file->data));
}

static bool write_files(const char *folder)
{
    bool good = mkdir(folder, 0700) == 0 || errno == EEXIST;
    for (int i = 0; i < embedded_header_count; i++)
        good = good && write_embedded(folder, &embedded_headers[i]);
    for (int i = 0; i < embedded_device_header_count; i++)
        good = good && write_embedded(folder, &embedded_device_headers[i]);
    return good && write_embedded(folder, &embedded_emulated_driver);
}

static char *read_file(const char *folder, const char *name, const char *ending, size_t *size)
{
    char *path = NULL, *text = NULL;
    FILE *file = asprintf(&path, "%s/%s%s", folder, name, ending) < 0 ? NULL : fopen(path, "rb");
    size_t room = 0;
    *size = 0;
    while (file) {
        if (*size == room) {
            char *grown = realloc(text, room = room * 2 + 65536);
            if (!grown)
                break;
            text = grown;
        }
        size_t got = fread(text + *size, 1, room - *size, file);
        if (!got)
            break;
        *size += got;
    }
    if (file)
        fclose(file);
    free(path);
    return text;
}

/* ---- compiling --------------------------------------------------------------------------------------------------------- */

/* Macros and folders among the candidate's flags; the others are for the compiler of the GPU. */
static int own_flags(char *flags, char **argv, int count)
{
    char *rest = NULL;
    for (char *word = strtok_r(flags, " ", &rest); word && count < MOST_WORDS / 2; word = strtok_r(NULL, " ", &rest))
        if (strncmp(word, "-D", 2) == 0 || strncmp(word, "-U", 2) == 0 || strncmp(word, "-I", 2) == 0)
            argv[count++] = word;
    return count;
}

static bool preprocess(const struct proof *proof, const char *folder, struct emulated_image *image)
{
    const int64_t *n = image->configuration.numbers;
    const struct cuda_limits *limits = &cuda_limits[image->configuration.arch];
    char arch[48], macros[6][48], out[600], log[LOG_SIZE], line[400], *flags = strdup(proof->manifest->flags);
    snprintf(arch, sizeof arch, "-D__CUDA_ARCH__=%d", limits->number * 10);
    const struct {
        const char *name;
        int64_t value;
    } values[] = {{"DTYPE", image->configuration.dtype}, {"DIM", image->configuration.dim}, {"TILE_Q", n[CUDA_TILE_Q]},
                  {"TILE_KV", n[CUDA_TILE_KV]},          {"STAGES", n[CUDA_STAGES]},        {"THREADS", n[CUDA_THREADS]}};
    char *argv[MOST_WORDS] = {text_of(compiler()),     text_of("-std=c++17"),
                              text_of("-E"),           text_of("-D__CUDACC__=1"),
                              text_of("-D__NVCC__=1"), arch,
                              text_of("-I"),           text_of(folder),
                              text_of("-include"),     text_of("emulated_device.h"),
                              text_of("-x"),           text_of("c++")};
    int count = 12;
    for (int i = 0; i < COUNT_OF(values); i++) {
        snprintf(macros[i], sizeof macros[i], "-DATTEST_%s=%" PRId64, values[i].name, values[i].value);
        argv[count++] = macros[i];
    }
    if (limits->name[strlen(limits->name) - 1] == 'a')
        argv[count++] = text_of("-D__CUDA_ARCH_FEAT_SM90_ALL=1");
    if (flags)
        count = own_flags(flags, argv, count);
    snprintf(out, sizeof out, "%s/%s.ii", folder, image->name);
    argv[count++] = text_of(proof->candidate.source);
    argv[count++] = text_of("-o");
    argv[count++] = out;
    argv[count] = NULL;
    int status = build_command(argv, COMPILE_SECONDS, log, sizeof log);
    free(flags);
    if (status == 0)
        return true;
    build_first_error(log, line, sizeof line);
    image->verdict = status == 127 ? VERDICT_INCONCLUSIVE : VERDICT_NOT_APPLICABLE;
    snprintf(image->why, sizeof image->why,
             status == 127 ? "there is no C++ compiler here; install g++, or set ATTEST_CXX%.0s"
                           : "it is not written for the emulated device: %.400s",
             line);
    return false;
}

/* The rewritten text, and its digest. */
static void make_text(const struct proof *proof, const char *folder, struct emulated_image *image)
{
    size_t size;
    char name[96], why[400];
    if (!preprocess(proof, folder, image))
        return;
    char *text = read_file(folder, image->name, ".ii", &size), *made = text ? rewrite_kernel(text, size, why, sizeof why) : NULL;
    snprintf(name, sizeof name, "%s.cpp", image->name);
    if (!made) {
        image->verdict = text ? VERDICT_NOT_APPLICABLE : VERDICT_INCONCLUSIVE;
        snprintf(image->why, sizeof image->why, "%s", text ? why : "out of memory");
    } else if (!write_bytes(folder, name, made, strlen(made))) {
        image->verdict = VERDICT_INCONCLUSIVE;
        snprintf(image->why, sizeof image->why, "%s cannot be written", folder);
    } else {
        digest_of_bytes(made, strlen(made), image->digest);
        image->verdict = VERDICT_PASS;
    }
    free(text);
    free(made);
}

static bool has_fma(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static void compile_image(const char *folder, struct emulated_image *image)
{
    char source[600], object[600], out[600], driver[600], log[LOG_SIZE], line[400];
    snprintf(source, sizeof source, "%s/%s.cpp", folder, image->name);
    snprintf(object, sizeof object, "%s/%s.o", folder, image->name);
    snprintf(out, sizeof out, "%s/%s.so", folder, image->name);
    snprintf(driver, sizeof driver, "%s/%s", folder, embedded_emulated_driver.name);
    char *compile[] = {text_of(compiler()),
                       text_of("-std=c++17"),
                       text_of("-O1"),
                       text_of("-g1"),
                       text_of("-w"),
                       text_of("-fPIC"),
                       text_of("-fno-threadsafe-statics"),
                       text_of("-fno-strict-aliasing"),
                       text_of("-ffp-contract=fast"),
                       text_of(has_fma() ? "-mfma" : "-fPIC"),
                       text_of("-fsanitize=thread"),
                       text_of("--param=tsan-distinguish-volatile=1"),
                       text_of("--param=tsan-instrument-func-entry-exit=0"),
                       text_of("-c"),
                       source,
                       text_of("-o"),
                       object,
                       NULL};
    char *link[] = {text_of(compiler()), text_of("-shared"), text_of("-o"), out, object, driver, NULL};
    int status = build_command(compile, COMPILE_SECONDS, log, sizeof log);
    if (status == 0)
        status = build_command(link, COMPILE_SECONDS, log, sizeof log);
    if (status == 0)
        return;
    build_first_error(log, line, sizeof line);
    image->verdict = status == 127 || status == 124 ? VERDICT_INCONCLUSIVE : VERDICT_NOT_APPLICABLE;
    snprintf(image->why, sizeof image->why, "it does not compile for the emulated device: %.400s", line);
}

static bool write_index(const struct proof *proof, const char *folder, const struct emulated_image *images, int count, char *index)
{
    json_t *head = cuda_index_head(proof->candidate.name, proof->manifest), *list = json_object();
    for (int i = 0; i < count; i++) {
        char name[64], file[96];
        cuda_configuration_name(&images[i].configuration, name, sizeof name);
        snprintf(file, sizeof file, "%s.so", images[images[i].same].name);
        json_t *entry = cuda_index_image(&images[i].configuration, i, file, "", 0);
        json_put(entry, "emulated", json_true());
        json_put(list, name, entry);
    }
    json_put(head, "images", list);
    bool written = json_dump_file(head, index, JSON_INDENT(1)) == 0;
    (void)folder;
    json_decref(head);
    return written;
}

static void list_devices(struct cuda_emulation *emulation, const struct emulated_image *images, int count)
{
    for (int i = 0; i < count; i++) {
        int number = cuda_limits[images[i].configuration.arch].number;
        bool known = false;
        for (int n = 0; n < emulation->device_count; n++)
            known = known || emulation->devices[n] == number;
        if (!known && emulation->device_count < EMULATION_MOST_DEVICES)
            emulation->devices[emulation->device_count++] = number;
    }
}

static enum verdict build_images(const struct proof *proof, struct cuda_emulation *emulation, struct emulated_image *images,
                                 int count, char *why, size_t why_size)
{
    int threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
#pragma omp parallel for schedule(dynamic) num_threads(threads > 0 ? threads : 1)
    for (int i = 0; i < count; i++)
        make_text(proof, emulation->folder, &images[i]);
    for (int i = 0; i < count; i++)
        for (images[i].same = 0; strcmp(images[images[i].same].digest, images[i].digest) != 0 && images[i].same < i;)
            images[i].same++;
#pragma omp parallel for schedule(dynamic) num_threads(threads > 0 ? threads : 1)
    for (int i = 0; i < count; i++)
        if (images[i].same == i && images[i].verdict == VERDICT_PASS)
            compile_image(emulation->folder, &images[i]);
    for (int i = 0; i < count; i++) {
        if (images[i].same == i)
            emulation->different[emulation->compiled++] = images[i].configuration;
        if (images[i].verdict != VERDICT_PASS) {
            snprintf(why, why_size, "%s", images[i].why);
            return images[i].verdict;
        }
    }
    emulation->images = count;
    list_devices(emulation, images, count);
    return VERDICT_PASS;
}

enum verdict cuda_emulation_build(const struct proof *proof, struct cuda_emulation *emulation, char *why, size_t why_size)
{
    double begin = now();
    *emulation =
        (struct cuda_emulation){.folder = gate_path(proof, "emulation"), .index = gate_path(proof, "emulation/index.json")};
    struct emulated_image *images = calloc(MOST_IMAGES, sizeof *images);
    struct cuda_configuration *configurations = calloc(MOST_IMAGES, sizeof *configurations);
    enum verdict verdict = VERDICT_INCONCLUSIVE;
    snprintf(why, why_size, "out of memory");
    emulation->different = calloc(MOST_IMAGES, sizeof *emulation->different);
    int count = images && configurations && emulation->different && emulation->folder && emulation->index
                    ? cuda_manifest_images(proof->manifest, proof->candidate.dtype, configurations, MOST_IMAGES, why, why_size)
                    : -1;
    if (count > 0 && embedded_emulated_driver.end == embedded_emulated_driver.data)
        snprintf(why, why_size, "this program was built without a C++ compiler, and has no emulated device; build it where g++ is"),
            count = -1;
    if (count > 0 && !write_files(emulation->folder))
        snprintf(why, why_size, "%s cannot be written", emulation->folder), count = -1;
    for (int i = 0; i < count; i++) {
        images[i].configuration = configurations[i];
        snprintf(images[i].name, sizeof images[i].name, "image_%d", i);
    }
    if (count > 0)
        verdict = build_images(proof, emulation, images, count, why, why_size);
    if (verdict == VERDICT_PASS && !write_index(proof, emulation->folder, images, count, emulation->index)) {
        snprintf(why, why_size, "%s cannot be written", emulation->index);
        verdict = VERDICT_INCONCLUSIVE;
    }
    emulation->seconds = now() - begin;
    free(images);
    free(configurations);
    return verdict;
}

void cuda_emulation_free(struct cuda_emulation *emulation)
{
    free(emulation->folder);
    free(emulation->index);
    free(emulation->different);
    *emulation = (struct cuda_emulation){0};
}

/* ---- workers ----------------------------------------------------------------------------------------------------------- */

struct executor *cuda_emulation_open(const struct proof *proof, const struct cuda_emulation *emulation, int compute, int order,
                                     struct execution *execution)
{
    char path[700], device[40], seed[48], fixed[40];
    snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", emulation->folder);
    snprintf(device, sizeof device, "EMULATED_COMPUTE=%d", compute);
    snprintf(seed, sizeof seed, "EMULATED_SEED=%" PRIu64, proof->seed);
    snprintf(fixed, sizeof fixed, "EMULATED_ORDER=%d", order);
    const char *environment[] = {path, device, seed, order >= 0 ? fixed : NULL, NULL};
    struct executor_spec spec = {.image = emulation->index,
                                 .device = "cuda",
                                 .emulated = true,
                                 .threads = 1,
                                 .guard = GUARD_BANDS,
                                 .seconds = proof->policy.call_seconds,
                                 .memory = (int64_t)proof->policy.memory_mb << 20,
                                 .environment = environment};
    return executor_open(&spec, execution);
}

/* "file.cuh:12" of an address in an image. Wrappers of single instructions are of no interest: the line that calls them is. */
static void source_line(const char *image, const char *address, char *text, size_t size)
{
    static const char *const wrappers[] = {"ptx",   "mma_sm80",   "simt.cuh",   "emulated_device",
                                           "mma.h", "attest_ptx", "attest_mma", "attest_simt"};
    char log[LOG_SIZE], where[64], *rest = NULL;
    snprintf(where, sizeof where, "0x%s", address);
    char *argv[] = {text_of("addr2line"), text_of("-i"), text_of("-e"), text_of(image), where, NULL};
    snprintf(text, size, "image+0x%s", address);
    if (build_command(argv, 20, log, sizeof log) != 0)
        return;
    for (char *line = strtok_r(log, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *name = strrchr(line, '/') ? strrchr(line, '/') + 1 : line;
        bool wrapper = false;
        if (*name == '?' || strchr(line, ':') == NULL)
            break;
        snprintf(text, size, "%s", name);
        text[strcspn(text, " ")] = '\0';
        for (int i = 0; i < COUNT_OF(wrappers); i++)
            wrapper = wrapper || strncmp(name, wrappers[i], strlen(wrappers[i])) == 0;
        if (!wrapper)
            break;
    }
}

/* The line behind a mark, as a sentence. */
static bool find_line(struct executor *executor, const char *mark, char *text, size_t size, bool *unknown)
{
    static const char not_known[] = "UNKNOWN ";
    const char *found = strstr(executor_printed(executor), mark);
    char line[2048], image[600] = "";
    *unknown = false;
    if (!found)
        return false;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(found + strlen(mark), "\n"), found + strlen(mark));
    char *open = strrchr(line, '[');
    if (open && line[strlen(line) - 1] == ']') {
        snprintf(image, sizeof image, "%.*s", (int)strlen(open) - 2, open + 1);
        open[open > line && open[-1] == ' ' ? -1 : 0] = '\0';
    }
    const char *from = line;
    if (strncmp(line, not_known, sizeof not_known - 1) == 0) {
        *unknown = true;
        from += sizeof not_known - 1;
    }
    size_t used = 0;
    text[0] = '\0';
    for (; *from && used + 1 < size; from++) {
        char address[24], source[128];
        int length = 0;
        if (sscanf(from, "@{%20[0-9a-f]}%n", address, &length) == 1 && length) {
            source_line(image, address, source, sizeof source);
            used += (size_t)snprintf(text + used, size - used, "at %s", source);
            used = used < size ? used : size - 1;
            from += length - 1;
        } else {
            text[used++] = *from;
            text[used] = '\0';
        }
    }
    return true;
}

bool cuda_emulation_finding(struct executor *executor, char *text, size_t size, bool *unknown)
{
    return find_line(executor, "emulation: ", text, size, unknown);
}

bool cuda_emulation_torn(struct executor *executor, char *text, size_t size)
{
    bool unknown;
    return find_line(executor, "torn: ", text, size, &unknown);
}

void cuda_emulation_counts(struct executor *executor, int64_t *launches, int64_t *accesses)
{
    const char *found = strstr(executor_printed(executor), "emulated: ");
    *launches = *accesses = 0;
    if (found)
        sscanf(found, "emulated: %" SCNd64 " launches, %" SCNd64, launches, accesses);
}
