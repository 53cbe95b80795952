/*
 * cuda_emulation.c - see cuda_emulation.h.
 *
 * Every image is preprocessed with the macros that nvcc has, rewritten (tool/emulation/rewrite.h), and compiled by a C++ compiler
 * (ATTEST_CXX, or g++) with the instrumentation of ThreadSanitizer, whose functions the emulated device has. Images with the same
 * text are compiled once, and none before a problem needs it: a candidate that the first problem rejects costs one image.
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

#include "base/clock.h"
#include "build/build.h"
#include "cuda_build.h"
#include "cuda/cuda_index.h"
#include "base/embedded.h"
#include "emulation/rewrite.h"
#include "base/digest.h"
#include "gate.h"
#include "base/random.h"

enum { MOST_IMAGES = 256, MOST_WORDS = 96, COMPILE_SECONDS = 240, LOG_SIZE = 1 << 14 };

enum { SEED_PROCESSORS = 74 };

/* Of the emulator, whose clocks grow with the square of the threads of a cluster: sixteen blocks of 384 threads take 2 to 5 GiB. */
enum { EMULATOR_MEMORY_MB = 8192 };

enum { IMAGE_TEXT, IMAGE_TAKEN, IMAGE_MADE };

struct emulated_image {
    struct cuda_configuration configuration;
    char name[80]; /* of its files, without an ending */
    char digest[DIGEST_TEXT];
    int same; /* the first image with the same text */
    int group;
    atomic_int state;
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

static bool write_files(const char *folder)
{
    return (mkdir(folder, 0700) == 0 || errno == EEXIST) &&
           embedded_write(embedded_device_headers, embedded_device_header_count, folder) &&
           embedded_write(&embedded_emulated_driver, 1, folder);
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
        else if (strcmp(word, "-use_fast_math") == 0 || strcmp(word, "--use_fast_math") == 0)
            argv[count++] = text_of("-DEMULATED_FAST_MATH=1");
    return count;
}

static bool preprocess(const struct proof *proof, const struct cuda_emulation *emulation, struct emulated_image *image)
{
    const int64_t *n = image->configuration.numbers;
    const struct cuda_limits *limits = &cuda_limits[image->configuration.arch];
    char arch[48], macros[6][48], out[600], log[LOG_SIZE], line[400], *flags = strdup(proof->manifest->flags);
    const char *folder = emulation->folder;
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
                              text_of("-I"),           text_of(emulation->headers),
                              text_of("-include"),     text_of("emulated_device.h"),
                              text_of("-x"),           text_of("c++")};
    int count = 14;
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

/* The rewritten text of an image, and its digest; of the first one also the numbers in it. */
static void make_text(const struct proof *proof, struct cuda_emulation *emulation, int number)
{
    struct emulated_image *image = &emulation->list[number];
    const char *folder = emulation->folder;
    size_t size;
    char name[96], why[400];
    if (!preprocess(proof, emulation, image))
        return;
    char *text = read_file(folder, image->name, ".ii", &size), *made = text ? rewrite_kernel(text, size, why, sizeof why) : NULL;
    snprintf(name, sizeof name, "%s.cpp", image->name);
    if (text && number == 0)
        kernel_constants_of_text(text, size, proof->candidate.source, &emulation->constants);
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

/* An image that is to be compared is neither linked nor does it know its lines: a check of bounds that fails names one. */
static void compile_image(const char *folder, bool compared, struct emulated_image *image)
{
    char source[600], object[600], out[600], driver[600], log[LOG_SIZE], line[400];
    snprintf(source, sizeof source, "%s/%s.cpp", folder, image->name);
    snprintf(object, sizeof object, "%s/%s.o", folder, image->name);
    snprintf(out, sizeof out, "%s/%s.so", folder, image->name);
    snprintf(driver, sizeof driver, "%s/%s", folder, embedded_emulated_driver.name);
    char *compile[] = {text_of(compiler()),
                       text_of("-std=c++17"),
                       text_of("-O1"),
                       text_of("-fexpensive-optimizations"), /* products and sums are fused, as the assembler of the GPU does */
                       text_of(compared ? "-fsanitize-undefined-trap-on-error" : "-g1"),
                       text_of("-w"),
                       text_of("-fPIC"),
                       text_of("-fno-threadsafe-statics"),
                       text_of("-fno-strict-aliasing"),
                       text_of("-ffp-contract=fast"),
                       text_of(has_fma() ? "-mfma" : "-fPIC"),
                       text_of("-fsanitize=thread"),
                       text_of("-fsanitize=bounds"),
                       text_of("--param=tsan-distinguish-volatile=1"),
                       text_of("--param=tsan-instrument-func-entry-exit=0"),
                       text_of("-c"),
                       source,
                       text_of("-o"),
                       object,
                       NULL};
    char *link[] = {text_of(compiler()), text_of("-shared"), text_of("-o"), out, object, driver, NULL};
    int status = build_command(compile, COMPILE_SECONDS, log, sizeof log);
    if (status == 0 && !compared)
        status = build_command(link, COMPILE_SECONDS, log, sizeof log);
    if (status == 0)
        return;
    build_first_error(log, line, sizeof line);
    image->verdict = status == 127 || status == 124 ? VERDICT_INCONCLUSIVE : VERDICT_NOT_APPLICABLE;
    snprintf(image->why, sizeof image->why, "it does not compile for the emulated device: %.400s", line);
}

static bool write_index(const struct proof *proof, const struct cuda_emulation *emulation, int group, const char *index)
{
    json_t *head = cuda_index_head(proof->candidate.name, proof->manifest), *list = json_object();
    for (int i = 0; i < emulation->images; i++) {
        const struct emulated_image *image = &emulation->list[i];
        char name[64], file[96];
        if (image->group != group)
            continue;
        cuda_configuration_name(&image->configuration, name, sizeof name);
        snprintf(file, sizeof file, "%s.so", emulation->list[image->same].name);
        json_t *entry = cuda_index_image(&image->configuration, i, file, "", 0);
        json_put(entry, "emulated", json_true());
        json_put(list, name, entry);
    }
    json_put(head, "images", list);
    bool written = json_dump_file(head, index, JSON_INDENT(1)) == 0;
    json_decref(head);
    return written;
}

static void list_devices(struct cuda_emulation *emulation)
{
    for (int i = 0; i < emulation->images; i++) {
        int number = cuda_limits[emulation->list[i].configuration.arch].number;
        bool known = false;
        for (int n = 0; n < emulation->device_count; n++)
            known = known || emulation->devices[n] == number;
        if (!known && emulation->device_count < EMULATION_MOST_DEVICES)
            emulation->devices[emulation->device_count++] = number;
    }
}

static int find_group(const struct cuda_emulation *emulation, uint32_t dtype, int dim)
{
    for (int i = 0; i < emulation->group_count; i++)
        if (emulation->groups[i].dtype == dtype && emulation->groups[i].dim == dim)
            return i;
    return -1;
}

/* False if there are more than there is room for. */
static bool list_groups(struct cuda_emulation *emulation)
{
    for (int i = 0; i < emulation->images; i++) {
        const struct cuda_configuration *image = &emulation->list[i].configuration;
        int found = find_group(emulation, image->dtype, image->dim);
        if (found < 0) {
            if (emulation->group_count == EMULATION_MOST_GROUPS)
                return false;
            found = emulation->group_count++;
            emulation->groups[found] = (struct emulation_group){.dtype = image->dtype, .dim = image->dim, .verdict = -1};
        }
        emulation->list[i].group = found;
    }
    return true;
}

int cuda_emulation_group(const struct proof *proof, const struct cuda_emulation *emulation, const attest_problem *problem)
{
    return find_group(emulation, problem->dtype, cuda_manifest_instance(proof->manifest, problem));
}

const struct cuda_configuration *cuda_emulation_image(const struct cuda_emulation *emulation, int group, int device)
{
    const struct cuda_configuration *found = NULL;
    for (int i = 0; i < emulation->images; i++) {
        const struct cuda_configuration *image = &emulation->list[i].configuration;
        if (emulation->list[i].group == group && (!found || (image->tile == 0 && cuda_limits[image->arch].number == device)))
            found = image;
    }
    return found;
}

static enum verdict make_texts(const struct proof *proof, struct cuda_emulation *emulation, char *why, size_t why_size)
{
    const int threads = (int)sysconf(_SC_NPROCESSORS_ONLN), count = emulation->images;
    struct emulated_image *images = emulation->list;
#pragma omp parallel for schedule(dynamic) num_threads(threads > 0 ? threads : 1)
    for (int i = 0; i < count; i++)
        make_text(proof, emulation, i);
    for (int i = 0; i < count; i++) {
        if (images[i].verdict != VERDICT_PASS) {
            snprintf(why, why_size, "%s", images[i].why);
            return images[i].verdict;
        }
        for (images[i].same = 0; strcmp(images[images[i].same].digest, images[i].digest) != 0 && images[i].same < i;)
            images[i].same++;
        if (images[i].same == i)
            emulation->telling[emulation->different++] = images[i].configuration;
    }
    list_devices(emulation);
    if (list_groups(emulation))
        return VERDICT_PASS;
    snprintf(why, why_size, "it has images of more than %d pairs of dtype and dim", EMULATION_MOST_GROUPS);
    return VERDICT_INCONCLUSIVE;
}

enum verdict cuda_emulation_prepare(const struct proof *proof, struct cuda_emulation *emulation, char *why, size_t why_size)
{
    double begin = seconds_now();
    *emulation = (struct cuda_emulation){.folder = gate_path(proof, "emulation"), .headers = cuda_header_folder(proof)};
    struct cuda_configuration *configurations = calloc(MOST_IMAGES, sizeof *configurations);
    enum verdict verdict = VERDICT_INCONCLUSIVE;
    snprintf(why, why_size, "out of memory");
    emulation->list = calloc(MOST_IMAGES, sizeof *emulation->list);
    emulation->telling = calloc(MOST_IMAGES, sizeof *emulation->telling);
    int count = emulation->list && configurations && emulation->telling && emulation->folder && emulation->headers
                    ? cuda_manifest_images(proof->manifest, proof->candidate.dtype, configurations, MOST_IMAGES, why, why_size)
                    : -1;
    if (count > 0 && embedded_emulated_driver.end == embedded_emulated_driver.data)
        snprintf(why, why_size, "this program was built without a C++ compiler, and has no emulated device; build it where g++ is"),
            count = -1;
    if (count > 0 && !write_files(emulation->folder))
        snprintf(why, why_size, "%s cannot be written", emulation->folder), count = -1;
    for (int i = 0; i < count; i++) {
        emulation->list[i].configuration = configurations[i];
        snprintf(emulation->list[i].name, sizeof emulation->list[i].name, "image_%d", i);
    }
    emulation->images = count > 0 ? count : 0;
    if (count > 0)
        verdict = make_texts(proof, emulation, why, why_size);
    emulation->seconds = seconds_now() - begin;
    free(configurations);
    return verdict;
}

static void compile_or_wait(struct cuda_emulation *emulation, struct emulated_image *image)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    int state = IMAGE_TEXT;
    if (atomic_compare_exchange_strong(&image->state, &state, IMAGE_TAKEN)) {
        double begin = seconds_now();
        compile_image(emulation->folder, emulation->compared, image);
        atomic_fetch_add(&emulation->compiled, 1);
        atomic_store(&image->state, IMAGE_MADE);
#pragma omp critical(emulation_seconds)
        emulation->seconds += seconds_now() - begin;
    }
    while (atomic_load(&image->state) != IMAGE_MADE)
        nanosleep(&moment, NULL);
}

static void take_images(struct cuda_emulation *emulation, int group, bool wait)
{
    for (int i = 0; i < emulation->images; i++) {
        struct emulated_image *image = &emulation->list[emulation->list[i].same];
        if (emulation->list[i].group == group && (wait || atomic_load(&image->state) == IMAGE_TEXT))
            compile_or_wait(emulation, image);
    }
}

enum verdict cuda_emulation_compile(const struct proof *proof, struct cuda_emulation *emulation, int number, char *why,
                                    size_t why_size)
{
    struct emulation_group *group = &emulation->groups[number];
    if (atomic_load(&group->verdict) < 0) {
        take_images(emulation, number, false);
        take_images(emulation, number, true);
    }
#pragma omp critical(emulation_group)
    if (atomic_load(&group->verdict) < 0) {
        enum verdict verdict = VERDICT_PASS;
        group->index = gate_path(proof, "emulation/index_%d.json", number);
        for (int i = 0; i < emulation->images; i++)
            if (emulation->list[i].group == number && emulation->list[emulation->list[i].same].verdict != VERDICT_PASS)
                verdict = emulation->list[emulation->list[i].same].verdict;
        if (verdict == VERDICT_PASS && (!group->index || !write_index(proof, emulation, number, group->index)))
            verdict = VERDICT_INCONCLUSIVE;
        atomic_store(&group->verdict, (int)verdict);
    }
    snprintf(why, why_size, "%s cannot be written", emulation->folder);
    for (int i = 0; i < emulation->images; i++)
        if (emulation->list[i].group == number && emulation->list[emulation->list[i].same].verdict != VERDICT_PASS)
            snprintf(why, why_size, "%s", emulation->list[emulation->list[i].same].why);
    return (enum verdict)atomic_load(&group->verdict);
}

void cuda_emulation_free(struct cuda_emulation *emulation)
{
    for (int i = 0; i < emulation->group_count; i++)
        free(emulation->groups[i].index);
    free(emulation->folder);
    free(emulation->headers);
    free(emulation->list);
    free(emulation->telling);
    *emulation = (struct cuda_emulation){0};
}

/* ---- workers ----------------------------------------------------------------------------------------------------------- */

void cuda_emulation_code(const struct cuda_emulation *emulation, int group, char digest[DIGEST_TEXT])
{
    json_t *codes = json_array();
    bool good = true;
    for (int i = 0; i < emulation->images && good; i++) {
        const char *name = emulation->list[emulation->list[i].same].name;
        char object[600], bare[600], log[LOG_SIZE], one[DIGEST_TEXT];
        if (emulation->list[i].group != group)
            continue;
        snprintf(object, sizeof object, "%s/%s.o", emulation->folder, name);
        snprintf(bare, sizeof bare, "%s/%s.bare", emulation->folder, name);
        char *strip[] = {text_of("objcopy"), text_of("--strip-debug"), object, bare, NULL};
        good = build_command(strip, COMPILE_SECONDS, log, sizeof log) == 0 && digest_of_file(bare, one);
        json_add(codes, json_string(good ? one : ""));
    }
    if (good)
        digest_of_json(codes, digest);
    else
        digest[0] = '\0';
    json_decref(codes);
}

struct executor *cuda_emulation_open(const struct proof *proof, const struct cuda_emulation *emulation, int group, int compute,
                                     enum guard guard, struct execution *execution)
{
    static const int counts[] = {1, 2, 3, 3, 4, 5, 6};
    char path[700], device[40], seed[48], processors[48];
    static atomic_int opened;
    const uint64_t bits = random_bits(proof->seed, SEED_PROCESSORS, (uint64_t)atomic_fetch_add(&opened, 1));
    snprintf(processors, sizeof processors, "EMULATED_MULTIPROCESSORS=%d", counts[bits % COUNT_OF(counts)]);
    snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", emulation->folder);
    snprintf(device, sizeof device, "EMULATED_COMPUTE=%d", compute);
    snprintf(seed, sizeof seed, "EMULATED_SEED=%" PRIu64, proof->seed);
    const char *environment[] = {path, device, seed, processors, NULL};
    struct executor_spec spec = {.image = emulation->groups[group].index,
                                 .device = "cuda",
                                 .emulated = true,
                                 .threads = 1,
                                 .guard = guard,
                                 .seconds = 0, /* the usual ones: a shorter policy is meant for code that is not emulated */
                                 .memory = (int64_t)EMULATOR_MEMORY_MB << 20,
                                 .environment = environment};
    return executor_open(&spec, execution);
}

/* "file.cuh:12" of an address in an image. Wrappers of single instructions are of no interest: the line that calls them is. */
static void source_line(const char *image, const char *address, char *text, size_t size)
{
    static const char *const wrappers[] = {"ptx", "mma_sm80", "bulk_sm90", "simt.cuh", "emulated_device", "mma.h"};
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

/* The line behind the last of the marks, as a sentence. */
static enum emulation_finding find_line(struct executor *executor, const char *mark, char *text, size_t size)
{
    static const char *const words[] = {[FINDING_UNKNOWN] = "UNKNOWN ", [FINDING_EXHAUSTED] = "EXHAUSTED "};
    enum emulation_finding finding = FINDING_HAZARD;
    const char *found = strstr(executor_printed(executor), mark);
    for (const char *next = found; next; next = strstr(next + 1, mark))
        found = next;
    char line[2048], image[600] = "";
    if (!found)
        return FINDING_NONE;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(found + strlen(mark), "\n"), found + strlen(mark));
    char *open = strrchr(line, '[');
    if (open && line[strlen(line) - 1] == ']') {
        snprintf(image, sizeof image, "%.*s", (int)strlen(open) - 2, open + 1);
        open[open > line && open[-1] == ' ' ? -1 : 0] = '\0';
    }
    const char *from = line;
    for (int n = FINDING_UNKNOWN; n < COUNT_OF(words); n++)
        if (strncmp(line, words[n], strlen(words[n])) == 0) {
            finding = (enum emulation_finding)n;
            from += strlen(words[n]);
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
    return finding;
}

enum emulation_finding cuda_emulation_finding(struct executor *executor, char *text, size_t size)
{
    return find_line(executor, "emulation: ", text, size);
}

bool cuda_emulation_torn(struct executor *executor, char *text, size_t size)
{
    return find_line(executor, "torn: ", text, size) != FINDING_NONE;
}

void cuda_emulation_counts(struct executor *executor, int64_t *launches, int64_t *accesses)
{
    const char *found = strstr(executor_printed(executor), "emulated: ");
    *launches = *accesses = 0;
    if (found)
        sscanf(found, "emulated: %" SCNd64 " launches, %" SCNd64, launches, accesses);
}
