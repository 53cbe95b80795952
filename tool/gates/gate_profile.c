/*
 * gate_profile.c - the profile gate: runs on the hardware it claims.
 *
 * For a CPU kernel the claim is `needs`, and it is checked in the image itself: the instructions of the feature that it claims are
 * there, and none of a feature that it does not claim, which would stop it with an illegal instruction on a machine it says it runs
 * on. For a CUDA kernel ncu measures it: see cuda_tools.c.
 *
 * Sub-features have names of their own: the assembler knows them all (instruction_sets.c). And the image runs on an emulated processor
 * that has exactly what it declares, as far as qemu-user emulates that. And the instructions that it claims are in use: a copy of the
 * image that stops at each of them has to stop on one of the problems.
 *
 * details: instructions {feature: count}, claimed, features (declared, by the assembler's names), checked (distinct instructions),
 * emulated {processor, problems}, or why it was not run.
 */
#include "gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build/build.h"
#include "build/claimed_feature.h"
#include "cuda_tools.h"
#include "judge/examine.h"
#include "build/instruction_sets.h"
#include "problem_pick.h"

enum { MOST_EMULATED = 3 };
#define EMULATED_FLOPS  3e6
#define EMULATED_SLOWER 10.0 /* an emulated processor gets so many times the time */

/* Every single instruction, by the name of its feature. */
static bool sub_features_are_declared(struct proof *proof, struct gate_result *result)
{
    char why[480];
    enum verdict verdict = instruction_sets_judge(proof->candidate.image, proof->facts.needs, result->details, why, sizeof why);
    if (verdict != VERDICT_PASS)
        gate_say(result, verdict, "%s", why);
    return verdict == VERDICT_PASS;
}

/* ---- the claimed feature in use ----------------------------------------------------------------------------------------------- */

/* Whether the image, which stops at every instruction of the feature, stops on this problem. *failed: it could not be run. */
static bool stops_on(struct proof *proof, const char *trapped, const attest_problem *problem, bool *failed)
{
    struct executor_spec spec = {.image = trapped, .threads = 1, .seconds = proof->policy.call_seconds};
    struct execution execution;
    struct inputs inputs;
    enum exit_code code;
    char why[512];
    const int slot = 0;
    if (!inputs_make(problem, proof->seed, NULL, &inputs, &code, why, sizeof why)) {
        *failed = true;
        return false;
    }
    struct executor *executor = executor_open(&spec, &execution);
    if (executor && executor_load(executor, slot, &inputs, &execution))
        execution = executor_run(executor, &slot, 1, EXECUTOR_DRAWN);
    *failed = *failed || execution.end == EXECUTION_LACKING;
    if (executor)
        executor_close(executor, NULL);
    inputs_free(&inputs);
    return execution.end == EXECUTION_CRASHED;
}

/* Instructions that no problem reaches are no reason to need a feature. */
static bool claim_is_used(struct proof *proof, enum feature claimed, struct gate_result *result)
{
    const struct problem_entry *problems[MOST_EMULATED];
    const struct problem_list *timed = &proof->timed;
    char trapped[] = "/tmp/attest-trapped-XXXXXX", why[480] = "no temporary file";
    bool used = false, failed = false;
    int file = mkstemp(trapped);
    if (file < 0 || !feature_trap(proof->candidate.image, claimed, trapped, why, sizeof why)) {
        gate_say(result, VERDICT_INCONCLUSIVE, "whether its instructions of %s are in use cannot be seen: %.400s",
                 feature_names[claimed], why);
        failed = true;
    } else {
        int count = pick_problems(proof, EMULATED_FLOPS, problems, MOST_EMULATED);
        for (int i = 0; i < count && !used; i++)
            used = stops_on(proof, trapped, &problems[i]->problem, &failed);
        for (int i = 0; i < timed->count && !used; i++)
            used = gate_takes(proof, &timed->entries[i].problem) && stops_on(proof, trapped, &timed->entries[i].problem, &failed);
        if (!used && failed)
            gate_say(result, VERDICT_INCONCLUSIVE, "whether its instructions of %s are in use cannot be seen: it could not be run",
                     feature_names[claimed]);
        else if (!used)
            gate_say(result, VERDICT_FAIL, "it claims %s, and its instructions of it are on a path that no problem takes",
                     feature_names[claimed]);
    }
    if (file >= 0) {
        close(file);
        unlink(trapped);
    }
    return used;
}

/* ---- on an emulated processor ------------------------------------------------------------------------------------------------ */

/* One problem on the emulated processor; the result has to be right. */
static bool run_one(struct proof *proof, struct executor *executor, const struct problem_entry *entry, struct gate_result *result)
{
    struct exam exam;
    struct outputs outputs = {0};
    struct finding finding = {0};
    char why[512] = "out of memory";
    if (!exam_make_quick(&exam, &entry->problem, proof->seed, NULL, 0, proof->threads, why, sizeof why)) {
        gate_say(result, VERDICT_INCONCLUSIVE, "%s: %s", entry->text, why);
        return false;
    }
    enum verdict verdict = VERDICT_INCONCLUSIVE;
    if (outputs_make(&outputs, &exam.inputs))
        verdict = subject_run(executor_subject(executor), &exam.inputs, exam.digest, &outputs, NULL, why, sizeof why);
    if (verdict == VERDICT_PASS) {
        verdict = exam_judge(&exam, &outputs, &finding);
        if (verdict != VERDICT_PASS)
            snprintf(why, sizeof why, "%.500s", finding.what);
    }
    if (verdict != VERDICT_PASS)
        gate_say(result, verdict, "on an emulated processor that has what it declares and nothing else (qemu-user): %.300s, on %s",
                 why, entry->text);
    outputs_free(&outputs);
    exam_free(&exam);
    return verdict == VERDICT_PASS;
}

/* The image on a processor that has the declared features and nothing else, as qemu emulates it. */
static bool runs_emulated(struct proof *proof, struct gate_result *result)
{
    const char *processor = instruction_sets_emulated(proof->facts.needs);
    const char *wrapper[] = {"qemu-x86_64", "-cpu", processor, NULL};
    const char *version[] = {"qemu-x86_64", "--version", NULL};
    const struct problem_entry *problems[MOST_EMULATED];
    struct execution execution;
    char log[512];
    if (!processor) {
        json_put(result->details, "emulated", json_string("not run: qemu-user emulates no AVX-512; the assembler decides alone"));
        return true;
    }
    if (build_command((char *const *)(uintptr_t)version, 60, log, sizeof log) != 0) {
        gate_say(result, VERDICT_INCONCLUSIVE,
                 "it has to run on an emulated processor that has what it declares: install the package qemu-user");
        return false;
    }
    struct executor_spec spec = {.image = proof->candidate.image,
                                 .threads = 1,
                                 .guard = GUARD_BANDS,
                                 .seconds = EMULATED_SLOWER * proof->policy.call_seconds,
                                 .wrapper = wrapper,
                                 .relaxed = true};
    struct executor *executor = executor_open(&spec, &execution);
    if (!executor) {
        gate_say(result, execution.end == EXECUTION_LACKING ? VERDICT_INCONCLUSIVE : VERDICT_FAIL,
                 "on an emulated processor that has what it declares and nothing else it does not load: %.400s",
                 execution.sentence);
        return false;
    }
    int count = pick_problems(proof, EMULATED_FLOPS, problems, MOST_EMULATED);
    bool good = true;
    for (int i = 0; i < count && good; i++)
        good = run_one(proof, executor, problems[i], result);
    executor_close(executor, NULL);
    json_put(result->details, "emulated", json_pack("{s:s, s:i}", "processor", processor, "problems", count));
    return good;
}

static void profile_cpu(struct proof *proof, struct gate_result *result)
{
    long counts[FEATURE_COUNT];
    char why[400];
    int claimed = -1, used = -1;
#if !defined(__x86_64__)
    gate_say(result, VERDICT_NOT_APPLICABLE, "features are known for x86-64 alone, and this machine is another");
    return;
#endif
    if (!feature_counts(proof->candidate.image, counts, why, sizeof why)) {
        gate_say(result, VERDICT_INCONCLUSIVE, "its instructions cannot be listed: %s", why);
        return;
    }
    json_t *found = json_object();
    for (int i = 0; i < FEATURE_COUNT; i++) {
        json_put(found, feature_names[i], json_integer(counts[i]));
        if (strcmp(proof->facts.needs, feature_names[i]) == 0)
            claimed = i;
        if (counts[i])
            used = i;
    }
    json_put(result->details, "instructions", found);
    json_put(result->details, "claimed", json_string(proof->facts.needs));
    if (used > claimed)
        gate_say(result, VERDICT_FAIL, "it says that it needs %s, and has %ld instructions of %s",
                 claimed < 0 ? "nothing" : feature_names[claimed], counts[used], feature_names[used]);
    else if (claimed >= 0 && counts[claimed] == 0)
        gate_say(result, VERDICT_FAIL, "it claims %s and has not one instruction of it", feature_names[claimed]);
    else if (sub_features_are_declared(proof, result) && runs_emulated(proof, result) &&
             (claimed < 0 || claim_is_used(proof, (enum feature)claimed, result))) {
        if (claimed < 0)
            gate_say(result, VERDICT_PASS, "plain instructions alone, as it says");
        else
            gate_say(result, VERDICT_PASS, "%ld instructions of %s, and none beyond", counts[claimed], feature_names[claimed]);
    }
}

void gate_profile(struct proof *proof, struct gate_result *result)
{
    if (proof->candidate.cuda)
        cuda_gate_profile(proof, result);
    else
        profile_cpu(proof, result);
}
