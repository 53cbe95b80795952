/*
 * champions.c - who reigns, by the statements alone. See champions.h.
 *
 * A statement that promotes a kernel begins a reign in each problem class it names, on its device class; the next one ends it. The
 * order is that of "sequence", which statement_append counts up over the whole folder. Where two branches of the repository were
 * merged two statements may have the same number; then the time decides, and then the name of the file.
 */
#include "champions.h"
#include "base/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "member.h"
#include "statement.h"

static const json_t *predicate_of(const json_t *entry)
{
    return json_object_get(json_object_get(entry, "statement"), "predicate");
}

/* ---- the order of reigns --------------------------------------------------------------------------------------------------- */

/* Whether the statement promotes a kernel, and nothing speaks against it. */
static bool promotes(const json_t *entry)
{
    const json_t *predicate = predicate_of(entry);
    const char *type = text_at(json_object_get(entry, "statement"), "predicateType"), *champion = text_at(predicate, "champion");
    if (*text_at(entry, "problem") || json_array_size(json_object_get(predicate, "promoted")) == 0)
        return false;
    if (strcmp(type, PREDICATE_REIGN) == 0)
        return true;
    return strcmp(type, PREDICATE_PROOF) == 0 && text_is(predicate, "verdict", "PROVEN") &&
           (strcmp(champion, "FIRST") == 0 || strcmp(champion, "CHAMPION") == 0);
}

static int by_time(const void *left, const void *right)
{
    const json_t *a = *(const json_t *const *)left, *b = *(const json_t *const *)right;
    json_int_t numbers[] = {json_integer_value(json_object_get(predicate_of(a), "sequence")),
                            json_integer_value(json_object_get(predicate_of(b), "sequence"))};
    if (numbers[0] != numbers[1])
        return numbers[0] < numbers[1] ? -1 : 1;
    int order = strcmp(text_at(predicate_of(a), "finished"), text_at(predicate_of(b), "finished"));
    return order ? order : strcmp(text_at(a, "file"), text_at(b, "file"));
}

/* The statements that promote, oldest first; the array is to be freed, the entries are borrowed. */
static const json_t **promotions(const json_t *statements, size_t *count)
{
    const json_t **list = calloc(json_array_size(statements) + 1, sizeof *list), *entry;
    size_t index;
    *count = 0;
    if (!list)
        return NULL;
    json_array_foreach(statements, index, entry)
    {
        if (promotes(entry))
            list[(*count)++] = entry;
    }
    qsort(list, *count, sizeof *list, by_time);
    return list;
}

static bool names_class(const json_t *entry, const char *problem_class)
{
    const json_t *class;
    size_t index;
    json_array_foreach(json_object_get(predicate_of(entry), "promoted"), index, class)
    {
        if (json_is_string(class) && strcmp(json_string_value(class), problem_class) == 0)
            return true;
    }
    return false;
}

/* The last reign, or the last of another kernel than `aside`, if that is not NULL. */
static const json_t *reigning(const json_t *statements, const char *device, const char *problem_class, const char *aside)
{
    size_t count = 0;
    const json_t **list = promotions(statements, &count), *last = NULL;
    for (size_t i = 0; list && i < count; i++)
        if (strcmp(text_at(json_object_get(predicate_of(list[i]), "device"), "class"), device) == 0 &&
            names_class(list[i], problem_class) && !(aside && text_is(predicate_of(list[i]), "kernel", aside)))
            last = list[i];
    free(list);
    return last;
}

const char *champion_of(const json_t *statements, const char *device, const char *problem_class)
{
    return json_string_value(json_object_get(predicate_of(reigning(statements, device, problem_class, NULL)), "kernel"));
}

const char *champion_before(const json_t *statements, const char *device, const char *problem_class, const char *kernel)
{
    return json_string_value(json_object_get(predicate_of(reigning(statements, device, problem_class, kernel)), "kernel"));
}

const char *champion_image(const json_t *statements, const char *device, const char *problem_class)
{
    const json_t *predicate = predicate_of(reigning(statements, device, problem_class, NULL));
    return json_string_value(json_object_get(json_object_get(predicate, "candidate"), "image"));
}

/* ---- the list -------------------------------------------------------------------------------------------------------------- */

/* One reign, of which "history" is made. */
static json_t *reign_of(const json_t *entry)
{
    const json_t *predicate = predicate_of(entry);
    bool restored = strcmp(text_at(json_object_get(entry, "statement"), "predicateType"), PREDICATE_REIGN) == 0;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "kernel", text_at(predicate, "kernel"), "since",
                     text_at(predicate, "finished"), "decision", text_at(predicate, "decision"), "model",
                     text_at(json_object_get(predicate, "device"), "model"), "digest", text_at(entry, "digest"), "image",
                     text_at(json_object_get(predicate, "candidate"), "image"), "restored", (int)restored);
}

/* Puts a promotion into {"device problem_class": row}. */
static void add_reign(json_t *rows, const json_t *entry)
{
    const json_t *predicate = predicate_of(entry), *class;
    const char *device = text_at(json_object_get(predicate, "device"), "class");
    size_t index;
    json_array_foreach(json_object_get(predicate, "promoted"), index, class)
    {
        char key[256];
        if (!json_is_string(class))
            continue;
        snprintf(key, sizeof key, "%s %s", device, json_string_value(class));
        json_t *row = json_object_get(rows, key), *reign = reign_of(entry);
        if (!row) {
            row = json_pack("{s:s, s:O, s:[]}", "device", device, "problem_class", class, "history");
            json_put(rows, key, row);
        }
        json_put(row, "kernel", json_incref(json_object_get(reign, "kernel")));
        json_put(row, "since", json_incref(json_object_get(reign, "since")));
        json_put(row, "model", json_incref(json_object_get(reign, "model")));
        json_put(row, "digest", json_incref(json_object_get(reign, "digest")));
        json_add(json_object_get(row, "history"), reign);
    }
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

json_t *champions_list(const json_t *statements)
{
    size_t count = 0, rows_count = 0;
    json_t *rows = json_object(), *list = json_array(), *row;
    const json_t **events = promotions(statements, &count);
    const char *key;
    for (size_t i = 0; events && i < count; i++)
        add_reign(rows, events[i]);
    const char **keys = calloc(json_object_size(rows) + 1, sizeof *keys);
    json_object_foreach(rows, key, row)
    {
        if (keys)
            keys[rows_count++] = key;
    }
    if (keys)
        qsort(keys, rows_count, sizeof *keys, by_text);
    for (size_t i = 0; i < rows_count; i++)
        json_add(list, json_incref(json_object_get(rows, keys[i])));
    free(keys);
    free(events);
    json_decref(rows);
    return list;
}

/* ---- restoring ------------------------------------------------------------------------------------------------------------- */

/* The last reign of a kernel in a row of the list; NULL if it never reigned there, or reigns now. */
static const json_t *earlier_reign(const json_t *row, const char *kernel)
{
    const json_t *reign, *last = NULL;
    size_t index;
    if (text_is(row, "kernel", kernel))
        return NULL;
    json_array_foreach(json_object_get(row, "history"), index, reign)
    {
        if (text_is(reign, "kernel", kernel))
            last = reign;
    }
    return last;
}

static json_t *reign_predicate(const json_t *entry, const char *device, json_t *classes)
{
    const json_t *predicate = predicate_of(entry);
    char when[32];
    time_t seconds = time(NULL);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_pack("{s:s, s:{s:s, s:s}, s:{s:s, s:s}, s:s, s:s, s:O, s:o, s:O*}", "kernel", text_at(predicate, "kernel"),
                     "device", "class", device, "model", text_at(json_object_get(predicate, "device"), "model"), "tool", "version",
                     attest_version(), "build", attest_build_id(), "finished", when, "restores", text_at(entry, "digest"),
                     "promoted", classes, "decision", json_text("restored: it reigned from %s", text_at(predicate, "finished")),
                     "candidate", json_object_get(predicate, "candidate"));
}

/* Restores a kernel on one device class: a statement with the classes of all rows of `champions` that it once reigned in. */
static bool restore_on(const char *evidence, const json_t *statements, const json_t *champions, const char *device,
                       const char *kernel, const char *key, json_t *restored, char *why, size_t why_size)
{
    const json_t *row, *entry = NULL;
    json_t *classes = json_array(), *done = json_array();
    size_t index;
    bool good = true;
    json_array_foreach(champions, index, row)
    {
        const json_t *reign = text_is(row, "device", device) ? earlier_reign(row, kernel) : NULL;
        if (!reign)
            continue;
        entry = statements_find(statements, text_at(reign, "digest"));
        json_add(classes, json_incref(json_object_get(row, "problem_class")));
        json_add(done, json_pack("{s:s, s:s, s:s}", "device", device, "problem_class", text_at(row, "problem_class"), "replaces",
                                 text_at(row, "kernel")));
    }
    if (entry) {
        json_t *predicate = reign_predicate(entry, device, classes);
        json_t *statement =
            statement_wrap(json_object_get(json_object_get(entry, "statement"), "subject"), PREDICATE_REIGN, predicate);
        good = statement && statement_append(evidence, statement, key, NULL, why, why_size);
        json_decref(statement);
        json_decref(predicate);
    }
    if (good)
        json_array_extend(restored, done);
    json_decref(classes);
    json_decref(done);
    return good;
}

enum exit_code champion_restore(const char *evidence, const char *kernel, const char *key, json_t *restored, char *why,
                                size_t why_size)
{
    json_t *statements = statements_load(evidence, why, why_size), *champions = statements ? champions_list(statements) : NULL,
           *row;
    const char *before = "";
    bool good = champions != NULL, known = false;
    size_t index;
    json_array_foreach(champions, index, row)
    {
        const char *device = text_at(row, "device");
        known = known || text_is(row, "kernel", kernel) || earlier_reign(row, kernel);
        if (good && strcmp(device, before) != 0)
            good = restore_on(evidence, statements, champions, device, kernel, key, restored, why, why_size);
        before = device;
    }
    enum exit_code code = good ? EXIT_PASS : EXIT_LACKING;
    if (good && json_array_size(restored) == 0) {
        code = EXIT_USAGE;
        snprintf(why, why_size, known ? "%s reigns already" : "%s never reigned: only a champion of before can be restored",
                 kernel);
    }
    json_decref(champions);
    json_decref(statements);
    return code;
}

/* ---- lib/champions.def ----------------------------------------------------------------------------------------------------- */

/* A string of C with the characters that could end it left out. */
static void print_string(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (; *text; text++)
        if (*text != '"' && *text != '\\' && (unsigned char)*text >= ' ')
            fputc(*text, stream);
    fputc('"', stream);
}

/* Where each kernel of the library was proven: one row a kernel and model, sorted. */
static void print_proofs(FILE *stream, const json_t *statements)
{
    json_t *rows = json_object();
    const json_t *entry, *value;
    const char *row;
    size_t index;
    json_array_foreach(statements, index, entry)
    {
        const json_t *record = json_object_get(json_object_get(entry, "statement"), "predicate");
        const char *kernel = text_at(record, "kernel"), *model = text_at(json_object_get(record, "device"), "model");
        if (strcmp(text_at(record, "verdict"), "PROVEN") == 0 && kernel_is_there(kernel)) {
            char *key = NULL;
            if (asprintf(&key, "%s\n%s", kernel, model) >= 0)
                json_put(rows, key, json_true());
            free(key);
        }
    }
    char *sorted = canonical_text(rows);
    json_t *ordered = sorted ? json_loads(sorted, 0, NULL) : NULL;
    json_object_foreach(ordered, row, value)
    {
        const char *model = strchr(row, '\n');
        fprintf(stream, "PROVEN(\"%.*s\", ", (int)(model - row), row);
        print_string(stream, model + 1);
        fputs(")\n", stream);
    }
    free(sorted);
    json_decref(ordered);
    json_decref(rows);
}

char *champions_def(const json_t *champions, const json_t *statements)
{
    static const struct {
        const char *class, *dtype;
    } dtypes[] = {{"fwd:f32", "F32"}, {"fwd:f16", "F16"}, {"fwd:bf16", "BF16"}};
    char *text = NULL;
    size_t size = 0, index, at;
    const json_t *row, *reign;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    fputs(
        "/*\n"
        " * champions.def - the reigning kernel for each device class and dtype. Generated by `attest champion --write` from the\n"
        " * evidence; `attest champion` shows the history. Do not edit.\n"
        " *\n"
        " * CHAMPION(device class, dtype, kernel, the model it won on)\n"
        " * PROVEN(kernel, a model it was proven on)\n"
        " */\n",
        stream);
    json_array_foreach(champions, index, row)
    {
        const json_t *last = NULL;
        json_array_foreach(json_object_get(row, "history"), at, reign)
        {
            if (kernel_is_there(text_at(reign, "kernel")))
                last = reign;
        }
        for (int i = 0; last && i < COUNT_OF(dtypes); i++) {
            if (strcmp(text_at(row, "problem_class"), dtypes[i].class) != 0)
                continue;
            fprintf(stream, "CHAMPION(\"%s\", %s, \"%s\", ", text_at(row, "device"), dtypes[i].dtype, text_at(last, "kernel"));
            print_string(stream, text_at(last, "model"));
            fputs(")\n", stream);
        }
    }
    print_proofs(stream, statements);
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
