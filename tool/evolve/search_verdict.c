/*
 * search_verdict.c - the verdict of a search. See search.h.
 *
 *   PROMOTED         a champion was made. Its gain over the start is the product of the challenges that it and its predecessors won;
 *                    the intervals of all challenges of a search hold together with 95 %, and so the product of their bounds does.
 *   NO IMPROVEMENT   candidates were timed against the champion and none won; the interval is that of the best of them.
 *   POST-MORTEM      nothing was concluded: no candidate stood the gates, or the budget was over too soon. It says what failed, how
 *                    often, for example why, and what to try next.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/member.h"
#include "search.h"

static int states(const struct search *search, const char *state)
{
    size_t i;
    json_t *trial;
    int count = 0;
    json_array_foreach(search->trials, i, trial) count += i > 0 && text_is(trial, "state", state);
    return count;
}

/* {"SCREENED": 12, ...} without the start. */
static json_t *count_states(const struct search *search)
{
    json_t *counts = json_object(), *trial;
    size_t i;
    json_array_foreach(search->trials, i, trial)
    {
        const char *state = text_at(trial, "state");
        if (i > 0)
            json_put(counts, state, json_integer(json_integer_value(json_object_get(counts, state)) + 1));
    }
    return counts;
}

/* Where candidates were rejected, how often, and one reason: [{"stage", "count", "example"}]. */
static json_t *count_failures(const struct search *search)
{
    json_t *failures = json_array(), *trial, *failure;
    size_t i, k;
    json_array_foreach(search->trials, i, trial)
    {
        bool found = false;
        if (i == 0 || !(text_is(trial, "state", "REJECTED") || text_is(trial, "state", "INCONCLUSIVE")))
            continue;
        json_array_foreach(failures, k, failure)
        {
            if (!text_is(failure, "stage", text_at(trial, "stage")))
                continue;
            json_put(failure, "count", json_integer(json_integer_value(json_object_get(failure, "count")) + 1));
            found = true;
        }
        if (!found)
            json_add(failures, json_pack("{s:s, s:i, s:s}", "stage", text_at(trial, "stage"), "count", 1, "example",
                                         text_at(trial, "sentence")));
    }
    return failures;
}

/* The challenge that came nearest to winning; NULL if none was measured. */
static const json_t *best_challenge(const struct search *search, int *of)
{
    size_t i, k;
    json_t *trial, *challenge;
    const json_t *best = NULL;
    double most = -INFINITY;
    json_array_foreach(search->trials, i, trial) json_array_foreach(json_object_get(trial, "challenges"), k, challenge)
    {
        double ratio = json_number_value(json_object_get(challenge, "ratio"));
        if (json_is_number(json_object_get(challenge, "ratio")) && ratio > most) {
            most = ratio;
            best = challenge;
            *of = (int)i;
        }
    }
    return best;
}

static void put_promoted(const struct search *search, json_t *result)
{
    size_t i, k;
    json_t *trial, *challenge;
    double estimate = 0, low = 0, high = 0;
    int champion = champion_of_search(search, NULL), made = challenges_made(search), won = 0;
    char words[200];
    json_array_foreach(search->trials, i, trial) json_array_foreach(json_object_get(trial, "challenges"), k, challenge)
    {
        if (!text_is(challenge, "outcome", "PROMOTED"))
            continue;
        estimate += log(json_number_value(json_object_get(challenge, "ratio")));
        low += log(json_number_value(json_object_get(challenge, "low")));
        high += log(json_number_value(json_object_get(challenge, "high")));
        won++;
    }
    trial_words(search_trial(search, champion), words, sizeof words);
    json_put(result, "verdict", json_string("PROMOTED"));
    json_put(result, "champion", json_integer(champion));
    json_put(result, "ratio", json_real(exp(estimate)));
    json_put(result, "low", json_real(exp(low)));
    json_put(result, "high", json_real(exp(high)));
    json_put(
        result, "sentence",
        json_text("candidate %d (%s) is proven and %.3f x as fast as the start (%.3f to %.3f, with 95 %% over %s%d challenge%s of "
                  "this search%s)",
                  champion, words, exp(estimate), exp(low), exp(high), made == 1 ? "the " : "all ", made, made == 1 ? "" : "s",
                  won > 1 ? "; the gains of successive champions multiplied" : ""));
}

static void put_no_improvement(const struct search *search, json_t *result, const json_t *best, int of)
{
    char words[200];
    trial_words(search_trial(search, of), words, sizeof words);
    double confidence = 100 * json_number_value(json_object_get(best, "confidence"));
    json_put(result, "verdict", json_string("NO IMPROVEMENT"));
    json_put(result, "champion", json_integer(0));
    json_put(result, "ratio", json_incref(json_object_get(best, "ratio")));
    json_put(result, "low", json_incref(json_object_get(best, "low")));
    json_put(result, "high", json_incref(json_object_get(best, "high")));
    json_put(result, "confidence", json_real(confidence / 100));
    json_put(result, "sentence",
             json_text("nothing was shown to be faster than the start; the best challenger, candidate %d (%s), has the ratio %.3f "
                       "(%.4g %% interval %.3f to %.3f)",
                       of, words, json_number_value(json_object_get(best, "ratio")), confidence,
                       json_number_value(json_object_get(best, "low")), json_number_value(json_object_get(best, "high"))));
}

static void advise(const struct search *search, json_t *next)
{
    int timed = states(search, "SCREENED") + states(search, "PROVEN");
    bool over = search->stopped && strcmp(search->stopped, "the budget is over") == 0;
    if (over)
        json_add(next, json_text("give it more time: --budget %.0f", 4 * search->budget));
    if (states(search, "REJECTED") > 0 && timed == 0 && search->command)
        json_add(next,
                 json_string("let the proposer read the insights: --strategy insight, and look at what the gates said above"));
    if (states(search, "DUPLICATE") > 0 && timed == 0)
        json_add(next,
                 json_string("the candidates were the same binaries as before: the proposer must change the code, not its text"));
    if (!search->command && search->space.fitting < 4)
        json_add(next, json_string("declare more values: attest-space: NAME VALUE VALUE ... in the first comment of the source"));
    if (timed > 0)
        json_add(next, json_string("quieten the machine: the challenge was not finished"));
    if (json_array_size(next) == 0)
        json_add(next, json_string("try another proposer: --proposer random, local, evolution, model, or a program of your own"));
}

static void put_postmortem(const struct search *search, json_t *result)
{
    int tried = (int)json_array_size(search->trials) - 1;
    int timed = states(search, "SCREENED") + states(search, "PROVEN");
    const char *why = !text_is(search_trial(search, 0), "state", "PROVEN") ? "the start was not proven"
                      : tried <= 0                                         ? "no candidate was proposed"
                      : timed == 0                                         ? "no candidate was right, new and timed"
                                                                           : "no challenge was finished";
    json_put(result, "verdict", json_string("POST-MORTEM"));
    json_put(result, "champion", json_integer(0));
    json_put(result, "sentence",
             json_text("nothing was concluded: %s%s%s", why, search->stopped ? "; " : "", search->stopped ? search->stopped : ""));
}

json_t *search_verdict(const struct search *search)
{
    json_t *result = json_object(), *next = json_array();
    int of = 0;
    const json_t *best = best_challenge(search, &of);
    if (champion_of_search(search, NULL) > 0)
        put_promoted(search, result);
    else if (best)
        put_no_improvement(search, result, best, of);
    else
        put_postmortem(search, result);
    if (text_is(result, "verdict", "POST-MORTEM"))
        advise(search, next);
    json_put(result, "candidates", json_integer((json_int_t)json_array_size(search->trials) - 1));
    json_put(result, "challenges", json_integer(challenges_made(search)));
    json_put(result, "counts", count_states(search));
    json_put(result, "failures", count_failures(search));
    json_put(result, "stopped", search->stopped ? json_string(search->stopped) : json_null());
    json_put(result, "next", next);
    return result;
}

void search_verdict_print(FILE *out, const json_t *result)
{
    size_t i;
    json_t *item;
    const char *state;
    fprintf(out, "\n%s: %s\n", text_at(result, "verdict"), text_at(result, "sentence"));
    fprintf(out, "  candidates: %d", (int)json_integer_value(json_object_get(result, "candidates")));
    json_object_foreach(json_object_get(result, "counts"), state, item)
        fprintf(out, ", %s %d", state, (int)json_integer_value(item));
    fprintf(out, "; challenges: %d\n", (int)json_integer_value(json_object_get(result, "challenges")));
    if (*text_at(result, "stopped"))
        fprintf(out, "  ended because %s\n", text_at(result, "stopped"));
    json_array_foreach(json_object_get(result, "failures"), i, item)
        fprintf(out, "  %d failed at %s, such as: %s\n", (int)json_integer_value(json_object_get(item, "count")),
                text_at(item, "stage"), text_at(item, "example"));
    json_array_foreach(json_object_get(result, "next"), i, item) fprintf(out, "  next: %s\n", json_string_value(item));
}
