/*
 * cmd_prove.c - attest prove: the gates on one kernel after another, what they found as it is found, the verdicts, and the
 * evidence.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/champions.h"
#include "evidence/continuation.h"
#include "verify/audit.h"
#include "evidence/postmortem.h"
#include "evidence/statement.h"
#include "evidence/store.h"
#include "gates/proof.h"
#include "report/render.h"

struct proving {
    struct session *session;
    struct store *store;
    json_t *records;
    bool text; /* print gates as they finish */
    double gpu_seconds;
    int verdicts[4];
};
enum { PROVEN, EMULATED, REJECTED, UNDECIDED };

/* Adds the kernels of the library that match a pattern and can run here. Those that cannot are named, and left out. */
static int add_matches(struct session *session, const char *pattern, json_t *words)
{
    int matches = 0, cuda = 0;
    char gpu[160] = "";
    attest_kernel_info info = {.size = sizeof info};
    for (size_t k = 0; k < attest_kernel_count(); k++) {
        char missing[160];
        if (attest_kernel_get(k, &info) != ATTEST_OK || strcmp(info.backend, "ref") == 0 || fnmatch(pattern, info.name, 0) != 0)
            continue;
        matches++;
        kernel_missing(session, &info, missing, sizeof missing);
        if (!*missing)
            json_add(words, json_string(info.name));
        else if (session->report.json || session->options.format)
            continue;
        else if (strcmp(info.backend, "cuda") != 0)
            printf("left out: %s needs %s, which is not to be had here\n", info.name, missing);
        else if (cuda++ == 0)
            snprintf(gpu, sizeof gpu, "%s", missing);
    }
    if (cuda)
        printf("left out: %d CUDA kernel%s, which need%s %s\n", cuda, cuda == 1 ? "" : "s", cuda == 1 ? "s" : "", gpu);
    return matches;
}

/* The words of the command line with patterns replaced by the kernels of the library that they match. */
static enum exit_code expand_words(struct session *session, json_t *words)
{
    int found = 0;
    for (int i = 0; i < session->options.word_count; i++) {
        const char *word = session->options.words[i];
        int matches = 1;
        if (strpbrk(word, "*?["))
            matches = add_matches(session, word, words);
        else
            json_add(words, json_string(word));
        if (!matches)
            return give_up(session, EXIT_USAGE, "attest list names the kernels of the library", "no kernel matches %s", word);
        found += matches;
    }
    if (found && json_array_size(words) == 0)
        return give_up(session, EXIT_LACKING, "attest info says what this machine has", "none of these kernels can run here");
    if (!found)
        return give_up(session, EXIT_USAGE, "such as: attest prove my_kernel.c, or: attest prove 'cpu_fwd_*'",
                       "a kernel is missing: a name or a file");
    return EXIT_PASS;
}

/* The table of resources of a CUDA kernel: of each architecture the image that needs most of its shared memory. The whole table is an
 * artefact, and in --json. */
static void print_resources(const json_t *details)
{
    enum { HEAD = 2 }; /* lines above the rows, which are in the order of "resources" */
    const json_t *table = json_object_get(details, "table"), *resources = json_object_get(details, "resources"), *row, *other;
    size_t i, k;
    for (i = 0; i < HEAD && i < json_array_size(table); i++)
        printf("      %s\n", json_string_value(json_array_get(table, i)));
    json_array_foreach(resources, i, row)
    {
        bool largest = true;
        json_array_foreach(resources, k, other)
        {
            double mine = json_number_value(json_object_get(json_object_get(row, "measured"), "shared"));
            double theirs = json_number_value(json_object_get(json_object_get(other, "measured"), "shared"));
            bool same = json_equal(json_object_get(row, "arch"), json_object_get(other, "arch"));
            largest = largest && !(same && (theirs > mine || (theirs == mine && k < i)));
        }
        if (largest || !json_is_true(json_object_get(row, "fits")))
            printf("      %s\n", json_string_value(json_array_get(table, i + HEAD)));
    }
}

static void print_gate(void *data, const struct gate *gate, const struct gate_result *result)
{
    const struct proving *proving = data;
    if (!proving->text)
        return;
    printf("  %-12s %-14s %5.1f s  %s\n", gate->name, verdict_name(result->verdict), result->seconds, result->sentence);
    print_resources(result->details);
    fflush(stdout);
}

static const char *text_of(const json_t *record, const char *key)
{
    const char *text = json_string_value(json_object_get(record, key));
    return text ? text : "";
}

/* What was tried at a kernel, and what to try next. */
static void print_postmortem(struct proving *proving, const json_t *record)
{
    json_t *records = store_records(proving->store, text_of(record, "kernel"), 0);
    if (proving->text)
        postmortem_write(stdout, records);
    json_decref(records);
}

/* Rejected attempts at a kernel since it was last proven. */
static int failures_in_a_row(struct store *store, const char *kernel)
{
    json_t *records = store_records(store, kernel, 0), *record;
    int count = 0;
    size_t i;
    json_array_foreach(records, i, record)
    {
        if (strcmp(text_of(record, "verdict"), "PROVEN") == 0)
            break;
        count += strcmp(text_of(record, "verdict"), "REJECTED") == 0;
    }
    json_decref(records);
    return count;
}

static enum exit_code record_evidence(struct proving *proving, const json_t *record)
{
    const struct options *options = &proving->session->options;
    char why[1024] = "";
    json_t *statement = statement_make(record), *findings = json_array();
    audit_paths(record, findings);
    if (json_array_size(findings) > 0)
        snprintf(why, sizeof why, "%s", json_string_value(json_array_get(findings, 0)));
    bool kept =
        statement && !*why && statement_append(options->evidence, statement, options->sign, proving->store, why, sizeof why);
    json_decref(statement);
    json_decref(findings);
    if (!kept)
        return give_up(proving->session, EXIT_LACKING, NULL, "the evidence could not be written: %s", why);
    if (proving->text)
        printf("  recorded in %s/%s/%s.intoto.jsonl\n", options->evidence, text_of(json_object_get(record, "device"), "class"),
               text_of(record, "kernel"));
    return EXIT_PASS;
}

static bool spent(const struct proving *proving)
{
    double most = (double)proving->session->options.max_gpu_seconds;
    return most > 0 && proving->gpu_seconds >= most;
}

static enum exit_code finish(struct proving *proving, json_t *record)
{
    const struct options *options = &proving->session->options;
    const char *verdict = text_of(record, "verdict");
    proving->verdicts[strcmp(verdict, "PROVEN") == 0                ? PROVEN
                      : strcmp(verdict, "PROVEN IN EMULATION") == 0 ? EMULATED
                      : strcmp(verdict, "REJECTED") == 0            ? REJECTED
                                                                    : UNDECIDED]++;
    json_add(proving->records, json_incref(record));
    if (proving->text)
        printf("  %s: %s\n", verdict, text_of(record, "decision"));
    enum exit_code code = EXIT_PASS;
    if (options->record && !options->only)
        code = record_evidence(proving, record);
    if (code == EXIT_PASS && options->max_fixes && strcmp(verdict, "REJECTED") == 0 &&
        failures_in_a_row(proving->store, text_of(record, "kernel")) >= options->max_fixes) {
        if (proving->text)
            printf("\n%d attempts were rejected, which is all that --max-fixes allows:\n\n", (int)options->max_fixes);
        print_postmortem(proving, record);
    }
    proving->gpu_seconds += json_number_value(json_object_get(record, "gpu_seconds"));
    if (code == EXIT_PASS && spent(proving)) {
        if (proving->text)
            printf("\nthe gates have used a GPU for %.1f s, and --max-gpu-seconds allows %d:\n\n", proving->gpu_seconds,
                   (int)options->max_gpu_seconds);
        print_postmortem(proving, record);
    }
    return code;
}

static double gpu_seconds_left(const struct proving *proving)
{
    double most = (double)proving->session->options.max_gpu_seconds;
    return most > 0 ? most - proving->gpu_seconds : 0;
}

/* What --missing continues, and the gates to run. */
struct continued {
    json_t *statements, *combined;
    const char *digest;
    char gates[256];    /* separated by commas; "" if none is missing */
    char sentence[512]; /* what the last record says */
};

/* Looks for a record to continue; all gates are to be run if there is none (`combined` is NULL then). */
static enum exit_code find_continued(struct proving *proving, const struct proof *proof, struct continued *continued)
{
    struct session *session = proving->session;
    char why[1024] = "", class[64];
    struct audit audit = {.evidence = session->options.evidence};
    continued->statements = statements_load(session->options.evidence, why, sizeof why);
    if (!continued->statements)
        return give_up(session, EXIT_FAILED, "type: attest verify", "%s", why);
    audit.statements = continued->statements;
    device_class(session->context, proof->device, class, sizeof class);
    const json_t *entry =
        continuation_base(&audit, proof->candidate.name, class, proof->candidate.word, &continued->combined, why, sizeof why);
    json_t *missing = entry ? continuation_missing(continued->combined) : NULL, *name;
    size_t index;
    continued->digest = text_of(entry, "digest");
    if (!entry && proving->text)
        printf("  all gates are to be run: %s\n", why);
    else if (entry && json_array_size(missing) > 0)
        snprintf(continued->gates, sizeof continued->gates, "build");
    json_array_foreach(missing, index, name)
    {
        size_t used = strlen(continued->gates);
        if (strcmp(json_string_value(name), "build") != 0)
            snprintf(continued->gates + used, sizeof continued->gates - used, ",%s", json_string_value(name));
    }
    if (missing)
        continuation_sentence(continued->combined, missing, continued->sentence, sizeof continued->sentence);
    if (proving->text && *continued->sentence)
        printf("  %s (record %.12s)\n", continued->sentence, continued->digest);
    json_decref(missing);
    audit_free(&audit);
    return EXIT_PASS;
}

/* Nothing is missing: says so, and counts the kernel as proven. */
static void say_complete(struct proving *proving, const struct continued *continued)
{
    if (proving->text)
        printf("  nothing is missing: record %.12s has passed every gate of policy %d\n", continued->digest, POLICY_NUMBER);
    proving->verdicts[PROVEN]++;
}

static enum exit_code prove_word(struct proving *proving, const char *word)
{
    struct session *session = proving->session;
    struct proof proof;
    struct continued continued = {0};
    char why[1024] = "";
    json_t *record = NULL;
    enum exit_code code = proof_open(session, word, &proof);
    if (code == EXIT_PASS && proving->text)
        printf("%s%s\n", json_array_size(proving->records) ? "\n" : "", word);
    if (code == EXIT_PASS && session->options.missing)
        code = find_continued(proving, &proof, &continued);
    if (code == EXIT_PASS && continued.combined && !*continued.gates) {
        say_complete(proving, &continued);
    } else if (code == EXIT_PASS) {
        proof.seed = (uint64_t)session->options.proof_seed;
        struct proof_options options = {.only = continued.combined ? continued.gates : session->options.only,
                                        .base = continued.combined,
                                        .continues = continued.digest,
                                        .keep_going = session->options.keep_going,
                                        .ahead = true,
                                        .gpu_seconds = gpu_seconds_left(proving),
                                        .store = proving->store,
                                        .finished = print_gate,
                                        .data = proving};
        if (!proof_run(&proof, &options, &record, why, sizeof why))
            code = give_up(session, EXIT_INTERNAL, NULL, "%s: %s", word, why);
        else
            code = finish(proving, record);
        json_decref(record);
    }
    json_decref(continued.combined);
    json_decref(continued.statements);
    proof_close(&proof);
    return code;
}

enum exit_code cmd_prove(struct session *session)
{
    struct proving proving = {.session = session, .records = json_array()};
    const char *format = session->options.format;
    char why[1024] = "";
    json_t *words = json_array(), *word;
    size_t i;
    proving.text = !session->report.json && !format;
    enum exit_code code = gates_check(session);
    if (code == EXIT_PASS && format && strcmp(format, "tap") != 0 && strcmp(format, "junit") != 0 && strcmp(format, "sarif") != 0)
        code =
            give_up(session, EXIT_USAGE, "attest report writes html", "--format is '%s'; prove prints tap, junit or sarif", format);
    if (code == EXIT_PASS && session->options.missing && (!session->options.record || session->options.only))
        code = give_up(session, EXIT_USAGE, "attest prove KERNEL --record --missing",
                       "--missing goes with --record, and without --only");
    if (code == EXIT_PASS)
        code = expand_words(session, words);
    if (code == EXIT_PASS && !(proving.store = store_open(session->options.state, why, sizeof why)))
        code = give_up(session, EXIT_LACKING, "choose another folder with --state DIR", "the run database: %s", why);
    json_array_foreach(words, i, word)
    {
        if (code == EXIT_PASS && !spent(&proving))
            code = prove_word(&proving, json_string_value(word));
    }
    if (code == EXIT_PASS && format && !render(stdout, format, &(struct matter){.records = proving.records}))
        code = give_up(session, EXIT_INTERNAL, NULL, "the records could not be written as %s", format);
    if (code == EXIT_PASS && proving.text && json_array_size(words) > 1)
        printf(proving.verdicts[EMULATED] ? "\n%d proven, %d of them in emulation, %d rejected, %d undecided\n"
                                          : "\n%d proven%.0d, %d rejected, %d undecided\n",
               proving.verdicts[PROVEN] + proving.verdicts[EMULATED], proving.verdicts[EMULATED], proving.verdicts[REJECTED],
               proving.verdicts[UNDECIDED]);
    if (session->report.json)
        report_put(&session->report, "records", json_incref(proving.records));
    store_close(proving.store);
    json_decref(proving.records);
    json_decref(words);
    if (code != EXIT_PASS)
        return code;
    return proving.verdicts[REJECTED] ? EXIT_FAILED : proving.verdicts[UNDECIDED] ? EXIT_LACKING : EXIT_PASS;
}
