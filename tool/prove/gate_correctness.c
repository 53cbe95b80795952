/*
 * gate_correctness.c - the correctness gate: a worker with the candidate, a second one with the champion, and correctness.c, which
 * says what is asked of them and what the details are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "correctness.h"
#include "kernel_constants.h"

static bool candidate_takes(const void *data, const attest_problem *problem)
{
    return gate_takes(data, problem);
}

static bool champion_takes(const void *data, const attest_problem *problem)
{
    const struct kernel_facts *facts = data;
    return (facts->dtypes >> problem->dtype & 1) && !(problem->flags & facts->refuses);
}

/* An executor as a subject, but one that also has to leave the guards of the worker alone. */
static struct execution run_guarded(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    struct subject subject = executor_subject(data);
    struct execution execution = subject.run(subject.data, inputs, outputs);
    if (execution.end == EXECUTION_DONE && !executor_intact(data, 0, execution.sentence, sizeof execution.sentence))
        execution.end = EXECUTION_INVALID;
    return execution;
}

static struct execution run_guarded_after(void *data, const struct inputs *before, const struct inputs *inputs,
                                          struct outputs *outputs)
{
    struct subject subject = executor_subject(data);
    return subject.run_after(subject.data, before, inputs, outputs);
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

void gate_correctness(struct proof *proof, struct gate_result *result)
{
    char reproduce[256], why[256];
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
    const bool known =
        !proof->brief && !proof->candidate.cuda && kernel_constants_of_image(proof->candidate.image, &constants, why, sizeof why);
    struct correctness correctness = {
        .subject = {run_guarded, run_guarded_after, candidate},
        .taker = {candidate_takes, proof},
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
    if (second)
        correctness.second = (struct subject){run_guarded, run_guarded_after, second};
    if (far)
        correctness.far = (struct subject){run_guarded, NULL, far};
    if (champion) {
        correctness.champion = executor_subject(champion);
        correctness.champion_taker = (struct taker){champion_takes, executor_facts(champion)};
        json_put(result->details, "champion", json_string(proof->opponent.name));
    }
    correctness_prove(&correctness, result);
    executor_close(second, NULL);
    executor_close(far, NULL);
    executor_close(champion, NULL);
    executor_close(candidate, NULL);
}
