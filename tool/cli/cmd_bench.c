/*
 * cmd_bench.c - attest bench: kernels against each other. All kernels of a problem take turns, call by call, in one process and on
 * the same inputs, so that what disturbs one of them disturbs all. Before that, a sample of the output of each goes to the judge.
 * On a GPU a sample is a CUDA graph of calls that rotate over copies of the tensors, more of them than the second-level cache
 * holds, timed by the GPU. With --vs two kernels are compared by the rules of the speed gate instead: see versus.c.
 */
#include "base/clock.h"
#include "run/runner.h"

#include <attest_kernel_cuda.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/estimates.h"
#include "judge/judge.h"
#include "versus.h"

#define LEAST_CALLS  3
#define MOST_SAMPLES 100000
#define LEAST_TIME   20e-6 /* seconds; shorter calls are timed several at a time */
#define DECODE_ROWS  8     /* problems of so few rows are bound by reading K and V */
#define GPU_SAMPLE   1e-3  /* seconds of a sample on a GPU */

enum { MOST_SETS = 64, MOST_REPLAYS = 1000 };

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
    struct device_arrays sets[MOST_SETS]; /* on a GPU: copies of the tensors */
    int set_count;
    struct racer racers[MOST_KERNELS];
    int count;
    int wrong, lacking, timed;
};

/* Copies of the tensors that do not fit into the cache of the GPU together, if there is memory for so many. */
static bool make_sets(struct race *race, char *why, size_t why_size)
{
    attest_context *context = race->session->context;
    attest_device_info info = {.size = sizeof info};
    const char *number = strchr(attest_context_device(context), ':');
    double cache = attest_device_get(number ? atoi(number + 1) : 0, &info, NULL, 0) == ATTEST_OK ? (double)info.cache : 0x1p26;
    double bytes = 0;
    for (race->set_count = 0; race->set_count < MOST_SETS && bytes <= 2 * cache; race->set_count++) {
        struct device_arrays *set = &race->sets[race->set_count];
        attest_status status = device_arrays_make(set, context, &race->inputs.problem, &race->tensors, 0, why, why_size);
        if (status == ATTEST_OK && (status = device_arrays_put_inputs(set, &race->tensors)) != ATTEST_OK)
            snprintf(why, why_size, "%s", attest_context_detail(context));
        if (status != ATTEST_OK)
            return race->set_count > 0 && status == ATTEST_ERROR_MEMORY;
        for (int i = 0; i < set->list.count; i++)
            bytes += set->memory[i] ? (double)set->list.of[i].bytes : 0;
    }
    return true;
}

static void free_sets(struct race *race)
{
    for (int i = 0; i < race->set_count; i++)
        device_arrays_free(&race->sets[i]);
    race->set_count = 0;
}

/* Seconds a call by the clock of the GPU; negative on error. */
static double time_graph(const struct race *race, struct racer *racer)
{
    attest_cuda_call calls[MOST_SETS];
    double seconds = -1;
    struct runner *runner = &racer->runner;
    for (int i = 0; i < race->set_count; i++)
        calls[i] = (attest_cuda_call){runner->plan, &race->sets[i].tensors, runner->workspace, runner->workspace_size};
    if (attest_cuda_time(runner->context, calls, race->set_count, racer->calls / race->set_count, &seconds) == ATTEST_OK)
        return seconds;
    snprintf(racer->why, sizeof racer->why, "%s", attest_context_detail(runner->context));
    return -1;
}

/* Seconds a call, over `calls` calls; negative on error. */
static double time_calls(struct race *race, struct racer *racer)
{
    if (race->set_count)
        return time_graph(race, racer);
    double start = seconds_now();
    for (int i = 0; i < racer->calls; i++)
        if (runner_run(&racer->runner, &race->tensors, racer->why, sizeof racer->why) != ATTEST_OK)
            return -1;
    return (seconds_now() - start) / racer->calls;
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
    if (runner_make_on(&racer->runner, attest_context_device(race->session->context), problem, racer->kernel, threads, racer->why,
                       sizeof racer->why) != ATTEST_OK ||
        runner_run(&racer->runner, &race->tensors, racer->why, sizeof racer->why) != ATTEST_OK)
        return;
    judge_output(judge, judge->row_count, race->outputs.o.at, problem->stride_o, race->outputs.lse.at, problem->stride_lse,
                 &finding);
    if (!finding.accepted) {
        racer->wrong = true;
        snprintf(racer->why, sizeof racer->why, "wrong result, not timed: %s", finding.what);
        return;
    }
    if (race->set_count)
        racer->calls = race->set_count;
    double once = time_calls(race, racer);
    if (once < 0)
        return;
    if (race->set_count)
        racer->calls *= (int)fmin(MOST_REPLAYS, 1 + GPU_SAMPLE / (once * race->set_count));
    else if (once < LEAST_TIME)
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
    json_put(row, "tflops", json_number(layout_flops(&race->inputs.layout) / median * 1e-12));
    json_put(row, "median_us", json_number(median * 1e6));
    json_put(row, "min_us", json_number(least * 1e6));
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
        if (!context_on_cpu(session->context) && !make_sets(race, why, sizeof why)) {
            skip_problem(race, why);
            race->count = 0;
        }
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
        free_sets(race);
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
    static const struct column gpu_columns[] = {
        {"problem", "problem", -20}, {"kernel", "kernel", -12}, {"median_us", "median us", 10}, {"min_us", "min us", 10},
        {"spread", "spread", 8},     {"tflops", "TFLOP/s", 8},  {"gbytes", "GB/s", 8},          {"ratio", "ratio", 8}};
    const struct options *options = &session->options;
    if (options->vs)
        return versus_run(session);
    for (int i = 0; i < options->word_count; i++)
        if (!strchr(options->words[i], ':'))
            return give_up(session, EXIT_USAGE, "to compare two kernels, type: attest bench KERNEL --vs KERNEL [PROBLEM ...]",
                           "%s is no problem", options->words[i]);
    if (options->clock)
        return give_up(session, EXIT_USAGE, NULL, "--simulate-clock needs --vs");
    enum exit_code code = problems_load(session, false);
    if (code != EXIT_PASS)
        return code;
    struct race *race = calloc(1, sizeof *race);
    if (!race)
        return give_up(session, EXIT_LACKING, NULL, "out of memory");
    race->session = session;
    int widths[COUNT_OF(columns)] = {0};
    table_widths(session, &widths[0], &widths[1]);
    bool here = context_on_cpu(session->context);
    report_table(&session->report, "times", here ? columns : gpu_columns, COUNT_OF(columns), widths);
    for (int i = 0; i < session->problems.count; i++) {
        race->entry = &session->problems.entries[i];
        bench_problem(race);
    }
    report_put(&session->report, "device", json_string(attest_context_device(session->context)));
    if (here)
        report_put(&session->report, "threads", json_integer(attest_context_threads(session->context)));
    report_put(&session->report, "seconds", json_number(session->options.seconds));
    report_put(&session->report, "seed", json_integer(session->options.seed));
    code = race->wrong ? EXIT_FAILED : race->timed == 0 ? EXIT_LACKING : EXIT_PASS;
    free(race);
    return code;
}
