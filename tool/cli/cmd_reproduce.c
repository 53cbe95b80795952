/*
 * cmd_reproduce.c - attest reproduce: runs a record again, with its policy, suite, seed and threads, and says gate by gate whether
 * it holds. The rules: a gate holds if it says the same again; one that is inconclusive here is neither confirmed nor contradicted;
 * speed holds if the verdict is the same or the intervals overlap, and is compared on the same model of processor alone.
 */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "verify/audit.h"
#include "evidence/champions.h"
#include "evidence/member.h"
#include "evidence/statement.h"
#include "evidence/store.h"
#include "build/build.h"
#include "gates/proof.h"

enum { SHORTEST_DIGEST = 4 };

/* ---- finding the record ---------------------------------------------------------------------------------------------------- */

/* The proof that `word` names among the statements: by the beginning of its digest, or the last one of a kernel. `matches` counts
 * the digests that begin like it. */
static const json_t *find_statement(const json_t *statements, const char *word, int *matches)
{
    const json_t *entry, *by_digest = NULL, *by_kernel = NULL;
    size_t index, length = strlen(word);
    json_int_t latest = -1;
    *matches = 0;
    json_array_foreach(statements, index, entry)
    {
        json_int_t sequence = json_integer_value(json_object_get(statement_predicate(entry), "sequence"));
        if (!text_is(json_object_get(entry, "statement"), "predicateType", PREDICATE_PROOF))
            continue;
        if (length >= SHORTEST_DIGEST && strncmp(text_at(entry, "digest"), word, length) == 0) {
            by_digest = entry;
            ++*matches;
        }
        if (text_is(statement_predicate(entry), "kernel", word) && sequence > latest) {
            by_kernel = entry;
            latest = sequence;
        }
    }
    return by_kernel ? by_kernel : by_digest;
}

/* The last finished run of a kernel in the run database; a new reference, or NULL. */
static json_t *find_run(struct session *session, const char *kernel)
{
    char why[1024];
    struct store *store = store_exists(session->options.state) ? store_open(session->options.state, why, sizeof why) : NULL;
    json_t *records = store ? store_records(store, kernel, 0) : NULL, *record, *found = NULL;
    size_t index;
    json_array_foreach(records, index, record)
    {
        if (!found && !text_is(record, "verdict", "INTERRUPTED"))
            found = json_incref(record);
    }
    json_decref(records);
    store_close(store);
    return found;
}

/* The record, as a new reference; NULL if there is none, and then why has been said. */
static json_t *find_record(struct session *session, const char *word, enum exit_code *code)
{
    const char *evidence = session->options.evidence;
    char why[1024] = "";
    int matches = 0;
    json_t *statements = statements_load(evidence, why, sizeof why), *record = NULL;
    if (!statements) {
        *code = give_up(session, EXIT_LACKING, NULL, "%s", why);
        return NULL;
    }
    const json_t *entry = find_statement(statements, word, &matches);
    const char *problem = text_at(entry, "problem");
    if (*problem) {
        *code = give_up(session, EXIT_FAILED, "type: attest verify", "%s, line %d: %s", text_at(entry, "file"),
                        (int)json_integer_value(json_object_get(entry, "line")), problem);
    } else if (matches > 1) {
        *code = give_up(session, EXIT_USAGE, "give more digits of the digest", "%d records begin with %s", matches, word);
    } else if (entry) {
        record = json_incref(json_object_get(json_object_get(entry, "statement"), "predicate"));
        report_put(&session->report, "record", json_string(text_at(entry, "digest")));
        report_put(
            &session->report, "from",
            json_text("%s/%s, line %d", evidence, text_at(entry, "file"), (int)json_integer_value(json_object_get(entry, "line"))));
    } else if ((record = find_run(session, word))) {
        report_put(&session->report, "from",
                   json_text("%s, run %d", session->options.state, (int)json_integer_value(json_object_get(record, "run"))));
    } else {
        *code =
            give_up(session, EXIT_USAGE, "attest champion and attest log name records and kernels",
                    "no record begins with %s (at least %d digits), and no kernel of this name was proven", word, SHORTEST_DIGEST);
    }
    json_decref(statements);
    return record;
}

/* ---- running it again ------------------------------------------------------------------------------------------------------ */

/* Replaces a list of problems by that of the record. */
static enum exit_code load_problems(struct session *session, struct problem_list *list, const json_t *texts)
{
    char *text = NULL;
    size_t size = 0, index;
    json_t *problem;
    problem_list_free(list);
    if (json_array_size(texts) == 0)
        return EXIT_PASS;
    FILE *stream = open_memstream(&text, &size);
    json_array_foreach(texts, index, problem)
    {
        if (stream && json_is_string(problem))
            fprintf(stream, "%s\n", json_string_value(problem));
    }
    if (!stream || fclose(stream) != 0) {
        free(text);
        return give_up(session, EXIT_LACKING, NULL, "out of memory");
    }
    struct embedded file = {.name = "the record", .data = text, .end = text + size};
    enum exit_code code = suite_load_embedded(session, list, &file);
    free(text);
    return code;
}

/* The gates of a record, separated by commas; to be freed. */
static char *gate_names(const json_t *record)
{
    char *text = NULL;
    size_t size = 0, index;
    json_t *gate;
    FILE *stream = open_memstream(&text, &size);
    json_array_foreach(json_object_get(record, "gates"), index, gate)
    {
        if (stream)
            fprintf(stream, "%s%s", index ? "," : "", text_at(gate, "gate"));
    }
    if (stream)
        fclose(stream);
    return text;
}

static enum exit_code run_again(struct session *session, const json_t *record, json_t **again)
{
    const char *opponent = text_at(record, "opponent"), *word = text_at(record, "word");
    struct proof proof;
    char why[1024] = "", *only = gate_names(record);
    if (*opponent && strcmp(opponent, OPPONENT_LIBRARY) != 0)
        session->options.vs = opponent;
    enum exit_code code = proof_open(session, word, &proof);
    if (code == EXIT_PASS)
        code = load_problems(session, &proof.suite, json_object_get(record, "suite"));
    if (code == EXIT_PASS)
        code = load_problems(session, &proof.timed, json_object_get(record, "timed"));
    struct store *store = code == EXIT_PASS ? store_open(session->options.state, why, sizeof why) : NULL;
    if (code == EXIT_PASS && !store)
        code = give_up(session, EXIT_LACKING, "choose another folder with --state DIR", "the run database: %s", why);
    if (code == EXIT_PASS) {
        struct proof_options options = {.only = only, .keep_going = true, .store = store};
        json_int_t threads = json_integer_value(json_object_get(record, "threads"));
        policy_read(&proof.policy, json_object_get(record, "policy"));
        proof.seed = (uint64_t)json_integer_value(json_object_get(record, "seed"));
        if (threads > 0 && !session->options.threads)
            proof.threads = (int)threads;
        if (!proof_run(&proof, &options, again, why, sizeof why))
            code = give_up(session, EXIT_INTERNAL, NULL, "%s: %s", word, why);
    }
    store_close(store);
    proof_close(&proof);
    free(only);
    return code;
}

/* ---- comparing ------------------------------------------------------------------------------------------------------------- */

/* The interval of the speed ratio over the suite; false if there is none. */
static bool read_interval(const json_t *gate, double *low, double *high)
{
    const json_t *suite = json_object_get(json_object_get(gate, "details"), "suite");
    *low = json_number_value(json_object_get(suite, "low"));
    *high = json_number_value(json_object_get(suite, "high"));
    return json_is_number(json_object_get(suite, "low")) && json_is_number(json_object_get(suite, "high"));
}

enum holding { HOLDS, HOLDS_NOT, NOT_COMPARED };

static enum holding compare_speed(const json_t *then, const json_t *now, bool same_machine, char *note, size_t size)
{
    double low[2], high[2];
    if (!same_machine) {
        snprintf(note, size, "another machine: times are not compared");
        return NOT_COMPARED;
    }
    if (!read_interval(then, &low[0], &high[0]) || !read_interval(now, &low[1], &high[1]))
        return text_is(then, "verdict", text_at(now, "verdict")) ? HOLDS : NOT_COMPARED;
    bool overlap = low[0] <= high[1] && low[1] <= high[0];
    snprintf(note, size, "ratio %.3f to %.3f then, %.3f to %.3f now: the intervals %s", low[0], high[0], low[1], high[1],
             overlap ? "overlap" : "do not overlap");
    return overlap || text_is(then, "verdict", text_at(now, "verdict")) ? HOLDS : HOLDS_NOT;
}

static enum holding compare_gate(const json_t *then, const json_t *now, bool same_machine, char *note, size_t size)
{
    note[0] = '\0';
    if (!now) {
        snprintf(note, size, "it was not run again");
        return NOT_COMPARED;
    }
    if (text_is(then, "gate", "speed"))
        return compare_speed(then, now, same_machine, note, size);
    if (text_is(then, "verdict", text_at(now, "verdict"))) {
        const json_t *rows = json_object_get(json_object_get(then, "details"), "rows");
        if (rows && json_equal(rows, json_object_get(json_object_get(now, "details"), "rows")))
            snprintf(note, size, "with the same errors to the last bit");
        return HOLDS;
    }
    snprintf(note, size, "%s", text_at(now, "sentence"));
    return text_is(now, "verdict", "INCONCLUSIVE") ? NOT_COMPARED : HOLDS_NOT;
}

static enum exit_code compare(struct session *session, const json_t *record, const json_t *again)
{
    static const struct column columns[] = {
        {"gate", "gate", -12}, {"then", "then", -14}, {"now", "now", -14}, {"holds", "holds", -12}};
    static const char *const words[] = {"yes", "NO", "not compared"};
    const json_t *device = json_object_get(record, "device"), *here = json_object_get(again, "device"), *gate;
    bool same_machine = text_is(device, "class", text_at(here, "class")) && text_is(device, "model", text_at(here, "model"));
    int counts[3] = {0};
    size_t index;
    report_table(&session->report, "gates", columns, COUNT_OF(columns), NULL);
    json_array_foreach(json_object_get(record, "gates"), index, gate)
    {
        char note[768];
        const json_t *now = record_gate(again, text_at(gate, "gate"));
        enum holding holding = compare_gate(gate, now, same_machine, note, sizeof note);
        bool optional = holding == NOT_COMPARED && text_is(gate, "gate", "speed");
        counts[holding] += !optional;
        json_t *row = json_pack("{s:s, s:s, s:s, s:s}", "gate", text_at(gate, "gate"), "then", text_at(gate, "verdict"), "now",
                                text_at(now, "verdict"), "holds", words[holding]);
        if (*note)
            json_put(row, "notes", json_pack("[s]", note));
        report_row(&session->report, row);
    }
    report_put(&session->report, "then", json_string(text_at(record, "decision")));
    report_put(&session->report, "now", json_string(text_at(again, "decision")));
    report_put(&session->report, "verdict",
               json_string(counts[HOLDS_NOT]      ? "the record does NOT hold"
                           : counts[NOT_COMPARED] ? "undecided: not every gate could be compared"
                                                  : "the record holds"));
    return counts[HOLDS_NOT] ? EXIT_FAILED : counts[NOT_COMPARED] ? EXIT_LACKING : EXIT_PASS;
}

/* What is different here, and was not when the record was made. */
static void say_differences(struct session *session, const json_t *record, const struct audit *audit)
{
    const json_t *device = json_object_get(record, "device"), *candidate = json_object_get(record, "candidate");
    bool cuda = text_is(record, "backend", "cuda");
    json_t *here = cuda ? gpu_json(session->context, "cuda") : machine_json(session->context);
    report_put(&session->report, "kernel", json_string(text_at(record, "kernel")));
    report_put(&session->report, "made", json_string(text_at(record, "finished")));
    if (!text_is(device, "class", text_at(here, "class")) || !text_is(device, "model", text_at(here, "model")))
        report_put(&session->report, "machine",
                   json_text("then %s, %s; now %s, %s", text_at(device, "class"), text_at(device, "model"), text_at(here, "class"),
                             text_at(here, "model")));
    if (*text_at(candidate, "compiler") && !text_is(candidate, "compiler", audit->compiler))
        report_put(&session->report, "compiler", json_text("then %s; now %s", text_at(candidate, "compiler"), audit->compiler));
    json_decref(here);
}

enum exit_code cmd_reproduce(struct session *session)
{
    const struct options *options = &session->options;
    struct audit audit = {.evidence = options->evidence};
    enum exit_code code = EXIT_PASS;
    char why[1024] = "";
    json_t *again = NULL;
    if (options->word_count != 1)
        return give_up(session, EXIT_USAGE, "such as: attest reproduce cpu_fwd_f32_avx2",
                       "reproduce takes one RECORD, and got %d words", options->word_count);
    json_t *record = find_record(session, options->words[0], &code);
    if (!record)
        return code;
    enum sameness sameness = audit_sources(&audit, record, why, sizeof why);
    if (text_is(record, "backend", "cuda"))
        audit_cuda_compiler(audit.compiler, sizeof audit.compiler);
    else
        build_compiler(audit.compiler, sizeof audit.compiler);
    say_differences(session, record, &audit);
    if (sameness == CHANGED || sameness == NOT_HERE)
        code = give_up(session, EXIT_LACKING, "a record is reproduced from the files it was made of: check out that revision", "%s",
                       why);
    if (code == EXIT_PASS)
        code = run_again(session, record, &again);
    if (code == EXIT_PASS)
        code = compare(session, record, again);
    json_decref(again);
    json_decref(record);
    audit_free(&audit);
    return code;
}
