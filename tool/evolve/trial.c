/*
 * trial.c - one candidate through the stages. See trial.h.
 *
 * Screening is short on purpose: it has to tell good candidates from bad ones at the price of a few seconds, and its numbers are
 * used to choose parents and challengers and for nothing else. What it lets pass is proven later by all gates on the whole suite,
 * with new seeds, and timed again on new data; so nothing that is promoted rests on what was seen here.
 */
#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "timed_job.h"
#include "base/digest.h"
#include "evidence/member.h"
#include "evidence/store.h"
#include "gates/measure.h"
#include "gates/proof.h"

/* A search asks little of a candidate until it may become the champion. */
enum { SCREEN_BLOCKS = 6, SCREEN_RESAMPLES = 200, SCREEN_PROBLEMS = 6, SCREEN_NEIGHBOURS = 4 };
#define LEAST_RESAMPLES_BEYOND 20 /* so many resamples lie beyond each bound of an interval, or it would be a guess */

/* The session of a proof that is about one candidate. */
static struct session session_for(const struct trial_spec *spec)
{
    struct session session = *spec->session;
    session.report = (struct report){0};
    session.options.suite = spec->suite;
    session.options.timed = spec->timed;
    session.options.vs = spec->opponent;
    session.options.clock = spec->clock;
    session.options.only = NULL;
    return session;
}

static bool open_proof(struct session *session, const struct trial_spec *spec, struct proof *proof)
{
    if (proof_open(session, spec->source, proof) != EXIT_PASS)
        return false;
    proof->candidate.dtype = spec->dtype;
    proof->seed = spec->seed;
    return true;
}

/* ---- screening ------------------------------------------------------------------------------------------------------------- */

struct screening {
    const struct trial_spec *spec;
    struct proof proof;
    json_t *found;
};

static void end_as(struct screening *screening, const char *state, const char *stage, const char *sentence)
{
    json_put(screening->found, "state", json_string(state));
    json_put(screening->found, "stage", json_string(stage));
    json_put(screening->found, "sentence", json_string(sentence));
}

/* What a proposer can learn from. */
static void keep_insight(struct screening *screening, const json_t *details)
{
    static const char *const keys[] = {"diagnosis", "resources", "table"};
    for (int i = 0; i < COUNT_OF(keys); i++) {
        json_t *value = json_object_get(details, keys[i]);
        if (value && !json_is_null(value))
            json_put(screening->found, keys[i], json_incref(value));
    }
}

static void count_gpu(struct screening *screening, const struct gate *gate, double seconds)
{
    if (screening->proof.device && gate->run != gate_build)
        json_put(screening->found, "gpu_seconds",
                 json_real(json_number_value(json_object_get(screening->found, "gpu_seconds")) + seconds));
}

/* True if the gate passed. */
static bool passes(struct screening *screening, const char *name)
{
    const struct gate *gate = gate_named(name);
    struct gate_result result = {.verdict = VERDICT_INCONCLUSIVE, .details = json_object(), .artefacts = json_object()};
    int lock = proof_lock(&screening->proof, gate);
    double begin = seconds_now();
    gate->run(&screening->proof, &result);
    result.seconds = seconds_now() - begin;
    if (lock >= 0)
        close(lock);
    count_gpu(screening, gate, result.seconds);
    json_add(json_object_get(screening->found, "gates"),
             json_pack("{s:s, s:s, s:s, s:f}", "gate", name, "verdict", verdict_name(result.verdict), "sentence", result.sentence,
                       "seconds", result.seconds));
    keep_insight(screening, result.details);
    bool passed = result.verdict == VERDICT_PASS;
    if (!passed)
        end_as(screening, result.verdict == VERDICT_FAIL ? "REJECTED" : "INCONCLUSIVE", name, result.sentence);
    json_decref(result.details);
    json_decref(result.artefacts);
    return passed;
}

/* What tells one binary from another: the digest of its image. The index of CUDA images has the name of the candidate in it, and in
 * the names of its files; they do not count. */
static void identify(const struct candidate *candidate, char identity[DIGEST_TEXT])
{
    json_t *index = candidate->cuda ? json_load_file(candidate->image, 0, NULL) : NULL, *image;
    size_t i;
    snprintf(identity, DIGEST_TEXT, "%.64s", text_at(candidate->facts, "image"));
    if (!index)
        return;
    json_object_del(index, "kernel");
    json_array_foreach(json_object_get(index, "images"), i, image) json_object_del(image, "file");
    digest_of_json(index, identity);
    json_decref(index);
}

/* Two candidates with one image are one. */
static bool is_new(struct screening *screening)
{
    char image[DIGEST_TEXT];
    identify(&screening->proof.candidate, image);
    const json_t *same = json_object_get(screening->spec->known, image);
    char sentence[96];
    json_put(screening->found, "identity", json_string(image));
    json_put(screening->found, "image", json_string(text_at(screening->proof.candidate.facts, "image")));
    if (!same)
        return true;
    snprintf(sentence, sizeof sentence, "the same binary as candidate %d", (int)json_integer_value(same));
    end_as(screening, "DUPLICATE", "build", sentence);
    json_put(screening->found, "same_as", json_incref((json_t *)(uintptr_t)same));
    return false;
}

/* A few problems of the suite, spread over it, that the kernel takes. */
static void shorten_suite(struct proof *proof)
{
    struct problem_list *suite = &proof->suite;
    int taken = 0, kept = 0, seen = 0;
    for (int i = 0; i < suite->count; i++)
        taken += gate_takes(proof, &suite->entries[i].problem);
    for (int i = 0; i < suite->count; i++) {
        bool takes = gate_takes(proof, &suite->entries[i].problem);
        bool wanted = takes && (taken <= SCREEN_PROBLEMS || seen * SCREEN_PROBLEMS / taken >= kept);
        seen += takes;
        if (wanted && kept < SCREEN_PROBLEMS) {
            struct problem_entry entry = suite->entries[kept];
            suite->entries[kept++] = suite->entries[i];
            suite->entries[i] = entry;
        }
    }
    for (int i = kept; i < suite->count; i++) {
        free(suite->entries[i].text);
        free(suite->entries[i].place);
    }
    suite->count = kept;
}

/* The dtype of all problems of the search; 0 if they differ. */
static uint32_t one_dtype(const struct problem_list *problems)
{
    uint32_t dtype = problems->count ? problems->entries[0].problem.dtype : 0;
    for (int i = 1; i < problems->count; i++)
        dtype = problems->entries[i].problem.dtype == dtype ? dtype : 0;
    return dtype;
}

static void time_candidate(struct screening *screening)
{
    const struct trial_spec *spec = screening->spec;
    struct proof *proof = &screening->proof;
    const struct gate *speed = gate_named("speed");
    struct measure_spec measuring = {.a = {.name = proof->candidate.name, .image = proof->candidate.image},
                                     .b = {.name = spec->start_name, .image = spec->start_image},
                                     .problems = &proof->timed,
                                     .dtype = spec->dtype,
                                     .policy = &proof->policy,
                                     .device = proof->device,
                                     .threads = proof->threads,
                                     .seed = proof->seed,
                                     .clock = spec->clock};
    struct measurement measurement;
    json_t *details = json_object();
    int lock = proof_lock(proof, speed);
    double begin = seconds_now();
    measure(&measuring, &measurement);
    double seconds = seconds_now() - begin;
    if (lock >= 0)
        close(lock);
    count_gpu(screening, speed, seconds);
    measurement_put(&measurement, &measuring, details);
    const json_t *suite = json_object_get(details, "suite");
    bool refused = false;
    for (int i = 0; i < measurement.count; i++)
        refused = refused || measurement.shapes[i].refused_by_a;
    if (measurement.end == MEASURE_WRONG)
        end_as(screening, "REJECTED", "screen", measurement.sentence);
    else if (measurement.end != MEASURE_DONE)
        end_as(screening, "INCONCLUSIVE", "screen", measurement.sentence);
    else if (measurement.suite.below_floor)
        end_as(screening, "REJECTED", "screen", measurement.suite.sentence);
    else if (refused)
        end_as(screening, "REJECTED", "screen", "it does not take every problem of the search");
    else if (isnan(measurement.suite.log_ratio.estimate))
        end_as(screening, "INCONCLUSIVE", "screen", measurement.suite.sentence);
    else {
        end_as(screening, "SCREENED", "screen", "right as far as it was asked; timed to choose parents, which proves nothing");
        json_put(screening->found, "score", json_real(measurement.suite.log_ratio.estimate));
        json_put(screening->found, "screen",
                 json_pack("{s:O*, s:O*, s:O*, s:O*}", "ratio", json_object_get(suite, "ratio"), "low",
                           json_object_get(suite, "low"), "high", json_object_get(suite, "high"), "shapes",
                           json_object_get(details, "shapes")));
        json_put(screening->found, "floor", json_incref(json_object_get(details, "floor")));
    }
    measurement_free(&measurement);
    json_decref(details);
}

json_t *trial_screen(void *data)
{
    const struct trial_spec *spec = data;
    struct session session = session_for(spec);
    struct screening screening = {.spec = spec, .found = json_pack("{s:[]}", "gates")};
    session.options.vs = NULL;
    if (!open_proof(&session, spec, &screening.proof)) {
        end_as(&screening, "REJECTED", "proposal", "it is no source of a kernel");
        return screening.found;
    }
    struct policy *policy = &screening.proof.policy;
    screening.proof.brief = true;
    if (!spec->dtype)
        screening.proof.candidate.dtype = one_dtype(&screening.proof.timed);
    policy->neighbours = SCREEN_NEIGHBOURS;
    policy->blocks = SCREEN_BLOCKS;
    policy->processes = 1;
    policy->resamples = SCREEN_RESAMPLES;
    if (passes(&screening, "build") && is_new(&screening) && passes(&screening, "oracle")) {
        shorten_suite(&screening.proof);
        if (passes(&screening, "correctness"))
            time_candidate(&screening);
    }
    proof_close(&screening.proof);
    return screening.found;
}

/* ---- proofs ---------------------------------------------------------------------------------------------------------------- */

json_t *trial_prove(void *data)
{
    const struct trial_spec *spec = data;
    struct session session = session_for(spec);
    char why[1024] = "";
    struct proof proof;
    json_t *record = NULL;
    struct store *store = store_open(session.options.state, why, sizeof why);
    if (!store || !open_proof(&session, spec, &proof)) {
        fprintf(stderr, "attest evolve: %s\n", *why ? why : "the candidate cannot be opened");
        return NULL;
    }
    struct proof_options options = {.only = spec->opponent ? NULL : "build,oracle,memory,determinism,correctness,profile",
                                    .quiet = true,
                                    .gpu_seconds = spec->gpu_seconds,
                                    .store = store};
    if (spec->confidence > 0) {
        double enough = ceil(2 * LEAST_RESAMPLES_BEYOND / (1 - spec->confidence));
        proof.policy.confidence = spec->confidence;
        proof.policy.resamples = fmax(proof.policy.resamples, enough);
    }
    if (!proof_run(&proof, &options, &record, why, sizeof why)) {
        fprintf(stderr, "attest evolve: %s\n", why);
        return NULL;
    }
    char identity[DIGEST_TEXT] = "";
    if (proof.candidate.image)
        identify(&proof.candidate, identity);
    json_t *found =
        json_pack("{s:o, s:s, s:s*}", "record", record, "identity", identity, "image", spec->keep ? proof.candidate.image : NULL);
    if (!spec->keep)
        proof_close(&proof);
    store_close(store);
    return found;
}

json_t *trial_build(void *data)
{
    const struct trial_spec *spec = data;
    struct session session = session_for(spec);
    struct gate_result result = {.verdict = VERDICT_INCONCLUSIVE, .details = json_object(), .artefacts = json_object()};
    struct proof proof;
    if (!open_proof(&session, spec, &proof))
        return NULL;
    proof.brief = true;
    gate_build(&proof, &result);
    if (result.verdict != VERDICT_PASS)
        return json_pack("{s:s}", "sentence", result.sentence);
    return json_pack("{s:s}", "image", proof.candidate.image);
}
