/*
 * cuda_configure.c - a manifest put to use: its numbers for one image, the space of a search, and which problems it takes. See
 * cuda_manifest.h.
 */
#include <stdio.h>
#include <string.h>

#include "cuda_expression.h"
#include "cuda_manifest.h"
#include "base/exit_code.h"

enum { NEEDED = -1 };

static const struct {
    const char *name;
    int64_t least, most, otherwise; /* `otherwise` counts where no line gives a value; NEEDED: a line must */
} numbers[CUDA_NUMBER_COUNT] = {
    [CUDA_TILE_Q] = {"tile_q", 1, 1024, NEEDED},
    [CUDA_TILE_KV] = {"tile_kv", 1, 1024, NEEDED},
    [CUDA_STAGES] = {"stages", 1, 16, 1},
    [CUDA_THREADS] = {"threads", CUDA_WARP, CUDA_BLOCK_THREADS, NEEDED},
    [CUDA_SHARED] = {"shared", 0, 1 << 20, NEEDED},
    [CUDA_THREAD_REGISTERS_MOST] = {"registers", 1, CUDA_THREAD_REGISTERS, NEEDED},
    [CUDA_BLOCKS_PER_SM] = {"blocks_per_sm", 1, 32, 1},
    [CUDA_SPLIT_KEYS] = {"split_keys", 0, 1 << 20, 0},
    [CUDA_PARTIAL] = {"partial", 0, 4096, 0},
    [CUDA_ROWS_MOST] = {"rows_most", 0, ATTEST_CUDA_SIZES - 1, 0},
    [CUDA_TILES_MOST] = {"tiles_most", 0, ATTEST_CUDA_SIZES - 1, 0},
    [CUDA_RATE] = {"rate", 0, 1000, 0},
    [CUDA_CLUSTER] = {"cluster", 1, 16, 1},
    [CUDA_ALIGN] = {"align", 0, 128, 0},
    [CUDA_MMA_QK] = {"mma_qk", 0, 1 << 20, 0},
    [CUDA_MMA_PV] = {"mma_pv", 0, 1 << 20, 0},
};

const char *cuda_number_name(enum cuda_number number)
{
    return numbers[number].name;
}

void cuda_configuration_name(const struct cuda_configuration *configuration, char *text, size_t size)
{
    char tile[32] = "";
    if (configuration->tile)
        snprintf(tile, sizeof tile, "%dx%d ", (int)configuration->numbers[CUDA_TILE_Q], (int)configuration->numbers[CUDA_TILE_KV]);
    snprintf(text, size, "%s d%d %s%s", cuda_dtype_name(configuration->dtype), configuration->dim, tile,
             cuda_limits[configuration->arch].name);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------------
 */

/* The last line that applies, or NULL. */
static const struct cuda_rule *rule_for(const struct cuda_manifest *manifest, const struct cuda_configuration *configuration,
                                        enum cuda_number number)
{
    const struct cuda_rule *found = NULL;
    for (int i = 0; i < manifest->rule_count; i++) {
        const struct cuda_rule *rule = &manifest->rules[i];
        if (rule->number == number && (rule->arch < 0 || rule->arch == configuration->arch) &&
            (!rule->dtype || rule->dtype == configuration->dtype) && (!rule->dim || rule->dim == configuration->dim))
            found = rule;
    }
    return found;
}

static bool evaluate(const struct cuda_manifest *manifest, const struct cuda_configuration *configuration, int known,
                     const char *what, const char *text, int line, int64_t least, int64_t most, int64_t *value, char *why,
                     size_t why_size)
{
    struct cuda_name names[3 + CUDA_SPACE_NUMBERS] = {{"dim", configuration->dim},
                                                      {"bytes", configuration->dtype == ATTEST_F32 ? 4 : 2},
                                                      {"arch", cuda_limits[configuration->arch].number}};
    int count = 3;
    char problem[200], place[64];
    for (int i = 0; i < known && i < CUDA_SPACE_NUMBERS; i++)
        names[count++] = (struct cuda_name){numbers[i].name, configuration->numbers[i]};
    if (!cuda_expression_value(text, names, count, value, problem, sizeof problem)) {
        snprintf(why, why_size, "%s:%d: %s = %s: %s", manifest->path, line, what, text, problem);
        return false;
    }
    if (*value >= least && *value <= most)
        return true;
    cuda_configuration_name(configuration, place, sizeof place);
    snprintf(why, why_size, "%s:%d: %s is %lld for %s; it must be %lld to %lld", manifest->path, line, what, (long long)*value,
             place, (long long)least, (long long)most);
    return false;
}

/* Rules that hold between numbers. */
static bool consistent(const struct cuda_manifest *manifest, const struct cuda_configuration *configuration, char *why,
                       size_t why_size)
{
    const int64_t *n = configuration->numbers;
    char place[64];
    const char *wrong = NULL;
    if (n[CUDA_THREADS] % CUDA_WARP)
        wrong = "threads must be a multiple of 32";
    else if (n[CUDA_ALIGN] & (n[CUDA_ALIGN] - 1))
        wrong = "align must be a power of two";
    else if (n[CUDA_CLUSTER] & (n[CUDA_CLUSTER] - 1) || (n[CUDA_CLUSTER] > 8 && manifest->launch != ATTEST_LAUNCH_JOINED))
        wrong = "cluster must be 1, 2, 4 or 8, or with launch = joined 16";
    else if (n[CUDA_CLUSTER] > 1 && ((manifest->launch != ATTEST_LAUNCH_GRID && manifest->launch != ATTEST_LAUNCH_JOINED) ||
                                     cuda_limits[configuration->arch].number < 90))
        wrong = "clusters need launch = grid or joined, and sm_90 or later";
    else if (manifest->launch == ATTEST_LAUNCH_JOINED && (n[CUDA_CLUSTER] < 2 || !(manifest->refuses & ATTEST_INVARIANT)))
        wrong = "launch = joined needs cluster = 2, 4, 8 or 16, and refuses = invariant";
    else if (manifest->map_count && n[CUDA_ALIGN] < 16)
        wrong = "tensor maps need align = 16, or 32, 64, 128";
    else if (manifest->map_count && cuda_limits[configuration->arch].number < 90)
        wrong = "tensor maps need sm_90 or later";
    else if (manifest->launch == ATTEST_LAUNCH_SPLIT && (!n[CUDA_PARTIAL] || !n[CUDA_SPLIT_KEYS]))
        wrong = "launch = split needs partial and split_keys";
    else if (manifest->launch != ATTEST_LAUNCH_SPLIT && (n[CUDA_PARTIAL] || n[CUDA_SPLIT_KEYS]))
        wrong = "partial and split_keys are for launch = split";
    else if (n[CUDA_SPLIT_KEYS] % n[CUDA_TILE_KV])
        wrong = "split_keys must be a multiple of tile_kv";
    else if (manifest->tensor != CUDA_TENSOR_NONE && (!n[CUDA_MMA_QK] || !n[CUDA_MMA_PV]))
        wrong = "tensor = hmma or gmma needs mma_qk and mma_pv";
    else if (manifest->tensor == CUDA_TENSOR_NONE && (n[CUDA_MMA_QK] || n[CUDA_MMA_PV]))
        wrong = "mma_qk and mma_pv are for tensor = hmma or gmma";
    else if (manifest->tensor == CUDA_TENSOR_GMMA && strcmp(cuda_limits[configuration->arch].name, "sm_90a") != 0)
        wrong = "tensor = gmma needs sm_90a";
    if (!wrong)
        return true;
    cuda_configuration_name(configuration, place, sizeof place);
    snprintf(why, why_size, "%s: %s (%s)", manifest->path, wrong, place);
    return false;
}

/* `chosen` (may be NULL) are values for the first CUDA_SPACE_NUMBERS numbers; 0: what the manifest says. */
static bool configure(const struct cuda_manifest *manifest, const int64_t *chosen, struct cuda_configuration *configuration,
                      char *why, size_t why_size)
{
    for (int i = 0; i < CUDA_NUMBER_COUNT; i++) {
        const struct cuda_rule *rule = rule_for(manifest, configuration, (enum cuda_number)i);
        int64_t *value = &configuration->numbers[i];
        *value = numbers[i].otherwise;
        if (chosen && i < CUDA_SPACE_NUMBERS && chosen[i]) {
            *value = chosen[i];
            continue;
        }
        if (rule && !evaluate(manifest, configuration, i, numbers[i].name, rule->text, rule->line, numbers[i].least,
                              numbers[i].most, value, why, why_size))
            return false;
        if (*value == NEEDED) {
            char place[64];
            cuda_configuration_name(configuration, place, sizeof place);
            snprintf(why, why_size, "%s: the manifest does not say what %s is for %s; write %s = ...", manifest->path,
                     numbers[i].name, place, numbers[i].name);
            return false;
        }
    }
    for (int i = 0; i < manifest->map_count; i++) {
        const struct cuda_map *map = &manifest->maps[i];
        if (!evaluate(manifest, configuration, CUDA_SPACE_NUMBERS, "rows of the map", map->rows, map->line, 1, 256,
                      &configuration->map_rows[i], why, why_size) ||
            !evaluate(manifest, configuration, CUDA_SPACE_NUMBERS, "columns of the map", map->columns, map->line, 1, 256,
                      &configuration->map_columns[i], why, why_size))
            return false;
    }
    return consistent(manifest, configuration, why, why_size);
}

bool cuda_configure(const struct cuda_manifest *manifest, int arch, uint32_t dtype, int dim, const int64_t *chosen,
                    struct cuda_configuration *configuration, char *why, size_t why_size)
{
    int64_t wanted[CUDA_SPACE_NUMBERS] = {0};
    for (int i = 0; i < CUDA_SPACE_NUMBERS && chosen; i++)
        wanted[i] = manifest->space[i].count ? chosen[i] : 0;
    *configuration = (struct cuda_configuration){.arch = arch, .dtype = dtype, .dim = dim};
    return configure(manifest, wanted, configuration, why, why_size);
}

bool cuda_has_tile(const struct cuda_manifest *manifest, int dim, int tile)
{
    return !tile || !manifest->tiles[tile - 1].dim || manifest->tiles[tile - 1].dim == dim;
}

bool cuda_configure_tile(const struct cuda_manifest *manifest, int arch, uint32_t dtype, int dim, int tile,
                         struct cuda_configuration *configuration, char *why, size_t why_size)
{
    int64_t wanted[CUDA_SPACE_NUMBERS] = {0};
    if (tile) {
        wanted[CUDA_TILE_Q] = manifest->tiles[tile - 1].q;
        wanted[CUDA_TILE_KV] = manifest->tiles[tile - 1].kv;
    }
    *configuration = (struct cuda_configuration){.arch = arch, .dtype = dtype, .dim = dim, .tile = tile};
    return configure(manifest, wanted, configuration, why, why_size);
}

/* The first architecture that the manifest names among those that run the image of `own`; -1 if there is none. */
static int first_promised(const struct cuda_manifest *manifest, int own)
{
    for (int arch = 0; arch < cuda_limits_count; arch++)
        if (manifest->archs >> arch & 1 && strcmp(cuda_limits[arch].image, cuda_limits[own].name) == 0)
            return arch;
    return -1;
}

/* The images of one architecture, dtype and dim, added to `images`. */
static bool add_tiles(const struct cuda_manifest *manifest, int own, int first, uint32_t dtype, int dim,
                      struct cuda_configuration *images, int most, int *count, char *why, size_t why_size)
{
    int64_t plain[2] = {0};
    for (int tile = 0; tile <= manifest->tile_count; tile++) {
        struct cuda_configuration here;
        if (!cuda_has_tile(manifest, dim, tile))
            continue;
        if (!cuda_configure_tile(manifest, first, dtype, dim, tile, &here, why, why_size))
            return false;
        if (tile && here.numbers[CUDA_TILE_Q] == plain[0] && here.numbers[CUDA_TILE_KV] == plain[1])
            continue;
        if (*count == most) {
            snprintf(why, why_size, "%s: the manifest promises more than %d images", manifest->path, most);
            return false;
        }
        if (!tile)
            plain[0] = here.numbers[CUDA_TILE_Q], plain[1] = here.numbers[CUDA_TILE_KV];
        here.arch = own;
        images[(*count)++] = here;
    }
    return true;
}

int cuda_manifest_images(const struct cuda_manifest *manifest, uint32_t dtype, struct cuda_configuration *images, int most,
                         char *why, size_t why_size)
{
    int count = 0;
    for (int own = 0; own < cuda_limits_count; own++) {
        int first = first_promised(manifest, own);
        for (uint32_t each = ATTEST_F32; first >= 0 && each <= ATTEST_BF16; each++)
            for (int d = 0; manifest->dtypes >> each & 1 && (!dtype || dtype == each) && d < manifest->dims.count; d++)
                if (!add_tiles(manifest, own, first, each, manifest->dims.values[d], images, most, &count, why, why_size))
                    return -1;
    }
    return count;
}

struct cuda_use cuda_predicted(const struct cuda_configuration *configuration)
{
    const int64_t *n = configuration->numbers;
    return (struct cuda_use){.threads = n[CUDA_THREADS], .registers = n[CUDA_THREAD_REGISTERS_MOST], .shared = n[CUDA_SHARED]};
}

int cuda_space_visit(const struct cuda_manifest *manifest, int arch, uint32_t dtype, int dim,
                     void (*each)(void *data, const struct cuda_configuration *configuration, const char *why), void *data)
{
    int at[CUDA_SPACE_NUMBERS] = {0}, visited = 0;
    for (;;) {
        struct cuda_configuration configuration;
        int64_t chosen[CUDA_SPACE_NUMBERS];
        char why[400];
        for (int i = 0; i < CUDA_SPACE_NUMBERS; i++)
            chosen[i] = manifest->space[i].values[at[i]];
        if (cuda_configure(manifest, arch, dtype, dim, chosen, &configuration, why, sizeof why)) {
            struct cuda_use use = cuda_predicted(&configuration);
            struct cuda_fit fit = cuda_fit(&cuda_limits[arch], &use);
            each(data, &configuration, fit.fits ? NULL : fit.sentence);
        } else {
            each(data, &configuration, why);
        }
        visited++;
        int i = 0;
        while (i < CUDA_SPACE_NUMBERS && ++at[i] >= manifest->space[i].count)
            at[i++] = 0;
        if (i == CUDA_SPACE_NUMBERS)
            return visited;
    }
}

/* ---- problems -----------------------------------------------------------------------------------------------------------------
 */

int cuda_manifest_instance(const struct cuda_manifest *manifest, const attest_problem *problem)
{
    int64_t wanted = problem->dim > problem->dim_v ? problem->dim : problem->dim_v;
    for (int i = 0; i < manifest->dims.count; i++)
        if (manifest->padding ? manifest->dims.values[i] >= wanted : manifest->dims.values[i] == wanted)
            return manifest->dims.values[i];
    return 0;
}

/* The first tensor whose strides are not multiples of `align` bytes, or 0. */
static char unaligned_tensor(const attest_problem *problem, int64_t align)
{
    const struct {
        char name;
        uint32_t dtype;
        const int64_t *stride;
    } tensors[] = {{'Q', problem->dtype, problem->stride_q},
                   {'K', problem->dtype, problem->stride_k},
                   {'V', problem->dtype, problem->stride_v},
                   {'O', problem->dtype_o, problem->stride_o}};
    for (int t = 0; t < COUNT_OF(tensors); t++)
        for (int i = 0; i < 3; i++)
            if (tensors[t].stride[i] * (tensors[t].dtype == ATTEST_F32 ? 4 : 2) % align)
                return tensors[t].name;
    return 0;
}

int64_t cuda_configuration_pack(const struct cuda_manifest *manifest, const struct cuda_configuration *configuration,
                                const attest_problem *problem)
{
    int64_t group = manifest->packs ? problem->heads_q / problem->heads_kv : 1;
    for (int i = 0; i < manifest->map_count; i++)
        if (strchr("qo", manifest->maps[i].tensor) && configuration->map_rows[i] % group)
            return 1;
    return group;
}

/* Why the strides of the tensors that tensor maps are made of cannot be; NULL if they can. */
static const char *unmapped_stride(const struct cuda_manifest *manifest, const attest_problem *problem, char *text, size_t size)
{
    const struct {
        char letter, name;
        const int64_t *stride;
        uint32_t dtype;
    } tensors[] = {{'q', 'Q', problem->stride_q, problem->dtype},
                   {'k', 'K', problem->stride_k, problem->dtype},
                   {'v', 'V', problem->stride_v, problem->dtype},
                   {'o', 'O', problem->stride_o, problem->dtype_o}};
    for (int i = 0; i < manifest->map_count; i++)
        for (int t = 0; t < COUNT_OF(tensors); t++)
            for (int n = 0; n < 3 && tensors[t].letter == manifest->maps[i].tensor; n++) {
                const int64_t bytes = tensors[t].stride[n] * (tensors[t].dtype == ATTEST_F32 ? 4 : 2);
                if (bytes < 0 || bytes >= INT64_C(1) << 40) {
                    snprintf(text, size, "the strides of %c must be from 0 to 2^40 bytes", tensors[t].name);
                    return text;
                }
            }
    return NULL;
}

/* Why one pair of tiles does not take a problem of its dim; NULL if it does. */
static const char *pair_refusal(const struct cuda_manifest *manifest, const struct cuda_configuration *configuration,
                                const attest_problem *problem, char *text, size_t size)
{
    const int64_t *n = configuration->numbers;
    int64_t most = n[CUDA_ROWS_MOST], pack = cuda_configuration_pack(manifest, configuration, problem);
    for (int i = 0; i < manifest->map_count && problem->flags & ATTEST_PAGED; i++) {
        int64_t rows = configuration->map_rows[i], page = problem->page_size;
        if (strchr("kv", manifest->maps[i].tensor) && ((page % rows && rows % page) || page % 8))
            return "its blocks of keys and the pages must be multiples of one another, and of 8";
    }
    if (most && problem->seq_q * pack > most) {
        snprintf(text, size, "it is for at most %lld rows of %s, and there are %lld", (long long)most,
                 pack > 1 ? "a KV head" : "a head", (long long)(problem->seq_q * pack));
        return text;
    }
    int64_t tile_q = n[CUDA_TILE_Q], slots = problem->batch * (problem->heads_q / pack),
            tiles = slots * ((problem->seq_q * pack + tile_q - 1) / tile_q);
    most = n[CUDA_TILES_MOST];
    if (most && problem->flags & ATTEST_INVARIANT)
        return "it takes problems by their number of tiles, which depends on the batch, and bits must not";
    if (most && tiles > most) {
        snprintf(text, size, "it is for at most %lld tiles, and there are %lld", (long long)most, (long long)tiles);
        return text;
    }
    int64_t align = n[CUDA_ALIGN];
    char tensor = align ? unaligned_tensor(problem, align) : 0;
    if (tensor) {
        snprintf(text, size, "the strides of %c must be multiples of %lld bytes", tensor, (long long)align);
        return text;
    }
    return unmapped_stride(manifest, problem, text, size);
}

/* NULL if a pair of tiles that may run takes the problem; else why tile_q x tile_kv does not. */
static const char *tiles_refusal(const struct cuda_manifest *manifest, const attest_problem *problem, int dim, char *text,
                                 size_t size)
{
    struct cuda_configuration configuration;
    char ignored[400];
    int arch = 0;
    while (!(manifest->archs >> arch & 1))
        arch++;
    if (!cuda_configure(manifest, arch, problem->dtype, dim, NULL, &configuration, text, size))
        return text;
    const char *sentence = pair_refusal(manifest, &configuration, problem, text, size);
    bool chosen = configuration.numbers[CUDA_RATE] && !(problem->flags & ATTEST_INVARIANT);
    for (int tile = 1; sentence && chosen && tile <= manifest->tile_count; tile++)
        if (cuda_has_tile(manifest, dim, tile) &&
            cuda_configure_tile(manifest, arch, problem->dtype, dim, tile, &configuration, ignored, sizeof ignored) &&
            configuration.numbers[CUDA_RATE] && !pair_refusal(manifest, &configuration, problem, ignored, sizeof ignored))
            return NULL;
    return sentence;
}

const char *cuda_manifest_refusal(const struct cuda_manifest *manifest, const attest_problem *problem, char *text, size_t size)
{
    if (!(manifest->dtypes >> problem->dtype & 1)) {
        snprintf(text, size, "it does not take %s", cuda_dtype_name(problem->dtype));
        return text;
    }
    /* Version 1 of the interface has nothing for these. */
    const uint64_t unknown = ATTEST_ROW_OFFSETS | ATTEST_KV_STARTS | ATTEST_Q_LENGTHS | ATTEST_MASK;
    for (int i = 0; i < cuda_feature_count; i++)
        if (problem->flags & (manifest->refuses | unknown) & cuda_features[i].flag) {
            snprintf(text, size, "it does not take %s", cuda_features[i].said);
            return text;
        }
    if (problem->stride_alibi_slopes)
        return "it does not take slopes of each sequence";
    if (manifest->refuses_o32 && problem->dtype_o != problem->dtype)
        return "it does not take an O of another type than Q";
    if (problem->dim_v != problem->dim && (manifest->refuses_dimv || !manifest->padding))
        return "it does not take a dim_v that differs from dim";
    int dim = cuda_manifest_instance(manifest, problem);
    if (!dim) {
        int used = snprintf(text, size, "dim %lld is %s", (long long)problem->dim, manifest->padding ? "beyond" : "none of");
        for (int i = manifest->padding ? manifest->dims.count - 1 : 0; i < manifest->dims.count; i++)
            used += snprintf(text + used, (size_t)used < size ? size - (size_t)used : 0, " %d", manifest->dims.values[i]);
        return text;
    }
    if (problem->seq_q >= ATTEST_CUDA_SIZES || problem->seq_kv >= ATTEST_CUDA_SIZES)
        return "sequences must be shorter than 2^30";
    return tiles_refusal(manifest, problem, dim, text, size);
}
