/*
 * cmd_check.c - attest check: kernels against the oracle, problem by problem. What is compared, and when it is an error, is in
 * judge.c and controls.c, a run is in judge/examine.c; here are the repetitions and the table.
 */
#include "run/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "judge/examine.h"

struct check {
    struct session *session;
    const struct problem_entry *entry;
    struct contents contents;
    struct exam exam;
    int counts[VERDICT_COUNT];
};

static void add_note(json_t *row, json_t *note)
{
    json_t *notes = json_object_get(row, "notes");
    if (!notes) {
        json_put(row, "notes", json_array());
        notes = json_object_get(row, "notes");
    }
    json_add(notes, note);
}

/* The command that gives this very row again. */
static json_t *reproduction(const struct check *check, const char *kernel)
{
    const struct options *options = &check->session->options;
    const char *disabled = getenv("ATTEST_DISABLE");
    char rows[48] = "", device[64] = "", contents[CONTENTS_TEXT + 16] = "";
    if (options->contents)
        snprintf(contents, sizeof contents, " --contents %s", options->contents);
    if (!context_on_cpu(check->session->context))
        snprintf(device, sizeof device, " --device %s", attest_context_device(check->session->context));
    if (options->rows)
        snprintf(rows, sizeof rows, " --rows %" PRId64, options->rows);
    return json_text("reproduce: %s%s%sattest check %s --kernel %s --seed %" PRId64 " --threads %d%s%s%s",
                     disabled ? "ATTEST_DISABLE=" : "", disabled ? disabled : "", disabled ? " " : "", check->entry->text, kernel,
                     options->seed, attest_context_threads(check->session->context), rows, contents, device);
}

static void add_row(struct check *check, json_t *row, const char *kernel, enum verdict verdict)
{
    check->counts[verdict]++;
    json_put(row, "verdict", json_string(verdict_name(verdict)));
    if (verdict == VERDICT_FAIL)
        add_note(row, reproduction(check, kernel));
    report_row(&check->session->report, row);
}

static json_t *new_row(const struct check *check, const char *kernel)
{
    return json_pack("{s:s, s:s, s:s}", "problem", check->entry->text, "kernel", kernel, "place", check->entry->place);
}

/* One run from a poisoned workspace. Adds a note if it fails or touches what it must not. */
static enum verdict run_poisoned(struct check *check, json_t *row, const char *kernel, int threads, int rubbish,
                                 struct outputs *outputs)
{
    char why[1024] = "";
    struct library_kernel asked = {kernel, threads, rubbish, attest_context_device(check->session->context)};
    enum verdict verdict =
        subject_run(library_subject(&asked), &check->exam.inputs, check->exam.digest, outputs, NULL, why, sizeof why);
    if (verdict != VERDICT_PASS)
        add_note(row, json_string(why));
    return verdict;
}

/* Three runs: as asked, again with other rubbish in the workspace, and with another number of threads. A GPU has threads of its
 * own. */
static enum verdict check_runs(struct check *check, json_t *row, const char *kernel, struct outputs *first, struct outputs *again)
{
    int threads = attest_context_threads(check->session->context);
    int other = threads > 1 ? 1 : 3;
    enum verdict verdict = run_poisoned(check, row, kernel, threads, 0xff, first);
    if (verdict != VERDICT_PASS || (verdict = run_poisoned(check, row, kernel, threads, 0x5a, again)) != VERDICT_PASS)
        return verdict;
    if (!outputs_equal(first, again)) {
        add_note(row, json_string("a second run with other contents of the workspace gave other bits"));
        return VERDICT_FAIL;
    }
    if (!context_on_cpu(check->session->context) ||
        (verdict = run_poisoned(check, row, kernel, other, 0xff, again)) != VERDICT_PASS)
        return verdict;
    if (!outputs_equal(first, again)) {
        add_note(row, json_text("%d and %d threads gave different bits", threads, other));
        return VERDICT_FAIL;
    }
    return VERDICT_PASS;
}

static json_t *list_controls(const struct controls *controls)
{
    static const char *const states[] = {"rejected", "accepted", "no wrong answer here"};
    json_t *list = json_array();
    for (int i = 0; i < CONTROL_COUNT; i++)
        json_add(list, json_pack("{s:s, s:s}", "control", controls->names[i], "judge", states[controls->states[i]]));
    return list;
}

static void check_kernel(struct check *check, const char *kernel)
{
    const struct exam *exam = &check->exam;
    struct outputs first = {0}, again = {0};
    json_t *row = new_row(check, kernel);
    enum verdict verdict = VERDICT_INCONCLUSIVE;
    json_put(row, "rows", json_integer(exam->judge.row_count));
    json_put(row, "rows_of", json_integer(exam->judge.total_rows));
    if (!check->session->options.contents) /* with chosen contents there are no controls */
        json_put(row, "controls", list_controls(&exam->controls));
    if (!outputs_make(&first, &exam->inputs) || !outputs_make(&again, &exam->inputs))
        add_note(row, json_string("out of memory for the outputs"));
    else
        verdict = check_runs(check, row, kernel, &first, &again);
    if (verdict == VERDICT_PASS) {
        struct finding finding;
        verdict = exam_judge(exam, &first, &finding);
        json_put(row, "max_error", json_number(finding.max_error));
        json_put(row, "ratio", json_number(finding.ratio));
        if (verdict == VERDICT_INCONCLUSIVE)
            add_note(row, json_text("%s; try another --seed, or more --rows", finding.what));
        else if (verdict != VERDICT_PASS)
            add_note(row, json_string(finding.what));
    }
    outputs_free(&first);
    outputs_free(&again);
    add_row(check, row, kernel, verdict);
}

/* Nothing was run: one row that says why. */
static void skip_problem(struct check *check, enum verdict verdict, const char *why)
{
    json_t *row = new_row(check, "-");
    add_note(row, json_string(why));
    add_row(check, row, "*", verdict);
}

static void check_problem(struct check *check)
{
    struct session *session = check->session;
    const attest_problem *problem = &check->entry->problem;
    const struct options *options = &session->options;
    const char *kernels[MOST_KERNELS];
    char why[1024] = "";
    int count = kernels_select(session, problem, kernels, MOST_KERNELS, why, sizeof why);
    if (count == 0) {
        skip_problem(check, VERDICT_NOT_APPLICABLE, why);
        return;
    }
    int threads = attest_context_threads(session->context);
    uint64_t seed = (uint64_t)options->seed;
    bool made = options->contents ? exam_make_quick(&check->exam, problem, seed, &check->contents, NULL, threads, why, sizeof why)
                                  : exam_make(&check->exam, problem, seed, NULL, options->rows, threads, why, sizeof why);
    if (!made) {
        skip_problem(check, VERDICT_INCONCLUSIVE, why);
        return;
    }
    for (int i = 0; i < count; i++) {
        progress("checking %s: %s", check->entry->text, kernels[i]);
        check_kernel(check, kernels[i]);
    }
    exam_free(&check->exam);
}

enum exit_code cmd_check(struct session *session)
{
    static const struct column columns[] = {{"problem", "problem", -20}, {"kernel", "kernel", -12},      {"rows", "rows", 6},
                                            {"rows_of", "of", 6},        {"max_error", "max error", 10}, {"ratio", "ratio", 8},
                                            {"verdict", "verdict", -8}};
    struct check check = {.session = session};
    int widths[COUNT_OF(columns)] = {0};
    char why[1024];
    if (session->options.contents && !contents_parse(session->options.contents, &check.contents, why, sizeof why))
        return give_up(session, EXIT_USAGE, NULL, "--contents: %s", why);
    table_widths(session, &widths[0], &widths[1]);
    report_table(&session->report, "checks", columns, COUNT_OF(columns), widths);
    for (int i = 0; i < session->problems.count; i++) {
        check.entry = &session->problems.entries[i];
        progress("problem %d of %d: %s", i + 1, session->problems.count, check.entry->text);
        check_problem(&check);
    }
    const int *counts = check.counts;
    enum verdict verdict = counts[VERDICT_FAIL]           ? VERDICT_FAIL
                           : counts[VERDICT_INCONCLUSIVE] ? VERDICT_INCONCLUSIVE
                           : counts[VERDICT_PASS]         ? VERDICT_PASS
                                                          : VERDICT_NOT_APPLICABLE;
    report_put(&session->report, "seed", json_integer(session->options.seed));
    report_put(&session->report, "passed", json_integer(counts[VERDICT_PASS]));
    report_put(&session->report, "failed", json_integer(counts[VERDICT_FAIL]));
    report_put(&session->report, "inconclusive", json_integer(counts[VERDICT_INCONCLUSIVE]));
    report_put(&session->report, "not_applicable", json_integer(counts[VERDICT_NOT_APPLICABLE]));
    report_put(&session->report, "verdict", json_string(verdict_name(verdict)));
    return verdict == VERDICT_PASS ? EXIT_PASS : verdict == VERDICT_FAIL ? EXIT_FAILED : EXIT_LACKING;
}
