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
#include "base/clock.h"
#include "evidence/objects.h"
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

/* The proof of a candidate against the reigning champion, in a process of its own: its record, or NULL and why not. New reference. */
static json_t *prove_against(struct search *search, const json_t *trial, const json_t *entry, bool *late, char *why,
                             size_t why_size)
{
    const struct options *options = &search->session->options;
    int number = (int)json_integer_value(json_object_get(entry, "number"));
    int reigning = (int)json_integer_value(json_object_get(entry, "opponent"));
    char *source = search_path(search, trial), *opponent = search_path(search, search_trial(search, reigning)), clock[320];
    struct timed_job job = search_job(search, 0);
    double most = (double)options->max_gpu_seconds;
    struct trial_spec spec = {.session = search->session,
                              .source = source,
                              .dtype = search->start.dtype,
                              .suite = options->suite,
                              .timed = search->timed,
                              .seed = search->seeded ? search_seed(search, STREAM_CHALLENGE, number) : 0,
                              .opponent = opponent,
                              .confidence = json_number_value(json_object_get(entry, "confidence")),
                              .gpu_seconds = most > 0 ? fmax(1, most - search_gpu_seconds(search)) : 0};
    if (options->clock) {
        snprintf(clock, sizeof clock, "%.256s,seed=%llu", options->clock,
                 (unsigned long long)search_seed(search, STREAM_CHALLENGE, 1000 + number));
        spec.clock = clock;
    }
    search->doing = "challenging the champion";
    snprintf(why, why_size, "its source is lost");
    json_t *found = source && opponent ? search_work(search, &job, trial_prove, &spec, why, why_size) : NULL;
    json_t *record = json_incref(json_object_get(found, "record"));
    *late = job.late;
    folder_remove(job.folder);
    json_decref(found);
    free(source);
    free(opponent);
    return record;
}

static void tell_challenge(struct search *search, const json_t *trial, const json_t *entry)
{
    int of = (int)json_integer_value(json_object_get(trial, "number"));
    if (entry)
        search_tell(search, "       challenge %d by candidate %d: %s\n", (int)json_integer_value(json_object_get(entry, "number")),
                    of, text_at(entry, "decision"));
    else
        search_tell(search, "       candidate %d does not get to a challenge: %s: %s\n", of, text_at(trial, "stage"),
                    text_at(trial, "sentence"));
    snprintf(search->last, sizeof search->last, "candidate %d: %s", of, text_at(trial, "state"));
}

/* One candidate through all gates, and against the champion. */
static void challenge(struct search *search, json_t *trial)
{
    int number = challenges_made(search) + 1;
    double began = seconds_now();
    bool late = false;
    char why[512] = "";
    json_t *entry = json_pack("{s:i, s:f, s:i, s:s}", "number", number, "confidence", challenge_confidence(number), "opponent",
                              champion_of_search(search, NULL), "outcome", "INTERRUPTED");
    if (!json_object_get(trial, "challenges"))
        json_put(trial, "challenges", json_array());
    json_t *entries = json_object_get(trial, "challenges");
    json_add(entries, entry);
    json_t *record = search_keep(search, trial) ? prove_against(search, trial, entry, &late, why, sizeof why) : NULL;
    search->challenge_seconds = seconds_now() - began;
    json_put(trial, "proof_seconds", json_real(search->challenge_seconds));
    if (record) {
        double used =
            json_number_value(json_object_get(trial, "gpu_seconds")) + json_number_value(json_object_get(record, "gpu_seconds"));
        bool promoted = conclude(trial, entry, record);
        json_put(trial, "gpu_seconds", json_real(used));
        if (promoted && !text_is(json_object_get(record, "candidate"), "image", text_at(trial, "image"))) {
            json_put(entry, "outcome", json_string("INCONCLUSIVE")); /* what was proven must be what was screened */
            set_state(trial, "INCONCLUSIVE", "build", "the same source gave another image: the compiler is not repeatable here");
        }
        bool timed = gate_in(record, "speed") != NULL;
        if (!timed) /* then it had no chance yet */
            json_array_remove(entries, json_array_size(entries) - 1);
        tell_challenge(search, trial, timed ? entry : NULL);
    } else if (!late) {
        set_state(trial, "INCONCLUSIVE", "challenge", why);
    }
    json_decref(record);
    search_keep(search, trial);
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
