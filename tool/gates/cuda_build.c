/*
 * cuda_build.c - the build gate of CUDA candidates.
 *
 * The manifest promises architectures, dtypes and dimensions; for each there is one image, compiled from the same source with other
 * macros (8.6, 8.7 and 8.9 run the image of 8.0). The gate compiles them all and asks of each image:
 *  - no warning of the compiler or the assembler, nothing spilled, no stack frame;
 *  - the entry points of attest_kernel_cuda.h and no others, with its parameters;
 *  - that it is a function of its arguments (cuda_purity.h): no variables of the device, no functions from elsewhere, such as printf,
 *    malloc or launches, and in the machine code no clock, no identity, no local memory, no call through a pointer, no atomics on
 *    global memory, no cache policies;
 *  - the facts that it carries (dtype, dim, tiles, threads) are those it was compiled for;
 *  - with wgmma, no register is written while a product reads it (cuda_listing.h);
 *  - shared memory exactly as the manifest predicts it, registers within the bound, as many blocks on a multiprocessor as promised,
 *    on every architecture that the manifest names.
 * Architectures that an image could run on though the manifest does not name them have a row in the table as well: they are refused
 * there if it does not fit, and nothing more.
 *
 * details: resources [{arch, dtype, dim, promised, predicted {shared, registers, blocks_per_sm}, measured {registers, shared,
 * static_shared, spill_stores, spill_loads, stack, barriers}, limit_shared, blocks_per_sm, occupancy, limiter, fits, sentence}],
 * table (the same, as lines of text), space {"f16 d64 sm_89": {choices, fit, refused: [...]}} where the manifest declares one, log.
 * artefacts: build_log, resource_table, images (the index), and "image NAME" for each.
 * candidate.image becomes the index of the images (cuda_index.h).
 */
#include "cuda_build.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build/build.h"
#include "cuda/cuda_index.h"
#include "build/cuda_product.h"
#include "build/cuda_source.h"
#include "base/embedded.h"
#include "base/digest.h"
#include "proof.h"

enum { MOST_PRODUCTS = 256, MOST_REFUSALS = 8, COMPILE_SECONDS = 300 };

/* ---- the manifest ---------------------------------------------------------------------------------------------------------------
 */

bool cuda_candidate_manifest(const struct candidate *candidate, struct cuda_manifest *manifest, char *why, size_t why_size)
{
    if (candidate->source)
        return cuda_manifest_read(candidate->source, true, manifest, why, why_size);
    char path[512];
    const char *ending = strrchr(candidate->word, '.');
    snprintf(path, sizeof path, "%.*s.manifest", (int)(ending ? ending - candidate->word : (long)strlen(candidate->word)),
             candidate->word);
    return cuda_manifest_read(path, false, manifest, why, why_size);
}

/* ---- the products of a candidate
 * ---------------------------------------------------------------------------------------------------- */

/* Everything that one run of the gate works on. */
struct work {
    struct proof *proof;
    struct gate_result *result;
    struct cuda_manifest manifest;
    struct cuda_product *products;
    int count;
    char *compiler, *headers;
    char *lister; /* cuobjdump; NULL if it is not here */
    json_t *rows, *table;
    char first_failure[640];
};

/* Whether the architecture runs the image of `own`. */
static bool runs_image_of(int arch, int own)
{
    return strcmp(cuda_limits[arch].image, cuda_limits[own].name) == 0;
}

/* One product for every image that the manifest promises. A kernel of the library is proven for one of its dtypes at a time. */
static bool list_products(struct work *work, char *why, size_t size)
{
    struct cuda_configuration *images = calloc(MOST_PRODUCTS, sizeof *images);
    work->products = calloc(MOST_PRODUCTS, sizeof *work->products);
    int count = -1;
    snprintf(why, size, "out of memory");
    if (images && work->products)
        count = cuda_manifest_images(&work->manifest, work->proof->candidate.dtype, images, MOST_PRODUCTS, why, size);
    for (int i = 0; i < count; i++)
        work->products[i].configuration = images[i];
    work->count = count > 0 ? count : 0;
    if (count == 0)
        snprintf(why, size, "%s: the manifest promises no image for this type", work->manifest.path);
    free(images);
    return count > 0;
}

static void product_name(const struct cuda_product *product, char *text, size_t size)
{
    cuda_configuration_name(&product->configuration, text, size);
}

/* ---- the table
 * ------------------------------------------------------------------------------------------------------------------- */

static json_t *measured_json(const struct cuda_product *product, const struct cuda_use *use)
{
    const struct cuda_ptxas *said = product->ptxas_count ? &product->ptxas[0] : NULL;
    json_t *measured = json_object();
    json_put(measured, "registers", json_integer(use->registers));
    json_put(measured, "shared", json_integer(use->shared));
    json_put(measured, "static_shared", json_integer(use->shared - product->image.facts.dynamic_shared));
    json_put(measured, "barriers", json_integer(use->barriers));
    json_put(measured, "stack", json_integer(product->image.entry_count ? product->image.entries[0].stack : 0));
    json_put(measured, "spill_stores", said ? json_integer(said->spill_stores) : json_null());
    json_put(measured, "spill_loads", said ? json_integer(said->spill_loads) : json_null());
    return measured;
}

static void keep_failure(struct work *work, const char *place, const char *sentence)
{
    if (!work->first_failure[0])
        snprintf(work->first_failure, sizeof work->first_failure, "%s: %s", place, sentence);
}

/* The manifest's numbers for an architecture that runs the product. They may differ in what is promised there, not in what the
 * image is. */
static struct cuda_configuration numbers_there(struct work *work, const struct cuda_product *product, int arch, bool promised)
{
    struct cuda_configuration here = product->configuration, there;
    char why[400], place[64];
    here.arch = arch;
    cuda_configuration_name(&here, place, sizeof place);
    if (!promised || !cuda_configure_tile(&work->manifest, arch, here.dtype, here.dim, here.tile, &there, why, sizeof why))
        return here;
    for (int i = 0; i <= CUDA_SHARED; i++)
        if (there.numbers[i] != here.numbers[i]) {
            snprintf(why, sizeof why, "%s is %lld here and %lld for %s, and both run one image; leave the condition out",
                     cuda_number_name((enum cuda_number)i), (long long)there.numbers[i], (long long)here.numbers[i],
                     cuda_limits[product->configuration.arch].name);
            keep_failure(work, place, why);
        }
    return there;
}

/* One row: a product on one architecture. */
static void add_row(struct work *work, const struct cuda_product *product, int arch, bool promised)
{
    const struct cuda_limits *limits = &cuda_limits[arch];
    const struct cuda_configuration here = numbers_there(work, product, arch, promised);
    const int64_t *n = here.numbers;
    struct cuda_use use = cuda_measured(product);
    struct cuda_fit fit = cuda_fit(limits, &use);
    char place[64], line[256], spilled[32] = "-";
    cuda_configuration_name(&here, place, sizeof place);
    bool enough = fit.fits && fit.blocks >= n[CUDA_BLOCKS_PER_SM];
    if (fit.fits && !enough)
        snprintf(fit.sentence, sizeof fit.sentence,
                 "%d block%s fit on an SM, and the manifest promises %lld: %s keep%s out the next", fit.blocks,
                 fit.blocks == 1 ? "" : "s", (long long)n[CUDA_BLOCKS_PER_SM], fit.limiter,
                 strcmp(fit.limiter, "shared memory") == 0 ? "s" : "");
    if (promised && !enough)
        keep_failure(work, place, fit.sentence);
    json_t *row =
        json_pack("{s:s, s:s, s:i, s:b, s:{s:I, s:I, s:I}, s:I, s:i, s:f, s:s, s:b, s:s}", "arch", limits->name, "dtype",
                  cuda_dtype_name(here.dtype), "dim", here.dim, "promised", promised, "predicted", "shared",
                  (json_int_t)n[CUDA_SHARED], "registers", (json_int_t)n[CUDA_THREAD_REGISTERS_MOST], "blocks_per_sm",
                  (json_int_t)n[CUDA_BLOCKS_PER_SM], "limit_shared", (json_int_t)limits->shared_block, "blocks_per_sm", fit.blocks,
                  "occupancy", fit.occupancy, "limiter", fit.limiter, "fits", fit.fits, "sentence", fit.sentence);
    json_put(row, "measured", measured_json(product, &use));
    json_add(work->rows, row);

    if (product->ptxas_count)
        snprintf(spilled, sizeof spilled, "%lld", (long long)(product->ptxas[0].spill_stores + product->ptxas[0].spill_loads));
    snprintf(line, sizeof line, "%-6s %-5s %4d %10lld %10lld %8lld %9lld %9lld %7s %6d %8.0f %%  %s", limits->name,
             cuda_dtype_name(here.dtype), here.dim, (long long)n[CUDA_SHARED], (long long)use.shared,
             (long long)limits->shared_block, (long long)n[CUDA_THREAD_REGISTERS_MOST], (long long)use.registers, spilled,
             fit.blocks, 100 * fit.occupancy,
             enough     ? "fits"
             : promised ? "DOES NOT FIT"
                        : "refused there");
    json_add(work->table, json_string(line));
}

/* Every architecture that the product runs on: those the manifest names, and those it could run on besides. */
static void add_rows(struct work *work, const struct cuda_product *product)
{
    for (int arch = 0; arch < cuda_limits_count; arch++)
        if (runs_image_of(arch, product->configuration.arch))
            add_row(work, product, arch, work->manifest.archs >> arch & 1);
}

static void write_table(struct work *work)
{
    size_t i, used = 0, room = 64 + 160 * (json_array_size(work->table) + 1);
    char *text = malloc(room);
    json_t *line;
    json_array_foreach(work->table, i, line) if (text) used +=
        (size_t)snprintf(text + used, room - used, "%s\n", json_string_value(line));
    if (text)
        gate_write(work->proof, work->result, "resource_table", "resources.txt", text);
    free(text);
}

/* ---- the space
 * --------------------------------------------------------------------------------------------------------------------- */

struct space_count {
    json_t *refused;
    int fit;
};

static void count_choice(void *data, const struct cuda_configuration *configuration, const char *why)
{
    struct space_count *count = data;
    const int64_t *n = configuration->numbers;
    if (!why)
        count->fit++;
    else if (json_array_size(count->refused) < MOST_REFUSALS)
        json_add(count->refused, json_text("%lldx%lld, %lld stages, %lld threads: %s", (long long)n[CUDA_TILE_Q],
                                           (long long)n[CUDA_TILE_KV], (long long)n[CUDA_STAGES], (long long)n[CUDA_THREADS], why));
}

/* How much of the declared space fits where, by prediction alone. */
static void describe_space(struct work *work)
{
    bool declared = false;
    for (int i = 0; i < CUDA_SPACE_NUMBERS; i++)
        declared = declared || work->manifest.space[i].count;
    if (!declared)
        return;
    json_t *space = json_object();
    for (int p = 0; p < work->count; p++)
        for (int arch = 0; arch < cuda_limits_count; arch++) {
            struct cuda_configuration here = work->products[p].configuration;
            if (!(work->manifest.archs >> arch & 1) || !runs_image_of(arch, here.arch))
                continue;
            char place[64];
            struct space_count count = {json_array(), 0};
            here.arch = arch;
            cuda_configuration_name(&here, place, sizeof place);
            int choices = cuda_space_visit(&work->manifest, arch, here.dtype, here.dim, count_choice, &count);
            json_put(space, place, json_pack("{s:i, s:i, s:o}", "choices", choices, "fit", count.fit, "refused", count.refused));
        }
    json_put(work->result->details, "space", space);
}

/* ---- building
 * ----------------------------------------------------------------------------------------------------------------------- */

char *cuda_header_folder(const struct proof *proof)
{
    if (access("include/attest_kernel_cuda.h", R_OK) == 0)
        return strdup("include");
    char *folder = gate_path(proof, "include");
    if (folder && (mkdir(folder, 0700) == 0 || errno == EEXIST) &&
        embedded_write(embedded_headers, embedded_header_count, folder) &&
        embedded_write(embedded_vocabulary, embedded_vocabulary_count, folder))
        return folder;
    free(folder);
    return NULL;
}

/* An image that was built elsewhere, beside the index like the others. */
static void link_image(const char *word, char *path, size_t size)
{
    char *whole = realpath(word, NULL);
    if (!whole || symlink(whole, path) != 0)
        snprintf(path, size, "%s", word);
    free(whole);
}

/* The machine code of an image, looked through. */
static void list_product(const struct work *work, struct cuda_product *product)
{
    enum { ROOM = 32 << 20 };
    char *argv[] = {work->lister, "-sass", product->path, NULL}, *text = work->lister ? malloc(ROOM) : NULL;
    if (text && build_command(argv, COMPILE_SECONDS, text, ROOM) == 0) {
        cuda_listing_read(text, &product->listing);
        cuda_purity_listing(text, product->image.arch, &product->purity);
    }
    free(text);
}

/* The text of a file, to be freed; NULL if it cannot be read. */
static char *whole_text(const char *path)
{
    enum { MOST = 64 << 20 };
    struct stat status;
    FILE *file = fopen(path, "rb");
    char *text = file && fstat(fileno(file), &status) == 0 && status.st_size < MOST ? malloc((size_t)status.st_size + 1) : NULL;
    if (text)
        text[fread(text, 1, (size_t)status.st_size, file)] = '\0';
    if (file)
        fclose(file);
    return text;
}

static void add_constants(const struct work *work, struct cuda_product *product, const char *text)
{
    struct kernel_constants constants;
    kernel_constants_of_text(text, strlen(text), work->proof->candidate.source, &constants);
    kernel_constants_add(&product->constants, &constants);
}

/* What was compiled: the texts that the compiler left in a folder, which is removed. */
static void judge_texts(const struct work *work, struct cuda_product *product, const char *folder)
{
    const struct cuda_places places = {work->proof->candidate.source, work->headers, work->compiler};
    DIR *open = opendir(folder);
    bool preprocessed = false, assembler = false;
    for (struct dirent *entry; open && (entry = readdir(open));) {
        char path[1024];
        const char *ending = strrchr(entry->d_name, '.');
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        bool is_source = ending && strcmp(ending, ".ii") == 0, is_ptx = ending && strcmp(ending, ".ptx") == 0;
        char *text = is_source || is_ptx ? whole_text(path) : NULL;
        if (text && is_source)
            add_constants(work, product, text);
        if (text && is_source && !product->hidden[0])
            cuda_source_judge(text, &places, product->hidden, sizeof product->hidden);
        if (text && is_ptx && !product->hidden[0])
            cuda_ptx_judge(text, true, product->hidden, sizeof product->hidden);
        preprocessed = preprocessed || (text && is_source);
        assembler = assembler || (text && is_ptx);
        free(text);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (open)
        closedir(open);
    rmdir(folder);
    if (!preprocessed || !assembler)
        snprintf(product->hidden, sizeof product->hidden, "the compiler left no text of what it compiled in %.200s", folder);
}

static void build_product(struct work *work, struct cuda_product *product)
{
    const struct candidate *candidate = &work->proof->candidate;
    char why[256];
    bool is_ptx = !candidate->source && strcmp(strrchr(candidate->word, '.'), ".ptx") == 0;
    char place[64];
    product_name(product, place, sizeof place);
    for (char *at = place; *at; at++)
        *at = *at == ' ' ? '.' : *at;
    snprintf(product->path, sizeof product->path, "%s/%s.%s.cubin", work->proof->folder, candidate->name, place);
    char *keep = candidate->source ? gate_path(work->proof, "%s.keep", place) : NULL, *text;
    if (keep && mkdir(keep, 0700) != 0 && errno != EEXIST)
        snprintf(product->hidden, sizeof product->hidden, "%.200s cannot be made: %s", keep, strerror(errno));
    if (candidate->source)
        product->status =
            cuda_compile(work->compiler, candidate->source, work->manifest.flags, work->headers, &product->configuration,
                         product->path, keep, COMPILE_SECONDS, product->log, sizeof product->log);
    else if (is_ptx)
        product->status = cuda_assemble(work->compiler, candidate->word, product->configuration.arch, product->path,
                                        COMPILE_SECONDS, product->log, sizeof product->log);
    else
        link_image(candidate->word, product->path, sizeof product->path);
    if (keep && product->status == 0)
        judge_texts(work, product, keep);
    if (is_ptx && (text = whole_text(candidate->word))) {
        cuda_ptx_judge(text, false, product->hidden, sizeof product->hidden);
        free(text);
    }
    free(keep);
    product->ptxas_count = cuda_ptxas_parse(product->log, product->ptxas, CUDA_MOST_ENTRIES);
    if (product->ptxas_count > CUDA_MOST_ENTRIES)
        product->ptxas_count = CUDA_MOST_ENTRIES;
    if (product->status == 0 && !cuda_image_read(product->path, &product->image, why, sizeof why)) {
        product->status = 126;
        snprintf(product->log, sizeof product->log, "error: %s", why);
    }
    if (product->status == 0)
        list_product(work, product);
}

/* What to say of a product that could not be built. */
static void say_unbuilt(struct work *work, const struct cuda_product *product)
{
    char place[64], line[400];
    product_name(product, place, sizeof place);
    cuda_first_error(product->log, line, sizeof line);
    for (int i = 0; i < product->ptxas_count; i++)
        if (cuda_spill_said(&product->ptxas[i], line, sizeof line)) {
            gate_say(work->result, VERDICT_FAIL, "%s: %s", place, line);
            return;
        }
    if (product->status == 124)
        gate_say(work->result, VERDICT_FAIL, "%s: the compiler did not finish within %d s", place, COMPILE_SECONDS);
    else if (strstr(product->log, "gcc: not found") || strstr(product->log, "Failed to preprocess host compiler"))
        gate_say(work->result, VERDICT_INCONCLUSIVE, "nvcc found no C++ compiler to work with; install g++");
    else if (product->status == 127)
        gate_say(work->result, VERDICT_INCONCLUSIVE, "%s could not be run; install the CUDA toolkit, or set ATTEST_NVCC",
                 work->compiler);
    else if (product->status > 128 && product->status < 255) /* ptxas itself ends with 255 */
        gate_say(work->result, VERDICT_FAIL, "%s: the compiler died of signal %d", place, product->status - 128);
    else
        gate_say(work->result, VERDICT_FAIL, "%s: it does not compile without warnings: %s", place, line);
}

/* The numbers of all images, in their order. */
static void proof_constants(struct work *work)
{
    struct proof *proof = work->proof;
    if (!proof->constants && work->proof->candidate.source)
        proof->constants = calloc(1, sizeof *proof->constants);
    for (int i = 0; i < work->count && proof->constants; i++)
        kernel_constants_add(proof->constants, &work->products[i].constants);
}

static bool build_all(struct work *work)
{
    int threads = (int)sysconf(_SC_NPROCESSORS_ONLN); /* each waits for a compiler, however many the kernel is to have */
#pragma omp parallel for schedule(dynamic) num_threads(threads > 0 ? threads : 1)
    for (int i = 0; i < work->count; i++)
        build_product(work, &work->products[i]);

    proof_constants(work);
    size_t used = 0, room = (size_t)work->count * (CUDA_LOG + 128) + 1;
    char *log = calloc(1, room), place[64];
    const struct cuda_product *unbuilt = NULL;
    for (int i = 0; i < work->count && log; i++) {
        product_name(&work->products[i], place, sizeof place);
        used += (size_t)snprintf(log + used, room - used, "==== %s\n%s\n", place, work->products[i].log);
        if (work->products[i].status != 0 && !unbuilt)
            unbuilt = &work->products[i];
    }
    if (log)
        gate_write(work->proof, work->result, "build_log", "build.log", log);
    const char *shown = unbuilt ? unbuilt->log : log ? log : "";
    json_put(work->result->details, "log", json_text("%.2000s", shown));
    free(log);
    if (unbuilt)
        say_unbuilt(work, unbuilt);
    return !unbuilt;
}

/* ---- facts
 * ---------------------------------------------------------------------------------------------------------------------------- */

static json_t *words_of(const struct cuda_manifest *manifest, const char *what)
{
    json_t *words = json_array();
    if (strcmp(what, "dtypes") == 0) {
        for (uint32_t dtype = ATTEST_F32; dtype <= ATTEST_BF16; dtype++)
            if (manifest->dtypes >> dtype & 1)
                json_add(words, json_string(cuda_dtype_name(dtype)));
        return words;
    }
    for (int i = 0; i < cuda_feature_count; i++)
        if (manifest->refuses & cuda_features[i].flag)
            json_add(words, json_string(cuda_features[i].word));
    if (manifest->refuses_o32)
        json_add(words, json_string("o=f32"));
    if (manifest->refuses_dimv)
        json_add(words, json_string("dv"));
    return words;
}

static void fill_kernel_facts(struct work *work)
{
    const struct cuda_manifest *manifest = &work->manifest;
    struct kernel_facts *facts = &work->proof->facts;
    json_t *out = work->proof->candidate.facts;
    uint32_t one = work->proof->candidate.dtype;
    *facts = (struct kernel_facts){.dtypes = one ? 1u << one : manifest->dtypes, .refuses = manifest->refuses};
    snprintf(facts->name, sizeof facts->name, "%s", work->proof->candidate.name);
    snprintf(facts->summary, sizeof facts->summary, "%s", manifest->summary);
    for (int arch = 0; arch < cuda_limits_count; arch++)
        if (manifest->archs >> arch & 1)
            snprintf(facts->needs + strlen(facts->needs), sizeof facts->needs - strlen(facts->needs), "%s%s",
                     *facts->needs ? "," : "", cuda_limits[arch].name);
    json_put(out, "name", json_string(facts->name));
    json_put(out, "needs", json_string(facts->needs));
    json_put(out, "summary", json_string(facts->summary));
    json_put(out, "dtypes", words_of(manifest, "dtypes"));
    json_put(out, "refuses", words_of(manifest, "refuses"));
    json_put(out, "manifest", json_incref(manifest->lines));
}

/* The index of the images becomes what runs. */
static bool write_index(struct work *work)
{
    struct candidate *candidate = &work->proof->candidate;
    json_t *images = json_object();
    json_int_t bytes = 0;
    for (int i = 0; i < work->count; i++) {
        const struct cuda_product *product = &work->products[i];
        char place[64], digest[DIGEST_TEXT] = "", artefact[80];
        const char *slash = strrchr(product->path, '/');
        struct stat status = {0};
        product_name(product, place, sizeof place);
        snprintf(artefact, sizeof artefact, "image %s", place);
        digest_of_file(product->path, digest);
        stat(product->path, &status);
        bytes += (json_int_t)status.st_size;
        json_put(images, place,
                 cuda_index_image(&product->configuration, i, slash ? slash + 1 : product->path, digest, (int64_t)status.st_size));
        json_put(work->result->artefacts, artefact, json_string(product->path));
    }
    json_t *index = cuda_index_head(candidate->name, &work->manifest);
    if (candidate->dtype)
        json_put(index, "dtypes", json_integer(1 << candidate->dtype));
    json_put(index, "images", images);
    char *text = index ? canonical_text(index) : NULL, *path = gate_path(work->proof, "%s.images.json", candidate->name);
    char digest[DIGEST_TEXT] = "";
    bool written = text && path && gate_write(work->proof, work->result, "images", strrchr(path, '/') + 1, text);
    if (written) {
        digest_of_file(path, digest);
        free(candidate->image);
        candidate->image = path;
        path = NULL;
        json_put(candidate->facts, "image", json_string(digest));
        json_put(candidate->facts, "image_bytes", json_integer(bytes));
    }
    json_decref(index);
    free(text);
    free(path);
    return written;
}

static void fill_source_facts(struct work *work)
{
    struct candidate *candidate = &work->proof->candidate;
    char compiler[128], digest[DIGEST_TEXT] = "";
    cuda_compiler_version(work->compiler, compiler, sizeof compiler);
    json_put(candidate->facts, "compiler", json_string(compiler));
    if (!candidate->source)
        return;
    char *flags = cuda_compile_flags(work->manifest.flags);
    json_t *sources = cuda_compile_sources(work->compiler, candidate->source, work->manifest.flags, work->headers,
                                           &work->products[0].configuration, COMPILE_SECONDS);
    json_t *closure = sources ? json_pack("{s:O, s:s}", "sources", sources, "flags", flags ? flags : "") : NULL;
    if (closure)
        digest_of_json(closure, digest);
    json_decref(closure);
    json_put(candidate->facts, "source", json_string(candidate->source));
    json_put(candidate->facts, "sources", sources ? sources : json_null());
    json_put(candidate->facts, "flags", json_string(flags ? flags : ""));
    json_put(candidate->facts, "closure", json_string(digest));
    free(flags);
}

/* ---- the gate
 * ------------------------------------------------------------------------------------------------------------------------- */

/* What the images need to be built with; false if it is not here. */
static bool find_tools(struct work *work)
{
    const struct candidate *candidate = &work->proof->candidate;
    bool built = !candidate->source && strcmp(strrchr(candidate->word, '.'), ".ptx") != 0;
    const char *tool = candidate->source ? "nvcc" : "ptxas";
    char why[1024];
    work->lister = cuda_tool_find("cuobjdump");
    if (built)
        return true;
    work->compiler = cuda_tool_find(tool);
    if (!work->compiler) {
        cuda_tool_missing(tool, why, sizeof why);
        gate_say(work->result, VERDICT_INCONCLUSIVE, "%s", why);
        return false;
    }
    work->headers = cuda_header_folder(work->proof);
    if (!work->headers)
        gate_say(work->result, VERDICT_INCONCLUSIVE, "the headers of attest could not be written to %s", work->proof->folder);
    return work->headers != NULL;
}

/* An image that was built elsewhere is one image: the manifest may promise no more. */
static bool promises_kept(struct work *work)
{
    const struct candidate *candidate = &work->proof->candidate;
    bool is_cubin = !candidate->source && strcmp(strrchr(candidate->word, '.'), ".cubin") == 0;
    if (candidate->source || work->count == 1)
        return true;
    for (int i = 1; i < work->count; i++) {
        const struct cuda_configuration *a = &work->products[0].configuration, *b = &work->products[i].configuration;
        if (is_cubin || a->dtype != b->dtype || a->dim != b->dim) {
            gate_say(work->result, VERDICT_FAIL, "%s: the manifest promises %d images, and %s is one; name one dtype, one dim%s",
                     work->manifest.path, work->count, candidate->word, is_cubin ? " and architectures of one image" : "");
            return false;
        }
    }
    return true;
}

static void say_passed(struct work *work)
{
    int64_t registers = 0, shared = 0;
    for (int i = 0; i < work->count; i++) {
        struct cuda_use use = cuda_measured(&work->products[i]);
        registers = use.registers > registers ? use.registers : registers;
        shared = use.shared > shared ? use.shared : shared;
    }
    gate_say(work->result, VERDICT_PASS,
             "%d image%s for %s without a warning: nothing spilled, no stack frame, at most %lld registers, at most %lld bytes of "
             "shared "
             "memory, as predicted",
             work->count, work->count == 1 ? "" : "s", work->proof->facts.needs, (long long)registers, (long long)shared);
}

static void run_gate(struct work *work)
{
    struct candidate *candidate = &work->proof->candidate;
    char why[512], place[64];
    if (!cuda_candidate_manifest(candidate, &work->manifest, why, sizeof why)) {
        gate_say(work->result, VERDICT_FAIL, "%s", why);
        return;
    }
    const char *slash = candidate->source ? strrchr(candidate->source, '/') : NULL;
    const char *stem = candidate->kind != CANDIDATE_SHIPPED ? candidate->name : slash ? slash + 1 : candidate->source;
    if (work->manifest.name[0] && (strncmp(work->manifest.name, stem, strlen(work->manifest.name)) != 0 ||
                                   strchr(".", stem[strlen(work->manifest.name)]) == NULL)) {
        gate_say(work->result, VERDICT_FAIL, "the manifest names the kernel %s, and the file is %s; rename one of them",
                 work->manifest.name, candidate->word);
        return;
    }
    if (!list_products(work, why, sizeof why)) {
        gate_say(work->result, VERDICT_FAIL, "%s", why);
        return;
    }
    fill_kernel_facts(work);
    describe_space(work);
    if (!promises_kept(work))
        return;
    if (work->proof->without_image) {
        gate_say(work->result, VERDICT_PASS, "the manifest promises %d image%s, which no gate asks for", work->count,
                 work->count == 1 ? "" : "s");
        return;
    }
    if (!find_tools(work) || !build_all(work))
        return;
    for (int i = 0; i < work->count; i++) {
        const struct cuda_product *product = &work->products[i];
        product_name(product, place, sizeof place);
        if (!cuda_product_judge(&work->manifest, product, why, sizeof why))
            keep_failure(work, place, why);
        add_rows(work, product);
    }
    fill_source_facts(work);
    bool listed = true;
    for (int i = 0; i < work->count; i++)
        listed = listed && work->products[i].listing.instructions > 0 && work->products[i].purity.instructions > 0;
    if (!write_index(work))
        gate_say(work->result, VERDICT_INCONCLUSIVE, "the images could not be written to %s", work->proof->folder);
    else if (work->first_failure[0])
        gate_say(work->result, VERDICT_FAIL, "%s", work->first_failure);
    else if (!listed && !work->lister) {
        cuda_tool_missing("cuobjdump", why, sizeof why);
        gate_say(work->result, VERDICT_INCONCLUSIVE, "the machine code could not be looked through: %s", why);
    } else if (!listed)
        gate_say(work->result, VERDICT_INCONCLUSIVE,
                 "the machine code could not be looked through: %s -sass lists none; it may be older than the compiler, or lack "
                 "nvdisasm beside it",
                 work->lister);
    else
        say_passed(work);
}

void cuda_gate_build(struct proof *proof, struct gate_result *result)
{
    struct work work = {.proof = proof, .result = result, .rows = json_array(), .table = json_array()};
    json_add(work.table, json_string("                  --- shared memory, bytes ---- ---- registers ---- spilled blocks"));
    json_add(work.table,
             json_string("arch   dtype  dim  predicted   measured    limit   allowed      used   bytes per SM occupancy"));
    run_gate(&work);
    json_put(result->details, "resources", work.rows);
    if (json_array_size(work.table) > 2)
        write_table(&work);
    json_put(result->details, "table", work.table);
    if (proof->manifest)
        cuda_manifest_free(proof->manifest);
    free(proof->manifest);
    proof->manifest = malloc(sizeof *proof->manifest);
    if (proof->manifest)
        *proof->manifest = work.manifest;
    else
        cuda_manifest_free(&work.manifest);
    free(work.products);
    free(work.compiler);
    free(work.lister);
    free(work.headers);
}
