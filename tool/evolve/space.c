/*
 * space.c - the space of a search, read from a source and written back into it. See space.h.
 *
 * A C kernel declares its knobs in its first comment, beside its attest-flags:
 *     attest-space: TILE_VECS 1 2 3 4
 *     attest-fits: TILE_VECS * TILE_KEYS + TILE_VECS + 1 <= 32
 * and has each of them once as a constant, `TILE_VECS = 3` or `#define TILE_VECS 3`. A point is written by putting its values there:
 * the candidate is an ordinary source, which differs from its parent in a few numbers. A CUDA kernel declares its space in its
 * manifest, and gets lines there for the instances that the problems use; the model of a multiprocessor says what fits.
 */
#include "space.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda_expression.h"
#include "cuda/cuda_manifest.h"

/* ---- the text ------------------------------------------------------------------------------------------------------------- */

/* The end of the first comment; the beginning of the text if there is none. */
static const char *after_comment(const char *text)
{
    const char *begin = text + strspn(text, " \t\r\n"), *end = strncmp(begin, "/*", 2) == 0 ? strstr(begin, "*/") : NULL;
    return end ? end + 2 : text;
}

static bool is_word(char letter)
{
    return isalnum((unsigned char)letter) || letter == '_';
}

/* The value of a constant: the first `NAME = value` or `#define NAME value` behind the first comment. False if there is none. */
static bool find_value(const char *text, const char *name, const char **value, size_t *length)
{
    size_t size = strlen(name);
    for (const char *at = after_comment(text); (at = strstr(at, name)); at += size) {
        const char *line = at, *behind = at + size;
        if ((at > text && is_word(at[-1])) || is_word(*behind))
            continue;
        while (line > text && line[-1] != '\n')
            line--;
        line += strspn(line, " \t");
        bool defined = *line == '#' && strncmp(line + 1 + strspn(line + 1, " \t"), "define", 6) == 0;
        behind += strspn(behind, " \t");
        if (!defined && (*behind != '=' || behind[1] == '='))
            continue;
        behind += defined ? 0 : 1;
        behind += strspn(behind, " \t");
        for (*length = 0; is_word(behind[*length]); (*length)++)
            ;
        *value = behind;
        if (*length)
            return true;
    }
    return false;
}

/* ---- reading -------------------------------------------------------------------------------------------------------------- */

static bool fail(char *why, size_t size, const char *path, const char *what, const char *word, const char *advice)
{
    snprintf(why, size, "%s: %s '%.60s'; %s", path, what, word, advice);
    return false;
}

static bool is_whole(const char *word)
{
    return *word && strspn(word, "0123456789") == strlen(word) && strlen(word) < 10;
}

static void add_value(struct knob *knob, const char *word)
{
    snprintf(knob->values[knob->count++], SPACE_WORD, "%s", word);
    knob->numeric = knob->numeric && is_whole(word);
}

static int find_in(const struct knob *knob, const char *word, size_t length)
{
    for (int i = 0; i < knob->count; i++)
        if (strlen(knob->values[i]) == length && strncmp(knob->values[i], word, length) == 0)
            return i;
    return -1;
}

/* NAME VALUE VALUE ... */
static bool read_knob(struct space *space, char *line, const char *path, char *why, size_t size)
{
    char *rest = NULL, *name = strtok_r(line, " \t\r\n", &rest);
    static const char form[] = "write attest-space: NAME VALUE VALUE ...";
    if (!name || strlen(name) >= SPACE_WORD || isdigit((unsigned char)*name))
        return fail(why, size, path, "attest-space needs the name of a constant, and got", name ? name : "", form);
    if (space->count == SPACE_KNOBS)
        return fail(why, size, path, "there are too many knobs, beginning with", name, "16 are possible");
    for (int i = 0; i < space->count; i++)
        if (strcmp(space->knobs[i].name, name) == 0)
            return fail(why, size, path, "attest-space names twice", name, "one line for each constant");
    struct knob *knob = &space->knobs[space->count++];
    snprintf(knob->name, sizeof knob->name, "%s", name);
    knob->numeric = true;
    for (char *word; (word = strtok_r(NULL, " \t\r\n", &rest));) {
        if (strlen(word) >= SPACE_WORD || knob->count == SPACE_VALUES - 1)
            return fail(why, size, path, "attest-space has a word too long or too many values at", word, "23 values are possible");
        for (const char *letter = word; *letter; letter++)
            if (!is_word(*letter))
                return fail(why, size, path, "attest-space has the value", word, "values are numbers, or names of pieces");
        if (find_in(knob, word, strlen(word)) >= 0)
            return fail(why, size, path, "attest-space has twice the value", word, "list each value once");
        add_value(knob, word);
    }
    return knob->count > 0 || fail(why, size, path, "attest-space lists no value for", name, form);
}

/* The lines of the first comment. */
static bool read_comment(struct space *space, const char *text, const char *path, char *why, size_t size)
{
    static const char space_mark[] = "attest-space:", fits_mark[] = "attest-fits:";
    const char *end = after_comment(text);
    bool good = true;
    for (const char *line = text; good && line < end; line += strcspn(line, "\n"), line += *line == '\n') {
        char copy[1024];
        snprintf(copy, sizeof copy, "%.*s", (int)(strcspn(line, "\n") < sizeof copy ? strcspn(line, "\n") : sizeof copy - 1), line);
        char *at = copy + strspn(copy, " */\t");
        if (strncmp(at, space_mark, sizeof space_mark - 1) == 0) {
            good = read_knob(space, at + sizeof space_mark - 1, path, why, size);
        } else if (strncmp(at, fits_mark, sizeof fits_mark - 1) == 0) {
            at += sizeof fits_mark - 1;
            at += strspn(at, " \t");
            at[strcspn(at, "\r")] = '\0';
            if (space->rule_count == SPACE_RULES || strlen(at) >= SPACE_RULE || !strstr(at, "<="))
                return fail(why, size, path, "attest-fits has", at,
                            "write attest-fits: EXPRESSION <= EXPRESSION, at most 8 of them");
            snprintf(space->rules[space->rule_count++], SPACE_RULE, "%s", at);
        }
    }
    return good;
}

/* Where the source is in its own space. A value of its own that is not listed joins the list. */
static bool read_start(struct space *space, const char *text, const char *path, char *why, size_t size)
{
    for (int i = 0; i < space->count; i++) {
        struct knob *knob = &space->knobs[i];
        const char *value;
        size_t length;
        if (!find_value(text, knob->name, &value, &length))
            return fail(why, size, path, "attest-space names a constant that the source does not have:", knob->name,
                        "write NAME = value in an enum, or #define NAME value");
        space->start.at[i] = find_in(knob, value, length);
        if (space->start.at[i] < 0) {
            char word[SPACE_WORD];
            snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), value);
            space->start.at[i] = knob->count;
            add_value(knob, word);
        }
    }
    return true;
}

static int first_bit(unsigned bits)
{
    int bit = 0;
    while (bits && !(bits >> bit & 1))
        bit++;
    return bit;
}

static bool read_manifest(struct space *space, const char *text, const char *path, const struct problem_list *problems, char *why,
                          size_t size)
{
    struct cuda_configuration now;
    struct cuda_manifest *manifest = space->manifest = calloc(1, sizeof *manifest);
    if (!manifest) {
        snprintf(why, size, "out of memory");
        return false;
    }
    if (!cuda_manifest_parse(text, strlen(text), path, true, manifest, why, size))
        return false;
    for (int p = 0; p < problems->count; p++) {
        int dim = cuda_manifest_instance(manifest, &problems->entries[p].problem);
        bool known = dim == 0;
        for (int i = 0; i < space->dim_count; i++)
            known = known || space->dims[i] == dim;
        if (!known && space->dim_count < COUNT_OF(space->dims))
            space->dims[space->dim_count++] = dim;
    }
    if (!space->dim_count) {
        snprintf(why, size, "%s takes none of the problems: no instance has their dim", path);
        return false;
    }
    if (!cuda_configure(manifest, first_bit(manifest->archs), (uint32_t)first_bit(manifest->dtypes), space->dims[0], NULL, &now,
                        why, size))
        return false;
    for (int number = 0; number < CUDA_SPACE_NUMBERS; number++) {
        const struct cuda_values *values = &manifest->space[number];
        char word[SPACE_WORD];
        if (!values->count)
            continue;
        struct knob *knob = &space->knobs[space->count];
        snprintf(knob->name, sizeof knob->name, "%s", cuda_number_name((enum cuda_number)number));
        knob->numeric = true;
        for (int i = 0; i < values->count; i++) {
            snprintf(word, sizeof word, "%d", values->values[i]);
            add_value(knob, word);
        }
        snprintf(word, sizeof word, "%lld", (long long)now.numbers[number]);
        int at = find_in(knob, word, strlen(word));
        if (at < 0) {
            at = knob->count;
            add_value(knob, word);
        }
        space->start.at[space->count++] = at;
    }
    return true;
}

static bool try_all(struct space *space, const char *path, char *why, size_t size)
{
    space->size = 1;
    for (int i = 0; i < space->count; i++) {
        space->size *= space->knobs[i].count;
        if (space->size > SPACE_MOST_POINTS) {
            snprintf(why, size, "%s: the space has more than %d points; list fewer values", path, SPACE_MOST_POINTS);
            return false;
        }
    }
    if (!(space->fits = calloc((size_t)space->size, 1))) {
        snprintf(why, size, "out of memory");
        return false;
    }
    for (int64_t n = 0; n < space->size; n++) {
        struct point point = space_point(space, n);
        char ignored[400];
        space->fits[n] = space_fits(space, &point, ignored, sizeof ignored);
        space->fitting += space->fits[n];
    }
    if (space->fitting == 0) {
        char reason[400] = "";
        space_fits(space, &space->start, reason, sizeof reason);
        snprintf(why, size, "%s: no point of the space fits: %s", path, reason);
        return false;
    }
    return true;
}

bool space_read(const char *text, const char *path, bool cuda, const struct problem_list *problems, struct space *space, char *why,
                size_t why_size)
{
    *space = (struct space){0};
    bool good = cuda ? read_manifest(space, text, path, problems, why, why_size)
                     : read_comment(space, text, path, why, why_size) && read_start(space, text, path, why, why_size);
    if (good && try_all(space, path, why, why_size))
        return true;
    space_free(space);
    return false;
}

void space_free(struct space *space)
{
    if (space->manifest)
        cuda_manifest_free(space->manifest);
    free(space->manifest);
    free(space->fits);
    *space = (struct space){0};
}

/* ---- points --------------------------------------------------------------------------------------------------------------- */

int64_t space_number(const struct space *space, const struct point *point)
{
    int64_t number = 0;
    for (int i = 0; i < space->count; i++)
        number = number * space->knobs[i].count + point->at[i];
    return number;
}

struct point space_point(const struct space *space, int64_t number)
{
    struct point point = {{0}};
    for (int i = space->count - 1; i >= 0; i--) {
        point.at[i] = (int)(number % space->knobs[i].count);
        number /= space->knobs[i].count;
    }
    return point;
}

/* One rule, "left <= right". */
static bool rule_holds(const struct space *space, const char *rule, const struct point *point, char *why, size_t size)
{
    struct cuda_name names[SPACE_KNOBS];
    char left[SPACE_RULE], problem[160];
    const char *sign = strstr(rule, "<=");
    int64_t values[2] = {0};
    int count = 0;
    for (int i = 0; i < space->count; i++)
        if (space->knobs[i].numeric)
            names[count++] = (struct cuda_name){space->knobs[i].name, strtoll(space->knobs[i].values[point->at[i]], NULL, 10)};
    snprintf(left, sizeof left, "%.*s", (int)(sign - rule), rule);
    for (int side = 0; side < 2; side++)
        if (!cuda_expression_value(side ? sign + 2 : left, names, count, &values[side], problem, sizeof problem)) {
            snprintf(why, size, "attest-fits: %s: %s", rule, problem);
            return false;
        }
    if (values[0] > values[1])
        snprintf(why, size, "%s does not hold: %lld is more than %lld", rule, (long long)values[0], (long long)values[1]);
    return values[0] <= values[1];
}

static bool block_fits(const struct space *space, const struct point *point, char *why, size_t size)
{
    const struct cuda_manifest *manifest = space->manifest;
    int64_t chosen[CUDA_SPACE_NUMBERS] = {0};
    for (int number = 0, i = 0; number < CUDA_SPACE_NUMBERS; number++)
        if (manifest->space[number].count) {
            chosen[number] = strtoll(space->knobs[i].values[point->at[i]], NULL, 10);
            i++;
        }
    for (int arch = 0; arch < cuda_limits_count; arch++)
        for (uint32_t dtype = ATTEST_F32; manifest->archs >> arch & 1 && dtype <= ATTEST_BF16; dtype++)
            for (int d = 0; manifest->dtypes >> dtype & 1 && d < space->dim_count; d++) {
                struct cuda_configuration configuration;
                if (!cuda_configure(manifest, arch, dtype, space->dims[d], chosen, &configuration, why, size))
                    return false;
                struct cuda_use use = cuda_predicted(&configuration);
                struct cuda_fit fit = cuda_fit(&cuda_limits[arch], &use);
                if (!fit.fits) {
                    snprintf(why, size, "%s", fit.sentence);
                    return false;
                }
            }
    return true;
}

bool space_fits(const struct space *space, const struct point *point, char *why, size_t why_size)
{
    for (int i = 0; i < space->rule_count; i++)
        if (!rule_holds(space, space->rules[i], point, why, why_size))
            return false;
    return !space->manifest || block_fits(space, point, why, why_size);
}

/* ---- writing -------------------------------------------------------------------------------------------------------------- */

/* The text with `word` in place of `length` letters at `at`; frees the old one. */
static char *replace(char *text, size_t at, size_t length, const char *word)
{
    char *made = NULL;
    if (!text || asprintf(&made, "%.*s%s%s", (int)at, text, word, text + at + length) < 0)
        made = NULL;
    free(text);
    return made;
}

/* Lines of a manifest behind its last one: the last line that applies counts. */
static char *write_manifest(const struct space *space, const char *text, const struct point *point)
{
    static const char mark[] = "attest-cuda:";
    const char *end = after_comment(text), *last = NULL;
    for (const char *at = text; (at = strstr(at, mark)) && at < end; at++)
        last = at;
    if (!last)
        return NULL;
    size_t split = (size_t)(last - text) + strcspn(last, "\n"), size = 0;
    char *lines = NULL, *made = NULL;
    FILE *stream = open_memstream(&lines, &size);
    if (!stream)
        return NULL;
    for (int i = 0; i < space->count; i++)
        for (int d = 0; d < space->dim_count; d++)
            fprintf(stream, "\n * attest-cuda: %s [d%d] = %s", space->knobs[i].name, space->dims[d],
                    space->knobs[i].values[point->at[i]]);
    if (fclose(stream) == 0 && lines)
        made = replace(strdup(text), split, 0, lines);
    free(lines);
    return made;
}

char *space_write(const struct space *space, const char *text, const struct point *point)
{
    if (space->manifest)
        return write_manifest(space, text, point);
    char *made = strdup(text);
    for (int i = 0; made && i < space->count; i++) {
        const char *value;
        size_t length;
        if (find_value(made, space->knobs[i].name, &value, &length))
            made = replace(made, (size_t)(value - made), length, space->knobs[i].values[point->at[i]]);
    }
    return made;
}

json_t *space_settings(const struct space *space, const struct point *point)
{
    json_t *settings = json_object();
    for (int i = 0; i < space->count; i++)
        json_put(settings, space->knobs[i].name, json_string(space->knobs[i].values[point->at[i]]));
    return settings;
}

bool space_find(const struct space *space, const json_t *settings, struct point *point)
{
    *point = (struct point){{0}};
    for (int i = 0; i < space->count; i++) {
        const char *value = json_string_value(json_object_get(settings, space->knobs[i].name));
        point->at[i] = value ? find_in(&space->knobs[i], value, strlen(value)) : -1;
        if (point->at[i] < 0)
            return false;
    }
    return true;
}

json_t *space_json(const struct space *space)
{
    json_t *knobs = json_array();
    for (int i = 0; i < space->count; i++) {
        const struct knob *knob = &space->knobs[i];
        json_t *values = json_array();
        for (int k = 0; k < knob->count; k++)
            json_add(values, json_string(knob->values[k]));
        json_add(knobs, json_pack("{s:s, s:o, s:s, s:b}", "name", knob->name, "values", values, "start",
                                  knob->values[space->start.at[i]], "numeric", knob->numeric));
    }
    return knobs;
}
