/*
 * search_candidates.c - one candidate after the other: proposed, compared with those before it, screened. See search.h.
 */
#include "search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "evidence/member.h"
#include "evidence/objects.h"

#define TRIAL_SECONDS 600 /* no candidate takes longer to screen */
enum { STREAM_PROPOSAL = 801, STREAM_SCREEN = 802 };

/* What the built-in proposers know. To be freed. */
static struct tried *history_of(const struct search *search, int *count)
{
    struct tried *history = calloc(json_array_size(search->trials) + 1, sizeof *history);
    json_t *trial;
    size_t i;
    *count = 0;
    json_array_foreach(search->trials, i, trial)
    {
        struct tried *tried = history ? &history[*count] : NULL;
        const json_t *shown = trial;
        if (!tried || !space_find(&search->space, json_object_get(trial, "settings"), &tried->point))
            continue;
        if (text_is(trial, "state", "DUPLICATE")) /* it is as good as its twin */
            shown = search_trial(search, (int)json_integer_value(json_object_get(trial, "same_as")));
        tried->trial = (int)i;
        tried->score = json_number_value(json_object_get(shown, "score"));
        tried->right = json_is_number(json_object_get(shown, "score")) && !text_is(shown, "state", "REJECTED");
        ++*count;
    }
    return history;
}

/* A candidate from the built-in proposer; NULL, and a reason to stop, if there is none left. */
static json_t *propose_point(struct search *search, int number)
{
    struct proposal proposal;
    json_t *trial = NULL;
    int count;
    struct tried *history = history_of(search, &count);
    bool found = history && strategy_next(search->strategy, &search->space, history, count,
                                          search_seed(search, STREAM_PROPOSAL, number), &proposal);
    char *text = found ? space_write(&search->space, search->start_text, &proposal.point) : NULL;
    if (text) {
        trial = search_new_trial(search, text, proposal.origin, proposal.parents);
        search_put_settings(search, trial, text);
    } else {
        search->stopped = history && !found ? "every point of the space was tried" : "memory is at its end";
    }
    free(text);
    free(history);
    return trial;
}

/* A candidate from a program. It always takes a turn. */
static json_t *propose_program(struct search *search, int number)
{
    char why[400] = "";
    int parents[2] = {champion_of_search(search, NULL), -1};
    char *text = proposer_ask(search, number, why, sizeof why);
    json_t *trial = search_new_trial(search, text, "program", parents);
    if (trial && text) {
        search_put_settings(search, trial, text);
    } else if (trial) {
        json_put(trial, "state", json_string("REJECTED"));
        json_put(trial, "stage", json_string("proposal"));
        json_put(trial, "sentence", json_string(why));
    }
    free(text);
    return trial;
}

/* Proposed before, letter by letter: there is nothing to build. */
static void find_twin(const struct search *search, json_t *trial)
{
    size_t i;
    json_t *other;
    json_array_foreach(search->trials, i, other)
    {
        if (*text_at(trial, "source") && text_is(other, "source", text_at(trial, "source")) &&
            text_is(trial, "state", "PROPOSED")) {
            json_put(trial, "state", json_string("DUPLICATE"));
            json_put(trial, "stage", json_string("proposal"));
            json_put(trial, "same_as", json_integer((json_int_t)i));
            json_put(trial, "sentence", json_text("the same source as candidate %d", (int)i));
        }
    }
}

/* {identity of an image: number} of all trials that have one. */
static json_t *known_images(const struct search *search)
{
    json_t *known = json_object(), *trial;
    size_t i;
    json_array_foreach(search->trials, i, trial)
    {
        if (*text_at(trial, "identity") && !text_is(trial, "state", "DUPLICATE"))
            json_put(known, text_at(trial, "identity"), json_integer((json_int_t)i));
    }
    return known;
}

static void print_trial(struct search *search, const json_t *trial)
{
    char words[200], ratio[32] = "";
    trial_words(trial, words, sizeof words);
    if (text_is(trial, "state", "SCREENED"))
        snprintf(ratio, sizeof ratio, "%.3f x", exp(json_number_value(json_object_get(trial, "score"))));
    search_tell(search, "%5d %4d  %-10s %-12s %9s  %s%s%s%s%s\n", (int)json_integer_value(json_object_get(trial, "generation")),
                (int)json_integer_value(json_object_get(trial, "number")), text_at(trial, "origin"), text_at(trial, "state"), ratio,
                words, *ratio ? "" : ": ", *ratio || text_is(trial, "state", "DUPLICATE") ? "" : text_at(trial, "stage"),
                *ratio || text_is(trial, "state", "DUPLICATE") ? "" : ": ", *ratio ? "" : text_at(trial, "sentence"));
    snprintf(search->last, sizeof search->last, "candidate %d %s", (int)json_integer_value(json_object_get(trial, "number")),
             text_at(trial, "state"));
}

bool search_screen(struct search *search, json_t *trial)
{
    char why[512] = "", clock[320], *source = search_path(search, trial);
    int number = (int)json_integer_value(json_object_get(trial, "number"));
    struct trial_spec spec = search_spec(search, source);
    struct timed_job job = search_job(search, TRIAL_SECONDS);
    double began = seconds_now();
    json_t *known = known_images(search);
    spec.seed = search_seed(search, STREAM_SCREEN, number);
    spec.start_name = text_at(search_trial(search, 0), "name");
    spec.start_image = search->start_image;
    spec.known = known;
    if (search->session->options.clock) {
        snprintf(clock, sizeof clock, "%.256s,seed=%llu", search->session->options.clock,
                 (unsigned long long)search_seed(search, STREAM_SCREEN, 1000000 + number));
        spec.clock = clock;
    }
    search->doing = "screening";
    json_t *found = source ? search_work(search, &job, trial_screen, &spec, why, sizeof why) : NULL;
    bool over = job.late && search_left(search) <= 0;
    if (found) {
        json_object_update(trial, found);
    } else if (!over) { /* cut off by the budget, it stays proposed */
        json_put(trial, "state", json_string("REJECTED"));
        json_put(trial, "stage", json_string("process"));
        json_put(trial, "sentence", json_string(source ? why : "its source is lost"));
    }
    json_put(trial, "seconds", json_real(seconds_now() - began));
    bool kept = search_keep(search, trial);
    if (!over)
        print_trial(search, trial);
    folder_remove(job.folder);
    json_decref(found);
    json_decref(known);
    free(source);
    return kept;
}

bool search_take_turn(struct search *search)
{
    int number = (int)json_array_size(search->trials);
    json_t *trial = search->command ? propose_program(search, number) : propose_point(search, number);
    if (!trial)
        return search->stopped != NULL;
    if (search->command && search_left(search) <= 0) { /* the time of the search was over, not that of the proposer */
        json_decref(trial);
        return true;
    }
    find_twin(search, trial);
    bool kept = search_keep(search, trial);
    if (kept && text_is(trial, "state", "PROPOSED"))
        kept = search_screen(search, trial);
    else if (kept)
        print_trial(search, trial);
    json_decref(trial);
    return kept;
}
