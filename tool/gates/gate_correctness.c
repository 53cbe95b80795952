/*
 * gate_correctness.c - the correctness gate: a worker with the candidate, a second one with the champion, and correctness.c, which
 * says what is asked of them and what the details are.
 *
 * Besides, what is asked of a candidate whose source is there is asked of a copy that notes which clauses run (source_coverage.h). If all
 * is right and a clause has never run, the gate is INCONCLUSIVE: nothing is shown of that clause. What runs only in problems that libattest
 * never asks the kernel for is left out: a source may make kernels of several dtypes, and share text with others that refuse less.
 *
 * details, besides those of correctness.c: coverage, see source_coverage_report.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <attest_kernel.h>

#include "correctness.h"
#include "theory/cover_problems.h"
#include "build/kernel_constants.h"
#include "source_coverage.h"

static bool champion_takes(const void *data, const attest_problem *problem)
{
    const struct kernel_facts *facts = data;
    return (facts->dtypes >> problem->dtype & 1) && !(problem->flags & facts->refuses);
}

/* A worker, whose guards are looked at after every call, and what notes the clauses that run. */
struct guarded {
    struct executor *executor;
    struct source_coverage *coverage; /* NULL: nothing does */
    int lane;
};

static struct execution run_guarded(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    const struct guarded *guarded = data;
    struct subject subject = executor_subject(guarded->executor);
    struct execution execution = subject.run(subject.data, inputs, outputs);
    if (execution.end == EXECUTION_DONE && !executor_intact(guarded->executor, 0, execution.sentence, sizeof execution.sentence))
        execution.end = EXECUTION_INVALID;
    if (guarded->coverage)
        source_coverage_run(guarded->coverage, guarded->lane, inputs);
    return execution;
}

static struct execution run_guarded_after(void *data, const struct inputs *before, const struct inputs *inputs,
                                          struct outputs *outputs)
{
    const struct guarded *guarded = data;
    struct subject subject = executor_subject(guarded->executor);
    return subject.run_after(subject.data, before, inputs, outputs);
}

/* ---- clauses that have never run ---------------------------------------------------------------------------------------------- */

static bool anything(const void *data, const attest_problem *problem)
{
    (void)data;
    (void)problem;
    return true;
}

struct trying {
    struct source_coverage *coverage;
    bool over;
};

/* Only what runs is of interest. */
static struct execution run_trying(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    struct trying *trying = data;
    (void)outputs;
    trying->over = trying->over || !source_coverage_try(trying->coverage, inputs);
    return (struct execution){.end = EXECUTION_DONE};
}

static bool is_incomplete(void *data, const struct cover_outcome *outcome)
{
    const struct trying *trying = data;
    (void)outcome;
    return !trying->over && !source_coverage_is_complete(trying->coverage);
}

/* The suite in the dtypes of its siblings. */
static void try_suite(const struct proof *proof, struct trying *trying)
{
    for (int n = 0; n < 3 * proof->suite.count && is_incomplete(trying, NULL); n++) {
        attest_problem problem = proof->suite.entries[n / 3].problem;
        struct inputs inputs;
        enum exit_code code;
        char why[256];
        problem.dtype = problem.dtype_o = (uint32_t[]){ATTEST_F32, ATTEST_F16, ATTEST_BF16}[n % 3];
        if (attest_problem_check(&problem, NULL, 0) != ATTEST_OK ||
            !inputs_make(&problem, proof->seed, NULL, &inputs, &code, why, sizeof why))
            continue;
        trying->over = !source_coverage_try(trying->coverage, &inputs);
        inputs_free(&inputs);
    }
}

/* Problems of all kinds, also those that the kernel refuses or that are of dtypes of its siblings. */
static void cover_refused(const struct proof *proof, struct source_coverage *coverage)
{
    enum { ROWS = 1200 };
    struct trying trying = {.coverage = coverage};
    struct cover_plan plan = {.subject = {run_trying, NULL, &trying},
                              .taker = {anything, NULL},
                              .seed = proof->seed,
                              .threads = proof->threads,
                              .rows = ROWS,
                              .large = 1,
                              .unjudged = true,
                              .report = is_incomplete,
                              .data = &trying};
    struct cover_summary summary = {0};
    try_suite(proof, &trying);
    if (!trying.over && !source_coverage_is_complete(coverage))
        cover_large(&plan, &summary);
    if (!trying.over && !source_coverage_is_complete(coverage))
        cover_array(&plan, &summary);
}

static void conclude_coverage(const struct proof *proof, struct source_coverage *coverage, struct gate_result *result)
{
    const uint32_t all = ATTEST_TAKES_F32 | ATTEST_TAKES_F16 | ATTEST_TAKES_BF16;
    char sentence[800];
    if (result->verdict == VERDICT_PASS && (proof->candidate.dtype || proof->facts.refuses || proof->facts.dtypes != all))
        cover_refused(proof, coverage);
    json_t *report = source_coverage_report(coverage, sentence, sizeof sentence);
    const long long left = (long long)json_array_size(json_object_get(report, "never"));
    json_put(result->details, "coverage", report);
    if (result->verdict != VERDICT_PASS || !*sentence)
        return;
    if (left)
        gate_say(result, VERDICT_INCONCLUSIVE,
                 "%lld clause%s of its source ran in none of the problems, and nothing is shown of %s: %s; take out what cannot "
                 "run, refuse what it "
                 "is for, or name problems in which it runs with --suite",
                 left, left == 1 ? "" : "s", left == 1 ? "it" : "them", sentence);
    else
        gate_say(result, VERDICT_INCONCLUSIVE, "which clauses of its source ran cannot be told: %s", sentence);
}

static struct executor *open_worker(const struct proof *proof, const char *image, const char *kernel, enum guard guard,
                                    struct execution *execution)
{
    struct executor_spec spec = {.image = image,
                                 .kernel = kernel,
                                 .device = proof->device,
                                 .threads = proof->threads,
                                 .guard = guard,
                                 .seconds = proof->policy.call_seconds,
                                 .memory = (int64_t)proof->policy.memory_mb << 20};
    return executor_open(&spec, execution);
}

/* The worker of the champion; NULL, with `execution` filled, if it does not start. */
static struct executor *open_champion(const struct proof *proof, struct execution *execution)
{
    const struct opponent *opponent = &proof->opponent;
    bool choice = strcmp(opponent->name, OPPONENT_LIBRARY) == 0;
    return open_worker(proof, opponent->image, opponent->image || choice ? NULL : opponent->name, GUARD_DRAWN, execution);
}

static bool constants_of(const struct proof *proof, struct kernel_constants *constants)
{
    char why[256];
    if (!proof->candidate.cuda)
        return kernel_constants_of_image(proof->candidate.image, constants, why, sizeof why);
    if (proof->constants)
        *constants = *proof->constants;
    return proof->constants;
}

void gate_correctness(struct proof *proof, struct gate_result *result)
{
    char reproduce[256], why[256] = "";
    struct execution execution;
    struct executor *champion = NULL, *candidate = gate_open(proof, GUARD_DRAWN, result);
    if (!candidate)
        return;
    if (proof->opponent.name && !(champion = open_champion(proof, &execution))) {
        gate_say(result, VERDICT_INCONCLUSIVE, "the champion %s does not load: %.300s; name another one with --vs",
                 proof->opponent.name, execution.sentence);
        executor_close(candidate, NULL);
        return;
    }
    snprintf(reproduce, sizeof reproduce, "attest prove %.160s --only correctness --seed %" PRIu64, proof->candidate.word,
             proof->seed);
    struct kernel_constants constants;
    const bool known = !proof->brief && constants_of(proof, &constants);
    const bool measured = !proof->brief && !proof->candidate.cuda && proof->candidate.source;
    struct source_coverage *coverage = measured ? source_coverage_open(proof, why, sizeof why) : NULL;
    struct guarded first = {candidate, coverage, 0}, other = {NULL, coverage, 1}, distant = {0};
    struct correctness correctness = {
        .subject = {run_guarded, run_guarded_after, &first},
        .taker = gate_taker(proof),
        .suite = &proof->suite,
        .timed = &proof->timed,
        .neighbours = (int)proof->policy.neighbours,
        .cover_rows = (int)proof->policy.cover_rows,
        .large_rounds = (int)proof->policy.large_rounds,
        .constant_problems = (int)proof->policy.constant_problems,
        .constants = known ? &constants : NULL,
        .growth = proof->policy.error_growth,
        .seed = proof->seed,
        .threads = proof->threads,
        .brief = proof->brief,
        .device = proof->candidate.cuda,
        .reproduce = reproduce,
    };
    struct executor *far = proof->brief ? NULL : open_worker(proof, proof->candidate.image, NULL, GUARD_FAR, &execution);
    struct executor *second = proof->brief || proof->device || proof->threads < 2
                                  ? NULL
                                  : open_worker(proof, proof->candidate.image, NULL, GUARD_DRAWN, &execution);
    other.executor = second;
    distant.executor = far;
    if (second)
        correctness.second = (struct subject){run_guarded, run_guarded_after, &other};
    if (far)
        correctness.far = (struct subject){run_guarded, NULL, &distant};
    if (champion) {
        correctness.champion = executor_subject(champion);
        correctness.champion_taker = (struct taker){champion_takes, executor_facts(champion)};
        json_put(result->details, "champion", json_string(proof->opponent.name));
    }
    correctness_prove(&correctness, result);
    if (coverage)
        conclude_coverage(proof, coverage, result);
    else if (measured && result->verdict == VERDICT_PASS)
        gate_say(result, VERDICT_INCONCLUSIVE, "which clauses of its source ran cannot be told: %.400s", why);
    source_coverage_close(coverage);
    executor_close(second, NULL);
    executor_close(far, NULL);
    executor_close(champion, NULL);
    executor_close(candidate, NULL);
}
