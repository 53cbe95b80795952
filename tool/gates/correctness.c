/*
 * correctness.c - right on shapes and values nobody chose.
 *
 * In this order: the problems of the suite that the kernel takes, those that will be timed with their neighbours by one row or key,
 * random neighbours of the suite's (shape_variants.c), problems next to the numbers that the kernel compares with (constant_problems.c), a covering array over all fields of a problem and its contents (cover_problems.c),
 * large sizes (large_sizes.c), and problems with more than 2^31 elements between their rows, heads, sequences or pages (far_strides.c), each on inputs drawn from the seed and judged against float64 (judge.c); values that break kernels (values.c), likewise; relations that need no reference
 * (relations.c); and the errors of all but values and relations together against the champion's on the same inputs (precision.c).
 *
 * An input set on which the judge would accept a wrong answer proves nothing: it is drawn again, a few times, before it is
 * INCONCLUSIVE. After a few failures the rest is not looked at, and after a run that did not end there is nobody left to ask.
 *
 * Details:
 *   "rows":      [{"part": "suite" | "timed" | "neighbour" | "far", "problem", "seed", "verdict", "max_error", "ratio", "note"}, ...]
 *   "values":    [{"set", "verdict", "ratio", "note"}, ...]           the worst of its problems
 *   "relations": [{"relation", "verdict", "note"}, ...]
 *   "cover":     {"generator", "strength", "seed", "problems", "refused", "rows_judged", "triples", "infeasible", "covered", "large",
 *                "constant"}
 *                what the covering array of this seed covered (cover_problems.h); its problems are in "rows" only if they fail
 *   "error":     {"p999", "bias", "champion_p999", "naive_p999", "components"}    in grains; null where there is none
 *   "not_applicable": how many problems of the suite the kernel does not take
 * A ratio is an error divided by its bound, and infinite ("inf") for a NaN in the wrong place; notes are there where there is
 * something to say. `attest check PROBLEM --seed SEED` draws the inputs of a row again.
 */
#include "correctness.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "theory/cover_problems.h"
#include "theory/covering.h"
#include "judge/examine.h"
#include "run/far_strides.h"
#include "judge/precision.h"
#include "base/random.h"
#include "theory/relations.h"
#include "judge/values.h"

/* Multiplications of one evaluation by the oracle that a problem is worth, and the rows that are judged whatever they cost. */
#define WORK 1e7
enum { LEAST_ROWS = 2 * JUDGE_BLOCK };

enum { DRAWS = 4, MOST_FAILURES = 3, MOST_BASES = 18 };

/* Streams of seeds. */
enum { SEED_SUITE = 500, SEED_TIMED, SEED_NEIGHBOUR, SEED_SHAPE, SEED_VALUES, SEED_RELATIONS, SEED_FAR };

struct state {
    const struct correctness *plan;
    json_t *rows;
    struct precision precision;
    int problems, neighbours, value_sets, relations, not_applicable, left_out;
    double worst; /* ratio */
    int failures, doubts;
    bool lost; /* the subject does not answer any more */
    struct cover_summary cover;
    char first_failure[1000], first_doubt[1000];
};

/* ---- one problem ----------------------------------------------------------------------------------------------------- */

struct outcome {
    enum verdict verdict;
    struct finding finding;
    uint64_t seed;
    char note[400];
    bool proves_nothing; /* the kernel was right, and so would have been a wrong one */
};

/* Seeds that can be typed. */
static uint64_t seed_of(const struct state *state, uint64_t stream, uint64_t index)
{
    return 1 + random_bits(state->plan->seed, stream, index) % 999999999;
}

static bool going_on(const struct state *state)
{
    return !state->lost && state->failures < MOST_FAILURES;
}

/* Counts a verdict, and keeps the first sentence of each kind for the gate's. */
static void note(struct state *state, enum verdict verdict, const char *what, const char *problem, const char *sentence)
{
    if (verdict == VERDICT_FAIL && state->failures++ == 0)
        snprintf(state->first_failure, sizeof state->first_failure, "%s%s%.450s: %.240s", what, *what ? " on " : "", problem,
                 sentence);
    if (verdict == VERDICT_INCONCLUSIVE && state->doubts++ == 0)
        snprintf(state->first_doubt, sizeof state->first_doubt, "%s%s%.450s: %.240s", what, *what ? " on " : "", problem, sentence);
}

static void problem_text(const attest_problem *problem, char text[ATTEST_PROBLEM_TEXT])
{
    if (attest_problem_print(problem, text, ATTEST_PROBLEM_TEXT) != ATTEST_OK)
        snprintf(text, ATTEST_PROBLEM_TEXT, "a problem that cannot be printed");
}

static int64_t rows_worth(const attest_problem *problem)
{
    int64_t rows = (int64_t)(WORK / (double)((problem->seq_kv + 1) * (problem->dim + problem->dim_v)));
    return rows > LEAST_ROWS ? rows : LEAST_ROWS; /* the last block and the first */
}

/* Runs the champion on the same inputs and counts the errors of both; without a champion, the subject's alone. */
static void compare_precision(struct state *state, const struct exam *exam, const struct outputs *own)
{
    const struct correctness *plan = state->plan;
    struct outputs champion = {0};
    char why[640];
    if (!plan->champion.run)
        precision_add(&state->precision, exam, own, NULL);
    else if (taker_takes(plan->champion_taker, &exam->inputs.problem) && outputs_make(&champion, &exam->inputs) &&
             subject_run(plan->champion, &exam->inputs, exam->digest, &champion, NULL, why, sizeof why) == VERDICT_PASS)
        precision_add(&state->precision, exam, own, &champion);
    outputs_free(&champion);
}

/* Inputs that were drawn, and not chosen, are left out if a wrong answer would pass on them; but not too many of them (conclude). */
static void leave_out(struct state *state, struct outcome *outcome)
{
    if (!outcome->proves_nothing)
        return;
    outcome->verdict = VERDICT_NOT_APPLICABLE;
    state->left_out++;
}

/* Draws inputs that no wrong answer passes on, if that can be done. */
static bool draw_exam(const struct state *state, struct exam *exam, const attest_problem *problem, const struct value_set *values,
                      uint64_t seed, struct outcome *outcome)
{
    for (int draw = 0; draw < DRAWS; draw++) {
        outcome->seed = seed + (uint64_t)draw;
        if (draw > 0)
            exam_free(exam);
        int64_t rows = values ? LEAST_ROWS : rows_worth(problem); /* sets of values have few kinds of rows */
        if (!exam_make(exam, problem, outcome->seed, values, rows, state->plan->threads, outcome->note, sizeof outcome->note))
            return false;
        if (exam->controls.accepted == 0)
            break;
    }
    return true;
}

/* Blocks of rows are a sample, and may leave whole heads out. Rows of every head and sequence, and next to every power of two, are judged
 * besides, by the component bound. */
static void judge_others(const struct state *state, const struct exam *exam, const struct outputs *outputs, struct outcome *outcome)
{
    const struct inputs *inputs = &exam->inputs;
    struct judge judge;
    struct judge_rows chosen = {0};
    char why[256];
    int64_t *numbers =
        exam->judge.row_count < exam->judge.total_rows ? cover_choose_rows(inputs, outcome->seed, &chosen.count) : NULL;
    chosen.numbers = numbers;
    if (numbers && judge_make_bounds(&judge, inputs, &chosen, false, state->plan->threads, why, sizeof why)) {
        struct finding finding;
        judge_output(&judge, judge.row_count, outputs->o.at, inputs->problem.stride_o, outputs->lse.at, inputs->problem.stride_lse,
                     &finding);
        if (!finding.accepted) {
            outcome->finding = finding;
            outcome->verdict = VERDICT_FAIL;
        }
        judge_free(&judge);
    }
    free(numbers);
}

static void examine(struct state *state, struct subject subject, const attest_problem *problem, const struct value_set *values,
                    uint64_t seed, struct outcome *outcome)
{
    struct exam exam;
    struct outputs outputs;
    enum execution_end end = EXECUTION_DONE;
    *outcome = (struct outcome){.verdict = VERDICT_INCONCLUSIVE};
    if (!draw_exam(state, &exam, problem, values, seed, outcome))
        return;
    if (!outputs_make(&outputs, &exam.inputs)) {
        snprintf(outcome->note, sizeof outcome->note, "out of memory for the outputs");
    } else {
        outcome->verdict = subject_run(subject, &exam.inputs, exam.digest, &outputs, &end, outcome->note, sizeof outcome->note);
        if (outcome->verdict == VERDICT_PASS) {
            outcome->verdict = exam_judge(&exam, &outputs, &outcome->finding);
            if (outcome->verdict != VERDICT_FAIL && !values)
                judge_others(state, &exam, &outputs, outcome);
            snprintf(outcome->note, sizeof outcome->note, "%s", outcome->finding.what);
            if (outcome->verdict == VERDICT_FAIL)
                exam_run_again(&exam, subject, &outputs, outcome->note, sizeof outcome->note);
            state->worst = fmax(state->worst, outcome->finding.ratio);
            outcome->proves_nothing = outcome->verdict == VERDICT_INCONCLUSIVE;
            if (!values && outcome->verdict != VERDICT_FAIL)
                compare_precision(state, &exam, &outputs);
        }
        state->lost = outcome->verdict == VERDICT_FAIL && end != EXECUTION_DONE;
        outputs_free(&outputs);
    }
    exam_free(&exam);
}

static void add_row(struct state *state, const char *part, const char *text, const struct outcome *outcome)
{
    json_t *row = json_pack("{s:s, s:s, s:I, s:s}", "part", part, "problem", text, "seed", (json_int_t)outcome->seed, "verdict",
                            verdict_name(outcome->verdict));
    json_put(row, "max_error", json_number(outcome->finding.max_error));
    json_put(row, "ratio", json_number(outcome->finding.ratio));
    if (outcome->note[0])
        json_put(row, "note", json_string(outcome->note));
    json_add(state->rows, row);
}

static void examine_row(struct state *state, const char *part, const attest_problem *problem, const char *text, uint64_t seed,
                        int *count)
{
    struct outcome outcome;
    examine(state, state->plan->subject, problem, NULL, seed, &outcome);
    if (strcmp(part, "neighbour") == 0)
        leave_out(state, &outcome);
    if (outcome.verdict == VERDICT_NOT_APPLICABLE) {
        state->not_applicable++;
        return;
    }
    ++*count;
    add_row(state, part, text, &outcome);
    note(state, outcome.verdict, "", text, outcome.note);
}

/* ---- problems of the suite, and their neighbours ---------------------------------------------------------------------- */

static void prove_suite(struct state *state)
{
    const struct problem_list *suite = state->plan->suite;
    for (int n = 0; n < suite->count && going_on(state); n++) {
        const struct problem_entry *entry = &suite->entries[n];
        if (!taker_takes(state->plan->taker, &entry->problem)) {
            state->not_applicable++;
            continue;
        }
        progress("correctness: problem %d of %d of the suite", n + 1, suite->count);
        examine_row(state, "suite", &entry->problem, entry->text, seed_of(state, SEED_SUITE, (uint64_t)n), &state->problems);
    }
}

static void prove_timed(struct state *state)
{
    const struct problem_list *timed = state->plan->timed;
    for (int n = 0; timed && n < timed->count && going_on(state); n++) {
        const struct problem_entry *entry = &timed->entries[n];
        uint64_t seed = seed_of(state, SEED_TIMED, (uint64_t)n);
        if (!taker_takes(state->plan->taker, &entry->problem))
            continue;
        progress("correctness: problem %d of %d that are timed", n + 1, timed->count);
        examine_row(state, "timed", &entry->problem, entry->text, seed, &state->problems);
        for (int door = 0; door < 2 && going_on(state); door++) {
            attest_problem neighbour;
            char text[ATTEST_PROBLEM_TEXT];
            int which = (int)(seed % NEXT_DOOR) ^ (door ? NEXT_DOOR - 1 : 0); /* one row more or less, and one key less or more */
            if (!neighbour_next_door(&entry->problem, which, &neighbour) || !taker_takes(state->plan->taker, &neighbour))
                continue;
            problem_text(&neighbour, text);
            examine_row(state, "timed", &neighbour, text, seed + 1 + (uint64_t)which, &state->neighbours);
        }
    }
}

/* The n-th problem of the suite that the kernel takes, counted in turns. */
static const attest_problem *taken_problem(const struct state *state, uint64_t n)
{
    const struct problem_list *suite = state->plan->suite;
    for (int step = 0; step < suite->count; step++) {
        const attest_problem *problem = &suite->entries[(n + (uint64_t)step) % (uint64_t)suite->count].problem;
        if (taker_takes(state->plan->taker, problem) && problem->batch > 0 && problem->seq_q > 0)
            return problem;
    }
    return NULL;
}

static void prove_neighbours(struct state *state)
{
    for (int n = 0; n < state->plan->neighbours && going_on(state); n++) {
        uint64_t bits = random_bits(state->plan->seed, SEED_SHAPE, (uint64_t)n);
        const attest_problem *base = taken_problem(state, bits);
        attest_problem neighbour;
        char text[ATTEST_PROBLEM_TEXT];
        if (!base || !neighbour_draw(base, state->plan->taker, bits, &neighbour))
            continue;
        progress("correctness: neighbour %d of %d", n + 1, state->plan->neighbours);
        problem_text(&neighbour, text);
        examine_row(state, "neighbour", &neighbour, text, seed_of(state, SEED_NEIGHBOUR, (uint64_t)n), &state->neighbours);
    }
}

/* Offsets that need more than 32 bits, in every tensor and by every stride. A machine that cannot lay them out is no fault of the
 * kernel. */
static void prove_far(struct state *state)
{
    static const int64_t dims[] = {64, 128, 32};
    for (uint32_t dtype = ATTEST_F32; dtype <= ATTEST_BF16 && state->plan->far.run; dtype++)
        for (int kind = 0; kind < FAR_KINDS; kind++)
            for (int n = 0; n < 2 * COUNT_OF(dims) && going_on(state); n++) {
                attest_problem near, far;
                struct far_spread spreads[TENSORS_MOST];
                char text[ATTEST_PROBLEM_TEXT], what[64];
                struct outcome outcome;
                uint64_t refused = n < COUNT_OF(dims) ? 0 : ATTEST_BIAS | ATTEST_LSE; /* first with both */
                if (!far_problem(kind, dtype, dims[n % COUNT_OF(dims)], state->plan->device, refused, &near))
                    continue;
                far = far_strides(&near, spreads);
                if (!taker_takes(state->plan->taker, &far))
                    continue;
                problem_text(&far, text);
                snprintf(what, sizeof what, "more than 2^31 elements between %s", far_name(kind));
                examine(state, state->plan->far, &near, NULL, seed_of(state, SEED_FAR, (uint64_t)kind * 8 + dtype), &outcome);
                if (outcome.verdict == VERDICT_INCONCLUSIVE)
                    outcome.verdict = VERDICT_NOT_APPLICABLE;
                state->problems += outcome.verdict != VERDICT_NOT_APPLICABLE;
                add_row(state, "far", text, &outcome);
                note(state, outcome.verdict, what, text, outcome.note);
                break;
            }
}

/* ---- the covering array and large sizes ------------------------------------------------------------------------------- */

static bool see_covered(void *data, const struct cover_outcome *outcome)
{
    struct state *state = data;
    char text[ATTEST_PROBLEM_TEXT], contents[CONTENTS_TEXT], what[CONTENTS_TEXT + 64];
    state->worst = fmax(state->worst, outcome->finding.ratio);
    state->lost = outcome->verdict == VERDICT_FAIL && outcome->end != EXECUTION_DONE;
    if (outcome->verdict == VERDICT_PASS || outcome->verdict == VERDICT_NOT_APPLICABLE)
        return going_on(state);
    problem_text(&outcome->problem, text);
    contents_print(&outcome->contents, contents);
    snprintf(what, sizeof what, "seed %" PRIu64 "%s%s", outcome->seed, contents[0] ? ", contents " : "", contents);
    json_t *row = json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "part", outcome->part, "problem", text, "contents", contents, "seed",
                            (json_int_t)outcome->seed, "verdict", verdict_name(outcome->verdict), "note", outcome->note);
    json_put(row, "ratio", json_number(outcome->finding.ratio));
    json_add(state->rows, row);
    /* A machine on which a large problem does not fit is no fault of the kernel; the record says so. */
    if (outcome->verdict == VERDICT_FAIL || strcmp(outcome->part, "large") != 0)
        note(state, outcome->verdict, what, text, outcome->note);
    return going_on(state);
}

static void prove_covering(struct state *state)
{
    const struct correctness *plan = state->plan;
    struct cover_plan cover = {.subject = plan->subject,
                               .second = plan->second,
                               .taker = plan->taker,
                               .seed = plan->seed,
                               .threads = plan->threads,
                               .rows = plan->cover_rows,
                               .large = plan->large_rounds,
                               .constant_problems = plan->constant_problems,
                               .constants = plan->constants,
                               .device = plan->device,
                               .report = see_covered,
                               .data = state};
    if (going_on(state))
        cover_constants(&cover, &state->cover);
    if (going_on(state))
        cover_array(&cover, &state->cover);
    if (going_on(state))
        cover_large(&cover, &state->cover);
}

static json_t *cover_json(const struct state *state)
{
    const struct cover_summary *cover = &state->cover;
    return json_pack("{s:i, s:i, s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:i, s:i}", "generator", COVERING_VERSION, "strength", 3,
                     "seed", (json_int_t)state->plan->seed, "problems", cover->problems, "refused", cover->refused, "rows_judged",
                     (json_int_t)cover->rows_judged, "triples", (json_int_t)cover->triples, "infeasible",
                     (json_int_t)cover->infeasible, "covered", (json_int_t)cover->covered, "large", cover->large, "constant",
                     cover->constant);
}

/* ---- values and relations: on plain problems, of which there are some kinds ------------------------------------------- */

/* One problem of each kind: the first alternative that the kernel takes. */
enum { ALTERNATIVES = 4, KINDS = 3 };
static const char *const value_shapes[KINDS][ALTERNATIVES] = {
    {"hq4:hkv2:sq70:skv131:d64", "hq4:hkv2:sq70:skv131:d128", "h2:s128:d64", "h2:s128:d128"},
    {"hq4:hkv1:sq1:skv700:d128", "hq4:hkv1:sq1:skv700:d64", "h4:sq1:skv512:d64", "h4:sq1:skv512:d128"},
    {"b2:h1:sq17:skv17:d5:dv33", "b2:h1:sq17:skv17:d64", "b2:h1:sq17:skv17:d128", "b2:h1:s64:d64"},
};
static const char *const relation_shapes[KINDS][ALTERNATIVES] = {
    {"b2:hq4:hkv2:sq37:skv150:d40:dv24", "b2:hq4:hkv2:sq37:skv150:d64", "b2:hq4:hkv2:s128:d64", "b2:hq4:hkv2:s128:d128"},
    {"b2:hq4:hkv2:sq1:skv700:d64", "b2:hq4:hkv2:sq1:skv700:d128", "b2:h4:sq1:skv512:d64", "b2:h4:sq1:skv512:d128"},
    {"b2:h2:s130:d64:causal", "b2:h2:s130:d128:causal", "b2:h2:s128:d64:causal", "b2:h2:s128:d128:causal"},
};

struct bases {
    attest_problem problems[MOST_BASES];
    int count;
};

/* With LSE; and with `both` also without it, where a kernel may take another way. */
static bool add_base(const struct state *state, struct bases *bases, attest_problem problem, bool both)
{
    int before = bases->count;
    for (int lse = 1; lse >= 0 && (both || bases->count == before); lse--) {
        problem.flags = lse ? problem.flags | ATTEST_LSE : problem.flags & ~ATTEST_LSE;
        attest_problem_pack(&problem);
        if (bases->count < MOST_BASES && taker_takes(state->plan->taker, &problem))
            bases->problems[bases->count++] = problem;
    }
    return bases->count > before;
}

static void choose_bases(const struct state *state, const char *const shapes[KINDS][ALTERNATIVES], bool both, struct bases *bases)
{
    bases->count = 0;
    for (uint32_t dtype = ATTEST_F32; dtype <= ATTEST_BF16; dtype++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int n = 0; n < ALTERNATIVES; n++) {
                char line[128];
                attest_problem problem;
                snprintf(line, sizeof line, "fwd:%s:%s", element_name(dtype), shapes[kind][n]);
                if (attest_problem_parse(line, &problem, NULL, 0) == ATTEST_OK && add_base(state, bases, problem, both))
                    break;
            }
    /* A kernel of few shapes: plain problems of the sizes of the suite. */
    for (int n = 0; n < state->plan->suite->count && bases->count == 0; n++) {
        const attest_problem *from = &state->plan->suite->entries[n].problem;
        attest_problem problem;
        attest_problem_init(&problem, from->dtype, from->batch, from->heads_q, from->heads_kv, from->seq_q, from->seq_kv,
                            from->dim);
        problem.dim_v = from->dim_v;
        add_base(state, bases, problem, both);
    }
}

/* FAIL counts most, then INCONCLUSIVE, then PASS. */
static bool outranks(enum verdict verdict, enum verdict other)
{
    static const int ranks[VERDICT_COUNT] = {
        [VERDICT_FAIL] = 3, [VERDICT_INCONCLUSIVE] = 2, [VERDICT_PASS] = 1, [VERDICT_NOT_APPLICABLE] = 0};
    return ranks[verdict] > ranks[other];
}

static void prove_values(struct state *state, json_t *list)
{
    struct bases bases;
    choose_bases(state, value_shapes, true, &bases);
    for (int n = 0; n < value_set_count && going_on(state); n++) {
        const struct value_set *set = &value_sets[n];
        enum verdict verdict = VERDICT_NOT_APPLICABLE;
        double ratio = 0;
        char notes[ATTEST_PROBLEM_TEXT + 416] = "the kernel does not take such problems";
        progress("correctness: values %d of %d: %s", n + 1, value_set_count, set->name);
        for (int base = 0; base < bases.count && going_on(state); base++) {
            attest_problem problem = values_problem(set, &bases.problems[base]);
            struct outcome outcome;
            char text[ATTEST_PROBLEM_TEXT];
            if (!taker_takes(state->plan->taker, &problem))
                continue;
            problem_text(&problem, text);
            examine(state, state->plan->subject, &problem, set, seed_of(state, SEED_VALUES, (uint64_t)(n * MOST_BASES + base)),
                    &outcome);
            leave_out(state, &outcome);
            ratio = fmax(ratio, outcome.finding.ratio);
            note(state, outcome.verdict, set->name, text, outcome.note);
            if (!outranks(outcome.verdict, verdict))
                continue;
            verdict = outcome.verdict;
            snprintf(notes, sizeof notes, "%s: %s", text, outcome.note);
        }
        json_t *row = json_pack("{s:s, s:s}", "set", set->name, "verdict", verdict_name(verdict));
        json_put(row, "ratio", json_number(ratio));
        if (verdict != VERDICT_PASS)
            json_put(row, "note", json_string(notes));
        json_add(list, row);
        state->value_sets += verdict != VERDICT_NOT_APPLICABLE;
    }
}

static void prove_relations(struct state *state, json_t *list)
{
    struct bases bases;
    choose_bases(state, relation_shapes, false, &bases);
    for (int n = 0; n < relation_count && going_on(state); n++) {
        enum verdict verdict = VERDICT_NOT_APPLICABLE;
        bool rounded = false;
        char notes[ATTEST_PROBLEM_TEXT + 496] = "the kernel does not take such problems";
        progress("correctness: relation %d of %d: %s", n + 1, relation_count, relation_name(n));
        for (int base = 0; base < bases.count && going_on(state); base++) {
            struct relation_verdict found;
            char text[ATTEST_PROBLEM_TEXT];
            relation_check(n, state->plan->subject, state->plan->taker, &bases.problems[base], state->plan->device,
                           seed_of(state, SEED_RELATIONS, (uint64_t)base), &found);
            problem_text(&bases.problems[base], text);
            state->lost = found.verdict == VERDICT_FAIL && found.end != EXECUTION_DONE;
            rounded = rounded || found.rounded;
            note(state, found.verdict, relation_name(n), text, found.sentence);
            if (!outranks(found.verdict, verdict))
                continue;
            verdict = found.verdict;
            snprintf(notes, sizeof notes, "%s: %s", text, found.sentence);
        }
        json_t *row = json_pack("{s:s, s:s}", "relation", relation_name(n), "verdict", verdict_name(verdict));
        if (verdict != VERDICT_PASS)
            json_put(row, "note", json_string(notes));
        else if (rounded)
            json_put(row, "note", json_string("within rounding"));
        json_add(list, row);
        state->relations += verdict != VERDICT_NOT_APPLICABLE;
    }
}

static json_t *number_or_null(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static json_t *prove_precision(struct state *state)
{
    struct precision_verdict verdict;
    precision_judge(&state->precision, state->plan->growth, &verdict);
    json_t *error = json_object();
    json_put(error, "p999", number_or_null(verdict.p999));
    json_put(error, "bias", json_real(verdict.bias));
    json_put(error, "champion_p999", number_or_null(verdict.champion_p999));
    json_put(error, "naive_p999", number_or_null(verdict.naive_p999));
    json_put(error, "components", json_integer(verdict.components));
    if (verdict.sentence[0])
        json_put(error, "note", json_string(verdict.sentence));
    if (verdict.verdict == VERDICT_FAIL && state->failures++ == 0)
        snprintf(state->first_failure, sizeof state->first_failure, "%s", verdict.sentence);
    return error;
}

/* ---- all of it -------------------------------------------------------------------------------------------------------- */

static void conclude(const struct state *state, struct gate_result *result)
{
    if (state->failures)
        gate_say(result, VERDICT_FAIL, "%s; reproduce: %.150s", state->first_failure, state->plan->reproduce);
    else if (state->problems == 0)
        gate_say(result, VERDICT_FAIL, "takes no problem of the suite");
    else if (state->doubts)
        gate_say(result, VERDICT_INCONCLUSIVE, "%s; another --seed draws other inputs", state->first_doubt);
    else if (state->left_out > (state->neighbours + state->value_sets) / 4)
        gate_say(result, VERDICT_INCONCLUSIVE,
                 "wrong answers would have passed on %d of the inputs drawn; another --seed draws others", state->left_out);
    else
        gate_say(result, VERDICT_PASS,
                 "%d problems, %d neighbours, %d next to numbers of the kernel, %d of a covering array, %d value sets, %d "
                 "relations; worst error "
                 "%.2f of its bound",
                 state->problems, state->neighbours, state->cover.constant, state->cover.problems, state->value_sets,
                 state->relations, state->worst);
}

void correctness_prove(const struct correctness *correctness, struct gate_result *result)
{
    struct state *state = calloc(1, sizeof *state);
    if (!state) {
        gate_say(result, VERDICT_INCONCLUSIVE, "out of memory");
        return;
    }
    state->plan = correctness;
    state->rows = json_array();
    json_t *values = json_array(), *relations = json_array();
    prove_suite(state);
    if (state->problems > 0) {
        prove_timed(state);
        prove_neighbours(state);
    }
    if (state->problems > 0 && !correctness->brief) {
        prove_covering(state);
        prove_far(state);
        prove_values(state, values);
        prove_relations(state, relations);
    }
    json_put(result->details, "rows", state->rows);
    json_put(result->details, "values", values);
    json_put(result->details, "relations", relations);
    json_put(result->details, "cover", cover_json(state));
    json_put(result->details, "error", prove_precision(state));
    json_put(result->details, "not_applicable", json_integer(state->not_applicable));
    json_put(result->details, "left_out", json_integer(state->left_out));
    conclude(state, result);
    free(state);
}
