/*
 * cmd_oracle.c - attest oracle: the stage oracle (theory/stages.c) on one kernel and one problem, for people who look for a mistake.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gates/proof.h"
#include "theory/stages.h"

static bool in_library(const char *name, bool *cuda)
{
    attest_kernel_info info = {.size = sizeof info};
    for (size_t i = 0; i < attest_kernel_count(); i++) {
        if (attest_kernel_get(i, &info) != ATTEST_OK || strcmp(info.name, name) != 0)
            continue;
        *cuda = strcmp(info.backend, "cuda") == 0;
        return true;
    }
    return false;
}

/* A worker with a kernel of the library, or with a file that the build gate has made an image of. */
static enum exit_code open_worker(struct session *session, const char *word, struct proof *proof, struct executor **executor)
{
    struct executor_spec spec = {.threads = attest_context_threads(session->context),
                                 .guard = GUARD_BANDS,
                                 .seconds = default_policy.call_seconds,
                                 .memory = (int64_t)default_policy.memory_mb << 20};
    struct execution execution;
    bool cuda = false;
    if (in_library(word, &cuda)) {
        spec.kernel = word;
        spec.device = !cuda ? NULL : session->options.device ? session->options.device : "cuda";
    } else {
        enum exit_code code = proof_open(session, word, proof);
        if (code != EXIT_PASS)
            return code;
        struct gate_result result = {.details = json_object(), .artefacts = json_object()};
        gate_build(proof, &result);
        json_decref(result.details);
        json_decref(result.artefacts);
        if (result.verdict != VERDICT_PASS)
            return give_up(session, result.verdict == VERDICT_FAIL ? EXIT_FAILED : EXIT_LACKING,
                           "attest prove FILE --only build says more", "%s: %s", word, result.sentence);
        spec.image = proof->candidate.image;
        spec.device = proof->device;
    }
    *executor = executor_open(&spec, &execution);
    if (*executor)
        return EXIT_PASS;
    return give_up(session, execution.end == EXECUTION_LACKING ? EXIT_LACKING : EXIT_FAILED, NULL, "%s does not load: %s", word,
                   execution.sentence);
}

/* The largest error, or ratio of an error to its bound, that the probes of a stage saw. A probe of a stage that is right may have
 * gone wrong because of a later one; it does not count. */
static json_t *stage_worst(const struct diagnosis *diagnosis, const char *stage, bool wrong, const char *key)
{
    double worst = -1;
    size_t i;
    json_t *probe;
    json_array_foreach(diagnosis->probes, i, probe)
    {
        bool right = strcmp(json_string_value(json_object_get(probe, "verdict")), "right") == 0;
        if (strcmp(json_string_value(json_object_get(probe, "stage")), stage) != 0 || (!wrong && !right))
            continue;
        json_t *error = json_object_get(probe, key);
        if (json_is_string(error))
            return json_incref(error);
        worst = json_number_value(error) > worst ? json_number_value(error) : worst;
    }
    return worst < 0 ? json_null() : json_real(worst);
}

/* Stages before the first wrong one are right; what comes after it cannot be told. */
static void put_stages(struct session *session, const struct diagnosis *diagnosis)
{
    static const struct column columns[] = {
        {"stage", "stage", -14}, {"verdict", "verdict", -28}, {"error", "largest error", 13}, {"ratio", "of its bound", 12}};
    bool past = false;
    bool one = (diagnosis->stages & (diagnosis->stages - 1)) == 0;
    report_table(&session->report, "stages", columns, COUNT_OF(columns), NULL);
    for (int n = 0; n < STAGE_COUNT; n++) {
        const char *name = stage_name((enum stage)(1 << n));
        bool named = diagnosis->wrong && diagnosis->stages >> n & 1;
        past = past || named;
        bool silent = past && !named;
        report_row(&session->report, json_pack("{s:s, s:s, s:o, s:o}", "stage", name, "verdict",
                                               named && one ? "wrong"
                                               : named      ? "wrong, or another so marked"
                                               : past       ? "not judged"
                                                            : "right",
                                               "error", silent ? json_null() : stage_worst(diagnosis, name, named, "error"),
                                               "ratio", silent ? json_null() : stage_worst(diagnosis, name, named, "ratio")));
    }
}

static enum exit_code put_diagnosis(struct session *session, const struct diagnosis *diagnosis)
{
    const char *folder = session->options.out;
    char sentence[1024];
    diagnosis_sentence(diagnosis, sentence, sizeof sentence);
    if (diagnosis->trouble.end == EXECUTION_REFUSED || diagnosis->trouble.end == EXECUTION_LACKING)
        return give_up(session, EXIT_LACKING, "attest explain PROBLEM says which kernels take it", "nothing could be concluded: %s",
                       sentence);
    if (diagnosis->trouble.end == EXECUTION_DONE)
        put_stages(session, diagnosis);
    report_put(&session->report, "diagnosis", json_string(sentence));
    if (session->report.json) {
        report_put(&session->report, "finding", diagnosis->wrong ? diagnosis_json(diagnosis) : json_null());
        report_put(&session->report, "probes", json_incref(diagnosis->probes));
    }
    if (diagnosis->wrong && folder && diagnosis->heat)
        report_put(&session->report, "arrays", json_text("%s: expected_*.npy, found_*.npy, rows.npy, columns.npy", folder));
    report_put(&session->report, "verdict", json_string(diagnosis->wrong ? "WRONG" : "RIGHT"));
    return diagnosis->wrong ? EXIT_FAILED : EXIT_PASS;
}

enum exit_code cmd_oracle(struct session *session)
{
    const struct options *options = &session->options;
    struct proof proof = {0};
    struct executor *executor = NULL;
    struct diagnosis diagnosis = {0};
    attest_problem problem;
    char why[1024] = "";
    if (options->word_count != 2)
        return give_up(session, EXIT_USAGE, "such as: attest oracle my_kernel.c fwd:f32:b1:h2:s130:d64:causal:lse",
                       "a kernel and a problem are needed, and nothing else");
    if (attest_problem_parse(options->words[1], &problem, why, sizeof why) != ATTEST_OK)
        return give_up(session, EXIT_USAGE, "docs/problem.md lists the words of a problem", "%s: %s", options->words[1], why);
    enum exit_code code = open_worker(session, options->words[0], &proof, &executor);
    if (code == EXIT_PASS) {
        progress("asking %s", options->words[0]);
        report_put(&session->report, "kernel", json_string(options->words[0]));
        report_put(&session->report, "problem", json_string(options->words[1]));
        if (stages_diagnose(stages_subject(executor), &problem, (uint64_t)options->seed, options->out, &diagnosis, why, sizeof why))
            code = put_diagnosis(session, &diagnosis);
        else
            code = give_up(session, EXIT_LACKING, NULL, "the stage oracle could not work: %s", why);
    }
    diagnosis_free(&diagnosis);
    if (executor)
        executor_close(executor, NULL);
    if (proof.session)
        proof_close(&proof);
    return code;
}
