/*
 * cuda_manifest.c - reads manifests. The keys are one table; a key is a word list, a text, a number or something of its own.
 */
#include "cuda_manifest.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_code.h"
#include "base/nearest_word.h"
#include "base/report.h"

enum { MOST_LINE = 512, MOST_FILE = 4 << 20 };

/* Where the reading is. */
struct reading {
    struct cuda_manifest *manifest;
    int line;
    char *why;
    size_t why_size;
};

static bool fail(struct reading *reading, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct reading *reading, const char *format, ...)
{
    va_list arguments;
    int used = snprintf(reading->why, reading->why_size, "%s:%d: ", reading->manifest->path, reading->line);
    if (used < 0 || (size_t)used >= reading->why_size)
        return false;
    va_start(arguments, format);
    vsnprintf(reading->why + used, reading->why_size - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- words ------------------------------------------------------------------------------------------------------------------- */

/* Cuts the next word off; NULL at the end. */
static char *next_word(char **text)
{
    *text += strspn(*text, " \t,");
    if (!**text)
        return NULL;
    char *word = *text;
    *text += strcspn(*text, " \t,");
    if (**text)
        *(*text)++ = '\0';
    return word;
}

static bool parse_int(const char *word, int least, int most, int *value)
{
    char *end;
    errno = 0;
    long number = strtol(word, &end, 10);
    if (!isdigit((unsigned char)*word) || *end || errno || number < least || number > most)
        return false;
    *value = (int)number;
    return true;
}

static const struct {
    const char *name;
    uint32_t dtype;
} dtypes[] = {{"f32", ATTEST_F32}, {"f16", ATTEST_F16}, {"bf16", ATTEST_BF16}};

const char *cuda_dtype_name(uint32_t dtype)
{
    for (int i = 0; i < COUNT_OF(dtypes); i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return "?";
}

static uint32_t dtype_find(const char *name)
{
    for (int i = 0; i < COUNT_OF(dtypes); i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return dtypes[i].dtype;
    return 0;
}

static bool parse_archs(struct reading *reading, char *text)
{
    for (char *word; (word = next_word(&text));) {
        int arch = cuda_arch_find(word);
        if (arch < 0) {
            char known[128] = "";
            for (int i = 0; i < cuda_limits_count; i++)
                snprintf(known + strlen(known), sizeof known - strlen(known), " %s", cuda_limits[i].name);
            return fail(reading, "'%.32s' is no architecture; write one or more of%s", word, known);
        }
        reading->manifest->archs |= 1u << arch;
    }
    return reading->manifest->archs ? true : fail(reading, "archs is empty; write for example archs = sm_80 sm_90");
}

static bool parse_dtypes(struct reading *reading, char *text)
{
    for (char *word; (word = next_word(&text));) {
        uint32_t dtype = dtype_find(word);
        if (!dtype)
            return fail(reading, "'%.32s' is no dtype; write one or more of f32 f16 bf16", word);
        reading->manifest->dtypes |= 1u << dtype;
    }
    return reading->manifest->dtypes ? true : fail(reading, "dtypes is empty; write one or more of f32 f16 bf16");
}

static bool parse_values(struct reading *reading, const char *what, char *text, int least, int most, struct cuda_values *values)
{
    values->count = 0;
    for (char *word; (word = next_word(&text));) {
        int value;
        if (!parse_int(word, least, most, &value))
            return fail(reading, "'%.32s' cannot be one of %s; write integers from %d to %d", word, what, least, most);
        if (values->count && value <= values->values[values->count - 1])
            return fail(reading, "%s must rise, and %d comes after %d", what, value, values->values[values->count - 1]);
        if (values->count == CUDA_MOST_VALUES)
            return fail(reading, "%s has more than %d values", what, CUDA_MOST_VALUES);
        values->values[values->count++] = value;
    }
    return values->count ? true : fail(reading, "%s is empty; write integers from %d to %d", what, least, most);
}

static bool parse_yes(struct reading *reading, const char *key, const char *text, bool *value)
{
    *value = strcmp(text, "yes") == 0;
    return *value || strcmp(text, "no") == 0 ? true : fail(reading, "%s is '%.32s'; write yes or no", key, text);
}

/* One of several words; its index, or -1 after saying what to write. */
static int parse_choice(struct reading *reading, const char *key, const char *text, const char *const *words, int count)
{
    char known[128] = "";
    for (int i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0)
            return i;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
                 i == 0           ? ""
                 : i + 1 == count ? " or "
                                  : ", ",
                 words[i]);
    }
    fail(reading, "%s is '%.32s'; write %s", key, text, known);
    return -1;
}

const struct cuda_feature cuda_features[] = {
#define FLAG(name, word, title) {word, ATTEST_##name, title},
#include <attest/flags.def>
#undef FLAG
};
const int cuda_feature_count = COUNT_OF(cuda_features);

static bool parse_refuses(struct reading *reading, char *text)
{
    const char *names[COUNT_OF(cuda_features)];
    for (int i = 0; i < cuda_feature_count; i++)
        names[i] = cuda_features[i].word;
    for (char *word; (word = next_word(&text));) {
        int i = 0;
        while (i < cuda_feature_count && strcmp(cuda_features[i].word, word) != 0)
            i++;
        if (i < cuda_feature_count)
            reading->manifest->refuses |= cuda_features[i].flag;
        else if (strcmp(word, "o=f32") == 0)
            reading->manifest->refuses_o32 = true;
        else if (strcmp(word, "dv") == 0)
            reading->manifest->refuses_dimv = true;
        else {
            const char *near = nearest_word(word, names, cuda_feature_count);
            return near ? fail(reading, "'%.32s' is nothing that can be refused; did you mean %s?", word, near)
                        : fail(reading,
                               "'%.32s' is nothing that can be refused; write words of a problem string, such as bias or page",
                               word);
        }
    }
    return true;
}

/* Flags for nvcc that change the arithmetic, and nothing else: no other compiler, no other files, no debugging, no other number of
 * registers than the compiler finds right (__launch_bounds__ says what must fit), none of the macros that say what is compiled. */
static bool parse_flags(struct reading *reading, char *text)
{
    static const char *const allowed[] = {
        "-D", "-use_fast_math", "--use_fast_math", "-ftz=", "-fmad=", "-prec-div=", "-prec-sqrt=", "-std=c++"};
    char *out = reading->manifest->flags;
    for (char *word; (word = next_word(&text));) {
        bool good = word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-=.")] == '\0',
             found = false;
        for (int i = 0; i < COUNT_OF(allowed); i++) {
            size_t length = strlen(allowed[i]);
            bool open = strchr("=D+", allowed[i][length - 1]) != NULL;
            found = found || (open ? strncmp(word, allowed[i], length) == 0 && word[length] : strcmp(word, allowed[i]) == 0);
        }
        if (!good || !found)
            return fail(reading,
                        "the flag '%.48s' is not among -DNAME -use_fast_math -ftz= -fmad= -prec-div= -prec-sqrt= -std=c++NN%s",
                        word, strstr(word, "maxrregcount") ? "; write __launch_bounds__ in the source" : "");
        if (strncmp(word, "-DATTEST", 8) == 0 || strncmp(word, "-D_", 3) == 0)
            return fail(reading,
                        "the flag '%.48s' defines a name that is not the kernel's: ATTEST... are attest's, _... the compiler's",
                        word);
        if (strlen(out) + strlen(word) + 2 > sizeof reading->manifest->flags)
            return fail(reading, "there are too many flags");
        snprintf(out + strlen(out), sizeof reading->manifest->flags - strlen(out), "%s%s", *out ? " " : "", word);
    }
    return true;
}

/* ---- numbers, maps, space -------------------------------------------------------------------------------------------------------
 */

static bool number_find(const char *name, enum cuda_number *number)
{
    for (int i = 0; i < CUDA_NUMBER_COUNT; i++)
        if (strcmp(cuda_number_name((enum cuda_number)i), name) == 0) {
            *number = (enum cuda_number)i;
            return true;
        }
    return false;
}

/* sm_90 f16 d256 -> the fields of the rule. */
static bool parse_condition(struct reading *reading, char *text, struct cuda_rule *rule)
{
    bool any = false;
    for (char *word; (word = next_word(&text)); any = true) {
        int arch = cuda_arch_find(word), dim;
        uint32_t dtype = dtype_find(word);
        if ((arch >= 0 && rule->arch >= 0) || (dtype && rule->dtype))
            return fail(reading, "the condition [... %.16s] can never hold; write one architecture, one dtype, one dimension",
                        word);
        if (arch >= 0)
            rule->arch = arch;
        else if (dtype)
            rule->dtype = dtype;
        else if (word[0] == 'd' && parse_int(word + 1, 1, 512, &dim) && !rule->dim)
            rule->dim = dim;
        else
            return fail(reading, "'%.32s' is no condition; write an architecture (sm_90), a dtype (f16) or a dimension (d128)",
                        word);
    }
    return any ? true : fail(reading, "the condition [] is empty; write for example [sm_90 d128], or leave it out");
}

static bool parse_number(struct reading *reading, enum cuda_number number, char *condition, const char *text)
{
    struct cuda_manifest *manifest = reading->manifest;
    struct cuda_rule rule = {.number = number, .arch = -1, .line = reading->line};
    if (condition && !parse_condition(reading, condition, &rule))
        return false;
    if (manifest->rule_count == CUDA_MOST_RULES)
        return fail(reading, "there are more than %d lines with numbers", CUDA_MOST_RULES);
    if (strlen(text) >= sizeof rule.text)
        return fail(reading, "the expression is longer than %zu characters", sizeof rule.text - 1);
    strcpy(rule.text, text);
    manifest->rules[manifest->rule_count++] = rule;
    return true;
}

/* q rows tile_q columns 64 swizzle 128, where the two sizes are expressions. */
static bool parse_map(struct reading *reading, const char *text)
{
    struct cuda_manifest *manifest = reading->manifest;
    if (manifest->map_count == ATTEST_CUDA_MAPS)
        return fail(reading, "there are more than %d maps", ATTEST_CUDA_MAPS);
    struct cuda_map map = {.line = reading->line};
    const char *rows = strstr(text, " rows "), *columns = strstr(text, " columns "), *swizzle = strstr(text, " swizzle ");
    if (!text[0] || !strchr("qkvo", text[0]) || rows != text + 1 || !columns || !swizzle || columns < rows || swizzle < columns)
        return fail(reading, "'%.48s' is no map; write for example map = k rows tile_kv columns 64 swizzle 128", text);
    rows += strlen(" rows ");
    size_t rows_length = (size_t)(columns - rows);
    columns += strlen(" columns ");
    size_t columns_length = (size_t)(swizzle - columns);
    if (rows_length >= sizeof map.rows || columns_length >= sizeof map.columns)
        return fail(reading, "an expression is longer than %zu characters", sizeof map.rows - 1);
    map.tensor = text[0];
    memcpy(map.rows, rows, rows_length);
    memcpy(map.columns, columns, columns_length);
    swizzle += strlen(" swizzle ");
    if (!parse_int(swizzle, 0, 128, &map.swizzle) ||
        (map.swizzle != 0 && map.swizzle != 32 && map.swizzle != 64 && map.swizzle != 128))
        return fail(reading, "the swizzle is '%.32s'; write 0, 32, 64 or 128", swizzle);
    manifest->maps[manifest->map_count++] = map;
    return true;
}

/* 48x64 32x32 */
static bool parse_tiles(struct reading *reading, char *condition, char *text)
{
    struct cuda_manifest *manifest = reading->manifest;
    struct cuda_rule rule = {.arch = -1};
    bool any = false;
    if (condition && !parse_condition(reading, condition, &rule))
        return false;
    if (rule.arch >= 0 || rule.dtype)
        return fail(reading, "tiles can have a condition on the dimension alone; write for example tiles [d64] = 48x64");
    for (char *word; (word = next_word(&text));) {
        struct cuda_tile tile = {.dim = rule.dim, .line = reading->line};
        char *cross = strchr(word, 'x'), shown[33];
        snprintf(shown, sizeof shown, "%s", word);
        if (cross)
            *cross = '\0';
        if (!cross || !parse_int(word, 1, 1024, &tile.q) || !parse_int(cross + 1, 1, 1024, &tile.kv))
            return fail(reading, "'%s' is no pair of tiles; write for example tiles = 48x64 32x32", shown);
        for (int i = 0; i < manifest->tile_count; i++)
            if (manifest->tiles[i].q == tile.q && manifest->tiles[i].kv == tile.kv &&
                (!manifest->tiles[i].dim || !tile.dim || manifest->tiles[i].dim == tile.dim))
                return fail(reading, "%s is there twice", shown);
        if (manifest->tile_count == CUDA_MOST_TILES)
            return fail(reading, "there are more than %d pairs of tiles", CUDA_MOST_TILES);
        manifest->tiles[manifest->tile_count++] = tile;
        any = true;
    }
    return any ? true : fail(reading, "tiles is empty; write for example tiles = 48x64 32x32");
}

/* tile_q 32 64; tile_kv 32 64 */
static bool parse_space(struct reading *reading, char *text)
{
    char *rest = NULL;
    bool any = false;
    for (char *part = strtok_r(text, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
        enum cuda_number number;
        char *name = next_word(&part);
        if (!name)
            continue;
        if (!number_find(name, &number) || number > CUDA_THREADS)
            return fail(reading, "'%.32s' cannot be searched; write tile_q, tile_kv, stages or threads, and values", name);
        if (!parse_values(reading, name, part, 1, 1024, &reading->manifest->space[number]))
            return false;
        any = true;
    }
    return any ? true : fail(reading, "space is empty; write for example space = tile_q 32 64; tile_kv 32 64");
}

/* ---- lines --------------------------------------------------------------------------------------------------------------------
 */

static bool parse_text(struct reading *reading, const char *key, const char *text, char *out, size_t size)
{
    if (strlen(text) >= size)
        return fail(reading, "%s is longer than %zu characters", key, size - 1);
    strcpy(out, text);
    return true;
}

static bool unknown_key(struct reading *reading, const char *key, const char *const *keys, int count)
{
    const char *names[64];
    int name_count = 0;
    for (; name_count < count; name_count++)
        names[name_count] = keys[name_count];
    for (int i = 0; i < CUDA_NUMBER_COUNT; i++)
        names[name_count++] = cuda_number_name((enum cuda_number)i);
    const char *near = nearest_word(key, names, name_count);
    return near ? fail(reading, "'%.32s' is no key of a manifest; did you mean %s?", key, near)
                : fail(reading, "'%.32s' is no key of a manifest; attest_kernel_cuda.h lists them", key);
}

static bool parse_value(struct reading *reading, const char *key, char *condition, char *text)
{
    enum { NAME, SUMMARY, ARCHS, DTYPES, DIMS, PADDING, PACKS, PDL, TILES, LAUNCH, TENSOR, REFUSES, FLAGS, MAP, SPACE, KEY_COUNT };
    static const char *const keys[KEY_COUNT] = {"name",  "summary", "archs",  "dtypes",  "dims",  "padding", "packs", "pdl",
                                                "tiles", "launch",  "tensor", "refuses", "flags", "map",     "space"};
    static const char *const launches[] = {"tile", "persistent", "split", "grid", "joined"}, *const tensors[] = {"none", "hmma",
                                                                                                                 "gmma"};
    struct cuda_manifest *manifest = reading->manifest;
    enum cuda_number number;
    if (number_find(key, &number))
        return parse_number(reading, number, condition, text);
    int which = 0, choice;
    while (which < KEY_COUNT && strcmp(keys[which], key) != 0)
        which++;
    if (which == KEY_COUNT)
        return unknown_key(reading, key, keys, KEY_COUNT);
    if (condition && which != TILES)
        return fail(reading, "%s cannot have a condition; only numbers and tiles can", key);
    switch (which) {
    case NAME:
        if (text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")])
            return fail(reading, "the name '%.32s' has other signs than letters, digits and _", text);
        return parse_text(reading, key, text, manifest->name, sizeof manifest->name);
    case SUMMARY:
        return parse_text(reading, key, text, manifest->summary, sizeof manifest->summary);
    case ARCHS:
        return parse_archs(reading, text);
    case DTYPES:
        return parse_dtypes(reading, text);
    case DIMS:
        return parse_values(reading, key, text, 1, 512, &manifest->dims);
    case PADDING:
        return parse_yes(reading, key, text, &manifest->padding);
    case PACKS:
        return parse_yes(reading, key, text, &manifest->packs);
    case PDL:
        return parse_yes(reading, key, text, &manifest->pdl);
    case TILES:
        return parse_tiles(reading, condition, text);
    case LAUNCH:
        choice = parse_choice(reading, key, text, launches, COUNT_OF(launches));
        manifest->launch = (attest_cuda_launch)(choice + 1);
        return choice >= 0;
    case TENSOR:
        choice = parse_choice(reading, key, text, tensors, COUNT_OF(tensors));
        manifest->tensor = (enum cuda_tensor_pipe)choice;
        return choice >= 0;
    case REFUSES:
        return parse_refuses(reading, text);
    case FLAGS:
        return parse_flags(reading, text);
    case MAP:
        return parse_map(reading, text);
    default:
        return parse_space(reading, text);
    }
}

/* key [condition] = value */
static bool parse_line(struct reading *reading, char *line)
{
    char *equals = strchr(line, '='), *bracket = strchr(line, '['), *condition = NULL, *key = line, stored[96];
    if (!equals)
        return fail(reading, "'%.48s' has no '='; write key = value", line);
    *equals = '\0';
    char *value = equals + 1 + strspn(equals + 1, " \t"), *end = value + strlen(value);
    while (end > value && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        *--end = '\0';
    if (bracket && bracket < equals) {
        char *close = strchr(bracket, ']');
        if (!close || close[1 + strspn(close + 1, " \t")])
            return fail(reading, "the condition '%.32s' does not end in ']' before the '='", bracket);
        *bracket = *close = '\0';
        condition = bracket + 1;
    }
    for (end = key + strlen(key); end > key && (end[-1] == ' ' || end[-1] == '\t');)
        *--end = '\0';
    snprintf(stored, sizeof stored, condition ? "%s [%s]" : "%s", key, condition);
    if (strcmp(key, "map") == 0)
        snprintf(stored, sizeof stored, "map %d", reading->manifest->map_count + 1);
    if (json_object_get(reading->manifest->lines, stored))
        return fail(reading, "%s is there twice", stored);
    json_t *text = json_string(value);
    if (!text)
        return fail(reading, "the value of %.48s is not UTF-8 text", key);
    if (!parse_value(reading, key, condition, value)) {
        json_decref(text);
        return false;
    }
    json_put(reading->manifest->lines, stored, text);
    return true;
}

/* Whether a condition on the dimension, of this line, can hold. */
static bool dim_known(struct reading *reading, int dim, int line)
{
    const struct cuda_values *dims = &reading->manifest->dims;
    bool known = !dim;
    for (int d = 0; d < dims->count; d++)
        known = known || dims->values[d] == dim;
    reading->line = line;
    return known ? true : fail(reading, "the condition d%d can never hold: it is none of dims", dim);
}

/* What every manifest must have, and that every image it promises has numbers. */
static bool complete(struct reading *reading)
{
    struct cuda_manifest *manifest = reading->manifest;
    const char *missing = !manifest->archs        ? "archs = sm_80 sm_90"
                          : !manifest->dtypes     ? "dtypes = f16 bf16"
                          : !manifest->dims.count ? "dims = 64 128"
                          : !manifest->launch     ? "launch = tile"
                                                  : NULL;
    if (missing)
        return fail(reading, "the manifest lacks a line such as: %s", missing);
    if (manifest->pdl && (manifest->launch == ATTEST_LAUNCH_TILE || manifest->launch == ATTEST_LAUNCH_JOINED))
        return fail(reading, "pdl is for launch = split, where attest_combine waits for attest_kernel, and for launch = grid and "
                             "persistent, where attest_kernel waits for what was launched before it");
    for (int i = 0; i < manifest->tile_count; i++)
        if (!dim_known(reading, manifest->tiles[i].dim, manifest->tiles[i].line))
            return false;
    for (int i = 0; i < manifest->rule_count; i++) {
        const struct cuda_rule *rule = &manifest->rules[i];
        if (!dim_known(reading, rule->dim, rule->line))
            return false;
        if (rule->dtype && !(manifest->dtypes >> rule->dtype & 1))
            return fail(reading, "the condition %s can never hold: it is none of dtypes", cuda_dtype_name(rule->dtype));
    }
    for (int arch = 0; arch < cuda_limits_count; arch++)
        for (uint32_t dtype = ATTEST_F32; dtype <= ATTEST_BF16; dtype++)
            for (int d = 0; d < manifest->dims.count; d++) {
                struct cuda_configuration configuration;
                if (!(manifest->archs >> arch & 1) || !(manifest->dtypes >> dtype & 1))
                    continue;
                for (int tile = 0; tile <= manifest->tile_count; tile++)
                    if (cuda_has_tile(manifest, manifest->dims.values[d], tile) &&
                        !cuda_configure_tile(manifest, arch, dtype, manifest->dims.values[d], tile, &configuration, reading->why,
                                             reading->why_size))
                        return false;
            }
    return true;
}

bool cuda_manifest_parse(const char *text, size_t size, const char *path, bool is_source, struct cuda_manifest *manifest, char *why,
                         size_t why_size)
{
    static const char mark[] = "attest-cuda:";
    struct reading reading = {.manifest = manifest, .why = why, .why_size = why_size};
    bool over = false, found = false;
    *manifest = (struct cuda_manifest){.lines = json_object()};
    snprintf(manifest->path, sizeof manifest->path, "%s", path);
    for (const char *at = text, *end = text + size; at < end && !over;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);
        char line[MOST_LINE];
        reading.line++;
        if (memchr(at, '\0', length))
            return fail(&reading, "there is a zero byte; a manifest is text");
        snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line), at);
        at += length + 1;
        over = is_source && strstr(line, "*/");
        char *start = line + strspn(line, is_source ? " \t*/" : " \t"), *entry = is_source ? strstr(start, mark) : start;
        if (is_source ? entry != start : !*start || *start == '#' || *start == '\r')
            continue;
        if (length >= sizeof line)
            return fail(&reading, "the line is longer than %d characters", MOST_LINE - 1);
        if (strncmp(entry, mark, sizeof mark - 1) == 0)
            entry += sizeof mark - 1;
        entry += strspn(entry, " \t");
        char *close = strstr(entry, "*/");
        if (is_source && close)
            *close = '\0';
        found = true;
        if (!parse_line(&reading, entry))
            return false;
    }
    if (!found && is_source)
        return fail(&reading,
                    "no line of the first comment begins with '%s'; write the manifest there, as attest new NAME --cuda does",
                    mark);
    if (!found)
        return fail(&reading, "the file has no line; write a manifest, as attest_kernel_cuda.h explains it");
    return complete(&reading);
}

bool cuda_manifest_read(const char *path, bool is_source, struct cuda_manifest *manifest, char *why, size_t why_size)
{
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(MOST_FILE) : NULL;
    size_t size = text ? fread(text, 1, MOST_FILE, file) : 0;
    *manifest = (struct cuda_manifest){0};
    bool read = text && !ferror(file);
    if (!read)
        snprintf(why, why_size, "%s cannot be read: %s", path, strerror(errno));
    if (file)
        fclose(file);
    read = read && cuda_manifest_parse(text, size, path, is_source, manifest, why, why_size);
    free(text);
    return read;
}

void cuda_manifest_free(struct cuda_manifest *manifest)
{
    json_decref(manifest->lines);
    manifest->lines = NULL;
}
