/*
 * cover_problems.c - the covering array of problems (see cover_problems.h).
 *
 * A row of levels becomes a problem with values from the seed. It is run once, and every row of its output is judged against float64 by
 * the component bound. Then the row's triples count as covered, of those fields that showed (visible_fields.c). Sizes are drawn small where
 * their levels allow it, so that a problem costs about a millisecond of the oracle; a level such as 8193 keys keeps its size, and the
 * other dimensions give way.
 */
#include "cover_problems.h"

#include <stdio.h>
#include <string.h>

#include "repeated_call.h"
#include "judge/examine.h"
#include "visible_fields.h"
#include "problem_space.h"
#include "base/random.h"

/* Multiplications of one evaluation by the oracle: of a problem whose levels ask for no more, and of any. */
#define USUAL_WORK 1.5e5
#define MOST_WORK  4e6

enum { EMPTY_EVERY = 40, AGAIN_EVERY = 2, SEED_ARRAY = 600, SEED_VALUES, SEED_INPUTS, SEED_ALONE };

uint64_t cover_seed(uint64_t seed, uint64_t stream, uint64_t index)
{
    return 1 + random_bits(seed, stream, index) % 999999999;
}

/* A sequence that the seed draws has the same bits alone. */
static bool one_is_same_alone(struct subject subject, const struct exam *exam, const struct outputs *outputs, uint64_t seed,
                              char *why, size_t why_size)
{
    const int64_t sequence = random_below(random_bits(seed, SEED_ALONE, 0), exam->inputs.problem.batch - 1);
    struct execution execution;
    char what[256] = "";
    if (same_alone(subject, &exam->inputs, outputs, sequence, &execution, what, sizeof what))
        return true;
    snprintf(why, why_size, "other bits if sequence %lld is computed alone, as a dense problem (%s)", (long long)sequence, what);
    return false;
}

/* What the subject says of the problem's inputs; it has no room for outputs. */
static void run_unjudged(struct subject subject, struct cover_outcome *outcome)
{
    struct inputs inputs;
    enum exit_code code;
    if (!inputs_make_with(&outcome->problem, outcome->seed, &outcome->contents, &inputs, &code, outcome->note,
                          sizeof outcome->note))
        return;
    outcome->end = subject.run(subject.data, &inputs, NULL).end;
    outcome->verdict = VERDICT_NOT_APPLICABLE;
    inputs_free(&inputs);
}

int64_t cover_examine(struct subject subject, struct cover_outcome *outcome, row_chooser *choose, int threads, const int *row,
                      bool *observed)
{
    struct exam exam;
    struct outputs outputs;
    int64_t judged = 0;
    outcome->verdict = VERDICT_INCONCLUSIVE;
    outcome->end = EXECUTION_DONE;
    if (outcome->unjudged) {
        run_unjudged(subject, outcome);
        return 0;
    }
    if (!exam_make_quick(&exam, &outcome->problem, outcome->seed, &outcome->contents, choose, threads, outcome->note,
                         sizeof outcome->note))
        return 0;
    if (!outputs_make(&outputs, &exam.inputs)) {
        snprintf(outcome->note, sizeof outcome->note, "out of memory for the outputs");
    } else {
        outcome->verdict =
            subject_run(subject, &exam.inputs, exam.digest, &outputs, &outcome->end, outcome->note, sizeof outcome->note);
        if (outcome->verdict == VERDICT_PASS) {
            outcome->verdict = exam_judge(&exam, &outputs, &outcome->finding);
            snprintf(outcome->note, sizeof outcome->note, "%s", outcome->finding.what);
            if (outcome->verdict == VERDICT_FAIL)
                exam_run_again(&exam, subject, &outputs, outcome->note, sizeof outcome->note);
            judged = exam.judge.row_count;
            bool pure = outcome->verdict != VERDICT_PASS || !outcome->again || !subject.run_after ||
                        same_after_another(subject, &exam.inputs, &outputs, outcome->seed, outcome->note, sizeof outcome->note);
            pure = pure && (outcome->verdict != VERDICT_PASS || !outcome->alone || contents_special(&outcome->contents) ||
                            one_is_same_alone(subject, &exam, &outputs, outcome->seed, outcome->note, sizeof outcome->note));
            if (!pure) {
                outcome->verdict = VERDICT_FAIL;
                snprintf(outcome->finding.what, sizeof outcome->finding.what, "%.255s", outcome->note);
            }
            if (observed)
                observed_fields(&exam, row, observed);
        }
        outputs_free(&outputs);
    }
    exam_free(&exam);
    return judged;
}

/* The same problem with no sequences, no rows or no keys. */
static void make_empty(attest_problem *problem, int which)
{
    *(which == 0 ? &problem->seq_kv : which == 1 ? &problem->seq_q : &problem->batch) = 0;
    if (which == 2)
        problem->total_q = problem->total_kv = 0;
    if (which == 1)
        problem->total_q = 0;
    if (which == 0)
        problem->total_kv = 0;
    attest_problem_pack(problem);
}

void cover_examine_jobs(const struct cover_plan *plan, struct cover_job *jobs, int count)
{
    enum { LANES = 2 };
    const struct subject subjects[LANES] = {plan->subject, plan->second.run ? plan->second : plan->subject};
    const int lanes = plan->second.run && plan->threads > 1 ? LANES : 1;
#pragma omp parallel for num_threads(lanes) schedule(static, 1) if (lanes > 1)
    for (int n = 0; n < count; n++) {
        struct cover_job *job = &jobs[n];
        if (job->wanted)
            job->judged = cover_examine(subjects[n % lanes], &job->outcome, job->choose, 1, job->has_row ? job->row : NULL,
                                        job->has_row ? job->observed : NULL);
    }
}

static bool count_row(const struct cover_plan *plan, struct cover_summary *summary, const struct cover_job *drawn)
{
    summary->rows_judged += drawn->judged;
    summary->problems += drawn->outcome.verdict == VERDICT_PASS || drawn->outcome.verdict == VERDICT_FAIL;
    summary->refused += drawn->outcome.verdict == VERDICT_NOT_APPLICABLE;
    return plan->report(plan->data, &drawn->outcome);
}

/* One more problem, of nothing. */
static bool examine_empty(const struct cover_plan *plan, struct cover_summary *summary, const struct cover_job *from, int which)
{
    struct cover_job drawn = {
        .outcome = {
            .part = "empty", .seed = from->outcome.seed, .problem = from->outcome.problem, .unjudged = from->outcome.unjudged}};
    make_empty(&drawn.outcome.problem, which);
    if (attest_problem_check(&drawn.outcome.problem, NULL, 0) != ATTEST_OK || !taker_takes(plan->taker, &drawn.outcome.problem))
        return true;
    drawn.judged = cover_examine(plan->subject, &drawn.outcome, NULL, 1, NULL, NULL);
    return count_row(plan, summary, &drawn);
}

/* What the kernel refuses is learned: levels that do not go together are in no further row. */
static void exclude_refused(const struct problem_space *space, struct covering *covering, const int row[COVERING_FIELDS],
                            uint64_t seed)
{
    int fields[MOST_BLAMED], levels[MOST_BLAMED], count = problem_space_blame(space, row, seed, fields, levels);
    if (count)
        covering_exclude(covering, fields, levels, count);
}

bool cover_compares_alone(const struct cover_plan *plan, const attest_problem *problem)
{
    return !plan->numbers_only && (!plan->device || problem->flags & ATTEST_INVARIANT);
}

static void draw_job(const struct cover_plan *plan, const struct problem_space *space, struct covering *covering, uint64_t number,
                     struct cover_job *job)
{
    const uint64_t values = random_bits(plan->seed, SEED_VALUES, number);
    struct cover_outcome *outcome = &job->outcome;
    *outcome = (struct cover_outcome){.part = "covering",
                                      .seed = cover_seed(plan->seed, SEED_INPUTS, number),
                                      .again = number % AGAIN_EVERY == 0,
                                      .unjudged = plan->unjudged};
    job->has_row = true;
    job->wanted = problem_space_draw(space, job->row, values, &outcome->problem, &outcome->contents);
    if (!job->wanted)
        exclude_refused(space, covering, job->row, values);
    outcome->alone = number % AGAIN_EVERY == 1 && outcome->problem.batch > 0 && cover_compares_alone(plan, &outcome->problem);
}

void cover_array(const struct cover_plan *plan, struct cover_summary *summary)
{
    struct problem_space space;
    problem_space_make(&space, plan->taker, USUAL_WORK, MOST_WORK);
    struct covering *covering = covering_make(&space.covering, random_bits(plan->seed, SEED_ARRAY, 0));
    bool going = covering != NULL;
    for (int n = 0; n < plan->rows && going; n += COVER_JOBS) {
        struct cover_job jobs[COVER_JOBS] = {0};
        int count = 0;
        for (; count < COVER_JOBS && n + count < plan->rows && covering_next(covering, jobs[count].row); count++)
            draw_job(plan, &space, covering, (uint64_t)(n + count), &jobs[count]);
        progress("correctness: problem %d of %d of the covering array", n + 1, plan->rows);
        cover_examine_jobs(plan, jobs, count);
        for (int k = 0; k < count && going; k++) {
            summary->refused += !jobs[k].wanted;
            going = !jobs[k].wanted || count_row(plan, summary, &jobs[k]);
            if (jobs[k].wanted && jobs[k].outcome.verdict == VERDICT_PASS)
                covering_mark(covering, jobs[k].row, jobs[k].observed);
            if ((n + k) % EMPTY_EVERY == EMPTY_EVERY - 1 && jobs[k].wanted && going)
                going = examine_empty(plan, summary, &jobs[k], (n + k) / EMPTY_EVERY % 3);
        }
        going = going && count == COVER_JOBS;
    }
    if (covering) {
        struct covering_count counts = covering_counts(covering);
        summary->triples = counts.triples;
        summary->infeasible = counts.infeasible;
        summary->covered = counts.covered;
    }
    covering_free(covering);
}
