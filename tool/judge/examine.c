/*
 * examine.c - one problem on one subject (see examine.h).
 */
#include "examine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/runner.h"
#include "data/same_bits.h"
#include "values.h"

bool exam_make(struct exam *exam, const attest_problem *problem, uint64_t seed, const struct value_set *values, int64_t rows,
               int threads, char *why, size_t why_size)
{
    enum exit_code code;
    *exam = (struct exam){0};
    if (!inputs_make(problem, seed, NULL, &exam->inputs, &code, why, why_size))
        return false;
    if (values)
        values_apply(values, &exam->inputs, seed);
    exam->digest = inputs_digest(&exam->inputs);
    if (judge_make(&exam->judge, &exam->inputs, seed, rows, threads, why, why_size) &&
        controls_run(&exam->judge, &exam->controls, why, why_size))
        return true;
    exam_free(exam);
    return false;
}

bool exam_make_quick(struct exam *exam, const attest_problem *problem, uint64_t seed, const struct contents *contents,
                     row_chooser *choose, int threads, char *why, size_t why_size)
{
    enum exit_code code;
    *exam = (struct exam){0};
    if (!inputs_make_with(problem, seed, contents, &exam->inputs, &code, why, why_size))
        return false;
    exam->digest = inputs_digest(&exam->inputs);
    bool special = contents && contents->word[CONTENT_special];
    struct judge_rows chosen = {0};
    int64_t *numbers = choose ? choose(&exam->inputs, seed, &chosen.count) : NULL;
    chosen.numbers = numbers;
    bool made = judge_make_bounds(&exam->judge, &exam->inputs, numbers ? &chosen : NULL, special, threads, why, why_size);
    free(numbers);
    if (made)
        return true;
    exam_free(exam);
    return false;
}

void exam_free(struct exam *exam)
{
    judge_free(&exam->judge);
    inputs_free(&exam->inputs);
}

enum verdict subject_run(struct subject subject, const struct inputs *inputs, uint64_t digest, struct outputs *outputs,
                         enum execution_end *end, char *why, size_t why_size)
{
    outputs_poison(outputs);
    struct execution execution = subject.run(subject.data, inputs, outputs);
    if (end)
        *end = execution.end;
    if (execution.end != EXECUTION_DONE) {
        snprintf(why, why_size, "%s", execution.sentence);
        return execution.end == EXECUTION_LACKING   ? VERDICT_INCONCLUSIVE
               : execution.end == EXECUTION_REFUSED ? VERDICT_NOT_APPLICABLE
                                                    : VERDICT_FAIL;
    }
    if (!outputs_intact(outputs, why, why_size))
        return VERDICT_FAIL;
    if (inputs_digest(inputs) == digest)
        return VERDICT_PASS;
    snprintf(why, why_size, "the inputs were changed");
    return VERDICT_FAIL;
}

/* Whatever the rows, O is finite and LSE is finite or -inf: the inputs are. */
static bool all_finite(const struct exam *exam, const struct outputs *outputs, struct finding *finding)
{
    const attest_problem *problem = &exam->inputs.problem;
    const struct layout *layout = &exam->inputs.layout;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t h = 0; h < problem->heads_q; h++)
            for (int64_t i = 0; i < layout_rows(layout, b); i++) {
                int64_t at = layout_row_at(layout, problem->stride_o, b, h, i), d = 0;
                float lse = 0;
                if (problem->flags & ATTEST_LSE)
                    lse = ((const float *)outputs->lse.at)[layout_row_at(layout, problem->stride_lse, b, h, i)];
                while (d < problem->dim_v && isfinite(element_load(outputs->o.at, problem->dtype_o, at + d)))
                    d++;
                if (d == problem->dim_v && (isfinite(lse) || lse == -INFINITY))
                    continue;
                finding->accepted = false;
                finding->ratio = INFINITY;
                snprintf(finding->what, sizeof finding->what, "%s of row [%lld,%lld,%lld] is not finite, and all inputs are",
                         d < problem->dim_v ? "O" : "LSE", (long long)b, (long long)h, (long long)i);
                return false;
            }
    return true;
}

enum verdict exam_judge(const struct exam *exam, const struct outputs *outputs, struct finding *finding)
{
    const attest_problem *problem = &exam->inputs.problem;
    judge_output(&exam->judge, exam->judge.row_count, outputs->o.at, problem->stride_o, outputs->lse.at, problem->stride_lse,
                 finding);
    if (!finding->accepted || (!exam->judge.tainted && !all_finite(exam, outputs, finding)))
        return VERDICT_FAIL;
    if (exam->controls.accepted == 0)
        return VERDICT_PASS;
    int first = 0;
    while (exam->controls.states[first] != CONTROL_ACCEPTED)
        first++;
    snprintf(finding->what, sizeof finding->what, "on these inputs a wrong answer (%s) would pass too",
             exam->controls.names[first]);
    return VERDICT_INCONCLUSIVE;
}

void exam_run_again(const struct exam *exam, struct subject subject, const struct outputs *outputs, char *note, size_t note_size)
{
    struct outputs again = {0};
    struct computed first = {&exam->inputs, outputs}, second = {&exam->inputs, &again};
    char what[160], why[640];
    const size_t used = strlen(note);
    if (outputs_make(&again, &exam->inputs) &&
        subject_run(subject, &exam->inputs, exam->digest, &again, NULL, why, sizeof why) == VERDICT_PASS &&
        !same_bits(first, second, what, sizeof what))
        snprintf(note + used, note_size - used, "; run again, %.140s: it is not written, or depends on what was in memory before",
                 what);
    outputs_free(&again);
}

static struct execution run_library(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    const struct library_kernel *kernel = data;
    struct execution execution = {.end = EXECUTION_DONE};
    char why[512] = "";
    struct runner runner;
    attest_status status = runner_make_on(&runner, kernel->device ? kernel->device : "cpu", &inputs->problem, kernel->name,
                                          kernel->threads, why, sizeof why);
    if (status == ATTEST_OK) {
        attest_tensors tensors = outputs_tensors(inputs, outputs);
        runner_poison(&runner, kernel->rubbish);
        status = runner_run(&runner, &tensors, why, sizeof why);
        runner_free(&runner);
    }
    if (status != ATTEST_OK) {
        execution.end = status == ATTEST_ERROR_UNSUPPORTED     ? EXECUTION_REFUSED
                        : exit_code_of(status) == EXIT_LACKING ? EXECUTION_LACKING
                                                               : EXECUTION_INVALID;
        if (kernel->device && strcmp(kernel->device, "cpu") != 0)
            snprintf(execution.sentence, sizeof execution.sentence, "on %s: %s: %s", kernel->device, attest_status_name(status),
                     why);
        else
            snprintf(execution.sentence, sizeof execution.sentence, "with %d threads: %s: %s", kernel->threads,
                     attest_status_name(status), why);
    }
    return execution;
}

struct subject library_subject(struct library_kernel *kernel)
{
    return (struct subject){.run = run_library, .data = kernel};
}
