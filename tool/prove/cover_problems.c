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

#include "after_another.h"
#include "examine.h"
#include "observed.h"
#include "problem_space.h"
#include "random.h"

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

int64_t cover_examine(struct subject subject, struct cover_outcome *outcome, row_chooser *choose, int threads, const int *row,
                      bool *observed)
{
    struct exam exam;
    struct outputs outputs;
    int64_t judged = 0;
    outcome->verdict = VERDICT_INCONCLUSIVE;
    outcome->end = EXECUTION_DONE;
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

/* A problem of the array, and what came of it. */
struct drawn {
    int row[COVERING_FIELDS];
    bool observed[COVERING_FIELDS];
    struct cover_outcome outcome;
    int64_t judged;
    bool taken; /* by the library and the kernel */
};

static bool count_row(const struct cover_plan *plan, struct cover_summary *summary, const struct drawn *drawn)
{
    summary->rows_judged += drawn->judged;
    summary->problems += drawn->outcome.verdict == VERDICT_PASS || drawn->outcome.verdict == VERDICT_FAIL;
    summary->refused += drawn->outcome.verdict == VERDICT_NOT_APPLICABLE;
    return plan->report(plan->data, &drawn->outcome);
}

/* One more problem, of nothing. */
static bool examine_empty(const struct cover_plan *plan, struct cover_summary *summary, const struct drawn *from, int which)
{
    struct drawn drawn = {.outcome = {.part = "empty", .seed = from->outcome.seed, .problem = from->outcome.problem}};
    make_empty(&drawn.outcome.problem, which);
    if (attest_problem_check(&drawn.outcome.problem, NULL, 0) != ATTEST_OK || !taker_takes(plan->taker, &drawn.outcome.problem))
        return true;
    drawn.judged = cover_examine(plan->subject, &drawn.outcome, NULL, 1, NULL, NULL);
    return count_row(plan, summary, &drawn);
}

/* Problems are drawn two at a time, whether or not there are two workers to run them, so that a seed draws the same. */
void cover_array(const struct cover_plan *plan, struct cover_summary *summary)
{
    enum { LANES = 2 };
    const struct subject subjects[LANES] = {plan->subject, plan->second.run ? plan->second : plan->subject};
    const int lanes = plan->second.run && plan->threads > 1 ? LANES : 1;
    struct problem_space space;
    problem_space_make(&space, plan->taker, USUAL_WORK, MOST_WORK);
    struct covering *covering = covering_make(&space.covering, random_bits(plan->seed, SEED_ARRAY, 0));
    bool going = covering != NULL;
    for (int n = 0; n < plan->rows && going; n += LANES) {
        struct drawn drawn[LANES] = {0};
        int count = 0;
        while (count < LANES && n + count < plan->rows && covering_next(covering, drawn[count].row)) {
            struct drawn *one = &drawn[count];
            uint64_t number = (uint64_t)(n + count++);
            one->outcome = (struct cover_outcome){
                .part = "covering", .seed = cover_seed(plan->seed, SEED_INPUTS, number), .again = number % AGAIN_EVERY == 0};
            one->taken = problem_space_draw(&space, one->row, random_bits(plan->seed, SEED_VALUES, number), &one->outcome.problem,
                                            &one->outcome.contents);
            one->outcome.alone = !plan->numbers_only && number % AGAIN_EVERY == 1 && one->outcome.problem.batch > 0 &&
                                 (!plan->device || one->outcome.problem.flags & ATTEST_INVARIANT);
        }
        if (n % 20 == 0)
            progress("correctness: problem %d of %d of the covering array", n + 1, plan->rows);
#pragma omp parallel for num_threads(lanes) if (lanes > 1)
        for (int lane = 0; lane < count; lane++)
            if (drawn[lane].taken)
                drawn[lane].judged =
                    cover_examine(subjects[lane], &drawn[lane].outcome, NULL, 1, drawn[lane].row, drawn[lane].observed);
        for (int lane = 0; lane < count && going; lane++) {
            summary->refused += !drawn[lane].taken;
            going = !drawn[lane].taken || count_row(plan, summary, &drawn[lane]);
            if (drawn[lane].taken && drawn[lane].outcome.verdict == VERDICT_PASS)
                covering_mark(covering, drawn[lane].row, drawn[lane].observed);
            if ((n + lane) % EMPTY_EVERY == EMPTY_EVERY - 1 && drawn[lane].taken && going)
                going = examine_empty(plan, summary, &drawn[lane], (n + lane) / EMPTY_EVERY % 3);
        }
        going = going && count == LANES;
    }
    if (covering) {
        struct covering_count counts = covering_counts(covering);
        summary->triples = counts.triples;
        summary->infeasible = counts.infeasible;
        summary->covered = counts.covered;
    }
    covering_free(covering);
}
