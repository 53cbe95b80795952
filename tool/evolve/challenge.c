/*
 * challenge.c - who becomes the champion of a search. See search.h.
 *
 * Screening numbers are small samples, and the best of many small samples is mostly luck. So they choose who may challenge, and say
 * nothing else. A challenge is a whole proof: every gate on the whole suite, with new seeds, and then the speed gate against the
 * reigning champion on new data. Its interval is as wide as the number of challenges in this search demands: challenge n has a share
 * of 1 / (n (n + 1)) of the 5 % of all intervals that may miss the truth, so that all of them, however many there will be, hold
 * together with 95 %. That is also why the gains of successive champions can be multiplied, lower bound with lower bound.
 *
 * A challenge is put into the ledger before it begins. One that was interrupted counts: otherwise a search could be killed whenever
 * it goes badly, and resumed until it goes well. A candidate that the gates before the speed gate reject has not been timed and uses
 * up nothing.
 */
#include "search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/member.h"

#define ALL_MISSES   0.05
#define LEAST_EFFECT 0.005 /* nobody challenges who is not ahead by so much: it could not win */
enum { STREAM_CHALLENGE = 803, CANDIDATES_PROVEN = 3 };

double challenge_confidence(int number)
{
    return 1 - ALL_MISSES / ((double)number * (number + 1));
}

int challenges_made(const struct search *search)
{
    size_t i;
    json_t *trial;
    int made = 0;
    json_array_foreach(search->trials, i, trial) made += (int)json_array_size(json_object_get(trial, "challenges"));
    return made;
}

int champion_of_search(const struct search *search, double *score)
{
    size_t i, k;
    json_t *trial, *challenge;
    int champion = 0, last = 0;
    double sum = 0;
    json_array_foreach(search->trials, i, trial) json_array_foreach(json_object_get(trial, "challenges"), k, challenge)
    {
        int number = (int)json_integer_value(json_object_get(challenge, "number"));
        if (!text_is(challenge, "outcome", "PROMOTED"))
            continue;
        sum += log(json_number_value(json_object_get(challenge, "ratio")));
        if (number > last) {
            last = number;
            champion = (int)i;
        }
    }
    if (score)
        *score = sum;
    return champion;
}

/* Whether any challenge came to a ratio. */
static bool any_measured(const struct search *search)
{
    size_t i, k;
    json_t *trial, *entry;
    json_array_foreach(search->trials, i, trial) json_array_foreach(json_object_get(trial, "challenges"), k, entry)
    {
        if (json_is_number(json_object_get(entry, "ratio")))
            return true;
    }
    return false;
}

/* The best screened trial that has not been proven yet and is ahead of `least`; NULL if there is none. */
static json_t *best_challenger(const struct search *search, double least)
{
    size_t i;
    json_t *trial, *best = NULL;
    double most = least;
    json_array_foreach(search->trials, i, trial)
    {
        double score = json_number_value(json_object_get(trial, "score"));
        if (text_is(trial, "state", "SCREENED") && score > most) {
            most = score;
            best = trial;
        }
    }
    return best;
}

static const json_t *gate_in(const json_t *record, const char *name)
{
    size_t i;
    json_t *gate;
    json_array_foreach(json_object_get(record, "gates"), i, gate)
    {
        if (text_is(gate, "gate", name))
            return gate;
    }
    return NULL;
}

/* The gate that made the verdict what it is: the first that failed or was inconclusive, the speed gate aside. */
static const json_t *deciding_gate(const json_t *record)
{
    static const char *const against[] = {"FAIL", "INCONCLUSIVE"};
    size_t i;
    json_t *gate;
    for (int k = 0; k < COUNT_OF(against); k++)
        json_array_foreach(json_object_get(record, "gates"), i, gate)
        {
            if (text_is(gate, "verdict", against[k]) && !text_is(gate, "gate", "speed"))
                return gate;
        }
    return gate_in(record, "speed");
}

static void set_state(json_t *trial, const char *state, const char *stage, const char *sentence)
{
    json_put(trial, "state", json_string(state));
    json_put(trial, "stage", json_string(stage));
    json_put(trial, "sentence", json_string(sentence));
}

void trial_put_profile(json_t *trial, const json_t *record)
{
    const json_t *profile = gate_in(record, "profile");
    if (profile)
        json_put(
            trial, "profile",
            json_pack("{s:s, s:O*}", "sentence", text_at(profile, "sentence"), "details", json_object_get(profile, "details")));
}

/* What the proof came to, put into the trial and its challenge. True if it is the new champion. */
static bool conclude(json_t *trial, json_t *challenge, const json_t *record)
{
    const json_t *speed = gate_in(record, "speed"), *details = json_object_get(speed, "details"),
                 *suite = json_object_get(details, "suite");
    const char *verdict = text_at(record, "verdict"), *outcome = text_at(record, "champion");
    bool promoted = strcmp(outcome, "CHAMPION") == 0;
    static const char *const numbers[] = {"ratio", "low", "high", "speed"};
    for (int i = 0; i < COUNT_OF(numbers); i++)
        if (json_object_get(suite, numbers[i]))
            json_put(challenge, numbers[i], json_incref(json_object_get(suite, numbers[i])));
    json_put(challenge, "outcome", json_string(promoted ? "PROMOTED" : strcmp(verdict, "PROVEN") == 0 ? outcome : verdict));
    json_put(challenge, "sentence", json_string(text_at(speed, "sentence")));
    json_put(challenge, "decision", json_string(text_at(record, "decision")));
    trial_put_profile(trial, record);
    if (strcmp(verdict, "PROVEN") == 0) {
        set_state(trial, promoted ? "CHAMPION" : "PROVEN", "challenge", text_at(record, "decision"));
        return promoted;
    }
    const json_t *gate = deciding_gate(record);
    json_t *diagnosis = json_object_get(json_object_get(gate, "details"), "diagnosis");
    set_state(trial, strcmp(verdict, "REJECTED") == 0 ? "REJECTED" : "INCONCLUSIVE", text_at(gate, "gate"),
              text_at(gate, "sentence"));
    if (json_is_object(diagnosis))
        json_put(trial, "diagnosis", json_incref(diagnosis));
    return false;
}

/* One candidate through all gates, and against the champion. */
static void challenge(struct search *search, json_t *trial)
{
    int number = challenges_made(search) + 1, reigning = champion_of_search(search, NULL);
    int of = (int)json_integer_value(json_object_get(trial, "number"));
    const char *image = text_at(trial, "image");
    double confidence = challenge_confidence(number), began = errand_clock();
    json_t *entry = json_pack("{s:i, s:f, s:i, s:s}", "number", number, "confidence", confidence, "opponent", reigning, "outcome",
                              "INTERRUPTED");
    char *source = search_path(search, trial), *opponent = search_path(search, search_trial(search, reigning)), why[512] = "";
    struct errand errand = search_errand(search, 0);
    double left = (double)search->session->options.max_gpu_seconds;
    struct trial_spec spec = {.session = search->session,
                              .source = source,
                              .dtype = search->start.dtype,
                              .suite = search->session->options.suite,
                              .timed = search->timed,
                              .seed = search->seeded ? search_seed(search, STREAM_CHALLENGE, number) : 0,
                              .opponent = opponent,
                              .confidence = confidence,
                              .gpu_seconds = left > 0 ? fmax(1, left - search_gpu_seconds(search)) : 0};
    char clock[320];
    snprintf(clock, sizeof clock, "%.256s,seed=%llu", search->session->options.clock ? search->session->options.clock : "",
             (unsigned long long)search_seed(search, STREAM_CHALLENGE, 1000 + number));
    spec.clock = search->session->options.clock ? clock : NULL;
    if (!json_object_get(trial, "challenges"))
        json_put(trial, "challenges", json_array());
    json_add(json_object_get(trial, "challenges"), entry);
    bool kept = source && opponent && search_keep(search, trial);
    search->doing = "challenging the champion";
    json_t *found = kept ? errand_work(&errand, trial_prove, &spec, why, sizeof why) : NULL;
    const json_t *record = json_object_get(found, "record");
    json_put(trial, "proof_seconds", json_real(errand_clock() - began));
    search->challenge_seconds = errand_clock() - began;
    bool promoted = false;
    if (record) {
        const char *built = text_at(json_object_get(record, "candidate"), "image");
        promoted = conclude(trial, entry, record);
        json_put(trial, "gpu_seconds",
                 json_real(json_number_value(json_object_get(trial, "gpu_seconds")) +
                           json_number_value(json_object_get(record, "gpu_seconds"))));
        if (promoted && strcmp(built, image) != 0) { /* what was proven must be what was screened */
            promoted = false;
            json_put(entry, "outcome", json_string("INCONCLUSIVE"));
            set_state(trial, "INCONCLUSIVE", "build", "the same source gave another image: the compiler is not repeatable here");
        }
    } else if (!errand.late) {
        set_state(trial, "INCONCLUSIVE", "challenge", why);
    }
    if (record && !gate_in(record, "speed"))
        json_array_remove(json_object_get(trial, "challenges"), json_array_size(json_object_get(trial, "challenges")) - 1);
    else if (record)
        search_tell(search, "       challenge %d by candidate %d: %s\n", number, of, text_at(entry, "decision"));
    if (record && text_is(trial, "state", "REJECTED"))
        search_tell(search, "       candidate %d is rejected by the %s gate: %s\n", of, text_at(trial, "stage"),
                    text_at(trial, "sentence"));
    snprintf(search->last, sizeof search->last, "candidate %d: %s", of, text_at(trial, "state"));
    search_keep(search, trial);
    folder_remove(errand.folder);
    json_decref(found);
    free(source);
    free(opponent);
}

void challenge_round(struct search *search, bool closing)
{
    for (int tries = 0; tries < CANDIDATES_PROVEN && search_left(search) > 0; tries++) {
        double reigning;
        int before = challenges_made(search);
        bool first = closing && !any_measured(search); /* the verdict needs an interval */
        champion_of_search(search, &reigning);
        json_t *trial = best_challenger(search, first ? -INFINITY : reigning + log1p(LEAST_EFFECT));
        if (!trial)
            return;
        challenge(search, trial);
        if (challenges_made(search) > before) /* one a round: the next generation may know better */
            return;
    }
}
