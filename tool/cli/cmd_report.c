/*
 * cmd_report.c - attest report: the last record of every kernel, from the run database and the evidence, as one document.
 *
 * A kernel may have been proven on machines of several classes; each class has its own last record. Between a run and a statement
 * about the same proof the statement is taken, since it says where the proof can be re-checked. A run that was interrupted is shown
 * only if there is nothing better.
 */
#include "commands.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/champions.h"
#include "evidence/continuation.h"
#include "evidence/objects.h"
#include "evidence/statement.h"
#include "evidence/store.h"
#include "evolve/search_ledger.h"
#include "report/fields.h"
#include "report/render.h"

#define PEER_RESULTS "bench/results/*.json"

/* ---- which records --------------------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct options *options, const json_t *record)
{
    for (int i = 0; i < options->word_count; i++)
        if (kernel_matches(options->words[i], field_text(record, "kernel")))
            return true;
    return options->word_count == 0;
}

/* The place in `records` of the record with the same kernel and device class; their count if there is none. */
static size_t find_twin(const json_t *records, const json_t *record)
{
    size_t index;
    json_t *other;
    json_array_foreach(records, index, other)
    {
        if (strcmp(field_text(other, "kernel"), field_text(record, "kernel")) == 0 &&
            strcmp(field_text(field_object(other, "device"), "class"), field_text(field_object(record, "device"), "class")) == 0)
            return index;
    }
    return json_array_size(records);
}

/* Whether `record` says more about a kernel than `other`, which was found before it. */
static bool is_better(const json_t *record, const json_t *other)
{
    bool finished = strcmp(field_text(record, "verdict"), "INTERRUPTED") != 0;
    bool other_finished = strcmp(field_text(other, "verdict"), "INTERRUPTED") != 0;
    if (finished != other_finished)
        return finished;
    return strcmp(field_text(record, "started"), field_text(other, "started")) >= 0;
}

static bool consider(const struct options *options, json_t *records, json_t *record)
{
    if (!json_is_object(record) || !is_wanted(options, record))
        return true;
    size_t at = find_twin(records, record);
    if (at == json_array_size(records))
        return json_array_append(records, record) == 0;
    return !is_better(record, json_array_get(records, at)) || json_array_set(records, at, record) == 0;
}

static enum exit_code read_store(struct session *session, json_t *records, json_t **searches)
{
    const char *folder = session->options.state;
    char why[1024] = "";
    size_t index;
    json_t *record;
    if (!store_exists(folder))
        return EXIT_PASS;
    struct store *store = store_open(folder, why, sizeof why);
    if (!store)
        return give_up(session, EXIT_LACKING, "name the folder of the run database with --state DIR", "the run database: %s", why);
    json_t *runs = store_records(store, NULL, 0);
    bool done = runs != NULL;
    if (!done)
        snprintf(why, sizeof why, "%s", store_error(store));
    /* Newest first in the database, while is_better takes the later of two that began in the same second. */
    for (index = json_array_size(runs); done && index-- > 0;) {
        record = json_array_get(runs, index);
        done = consider(&session->options, records, record);
    }
    *searches = ledger_searches(store, 0);
    json_decref(runs);
    store_close(store);
    return done ? EXIT_PASS : give_up(session, EXIT_LACKING, NULL, "the run database in %s cannot be read: %s", folder, why);
}

/* A record with the results of those it continues and, if it is of an older policy, with what it has not passed as "behind". New
 * reference. */
static json_t *whole_record(const json_t *statements, const json_t *entry)
{
    char text[512];
    json_t *record = json_object_get(json_object_get(entry, "statement"), "predicate");
    json_t *combined = continuation_combine(statements, entry, text, sizeof text);
    json_t *missing = combined ? continuation_missing(combined) : NULL;
    if (!combined)
        return json_copy(record);
    continuation_sentence(combined, missing, text, sizeof text);
    if (*text && strcmp(field_text(record, "verdict"), "PROVEN") == 0)
        json_put(combined, "behind", json_string(text));
    json_decref(missing);
    return combined;
}

static enum exit_code read_evidence(struct session *session, json_t *records, json_t **champions, json_t *notices)
{
    const char *folder = session->options.evidence;
    char why[1024] = "";
    size_t index;
    json_t *entry, *statements = statements_load(folder, why, sizeof why);
    bool done = statements != NULL;
    if (!done)
        return give_up(session, EXIT_LACKING, "name the folder of the evidence with --evidence DIR", "the evidence in %s: %s",
                       folder, why);
    json_array_foreach(statements, index, entry)
    {
        json_t *statement = field_object(entry, "statement");
        if (*field_text(entry, "problem"))
            json_add(notices, json_sprintf("Left out: %s, line %d: %s", field_text(entry, "file"),
                                           (int)json_integer_value(json_object_get(entry, "line")), field_text(entry, "problem")));
        if (*field_text(entry, "problem") || strcmp(field_text(statement, "predicateType"), PREDICATE_PROOF) != 0)
            continue;
        json_t *record = whole_record(statements, entry);
        json_put(record, "evidence",
                 json_pack("{s:s, s:O*, s:O*, s:s}", "file", field_text(entry, "file"), "line", json_object_get(entry, "line"),
                           "signed", json_object_get(entry, "signed"), "digest", field_text(entry, "digest")));
        done = done && record && consider(&session->options, records, record);
        json_decref(record);
    }
    *champions = champions_list(statements);
    json_decref(statements);
    return done ? EXIT_PASS : give_up(session, EXIT_LACKING, NULL, "out of memory");
}

static int compare_names(const void *left, const void *right)
{
    const json_t *a = *(json_t *const *)left, *b = *(json_t *const *)right;
    int order = strcmp(field_text(a, "backend"), field_text(b, "backend"));
    order = order ? order : strcmp(field_text(a, "kernel"), field_text(b, "kernel"));
    return order ? order : strcmp(field_text(field_object(a, "device"), "class"), field_text(field_object(b, "device"), "class"));
}

/* In the order of backend, name and device class. New reference; NULL if there is no memory. */
static json_t *in_order(const json_t *records)
{
    size_t count = json_array_size(records), index;
    json_t **list = calloc(count + 1, sizeof *list), *sorted = json_array();
    if (!list || !sorted) {
        free(list);
        json_decref(sorted);
        return NULL;
    }
    for (index = 0; index < count; index++)
        list[index] = json_array_get(records, index);
    qsort(list, count, sizeof *list, compare_names);
    for (index = 0; index < count; index++)
        json_array_append(sorted, list[index]);
    free(list);
    return sorted;
}

/* Measurements against other libraries, if the repository is here. One that cannot be read is named on the page. */
static json_t *read_peers(json_t *notices)
{
    json_t *peers = json_array();
    glob_t found = {0};
    if (glob(PEER_RESULTS, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            json_error_t error;
            json_t *results = json_load_file(found.gl_pathv[i], 0, &error);
            if (results)
                json_add(peers, json_pack("{s:s, s:o}", "file", found.gl_pathv[i], "results", results));
            else
                json_add(notices, json_sprintf("Left out: %s, line %d: %s", found.gl_pathv[i], error.line, error.text));
        }
    }
    globfree(&found);
    return peers;
}

/* ---- where it goes --------------------------------------------------------------------------------------------------------- */

static enum exit_code write_document(struct session *session, const char *format, const char *path, const struct matter *matter)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    bool made = stream && render(stream, format, matter);
    if (stream && fclose(stream) != 0)
        made = false;
    enum exit_code code = EXIT_PASS;
    if (!made)
        code = give_up(session, EXIT_INTERNAL, NULL, "the report could not be made: out of memory");
    else if (strcmp(path, "-") == 0)
        code = fwrite(text, 1, size, stdout) == size ? EXIT_PASS : EXIT_INTERNAL;
    else if (!file_replace(path, text, size))
        code =
            give_up(session, EXIT_USAGE, "choose another file with --out FILE", "%s cannot be written: %s", path, strerror(errno));
    free(text);
    return code;
}

static enum exit_code check_options(struct session *session, const char *format, const char *path)
{
    if (!render_knows(format))
        return give_up(session, EXIT_USAGE, "--format is " RENDER_FORMATS, "there is no format '%s'", format);
    if (strcmp(path, "-") == 0 && session->report.json)
        return give_up(session, EXIT_USAGE, "leave out one of them, or write the report to a file with --out FILE",
                       "--json and the report would both go to standard output");
    return EXIT_PASS;
}

static enum exit_code check_found(struct session *session, const json_t *records)
{
    const struct options *options = &session->options;
    for (int i = 0; i < options->word_count; i++) {
        bool found = false;
        size_t index;
        json_t *record;
        json_array_foreach(records, index, record) found = found || kernel_matches(options->words[i], field_text(record, "kernel"));
        if (!found)
            return give_up(session, EXIT_USAGE, "attest log lists what was tried; attest prove tries more",
                           "no record of a kernel matches %s", options->words[i]);
    }
    if (json_array_size(records) == 0)
        return give_up(session, EXIT_LACKING, "such as: attest prove 'cpu_fwd_*'",
                       "there is no record yet, neither in %s nor in %s", options->state, options->evidence);
    return EXIT_PASS;
}

enum exit_code cmd_report(struct session *session)
{
    const char *format = session->options.format ? session->options.format : "html";
    const char *path = session->options.out ? session->options.out : strcmp(format, "html") == 0 ? "report.html" : "-";
    json_t *found = json_array(), *notices = json_array(), *champions = NULL, *records = NULL, *peers = NULL, *searches = NULL;
    enum exit_code code = check_options(session, format, path);
    if (code == EXIT_PASS)
        code = read_store(session, found, &searches);
    if (code == EXIT_PASS)
        code = read_evidence(session, found, &champions, notices);
    if (code == EXIT_PASS)
        code = check_found(session, found);
    if (code == EXIT_PASS && !(records = in_order(found)))
        code = give_up(session, EXIT_LACKING, NULL, "out of memory");
    if (code == EXIT_PASS) {
        peers = read_peers(notices);
        struct matter matter = {
            .records = records, .champions = champions, .peers = peers, .searches = searches, .notices = notices};
        code = write_document(session, format, path, &matter);
    }
    if (code == EXIT_PASS && strcmp(path, "-") != 0) {
        report_put(&session->report, "kernels", json_integer((json_int_t)json_array_size(records)));
        if (json_array_size(notices) > 0)
            report_put(&session->report, "notices", json_incref(notices));
        report_put(&session->report, "report", json_string(path));
    }
    json_decref(found);
    json_decref(notices);
    json_decref(champions);
    json_decref(records);
    json_decref(peers);
    json_decref(searches);
    return code;
}
