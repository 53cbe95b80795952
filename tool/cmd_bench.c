/*
 * cmd_bench.c - attest bench: kernels against each other. All kernels of a problem take turns, call by call, in one process and on
 * the same inputs, so that what disturbs one of them disturbs all. Before that, a sample of the output of each goes to the judge.
 * With --vs two kernels are compared by the rules of the speed gate instead: see versus.c.
 */
#include "runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "estimates.h"
#include "judge.h"
#include "versus.h"

#define LEAST_CALLS  3
#define MOST_SAMPLES 100000
#define LEAST_TIME   20e-6 /* seconds; shorter calls are timed several at a time */
#define DECODE_ROWS  8     /* problems of so few rows are bound by reading K and V */

struct racer {
    const char *kernel;
    struct runner runner;
    double *samples; /* seconds a call */
    int sample_count;
    int calls; /* in one sample */
    double total;
    bool running;
    bool wrong;
    char why[1024];
};

struct race {
    struct session *session;
    const struct problem_entry *entry;
    struct inputs inputs;
    struct outputs outputs;
    attest_tensors tensors;
    struct racer racers[MOST_KERNELS];
    int count;
    int wrong, lacking, timed;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Seconds a call, over `calls` calls; negative on error. */
static double time_calls(struct race *race, struct racer *racer)
{
    double start = now();
    for (int i = 0; i < racer->calls; i++)
        if (runner_run(&racer->runner, &race->tensors, racer->why, sizeof racer->why) != ATTEST_OK)
            return -1;
    return (now() - start) / racer->calls;
}

/* Makes the plan, warms up, has a sample of the output judged, and finds out how many calls one sample needs. */
static void prepare(struct race *race, struct racer *racer, const struct judge *judge)
{
    int threads = attest_context_threads(race->session->context);
    const attest_problem *problem = &race->inputs.problem;
    struct finding finding;
    racer->calls = 1;
    racer->samples = malloc(MOST_SAMPLES * sizeof *racer->samples);
    if (!racer->samples) {
        snprintf(racer->why, sizeof racer->why, "out of memory");
        return;
    }
    outputs_poison(&race->outputs);
    if (runner_make(&racer->runner, problem, racer->kernel, threads, racer->why, sizeof racer->why) != ATTEST_OK ||
        time_calls(race, racer) < 0)
        return;
    judge_output(judge, judge->row_count, race->outputs.o.at, problem->stride_o, race->outputs.lse.at, problem->stride_lse,
                 &finding);
    if (!finding.accepted) {
        racer->wrong = true;
        snprintf(racer->why, sizeof racer->why, "wrong result, not timed: %s", finding.what);
        return;
    }
    double once = time_calls(race, racer);
    if (once < 0)
        return;
    if (once < LEAST_TIME)
        racer->calls = once * 1000 > LEAST_TIME ? (int)(LEAST_TIME / once) + 1 : 1000;
    racer->running = true;
}

static bool wants_more(const struct racer *racer, double seconds)
{
    return racer->running && racer->sample_count < MOST_SAMPLES && (racer->sample_count < LEAST_CALLS || racer->total < seconds);
}

static void run_race(struct race *race)
{
    bool more = true;
    while (more) {
        more = false;
        for (int i = 0; i < race->count; i++) {
            struct racer *racer = &race->racers[i];
            if (!wants_more(racer, race->session->options.seconds))
                continue;
            double time = time_calls(race, racer);
            if (time < 0) {
                racer->running = false;
                continue;
            }
            racer->samples[racer->sample_count++] = time;
            racer->total += time * racer->calls;
            more = more || wants_more(racer, race->session->options.seconds);
        }
    }
}

/* The row of one kernel. `first` is the median of the first kernel that was timed, 0 until there is one. */
static void report_racer(struct race *race, const struct racer *racer, double *first)
{
    json_t *row = json_pack("{s:s, s:s, s:s, s:i}", "problem", race->entry->text, "kernel", racer->kernel, "place",
                            race->entry->place, "threads", attest_context_threads(race->session->context));
    json_t *samples = json_array();
    if (racer->sample_count == 0 || !racer->running) {
        race->wrong += racer->wrong;
        race->lacking += !racer->wrong;
        json_put(row, "notes", json_pack("[s]", racer->why));
        json_decref(samples);
        report_row(&race->session->report, row);
        return;
    }
    race->timed++;
    for (int i = 0; i < racer->sample_count; i++)
        json_add(samples, json_real(racer->samples[i]));
    double median = median_of(racer->samples, racer->sample_count); /* sorts them */
    double least = racer->samples[0], most = racer->samples[racer->sample_count - 1];
    *first = *first > 0 ? *first : median;
    bool decode = race->inputs.problem.seq_q <= DECODE_ROWS;
    json_put(row, "median_ms", json_number(median * 1e3));
    json_put(row, "min_ms", json_number(least * 1e3));
    json_put(row, "spread", json_number((most - least) / median));
    json_put(row, "gflops", json_number(layout_flops(&race->inputs.layout) / median * 1e-9));
    json_put(row, "gbytes", decode ? json_number(layout_kv_bytes(&race->inputs.layout) / median * 1e-9) : json_null());
    json_put(row, "ratio", json_number(*first / median));
    json_put(row, "calls_a_sample", json_integer(racer->calls));
    json_put(row, "samples", samples);
    report_row(&race->session->report, row);
}

static void skip_problem(struct race *race, const char *why)
{
    race->lacking++;
    report_row(&race->session->report, json_pack("{s:s, s:s, s:s, s:[s]}", "problem", race->entry->text, "kernel", "-", "place",
                                                 race->entry->place, "notes", why));
}

static void bench_problem(struct race *race)
{
    struct session *session = race->session;
    const char *kernels[MOST_KERNELS];
    struct judge judge = {0};
    char why[1024] = "";
    enum exit_code code = EXIT_INTERNAL;
    int threads = attest_context_threads(session->context);
    uint64_t seed = (uint64_t)session->options.seed;
    race->count = kernels_select(session, &race->entry->problem, kernels, MOST_KERNELS, why, sizeof why);
    if (race->count == 0) {
        skip_problem(race, why);
        return;
    }
    if (!inputs_make(&race->entry->problem, seed, NULL, &race->inputs, &code, why, sizeof why)) {
        skip_problem(race, why);
        return;
    }
    snprintf(why, sizeof why, "out of memory for the outputs");
    if (outputs_make(&race->outputs, &race->inputs) &&
        judge_make(&judge, &race->inputs, seed, JUDGE_BLOCK, threads, why, sizeof why)) {
        double first = 0;
        race->tensors = outputs_tensors(&race->inputs, &race->outputs);
        for (int i = 0; i < race->count; i++) {
            race->racers[i] = (struct racer){.kernel = kernels[i]};
            progress("warming up %s: %s", race->entry->text, kernels[i]);
            prepare(race, &race->racers[i], &judge);
        }
        progress("timing %s: %d kernels", race->entry->text, race->count);
        run_race(race);
        for (int i = 0; i < race->count; i++) {
            report_racer(race, &race->racers[i], &first);
            runner_free(&race->racers[i].runner);
            free(race->racers[i].samples);
        }
    } else {
        skip_problem(race, why);
    }
    judge_free(&judge);
    outputs_free(&race->outputs);
    inputs_free(&race->inputs);
}

enum exit_code cmd_bench(struct session *session)
{
    static const struct column columns[] = {{"problem", "problem", -20}, {"kernel", "kernel", -12}, {"median_ms", "median ms", 10},
                                            {"min_ms", "min ms", 10},    {"spread", "spread", 8},   {"gflops", "Gflop/s", 8},
                                            {"gbytes", "GB/s", 8},       {"ratio", "ratio", 8}};
    const struct options *options = &session->options;
    if (options->vs)
        return versus_run(session);
    for (int i = 0; i < options->word_count; i++)
        if (!strchr(options->words[i], ':'))
            return give_up(session, EXIT_USAGE, "to compare two kernels, type: attest bench KERNEL --vs KERNEL [PROBLEM ...]",
                           "%s is no problem", options->words[i]);
    if (options->clock)
        return give_up(session, EXIT_USAGE, NULL, "--simulate-clock needs --vs");
    enum exit_code code = problems_load(session);
    if (code != EXIT_PASS)
        return code;
    struct race *race = calloc(1, sizeof *race);
    if (!race)
        return give_up(session, EXIT_LACKING, NULL, "out of memory");
    race->session = session;
    int widths[COUNT_OF(columns)] = {0};
    table_widths(session, &widths[0], &widths[1]);
    report_table(&session->report, "times", columns, COUNT_OF(columns), widths);
    for (int i = 0; i < session->problems.count; i++) {
        race->entry = &session->problems.entries[i];
        bench_problem(race);
    }
    report_put(&session->report, "threads", json_integer(attest_context_threads(session->context)));
    report_put(&session->report, "seconds", json_number(session->options.seconds));
    report_put(&session->report, "seed", json_integer(session->options.seed));
    code = race->wrong ? EXIT_FAILED : race->timed == 0 ? EXIT_LACKING : EXIT_PASS;
    free(race);
    return code;
}
