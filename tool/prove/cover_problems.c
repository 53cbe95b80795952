/*
 * cover_problems.c - the covering array of problems (see cover_problems.h).
 *
 * A row of levels becomes a problem with values from the seed. It is run once, and every row of its output is judged against float64 by
 * the component bound. Then the row's triples count as covered, of those fields that showed (observed.c). Sizes are drawn small where
 * their levels allow it, so that a problem costs about a millisecond of the oracle; a level such as 8193 keys keeps its size, and the
 * other dimensions give way.
 */
#include "cover_problems.h"

#include <stdio.h>
#include <string.h>

#include "examine.h"
#include "observed.h"
#include "problem_space.h"
#include "random.h"

/* Multiplications of one evaluation by the oracle: of a problem whose levels ask for no more, and of any. */
#define USUAL_WORK 1.5e5
#define MOST_WORK  4e6

enum { EMPTY_EVERY = 40, SEED_ARRAY = 600, SEED_VALUES, SEED_INPUTS };

uint64_t cover_seed(uint64_t seed, uint64_t stream, uint64_t index)
{
    return 1 + random_bits(seed, stream, index) % 999999999;
}

int64_t cover_examine(const struct cover_plan *plan, struct cover_outcome *outcome, row_chooser *choose, const int *row,
                      bool *observed)
{
    struct exam exam;
    struct outputs outputs;
    int64_t judged = 0;
    outcome->verdict = VERDICT_INCONCLUSIVE;
    outcome->end = EXECUTION_DONE;
    if (!exam_make_quick(&exam, &outcome->problem, outcome->seed, &outcome->contents, choose, plan->threads, outcome->note,
                         sizeof outcome->note))
        return 0;
    if (!outputs_make(&outputs, &exam.inputs)) {
        snprintf(outcome->note, sizeof outcome->note, "out of memory for the outputs");
    } else {
        outcome->verdict =
            subject_run(plan->subject, &exam.inputs, exam.digest, &outputs, &outcome->end, outcome->note, sizeof outcome->note);
        if (outcome->verdict == VERDICT_PASS) {
            outcome->verdict = exam_judge(&exam, &outputs, &outcome->finding);
            snprintf(outcome->note, sizeof outcome->note, "%s", outcome->finding.what);
            judged = exam.judge.row_count;
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

static bool examine_row(const struct cover_plan *plan, struct cover_summary *summary, struct cover_outcome *outcome, const int *row,
                        bool *observed)
{
    outcome->finding = (struct finding){0};
    outcome->note[0] = '\0';
    summary->rows_judged += cover_examine(plan, outcome, NULL, row, observed);
    summary->problems += outcome->verdict == VERDICT_PASS || outcome->verdict == VERDICT_FAIL;
    summary->refused += outcome->verdict == VERDICT_NOT_APPLICABLE;
    return plan->report(plan->data, outcome);
}

void cover_array(const struct cover_plan *plan, struct cover_summary *summary)
{
    struct problem_space space;
    problem_space_make(&space, plan->taker, USUAL_WORK, MOST_WORK);
    struct covering *covering = covering_make(&space.covering, random_bits(plan->seed, SEED_ARRAY, 0));
    int row[COVERING_FIELDS];
    bool going = covering != NULL;
    for (int n = 0; n < plan->rows && going && covering_next(covering, row); n++) {
        struct cover_outcome outcome = {.part = "covering", .seed = cover_seed(plan->seed, SEED_INPUTS, (uint64_t)n)};
        bool observed[COVERING_FIELDS] = {false};
        if (n % 20 == 0)
            progress("correctness: problem %d of %d of the covering array", n + 1, plan->rows);
        if (!problem_space_draw(&space, row, random_bits(plan->seed, SEED_VALUES, (uint64_t)n), &outcome.problem,
                                &outcome.contents)) {
            summary->refused++;
            continue;
        }
        going = examine_row(plan, summary, &outcome, row, observed);
        if (outcome.verdict == VERDICT_PASS)
            covering_mark(covering, row, observed);
        if (n % EMPTY_EVERY == EMPTY_EVERY - 1 && going) {
            outcome.part = "empty";
            outcome.contents = (struct contents){0};
            make_empty(&outcome.problem, n / EMPTY_EVERY % 3);
            if (attest_problem_check(&outcome.problem, NULL, 0) == ATTEST_OK && taker_takes(plan->taker, &outcome.problem))
                going = examine_row(plan, summary, &outcome, row, NULL);
        }
    }
    if (covering) {
        struct covering_count counts = covering_counts(covering);
        summary->triples = counts.triples;
        summary->infeasible = counts.infeasible;
        summary->covered = counts.covered;
    }
    covering_free(covering);
}
