/*
 * The correctness gate on subjects in this process: kernels of the library pass; the same kernels with a flaw added do not, and the
 * sentence says what it was. The folder ATTEST_TEST_KERNELS has offset_in_int.so (kernels/offset_in_int.c); tests/correctness.t makes
 * it.
 */
#include "gates/correctness.h"
#include "judge/examine.h"
#include "run/far_strides.h"
#include "theory/relations.h"
#include "judge/values.h"
#include "run/worker.h"
#include "base/random.h"
#include "tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- subjects ---------------------------------------------------------------------------------------------------------- */

/* A flaw, added to what the library computed. `inputs` may be used up. */
typedef void flaw_function(struct inputs *inputs, struct outputs *outputs);

struct flawed {
    flaw_function *flaw;
    struct execution execution; /* if not DONE, every run ends like this */
    int runs;
    uint32_t dtype; /* that it takes */
    uint64_t refuses;
    int cover_rows;        /* problems of the covering array */
    bool single_precision; /* the flaw gets O in float32, and rounds it itself */
};

static bool takes(const void *data, const attest_problem *problem)
{
    const struct flawed *flawed = data;
    return problem->dtype == flawed->dtype && !(problem->flags & flawed->refuses);
}

/* Rows of O, one after the other. */
static void each_row(struct inputs *inputs, struct outputs *outputs, void (*change)(void *row, const attest_problem *problem))
{
    const attest_problem *problem = &inputs->problem;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t h = 0; h < problem->heads_q; h++)
            for (int64_t i = 0; i < layout_rows(&inputs->layout, b); i++) {
                int64_t at = layout_row_at(&inputs->layout, problem->stride_o, b, h, i);
                change((char *)outputs->o.at + at * (int64_t)element_size(problem->dtype_o), problem);
            }
}

/* O in float32, and then every element rounded to the type of O by cutting bits off. */
static struct execution run_truncating(const struct inputs *inputs, struct outputs *outputs, struct subject library)
{
    struct inputs wide = *inputs;
    struct outputs exact;
    wide.problem.dtype_o = ATTEST_F32;
    wide.layout.problem = &wide.problem;
    if (!outputs_make(&exact, &wide))
        return (struct execution){.end = EXECUTION_LACKING};
    struct execution execution = library.run(library.data, &wide, &exact);
    for (size_t n = 0; n < (exact.o.bytes - 2 * 4096) / 4; n++) {
        int64_t at = (int64_t)n + exact.o_first;
        float value = element_load(exact.o.at, ATTEST_F32, at);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (exact.o_owned[n] && inputs->problem.dtype_o == ATTEST_BF16)
            element_store(outputs->o.at, ATTEST_BF16, at, attest_bf16_to_float((uint16_t)(bits >> 16)));
        else if (exact.o_owned[n])
            element_store(outputs->o.at, inputs->problem.dtype_o, at, value);
    }
    if (outputs->lse.base)
        memcpy(outputs->lse.base, exact.lse.base, exact.lse.bytes);
    outputs_free(&exact);
    return execution;
}

static struct execution run(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    struct flawed *flawed = data;
    struct library_kernel kernel = {.threads = 1, .rubbish = 0xff};
    struct subject library = library_subject(&kernel);
    struct inputs changeable = *inputs;
    flawed->runs++;
    if (flawed->execution.end != EXECUTION_DONE)
        return flawed->execution;
    if (flawed->single_precision)
        return run_truncating(inputs, outputs, library);
    struct execution execution = library.run(library.data, inputs, outputs);
    changeable.layout.problem = &changeable.problem;
    if (execution.end == EXECUTION_DONE && flawed->flaw)
        flawed->flaw(&changeable, outputs);
    return execution;
}

/* ---- the gate ---------------------------------------------------------------------------------------------------------- */

static const char *const suite_lines[] = {
    "fwd:f32:b1:h2:s128:d64:lse",  "fwd:f32:b1:h3:sq97:skv193:d80:causal:lse",  "fwd:f32:b2:hq4:hkv2:sq1:skv700:d64",
    "fwd:f16:b1:h2:s128:d64:lse",  "fwd:f16:b1:h3:sq97:skv193:d80:causal:lse",  "fwd:f16:b2:hq4:hkv2:sq1:skv700:d64",
    "fwd:bf16:b1:h2:s128:d64:lse", "fwd:bf16:b1:h3:sq97:skv193:d80:causal:lse", "fwd:bf16:b2:hq4:hkv2:sq1:skv700:d64",
};
static struct problem_entry entries[COUNT_OF(suite_lines)];
static const struct problem_list suite = {entries, COUNT_OF(suite_lines)};

static void make_suite(void)
{
    for (int n = 0; n < suite.count; n++) {
        if (attest_problem_parse(suite_lines[n], &entries[n].problem, NULL, 0) != ATTEST_OK)
            abort();
        entries[n].text = (char *)suite_lines[n];
        entries[n].place = "here";
    }
}

static bool in_the_suite(const attest_problem *problem)
{
    for (int n = 0; n < suite.count; n++)
        if (memcmp(problem, &entries[n].problem, sizeof *problem) == 0)
            return true;
    return false;
}

static struct correctness plan_for(struct flawed *flawed, const struct problem_list *problems)
{
    return (struct correctness){
        .subject = {.run = run, .data = flawed},
        .taker = {takes, flawed},
        .suite = problems,
        .neighbours = 6,
        .cover_rows = flawed->cover_rows,
        .growth = default_policy.error_growth,
        .seed = tap.seed,
        .threads = 2,
        .reproduce = "attest prove this --only correctness --seed 1",
    };
}

static struct gate_result prove_with(struct flawed *flawed, const struct problem_list *problems, struct flawed *champion)
{
    struct gate_result result = {.details = json_object(), .artefacts = json_object()};
    struct correctness correctness = plan_for(flawed, problems);
    if (champion) {
        correctness.champion = (struct subject){.run = run, .data = champion};
        correctness.champion_taker = (struct taker){takes, champion};
    }
    correctness_prove(&correctness, &result);
    return result;
}

static void free_result(struct gate_result *result)
{
    json_decref(result->details);
    json_decref(result->artefacts);
}

/* Proves, and checks the verdict and that the sentence has these words. */
static void expect(struct flawed *flawed, struct flawed *champion, enum verdict verdict, const char *words)
{
    struct gate_result result = prove_with(flawed, &suite, champion);
    tap_check(result.verdict == verdict, "%s, not %s: %s", verdict_name(result.verdict), verdict_name(verdict), result.sentence);
    tap_check(strstr(result.sentence, words) != NULL, "'%s' is not in: %s", words, result.sentence);
    if (verdict == VERDICT_FAIL)
        tap_check(strstr(result.sentence, "attest prove this --only correctness --seed 1") != NULL, "no command in: %s",
                  result.sentence);
    free_result(&result);
}

/* Verdicts of the rows of a list in the details; -1 if there are none. */
static int count_rows(const struct gate_result *result, const char *list, const char *key, const char *value, enum verdict verdict)
{
    int count = 0;
    size_t index;
    json_t *row;
    json_array_foreach(json_object_get(result->details, list), index, row)
    {
        const char *found = json_string_value(json_object_get(row, key));
        const char *name = json_string_value(json_object_get(row, "verdict"));
        count += (!value || (found && strcmp(found, value) == 0)) && name && strcmp(name, verdict_name(verdict)) == 0;
    }
    return count;
}

/* ---- what must pass ------------------------------------------------------------------------------------------------------ */

static void kernels_pass(void)
{
    static const uint32_t dtypes[] = {ATTEST_F32, ATTEST_BF16, ATTEST_F16};
    for (int n = 0; n < tap_amount(1, 2, COUNT_OF(dtypes)); n++) {
        struct flawed right = {.dtype = dtypes[n], .cover_rows = 60}, champion = {.dtype = dtypes[n]};
        if (!tap_case("%s", element_name(dtypes[n])))
            continue;
        struct gate_result result = prove_with(&right, &suite, &champion);
        tap_check(result.verdict == VERDICT_PASS, "%s: %s", verdict_name(result.verdict), result.sentence);
        char *error = json_dumps(json_object_get(result.details, "error"), 0);
        tap_note("%s: %s %s", element_name(dtypes[n]), result.sentence, error);
        free(error);
        tap_check(strncmp(result.sentence, "3 problems, 6 neighbours, ", 26) == 0 &&
                      strstr(result.sentence, " of a covering array, 17 value sets, 28 relations; worst error 0."),
                  "%s", result.sentence);
        const json_t *cover = json_object_get(result.details, "cover");
        tap_check(json_integer_value(json_object_get(cover, "problems")) >= 50, "problems of the covering array");
        tap_check(json_integer_value(json_object_get(cover, "covered")) > 100000, "triples covered");
        tap_check(count_rows(&result, "rows", "part", "suite", VERDICT_PASS) == 3, "rows of the suite");
        tap_check(count_rows(&result, "rows", "part", "neighbour", VERDICT_PASS) == 6, "rows of neighbours");
        tap_check(count_rows(&result, "values", "set", NULL, VERDICT_PASS) == value_set_count, "value sets");
        tap_check(count_rows(&result, "relations", "relation", NULL, VERDICT_PASS) == relation_count, "relations");
        tap_check(json_integer_value(json_object_get(result.details, "not_applicable")) == 6, "six problems have another type");
        double own = json_number_value(json_object_get(json_object_get(result.details, "error"), "p999"));
        double other = json_number_value(json_object_get(json_object_get(result.details, "error"), "champion_p999"));
        tap_check(own > 0 && own == other, "the champion is the same kernel, and has %g for %g", other, own);
        free_result(&result);
    }
}

/* What a kernel does not take is not asked for, and counted as not applicable. */
static void refusals(void)
{
    struct flawed narrow = {.dtype = ATTEST_F32,
                            .refuses = ATTEST_LSE | ATTEST_BIAS | ATTEST_PAGED | ATTEST_CAUSAL | ATTEST_SINK | ATTEST_WINDOW_LEFT};
    struct gate_result result = prove_with(&narrow, &suite, NULL);
    tap_check(result.verdict == VERDICT_PASS, "%s: %s", verdict_name(result.verdict), result.sentence);
    tap_check(count_rows(&result, "values", "set", "one finite key among -inf", VERDICT_NOT_APPLICABLE) == 1, "no bias");
    tap_check(count_rows(&result, "relations", "relation", "split and merged", VERDICT_NOT_APPLICABLE) == 1, "no LSE");
    tap_check(count_rows(&result, "relations", "relation", "paged as dense", VERDICT_NOT_APPLICABLE) == 1, "no pages");
    tap_check(count_rows(&result, "relations", "relation", "V negated", VERDICT_PASS) == 1, "without LSE there is still O");
    free_result(&result);

    struct flawed nothing = {.dtype = 9};
    result = prove_with(&nothing, &suite, NULL);
    tap_check(result.verdict == VERDICT_FAIL && strcmp(result.sentence, "takes no problem of the suite") == 0, "%s",
              result.sentence);
    tap_check(nothing.runs == 0, "it was run");
    free_result(&result);
}

/* ---- what must not --------------------------------------------------------------------------------------------------------- */

static void half_percent_more(void *row, const attest_problem *problem)
{
    element_store(row, problem->dtype_o, problem->dim_v - 1, 1.005f * element_load(row, problem->dtype_o, problem->dim_v - 1));
}
static void perturb(struct inputs *inputs, struct outputs *outputs)
{
    each_row(inputs, outputs, half_percent_more);
}
static void perturbed(void)
{
    struct flawed wrong = {.dtype = ATTEST_F32, .flaw = perturb};
    expect(&wrong, NULL, VERDICT_FAIL, "fwd:f32:b1:h2:s128:d64:lse: O[");
}

static void perturb_others(struct inputs *inputs, struct outputs *outputs)
{
    if (!in_the_suite(&inputs->problem))
        each_row(inputs, outputs, half_percent_more);
}
static void exact_on_the_suite_only(void)
{
    struct flawed wrong = {.dtype = ATTEST_F32, .flaw = perturb_others};
    struct gate_result result = prove_with(&wrong, &suite, NULL);
    tap_check(result.verdict == VERDICT_FAIL, "%s: %s", verdict_name(result.verdict), result.sentence);
    tap_check(count_rows(&result, "rows", "part", "suite", VERDICT_FAIL) == 0, "%s", result.sentence);
    tap_check(count_rows(&result, "rows", "part", "neighbour", VERDICT_FAIL) == 3, "it stops after three failures: %s",
              result.sentence);
    free_result(&result);
}

/* One head of a problem of which blocks of rows are judged: each head is looked at. */
static void spoil_head(struct inputs *inputs, struct outputs *outputs)
{
    const attest_problem *problem = &inputs->problem;
    for (int64_t i = 0; i < problem->seq_q && problem->heads_q == 16; i++) {
        int64_t at = layout_row_at(&inputs->layout, problem->stride_o, 1, 11, i);
        for (int64_t d = 0; d < problem->dim_v; d++)
            element_store(outputs->o.at, problem->dtype_o, at + d, -element_load(outputs->o.at, problem->dtype_o, at + d));
    }
}
static void one_head_of_many(void)
{
    struct flawed wrong = {.dtype = ATTEST_F32, .flaw = spoil_head};
    struct problem_entry entry = {.text = (char *)"fwd:f32:b2:h16:s500:d32", .place = (char *)"here"};
    struct problem_list one = {&entry, 1};
    struct gate_result result = {.details = json_object(), .artefacts = json_object()};
    struct correctness correctness = plan_for(&wrong, &one);
    if (!tap_check(attest_problem_parse(entry.text, &entry.problem, NULL, 0) == ATTEST_OK, "parse"))
        return;
    correctness.neighbours = 0;
    correctness.brief = true;
    correctness_prove(&correctness, &result);
    tap_check(result.verdict == VERDICT_FAIL && strstr(result.sentence, "O[1,11,"), "%s: %s", verdict_name(result.verdict),
              result.sentence);
    free_result(&result);
}

/* Groups of five heads are nowhere in the suite. */
static void perturb_groups(struct inputs *inputs, struct outputs *outputs)
{
    if (inputs->problem.heads_q == 5 * inputs->problem.heads_kv)
        each_row(inputs, outputs, half_percent_more);
}
static void wrong_in_the_array(void)
{
    struct flawed wrong = {.dtype = ATTEST_F32, .flaw = perturb_groups, .cover_rows = 300};
    struct gate_result result = prove_with(&wrong, &suite, NULL);
    tap_check(result.verdict == VERDICT_FAIL, "%s: %s", verdict_name(result.verdict), result.sentence);
    tap_check(count_rows(&result, "rows", "part", "covering", VERDICT_FAIL) == 3, "three problems of the array: %s",
              result.sentence);
    /* The sentence has the problem, the seed and the contents, which are what `attest check` needs to see it again. */
    json_t *row =
        json_array_get(json_object_get(result.details, "rows"), json_array_size(json_object_get(result.details, "rows")) - 3);
    const char *text = json_string_value(json_object_get(row, "problem"));
    const char *words = json_string_value(json_object_get(row, "contents")),
               *note = json_string_value(json_object_get(row, "note"));
    char expected[CONTENTS_TEXT + 64], why[256];
    snprintf(expected, sizeof expected, "seed %lld%s%s on fwd:f32:", (long long)json_integer_value(json_object_get(row, "seed")),
             words && *words ? ", contents " : "", words ? words : "");
    tap_check(strstr(result.sentence, expected) != NULL, "'%s' is not in: %s", expected, result.sentence);
    struct contents contents;
    attest_problem problem;
    struct exam exam;
    struct outputs outputs;
    if (tap_check(text && words && attest_problem_parse(text, &problem, NULL, 0) == ATTEST_OK &&
                      contents_parse(words, &contents, why, sizeof why) &&
                      exam_make_quick(&exam, &problem, (uint64_t)json_integer_value(json_object_get(row, "seed")), &contents, NULL,
                                      1, why, sizeof why),
                  "%s", text ? text : "no problem")) {
        struct finding finding = {0};
        if (tap_check(outputs_make(&outputs, &exam.inputs), "memory")) {
            subject_run((struct subject){.run = run, .data = &wrong}, &exam.inputs, exam.digest, &outputs, NULL, why, sizeof why);
            tap_check(exam_judge(&exam, &outputs, &finding) == VERDICT_FAIL && strcmp(finding.what, note) == 0, "%s", finding.what);
            outputs_free(&outputs);
        }
        exam_free(&exam);
    }
    free_result(&result);
}

static void fill_nan(void *row, const attest_problem *problem)
{
    for (int64_t d = 0; d < problem->dim_v; d++)
        element_store(row, problem->dtype_o, d, NAN);
}
static void all_nan(struct inputs *inputs, struct outputs *outputs)
{
    each_row(inputs, outputs, fill_nan);
}
static void nan_as_wildcard(void)
{
    struct flawed wrong = {.dtype = ATTEST_F32, .flaw = all_nan};
    expect(&wrong, NULL, VERDICT_FAIL, "it must be finite");
}

/* Scores above 1000, as large as they can be for the first row, are too much for it. */
static void give_up_on_large(struct inputs *inputs, struct outputs *outputs)
{
    const attest_problem *problem = &inputs->problem;
    double q = 0;
    for (int64_t d = 0; d < problem->dim; d++)
        q += fabs((double)element_load(inputs->q.at, problem->dtype, d));
    if (q * fabs((double)problem->scale) > 1000)
        each_row(inputs, outputs, half_percent_more);
}
static void wrong_on_huge_logits(void)
{
    struct flawed wrong = {.dtype = ATTEST_F32, .flaw = give_up_on_large};
    expect(&wrong, NULL, VERDICT_FAIL, "logits to +-1e4 on fwd:f32:");
}

static void cut_bits_off(void)
{
    struct flawed wrong = {.dtype = ATTEST_BF16, .single_precision = true};
    expect(&wrong, NULL, VERDICT_FAIL, "the errors on bf16 lean towards zero");
}

/* One unit more or less in the last place of normal numbers, by chance: still within all bounds. */
static void jitter_row(void *row, const attest_problem *problem)
{
    uint16_t *o = row;
    for (int64_t d = 0; d < problem->dim_v; d++)
        if ((o[d] & 0x7fff) > 0x400)
            o[d] = (uint16_t)(o[d] + (random_mix(o[d] * UINT64_C(77777) + (uint64_t)d) & 1 ? 1 : -1));
}
static void jitter(struct inputs *inputs, struct outputs *outputs)
{
    if (inputs->problem.dtype_o == ATTEST_F16)
        each_row(inputs, outputs, jitter_row);
}
static void less_precise(void)
{
    struct flawed wrong = {.dtype = ATTEST_F16, .flaw = jitter}, champion = {.dtype = ATTEST_F16};
    struct gate_result result = prove_with(&wrong, &suite, &champion);
    const json_t *error = json_object_get(result.details, "error");
    const char *note = json_string_value(json_object_get(error, "note"));
    tap_check(count_rows(&result, "rows", "part", NULL, VERDICT_FAIL) == 0, "the judge sees it too: %s", result.sentence);
    tap_check(result.verdict == VERDICT_FAIL, "%s: %s", verdict_name(result.verdict), result.sentence);
    tap_check(note && strstr(note, "less precise than the champion on f16"), "%s", note ? note : "no note");
    free_result(&result);
}

static void up_by_one(void *row, const attest_problem *problem)
{
    float *o = row;
    for (int64_t d = 0; d < problem->dim_v && problem->dtype_o == ATTEST_F32; d++)
        o[d] = nextafterf(o[d], INFINITY);
}
static void round_up(struct inputs *inputs, struct outputs *outputs)
{
    each_row(inputs, outputs, up_by_one);
}
static void not_odd_in_v(void)
{
    struct flawed wrong = {.dtype = ATTEST_F32, .flaw = round_up};
    expect(&wrong, NULL, VERDICT_FAIL, "V negated on fwd:f32:");
}

static void no_nan(void *row, const attest_problem *problem)
{
    for (int64_t d = 0; d < problem->dim_v; d++)
        if (isnan(element_load(row, problem->dtype_o, d)))
            element_store(row, problem->dtype_o, d, 0);
}
static void hide_nan(struct inputs *inputs, struct outputs *outputs)
{
    each_row(inputs, outputs, no_nan);
}
static void nan_hidden(void)
{
    struct flawed wrong = {.dtype = ATTEST_F32, .flaw = hide_nan};
    expect(&wrong, NULL, VERDICT_FAIL, "the row sees nothing but NaN");
}

static void write_behind(struct inputs *inputs, struct outputs *outputs)
{
    (void)inputs;
    outputs->o.base[outputs->o.bytes - 4096] = 0;
}
static void writes_outside(void)
{
    struct flawed wrong = {.dtype = ATTEST_F32, .flaw = write_behind};
    expect(&wrong, NULL, VERDICT_FAIL, "wrote outside O");
}

static void change_input(struct inputs *inputs, struct outputs *outputs)
{
    (void)outputs;
    inputs->q.base[0] ^= 1;
}
static void overwrites_inputs(void)
{
    struct flawed wrong = {.dtype = ATTEST_F32, .flaw = change_input};
    expect(&wrong, NULL, VERDICT_FAIL, "the inputs were changed");
}

static void crashes(void)
{
    struct flawed wrong = {.dtype = ATTEST_F32, .execution = {EXECUTION_CRASHED, 0, "it died of a segmentation fault"}};
    expect(&wrong, NULL, VERDICT_FAIL, "it died of a segmentation fault");
    tap_check(wrong.runs == 1, "it was run %d times", wrong.runs);

    struct flawed lacking = {.dtype = ATTEST_F32, .execution = {EXECUTION_LACKING, 0, "no memory"}};
    expect(&lacking, NULL, VERDICT_INCONCLUSIVE, "no memory");
}

/* With a scale of next to nothing the mean of V is nearly right, and bf16 cannot tell: nothing can be said. */
static void inputs_that_prove_nothing(void)
{
    struct flawed right = {.dtype = ATTEST_BF16};
    struct problem_entry entry = {.text = (char *)"fwd:bf16:h2:s64:d64:scale=1e-05", .place = (char *)"here"};
    struct problem_list one = {&entry, 1};
    if (!tap_check(attest_problem_parse(entry.text, &entry.problem, NULL, 0) == ATTEST_OK, "parse"))
        return;
    struct gate_result result = prove_with(&right, &one, NULL);
    tap_check(result.verdict == VERDICT_INCONCLUSIVE && strstr(result.sentence, "a wrong answer (mean of V) would pass too"),
              "%s: %s", verdict_name(result.verdict), result.sentence);
    free_result(&result);
}

/* Problems that are timed are checked too, with a neighbour by a row and one by a key. */
static void timed_problems(void)
{
    struct flawed wrong = {.dtype = ATTEST_F32, .flaw = perturb_others};
    struct gate_result result = {.details = json_object(), .artefacts = json_object()};
    struct correctness correctness = plan_for(&wrong, &suite);
    correctness.timed = &suite;
    correctness.neighbours = 0;
    correctness_prove(&correctness, &result);
    tap_check(result.verdict == VERDICT_FAIL, "%s: %s", verdict_name(result.verdict), result.sentence);
    tap_check(count_rows(&result, "rows", "part", "timed", VERDICT_PASS) == 2, "two timed problems are right");
    tap_check(count_rows(&result, "rows", "part", "timed", VERDICT_FAIL) == 3, "and their neighbours are not");
    free_result(&result);
}

/* A worker in which the rows lie so far apart that offsets need more than 32 bits. */
static void prove_far(const char *image, enum verdict verdict, const char *words)
{
    struct flawed right = {.dtype = ATTEST_F32};
    struct gate_result result = {.details = json_object(), .artefacts = json_object()};
    struct correctness correctness = plan_for(&right, &suite);
    struct execution execution;
    struct executor_spec spec = {.image = image, .guard = GUARD_FAR, .threads = 1};
    struct executor *executor = executor_open(&spec, &execution);
    if (tap_check(executor != NULL, "%s", execution.sentence)) {
        correctness.far = executor_subject(executor);
        correctness_prove(&correctness, &result);
        tap_check(result.verdict == verdict, "%s: %s", verdict_name(result.verdict), result.sentence);
        tap_check(strstr(result.sentence, words) != NULL, "'%s' is not in: %s", words, result.sentence);
        int rows = count_rows(&result, "rows", "part", "far", verdict);
        tap_check(rows == (verdict == VERDICT_PASS ? FAR_KINDS : 1), "%d rows are about it", rows);
    }
    executor_close(executor, NULL);
    free_result(&result);
}
static void far_rows(void)
{
    char image[4096];
    const char *folder = getenv("ATTEST_TEST_KERNELS");
    snprintf(image, sizeof image, "%s/offset_in_int.so", folder ? folder : ".");
    prove_far(NULL, VERDICT_PASS, "9 problems, 6 neighbours");
    prove_far(image, VERDICT_FAIL, "more than 2^31 elements between rows on fwd:f32:");
}

/* Whether a kernel is right on every problem whose tensors are spread, and the kind on which it is not. */
static bool right_when_spread(const char *image, char *wrong, size_t size)
{
    bool right = true;
    for (int kind = 0; kind < FAR_KINDS && right; kind++) {
        struct execution execution;
        struct executor_spec spec = {.image = image, .guard = GUARD_FAR, .threads = 1};
        struct executor *executor = executor_open(&spec, &execution);
        struct exam exam;
        struct outputs outputs;
        struct finding finding;
        attest_problem near;
        char why[640] = "";
        if (!tap_check(executor && far_problem(kind, ATTEST_F32, 32, false, 0, &near) &&
                           exam_make_quick(&exam, &near, tap.seed, NULL, NULL, 1, why, sizeof why) &&
                           outputs_make(&outputs, &exam.inputs),
                       "%s %s", execution.sentence, why))
            return false;
        right =
            subject_run(executor_subject(executor), &exam.inputs, exam.digest, &outputs, NULL, why, sizeof why) == VERDICT_PASS &&
            exam_judge(&exam, &outputs, &finding) == VERDICT_PASS;
        if (!right)
            snprintf(wrong, size, "%s", far_name(kind));
        outputs_free(&outputs);
        exam_free(&exam);
        executor_close(executor, NULL);
    }
    return right;
}

static void far_strides_of_all(void)
{
    static const char *const wraps[] = {"q_2", "q_0",   "k_0",   "k_2",    "v_1",    "v_2",       "o_0",
                                        "o_1", "lse_1", "lse_2", "bias_0", "bias_2", "bias_key_3"};
    const char *folder = getenv("ATTEST_TEST_KERNELS");
    char image[4096], wrong[64] = "";
    tap_check(right_when_spread(NULL, wrong, sizeof wrong), "the library is wrong on %s", wrong);
    for (int n = 0; n < COUNT_OF(wraps); n++) {
        snprintf(image, sizeof image, "%s/wraps_%s.so", folder ? folder : ".", wraps[n]);
        tap_check(!right_when_spread(image, wrong, sizeof wrong), "offsets of %s wrap at 2^32, and nothing shows it", wraps[n]);
    }
}

/* ---- neighbours --------------------------------------------------------------------------------------------------------------- */

static void neighbours(void)
{
    struct flawed all = {.dtype = ATTEST_F16},
                  narrow = {.dtype = ATTEST_F16, .refuses = ATTEST_BIAS | ATTEST_VARLEN_Q | ATTEST_PAGED};
    int strided = 0, grouped = 0, featured = 0, odd = 0;
    for (uint64_t n = 0; n < 400; n++) {
        attest_problem first, again;
        char why[256] = "";
        const attest_problem *base = &entries[3 + n % 3].problem;
        struct taker taker = {takes, n % 2 ? &narrow : &all};
        if (!tap_check(neighbour_draw(base, taker, n, &first), "no neighbour"))
            continue;
        tap_check(attest_problem_check(&first, why, sizeof why) == ATTEST_OK, "%s", why);
        tap_check(taker_takes(taker, &first), "a neighbour that it does not take");
        tap_check(neighbour_draw(base, taker, n, &again) && memcmp(&first, &again, sizeof first) == 0, "another neighbour");
        tap_check(memcmp(&first, base, sizeof first) != 0, "the problem itself");
        attest_problem packed = first;
        attest_problem_pack(&packed);
        strided += memcmp(&packed, &first, sizeof first) != 0;
        grouped += first.heads_q != first.heads_kv;
        featured +=
            (first.flags & (ATTEST_BIAS | ATTEST_VARLEN_Q | ATTEST_PAGED | ATTEST_SINK | ATTEST_SOFTCAP | ATTEST_ALIBI)) != 0;
        odd += first.dim % 2 == 1;
    }
    tap_check(strided > 80 && grouped > 80 && featured > 80 && odd > 20, "%d strided, %d grouped, %d with features, %d odd",
              strided, grouped, featured, odd);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"kernels of the library pass", kernels_pass},
        {"what a kernel refuses", refusals},
        {"neighbours are valid, taken and varied", neighbours},
        {"an output that is perturbed", perturbed},
        {"exact on the suite alone", exact_on_the_suite_only},
        {"one head of many", one_head_of_many},
        {"wrong on the covering array alone", wrong_in_the_array},
        {"NaN as wildcard", nan_as_wildcard},
        {"wrong on huge logits", wrong_on_huge_logits},
        {"bits cut off instead of rounded", cut_bits_off},
        {"less precise than the champion", less_precise},
        {"not odd in V", not_odd_in_v},
        {"NaN hidden", nan_hidden},
        {"writes outside its output", writes_outside},
        {"overwrites its inputs", overwrites_inputs},
        {"crashes, or cannot be run", crashes},
        {"inputs that prove nothing", inputs_that_prove_nothing},
        {"problems that are timed", timed_problems},
        {"more than 2^31 elements", far_rows},
        {"more than 2^32 elements, in every tensor", far_strides_of_all},
    };
    if (argc == 2 && strcmp(argv[1], "worker") == 0)
        return worker_main();
    make_suite();
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
