/*
 * search.c - the loop of a search. See search.h.
 *
 * First the start is proven: if it is wrong there is nothing to improve. Then candidates come one after the other, `population` of
 * them a generation, each from what became of all before it:
 *     proposal -> build -> oracle -> correctness on few problems -> short timing against the start        (trial_screen)
 * which ends at the first that fails; and after each generation the best may challenge the champion:
 *     all gates -> speed gate against the champion, on new data                                           (challenge.c)
 * When the generations, the space, or the budget is at its end, so is the search, with a verdict (search_verdict.c).
 *
 * State. Every step is in the ledger before the next one is made: the proposal before it is built, a challenge before it begins. A
 * search that was killed is found again by its key, what was asked for, and goes on with the next step. What is drawn comes from the
 * seed and the number of the candidate, so that it goes on as it would have.
 *
 * Time. The budget counts the time of all processes that worked on the search. Each job is killed when it is over, and part of
 * it is kept back for the last challenge.
 */
#include "search.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "evidence/member.h"
#include "evidence/objects.h"
#include "evidence/store.h"
#include "search_ledger.h"
#include "base/random.h"

#define BEAT_SECONDS 1
#define RESERVE      2 /* times the proof of the start: what a challenge may take, before one was made */
enum { STREAM_PROPOSAL = 801, STREAM_SCREEN = 802 };

/* ---- what the parts share ------------------------------------------------------------------------------------------------- */

void search_tell(const struct search *search, const char *format, ...)
{
    va_list arguments;
    if (!search->text)
        return;
    progress_clear();
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
}

static double used(const struct search *search)
{
    return search->used_before + seconds_now() - search->began;
}

double search_left(const struct search *search)
{
    return search->budget > 0 ? search->budget - used(search) : INFINITY;
}

double search_gpu_seconds(const struct search *search)
{
    size_t i;
    json_t *trial;
    double sum = 0;
    json_array_foreach(search->trials, i, trial) sum += json_number_value(json_object_get(trial, "gpu_seconds"));
    return sum;
}

static bool open_store(struct search *search)
{
    char why[512];
    if (!search->store)
        search->store = store_open(search->session->options.state, why, sizeof why);
    return search->store != NULL;
}

/* The progress line, and the time for the ledger. */
static void tick(void *data)
{
    struct search *search = data;
    double score, left = search_left(search), now = seconds_now();
    int number = (int)json_array_size(search->trials) - 1, champion = champion_of_search(search, &score);
    char where[80] = "", best[64] = "", time[32] = "";
    if (number > 0)
        snprintf(where, sizeof where, "generation %d of %d, candidate %d: ", (number - 1) / search->population + 1,
                 search->generations, number);
    if (champion)
        snprintf(best, sizeof best, "; champion: candidate %d, %.2f x", champion, exp(score));
    if (isfinite(left))
        snprintf(time, sizeof time, "; %.0f s left", fmax(0, left));
    progress("%s%s%s%s%s%s", where, search->doing, best, time, *search->last ? "; last: " : "", search->last);
    if (now - search->beat >= BEAT_SECONDS) {
        search->beat = now;
        if (open_store(search))
            ledger_beat(search->store, search->id, used(search));
    }
}

struct timed_job search_job(struct search *search, double seconds)
{
    static char folder[4200];
    static int number;
    double left = search_left(search), limit = seconds > 0 && seconds < left ? seconds : left;
    snprintf(folder, sizeof folder, "%.4000s/job%d", search->scratch, number++);
    return (struct timed_job){.folder = folder, .deadline = seconds_now() + limit, .tick = tick, .data = search};
}

json_t *search_work(struct search *search, struct timed_job *job, json_t *(*work)(void *matter), void *matter, char *why,
                    size_t why_size)
{
    store_close(search->store); /* a connection to SQLite must not be carried into another process */
    search->store = NULL;
    json_t *found = timed_job_work(job, work, matter, why, why_size);
    if (open_store(search))
        return found;
    snprintf(why, why_size, "the run database cannot be opened any more");
    json_decref(found);
    return NULL;
}

bool search_keep(struct search *search, json_t *trial)
{
    size_t number = (size_t)json_integer_value(json_object_get(trial, "number"));
    if (number == json_array_size(search->trials))
        json_add(search->trials, json_incref(trial));
    return search->store && ledger_trial(search->store, search->id, trial) && ledger_beat(search->store, search->id, used(search));
}

json_t *search_trial(const struct search *search, int number)
{
    return json_array_get(search->trials, (size_t)number);
}

char *search_source(const struct search *search, const json_t *trial)
{
    char *path = search->store ? store_artefact(search->store, text_at(trial, "source")) : NULL;
    size_t size;
    char *text = path ? file_read(path, &size) : NULL;
    free(path);
    return text;
}

uint64_t search_seed(const struct search *search, int stream, int number)
{
    return (random_bits(search->seed, (uint64_t)stream, (uint64_t)number) >> 12) + 1; /* exact as a number of JSON, and never 0 */
}

void trial_words(const json_t *trial, char *text, size_t size)
{
    const char *name;
    json_t *value;
    const json_t *changed = json_object_get(trial, "changed");
    size_t length = 0;
    text[0] = '\0';
    json_object_foreach((json_t *)(uintptr_t)changed, name, value)
    {
        if (length < size)
            length += (size_t)snprintf(text + length, size - length, "%s%s=%s", length ? " " : "", name, json_string_value(value));
    }
    if (!length)
        snprintf(text, size, "%s", *text_at(trial, "name") ? text_at(trial, "name") : text_at(trial, "origin"));
}

/* ---- the start --------------------------------------------------------------------------------------------------------------- */

struct trial_spec search_spec(const struct search *search, const char *source)
{
    return (struct trial_spec){.session = search->session,
                               .source = source,
                               .dtype = search->start.dtype,
                               .suite = search->session->options.suite,
                               .timed = search->timed};
}

static bool lacks_gpu(const struct search *search, const json_t *record)
{
    return search->start.cuda && !text_is(record, "verdict", "REJECTED");
}

/* Proves the start, before anything else. */
static enum exit_code prove_start(struct search *search)
{
    json_t *trial = search_new_trial(search, search->start_text, "start", NULL);
    char *source = trial ? search_path(search, trial) : NULL, why[512] = "";
    if (!trial || !source)
        return give_up(search->session, EXIT_LACKING, NULL, "the source of the start cannot be kept: %s",
                       store_error(search->store));
    struct trial_spec spec = search_spec(search, source);
    struct timed_job job = search_job(search, 0);
    double began = seconds_now();
    spec.keep = true;
    spec.seed = search->seeded ? search_seed(search, STREAM_SCREEN, 0) : 0;
    search->doing = "proving the start";
    json_t *found = search_work(search, &job, trial_prove, &spec, why, sizeof why), *record = json_object_get(found, "record");
    enum exit_code code = EXIT_PASS;
    search_put_settings(search, trial, search->start_text);
    json_put(trial, "image", json_string(text_at(json_object_get(record, "candidate"), "image")));
    json_put(trial, "identity", json_string(text_at(found, "identity")));
    json_put(trial, "state", json_string(record ? text_at(record, "verdict") : "INCONCLUSIVE"));
    json_put(trial, "sentence", json_string(record ? text_at(record, "decision") : why));
    json_put(trial, "stage", json_string("baseline"));
    json_put(trial, "score", json_real(0));
    trial_put_profile(trial, record);
    json_put(trial, "proof_seconds", json_real(seconds_now() - began));
    json_put(trial, "gpu_seconds", json_real(json_number_value(json_object_get(record, "gpu_seconds"))));
    if (!search_keep(search, trial))
        code = give_up(search->session, EXIT_LACKING, NULL, "the run database cannot be written");
    else if (job.late)
        search->stopped = "the budget is over";
    else if (!record)
        code = give_up(search->session, EXIT_LACKING, NULL, "the start could not be proven: %s", why);
    else if (text_is(record, "verdict", "REJECTED"))
        code = give_up(search->session, EXIT_FAILED, "attest prove says more, and attest oracle names the stage",
                       "the starting kernel is wrong, and there is nothing to improve: %s", text_at(record, "decision"));
    else if (!text_is(record, "verdict", "PROVEN"))
        code = give_up(search->session, EXIT_LACKING,
                       lacks_gpu(search, record) ? "run this on a machine with an NVIDIA GPU: CUDA candidates need one to be proven"
                                                 : "attest prove says more",
                       "the starting kernel cannot be proven here: %s", text_at(record, "decision"));
    else
        search_tell(search, "  the start is proven (%.1f s)\n", seconds_now() - began);
    if (code != EXIT_PASS) { /* that is a verdict, too */
        json_t *result = json_pack("{s:s, s:s, s:i, s:i, s:i}", "verdict", "POST-MORTEM", "sentence", text_at(trial, "sentence"),
                                   "champion", 0, "candidates", 0, "challenges", 0);
        if (search->store)
            ledger_finish(search->store, search->id, result);
        json_decref(result);
    }
    if (json_object_get(found, "image"))
        search->start_image = strdup(text_at(found, "image"));
    json_decref(found);
    json_decref(trial);
    free(source);
    return code;
}

/* The start was proven by an earlier process: only its image is needed again. */
static enum exit_code build_start(struct search *search)
{
    const json_t *trial = search_trial(search, 0);
    char *source = search_path(search, trial), why[512] = "";
    struct trial_spec spec = search_spec(search, source);
    struct timed_job job = search_job(search, 0);
    search->doing = "building the start";
    json_t *found = source ? search_work(search, &job, trial_build, &spec, why, sizeof why) : NULL;
    enum exit_code code = EXIT_PASS;
    if (job.late)
        search->stopped = "the budget is over";
    else if (*text_at(found, "image"))
        search->start_image = strdup(text_at(found, "image"));
    else
        code = give_up(search->session, EXIT_LACKING, NULL, "the start does not build any more: %s",
                       found ? text_at(found, "sentence") : why);
    json_decref(found);
    free(source);
    return code;
}

/* ---- the loop ----------------------------------------------------------------------------------------------------------------- */

/* What must be left for a last challenge. */
static double reserve(const struct search *search)
{
    double proof = json_number_value(json_object_get(search_trial(search, 0), "proof_seconds"));
    double wanted = search->challenge_seconds > 0 ? 1.2 * search->challenge_seconds : RESERVE * proof;
    return fmin(wanted, search->budget / 2);
}

static bool may_go_on(struct search *search)
{
    double most = (double)search->session->options.max_gpu_seconds;
    if (search->budget > 0 && search_left(search) <= reserve(search))
        search->stopped = "the budget is over";
    else if (most > 0 && search_gpu_seconds(search) >= most)
        search->stopped = "--max-gpu-seconds are used up";
    return !search->stopped;
}

static bool run_generations(struct search *search)
{
    int most = search->generations * search->population;
    bool kept = true;
    size_t i;
    json_t *trial;
    json_array_foreach(search->trials, i, trial)
    {
        if (kept && i > 0 && text_is(trial, "state", "PROPOSED") && may_go_on(search)) /* the last process did not get to it */
            kept = search_screen(search, trial);
    }
    while (kept && may_go_on(search)) {
        int number = (int)json_array_size(search->trials) - 1; /* of the last candidate */
        json_t *last = search_trial(search, number);
        if (number > 0 && number % search->population == 0 && !json_object_get(last, "round")) {
            challenge_round(search, false);
            if (search_left(search) > 0) {
                json_put(last, "round", json_true());
                kept = search_keep(search, last);
            }
            continue;
        }
        if (number >= most) {
            search->stopped = "all generations were made";
            break;
        }
        kept = search_take_turn(search);
    }
    if (kept && search_left(search) > 0)
        challenge_round(search, true);
    return kept;
}

/* The source of the champion, where people find it. */
static void write_champion(struct search *search, json_t *result)
{
    const struct options *options = &search->session->options;
    const json_t *champion = search_trial(search, (int)json_integer_value(json_object_get(result, "champion")));
    char *text = search_source(search, champion), folder[4200], path[4400];
    snprintf(folder, sizeof folder, "%.4000s/evolve", options->state);
    snprintf(path, sizeof path, "%.4100s/%.160s.%s", folder, text_at(champion, "name"), search->start.cuda ? "cu" : "c");
    if (options->out)
        snprintf(path, sizeof path, "%.4300s", options->out);
    if (text && options->out && search->start.cuda) {
        const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
        char name[160], *renamed;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(stem, "."), stem);
        renamed = search_renamed(text, name);
        free(text);
        text = renamed;
    }
    if (text && (options->out || folder_make(folder)) && file_replace(path, text, strlen(text)))
        json_put(result, "source", json_string(path));
    else
        json_put(result, "trouble", json_text("the champion's source could not be written to %s: %s", path, strerror(errno)));
    free(text);
}

/* Where the champion is, and how to time it again on what it was searched for: elsewhere it may be no faster. */
static void print_champion(const struct search *search, const char *path)
{
    const struct problem_list *problems = &search->session->problems;
    printf("  the champion: %s\n  time it again: attest bench %s --vs %s", path, path, text_at(search->about, "kernel"));
    for (int i = 0; i < problems->count; i++)
        printf(" %s", problems->entries[i].text);
    if (search->session->options.threads)
        printf(" --threads %d", (int)search->session->options.threads);
    putchar('\n');
}

static enum exit_code conclude(struct search *search)
{
    json_t *result = search_verdict(search);
    bool promoted = text_is(result, "verdict", "PROMOTED"), none = text_is(result, "verdict", "NO IMPROVEMENT");
    if (promoted)
        write_champion(search, result);
    json_put(result, "seconds", json_real(used(search)));
    if (search->start.cuda)
        json_put(result, "gpu_seconds", json_real(search_gpu_seconds(search)));
    bool kept = ledger_beat(search->store, search->id, used(search)) && ledger_finish(search->store, search->id, result);
    progress_clear();
    if (search->text) {
        search_verdict_print(stdout, result);
        if (*text_at(result, "source"))
            print_champion(search, text_at(result, "source"));
        if (*text_at(result, "trouble"))
            printf("  %s\n", text_at(result, "trouble"));
    } else {
        report_put(&search->session->report, "search", json_integer(search->id));
        report_put(&search->session->report, "about", json_incref(search->about));
        report_put(&search->session->report, "trials", json_incref(search->trials));
        report_put(&search->session->report, "result", json_incref(result));
    }
    json_decref(result);
    if (!kept)
        return give_up(search->session, EXIT_LACKING, NULL, "the run database cannot be written");
    return promoted || none ? EXIT_PASS : EXIT_LACKING;
}

static enum exit_code prepare(struct search *search)
{
    const char *base = getenv("TMPDIR");
    char folder[4200];
    FILE *file = NULL;
    if (asprintf(&search->scratch, "%s/attest-evolve-XXXXXX", base && *base ? base : "/tmp") < 0)
        search->scratch = NULL;
    if (!search->scratch || !mkdtemp(search->scratch)) {
        free(search->scratch);
        search->scratch = NULL;
        return give_up(search->session, EXIT_LACKING, "set TMPDIR to a folder that can be written", "no scratch folder: %s",
                       strerror(errno));
    }
    snprintf(folder, sizeof folder, "%.4000s/sources", search->scratch);
    bool made =
        folder_make(folder) && asprintf(&search->timed, "%s/timed.txt", search->scratch) > 0 && (file = fopen(search->timed, "w"));
    for (int i = 0; made && i < search->session->problems.count; i++)
        made = fprintf(file, "%s\n", search->session->problems.entries[i].text) > 0;
    made = file && fclose(file) == 0 && made;
    search_link_headers(search);
    if (!made || !ledger_take(search->store, search->id, getpid(), search->scratch))
        return give_up(search->session, EXIT_LACKING, NULL, "the state of the search cannot be written");
    return EXIT_PASS;
}

enum exit_code search_run(struct search *search)
{
    timed_jobs_begin();
    enum exit_code code = prepare(search);
    if (code == EXIT_PASS)
        code = json_array_size(search->trials) == 0 ? prove_start(search) : build_start(search);
    if (code == EXIT_PASS && !search->stopped && !run_generations(search))
        code = give_up(search->session, EXIT_LACKING, "what is there is kept, and the same command goes on with it",
                       "the state of the search cannot be kept in %s", search->session->options.state);
    if (code == EXIT_PASS)
        code = conclude(search);
    progress_clear();
    if (search->scratch)
        folder_remove(search->scratch);
    return code;
}
