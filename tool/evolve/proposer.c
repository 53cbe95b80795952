/*
 * proposer.c - programs that propose candidates. See search.h; docs/evolve.md describes the document that they are told.
 *
 * A proposer is asked once for each candidate, and answers with a source. It may be wrong in every way: it can hang, crash, print
 * rubbish or a cheat, and the worst that comes of it is a turn without a candidate. What it proposes is compiled, so the flags that
 * a source asks for are limited to those that concern its own code.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "evidence/member.h"
#include "evidence/objects.h"
#include "build/compiler_flags.h"
#include "search.h"

const char *const telling_names[TELL_COUNT] = {"free", "insight", "full"};

enum { MOST_SOURCE = 1 << 20, ELITES = 5, INSIGHTS = 16 };

/* ---- what it is told -------------------------------------------------------------------------------------------------------- */

static void copy_members(json_t *to, const json_t *from, const char *const *keys)
{
    for (; *keys; keys++) {
        json_t *value = json_object_get(from, *keys);
        if (value && !json_is_null(value))
            json_put(to, *keys, json_incref(value));
    }
}

static void put_source(json_t *to, const struct search *search, const json_t *trial)
{
    char *source = search_source(search, trial);
    json_put(to, "source", source ? json_string(source) : json_null());
    free(source);
}

static json_t *task_json(const struct search *search, int number)
{
    static const char *const keys[] = {"kernel", "backend", "problems", "threads", "generations", "population", NULL};
    json_t *task = json_object();
    double left = search_left(search);
    bool cuda = search->start.cuda;
    copy_members(task, search->about, keys);
    json_put(task, "language", json_string(cuda ? "CUDA C++" : "C11"));
    json_put(task, "candidate", json_integer(number));
    json_put(task, "generation", json_integer((number - 1) / search->population + 1));
    json_put(task, "seconds_left", isinf(left) ? json_null() : json_real(left));
    json_put(task, "goal",
             json_string("a source file that computes the same as the champion and is faster on the problems; print it, whole and "
                         "alone, on standard output"));
    json_put(task, "rules",
             json_pack("[s, s, s, s]",
                       "it must be right on every problem that the champion takes, on shapes and values nobody chose",
                       "it must give the same bits in every run and with any number of threads",
                       "it must not keep results from call to call, start threads, open files, or touch what is not its own",
                       "warnings of the compiler are errors, and it may include what the champion includes"));
    for (int i = 0; i < embedded_header_count; i++)
        if (strcmp(embedded_headers[i].name, cuda ? "attest_kernel_cuda.h" : "attest_kernel.h") == 0)
            json_put(task, "interface", json_string(embedded_headers[i].data));
    return task;
}

static json_t *champion_json(const struct search *search)
{
    static const char *const keys[] = {"settings", "screen", "floor", "profile", NULL};
    double score;
    int number = champion_of_search(search, &score);
    const json_t *trial = search_trial(search, number);
    json_t *champion = json_pack("{s:i, s:f}", "candidate", number, "ratio_to_start", exp(score));
    copy_members(champion, trial, keys);
    put_source(champion, search, trial);
    return champion;
}

/* How long the start takes on each problem, and the floor: the time that the compulsory bytes and flops take. From the last candidate
 * that was timed beside it; null before there is one. */
static json_t *times_json(const struct search *search)
{
    for (size_t i = json_array_size(search->trials); i-- > 1;) {
        json_t *shapes = json_object_get(json_object_get(json_array_get(search->trials, i), "screen"), "shapes"), *shape, *times;
        size_t k;
        if (json_array_size(shapes) == 0)
            continue;
        times = json_array();
        json_array_foreach(shapes, k, shape)
            json_add(times, json_pack("{s:O*, s:O*, s:O*}", "problem", json_object_get(shape, "problem"), "start_s",
                                      json_object_get(shape, "median_b_s"), "floor_s", json_object_get(shape, "floor_s")));
        return times;
    }
    return json_null();
}

/* The best of those that were right, best first. */
static json_t *elites_json(const struct search *search)
{
    static const char *const keys[] = {"number", "origin", "parents", "settings", "state", NULL};
    json_t *elites = json_array(), *trial;
    double below = INFINITY;
    while (json_array_size(elites) < ELITES) {
        const json_t *best = NULL;
        size_t i;
        json_array_foreach(search->trials, i, trial)
        {
            double score = json_number_value(json_object_get(trial, "score"));
            bool right = i == 0 || text_is(trial, "state", "SCREENED") || text_is(trial, "state", "PROVEN") ||
                         text_is(trial, "state", "CHAMPION");
            if (right && score < below && (!best || score > json_number_value(json_object_get(best, "score"))))
                best = trial;
        }
        if (!best)
            break;
        below = json_number_value(json_object_get(best, "score"));
        json_t *elite = json_pack("{s:f}", "screened_ratio_to_start", exp(below));
        copy_members(elite, best, keys);
        put_source(elite, search, best);
        json_add(elites, elite);
    }
    return elites;
}

/* What became of the last candidates, newest first. */
static json_t *insights_json(const struct search *search)
{
    static const char *const keys[] = {"number",    "state",     "stage",   "sentence", "settings", "origin",
                                       "diagnosis", "resources", "profile", "screen",   NULL};
    json_t *insights = json_array();
    for (size_t i = json_array_size(search->trials); i-- > 1 && json_array_size(insights) < INSIGHTS;) {
        json_t *insight = json_object();
        copy_members(insight, json_array_get(search->trials, i), keys);
        json_add(insights, insight);
    }
    return insights;
}

json_t *proposer_document(const struct search *search, int number)
{
    json_t *document = json_pack("{s:i, s:s, s:o, s:o}", "attest_proposer", 1, "strategy", telling_names[search->telling], "task",
                                 task_json(search, number), "champion", champion_json(search));
    if (search->space.count)
        json_put(document, "space", space_json(&search->space));
    if (search->telling == TELL_FULL)
        json_put(document, "elites", elites_json(search));
    if (search->telling != TELL_FREE) {
        json_put(document, "insights", insights_json(search));
        json_put(document, "times", times_json(search));
    }
    return document;
}

/* ---- what it answers -------------------------------------------------------------------------------------------------------- */

/* Language models like to put a source between lines of ```. Takes what is between the first two of them, in place. */
static void strip_fence(char *text)
{
    char *fence = strncmp(text, "```", 3) == 0 ? text : strstr(text, "\n```");
    char *begin = fence ? strchr(fence + (fence != text), '\n') : NULL, *end = begin ? strstr(begin, "\n```") : NULL;
    if (!end)
        return;
    end[1] = '\0';
    memmove(text, begin + 1, strlen(begin + 1) + 1);
}

/* The lines attest-flags: of a text, as candidate_flags reads them from a file. */
static bool check_flags(const char *text, char *why, size_t why_size)
{
    static const char mark[] = "attest-flags:";
    const char *end = strstr(text, "*/");
    for (const char *at = text; end && (at = strstr(at, mark)) && at < end;) {
        char line[2048];
        at += sizeof mark - 1;
        size_t length = strcspn(at, "\r\n");
        length = at + length > end ? (size_t)(end - at) : length;
        snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), at);
        if (!compiler_flags_check(line, why, why_size))
            return false;
    }
    return true;
}

char *proposer_ask(struct search *search, int number, char *why, size_t why_size)
{
    const struct options *options = &search->session->options;
    struct timed_job job = search_job(search, options->proposer_seconds);
    json_t *document = proposer_document(search, number);
    char *input = json_dumps(document, JSON_SORT_KEYS | JSON_INDENT(1)), reason[256] = "out of memory";
    size_t size = 0;
    search->doing = "asking the proposer";
    char *text = input ? timed_job_ask(&job, options->proposer, input, MOST_SOURCE, &size, reason, sizeof reason) : NULL;
    if (!text) {
        snprintf(why, why_size, "the proposer gave no candidate: %s", reason);
    } else if (strlen(text) != size || text[strspn(text, " \t\r\n")] == '\0') {
        snprintf(why, why_size, "the proposer gave no candidate: %s",
                 strlen(text) != size ? "it printed zero bytes" : "it printed nothing");
        free(text);
        text = NULL;
    } else {
        strip_fence(text);
        if (!check_flags(text, reason, sizeof reason)) {
            snprintf(why, why_size, "the proposal was not compiled: %s", reason);
            free(text);
            text = NULL;
        }
    }
    folder_remove(job.folder);
    free(input);
    json_decref(document);
    return text;
}
