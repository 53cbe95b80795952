/*
 * stages_experiment.c - runs of the kernel on designed inputs, compared with the float64 reference on the very same inputs.
 *
 * Bounds are those of judge.c, in the form that each reading allows. With V columns of the identity, a component of O is one
 * weight P_ij, and A of judge.c is that weight itself: the bound is relative, so that a weight of 1e-9 is read as well as one of
 * 0.5. T, the size of the scores that rounding errors are in proportion to, has |s_ij| of that key added; and its part |q| |k|
 * counts D / 8 times more, because the elements of designed rows are alike, and so are the errors of adding them up. Weights
 * rounded to f16 have a grain of 2^-24, whatever their size. Where a power of two of keys has exactly the same score and all
 * others none, and V is whole numbers, nothing needs rounding but the result: half a grain of the output is then all that is
 * allowed, with a few of float32 besides.
 */
#include "stages_experiment.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most rows, keys and runs of one experiment that are looked at; problems with more are sampled. */
enum { MOST_ROWS = 512, MOST_KEYS = 512, MOST_BLOCKS = 32, HEAD_ROWS = 192, TAIL_ROWS = 32 };

#define UNIT_F32 0x1p-24

double unit_roundoff(uint32_t dtype)
{
    return dtype == ATTEST_F32 ? UNIT_F32 : dtype == ATTEST_F16 ? 0x1p-11 : 0x1p-8;
}

/* ---- what is looked at ------------------------------------------------------------------------------------------------------- */

static void add_row(struct lab *lab, int64_t b, int64_t h, int64_t i)
{
    lab->rows[lab->row_count] = (struct place){b, h, i};
    lab->numbers[lab->row_count++] = (b * lab->problem.heads_q + h) * lab->problem.seq_q + i;
}

/* All rows; or of the first head its first rows and its last ones, and of the other heads a few each. */
static bool choose_rows(struct lab *lab)
{
    const attest_problem *problem = &lab->problem;
    int64_t total = layout_total_rows(&lab->inputs.layout), heads = 0;
    for (int64_t b = 0; b < problem->batch; b++)
        heads += layout_rows(&lab->inputs.layout, b) > 0 ? problem->heads_q : 0;
    bool all = total <= MOST_ROWS;
    int64_t each = heads > 1 ? (MOST_ROWS - HEAD_ROWS - TAIL_ROWS) / (heads - 1) : 0;
    int64_t most = all ? total : MOST_ROWS + heads;
    lab->rows = malloc(((size_t)most + 1) * sizeof *lab->rows);
    lab->numbers = malloc(((size_t)most + 1) * sizeof *lab->numbers);
    if (!lab->rows || !lab->numbers)
        return false;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t h = 0; h < problem->heads_q; h++) {
            int64_t rows = layout_rows(&lab->inputs.layout, b);
            bool first = lab->row_count == 0;
            int64_t step = each > 1 ? (rows + each - 1) / each : rows;
            for (int64_t i = 0; i < rows; i++)
                if (all || (first && (i < HEAD_ROWS || i >= rows - TAIL_ROWS)) || (!first && i % (step > 0 ? step : 1) == 0))
                    add_row(lab, b, h, i);
            if (!all && !first && lab->row_count >= MOST_ROWS)
                return true;
        }
    return true;
}

/* All keys; or the first and the last ones, and pairs at multiples of 64 between. */
static bool choose_keys(struct lab *lab)
{
    int64_t keys = lab->problem.seq_kv, most = MOST_BLOCKS * lab->problem.dim_v;
    most = most < MOST_KEYS ? most : MOST_KEYS;
    lab->keys = malloc(((size_t)most + 1) * sizeof *lab->keys);
    if (!lab->keys)
        return false;
    int64_t edge = most / 4, pairs = most / 4, multiples = keys / 64;
    int64_t stride = multiples > pairs && pairs > 0 ? (multiples + pairs - 1) / pairs * 64 : 64;
    for (int64_t j = 0; j < keys && lab->key_count < most; j++) {
        bool pair = pairs > 0 && (j % stride == 0 || j % stride == stride - 1);
        if (keys <= most || j < edge || j >= keys - edge || pair)
            lab->keys[lab->key_count++] = j;
    }
    return true;
}

void lab_visible(const struct lab *lab, int64_t row, int64_t *begin, int64_t *end)
{
    layout_visible(&lab->inputs.layout, lab->rows[row].b, lab->rows[row].i, begin, end);
}

int64_t lab_head_kv(const struct lab *lab, int64_t head)
{
    return head / (lab->problem.heads_q / lab->problem.heads_kv);
}

/* ---- making and running ------------------------------------------------------------------------------------------------------ */

static void choose_unit(struct lab *lab)
{
    double scale = fabs((double)lab->problem.scale);
    if (scale == 0) /* every score is 0; steps as for the usual scale show a kernel that takes that one */
        scale = 1 / sqrt((double)lab->problem.dim);
    lab->step = 1;
    while (scale * lab->step > 0.125)
        lab->step /= 2;
    while (scale * lab->step <= 0.0625)
        lab->step *= 2;
    lab->unit = scale * lab->step;
}

static bool make_all(struct lab *lab)
{
    enum exit_code code;
    attest_problem packed = lab->problem;
    packed.flags |= ATTEST_LSE;
    attest_problem_pack(&packed);
    if (lab->lse && !(lab->problem.flags & ATTEST_LSE)) {
        lab->problem.flags |= ATTEST_LSE;
        memcpy(lab->problem.stride_lse, packed.stride_lse, sizeof packed.stride_lse);
    }
    lab->plain = lab->problem;
    lab->plain.flags |= ATTEST_LSE;
    memcpy(lab->plain.stride_o, packed.stride_o, sizeof packed.stride_o);
    memcpy(lab->plain.stride_lse, packed.stride_lse, sizeof packed.stride_lse);
    if (!inputs_make(&lab->problem, lab->seed, NULL, &lab->inputs, &code, lab->why, lab->why_size))
        return false;
    snprintf(lab->why, lab->why_size, "out of memory for the stage oracle");
    int64_t first, o_count, lse_count;
    if (attest_problem_extent(&lab->plain, 'o', &first, &o_count) != ATTEST_OK ||
        attest_problem_extent(&lab->plain, 'l', &first, &lse_count) != ATTEST_OK)
        return false;
    choose_unit(lab);
    /* Pages that are never touched cost nothing, so these arrays are as large as O even where few rows are looked at. */
    return outputs_make(&lab->outputs, &lab->inputs) && (lab->o_exact = calloc((size_t)o_count + 1, sizeof(double))) &&
           (lab->lse_exact = calloc((size_t)lse_count + 1, sizeof(double))) && choose_rows(lab) && choose_keys(lab);
}

bool lab_make(struct lab *lab, struct subject subject, const attest_problem *problem, uint64_t seed, char *why, size_t why_size)
{
    *lab = (struct lab){.subject = subject, .problem = *problem, .lse = true, .seed = seed, .why = why, .why_size = why_size};
    attest_context *context = NULL;
    if (attest_context_create_on("cpu", &context) == ATTEST_OK)
        lab->threads = attest_context_threads(context);
    attest_context_destroy(context);
    if (lab->threads < 1)
        lab->threads = 1;
    if (!make_all(lab)) {
        lab_free(lab);
        return false;
    }
    /* Waking threads for a few rows costs more than the rows. */
    if ((double)lab->row_count * (double)problem->seq_kv * (double)(problem->dim + problem->dim_v) < 4e6)
        lab->threads = 1;
    /* A kernel that does not write LSE may still be judged by O alone, if that is what it was asked for. */
    struct experiment plain = {.scores = SCORES_EQUAL, .values = VALUES_PLAIN};
    design_scores(lab, &plain);
    design_values(lab, &plain, 0);
    if (problem->flags & ATTEST_LSE || lab->row_count == 0 || lab_run(lab) || lab->trouble.end != EXECUTION_REFUSED)
        return true;
    lab_free(lab);
    *lab = (struct lab){.subject = subject, .problem = *problem, .seed = seed, .threads = 1, .why = why, .why_size = why_size};
    if (make_all(lab))
        return true;
    lab_free(lab);
    return false;
}

void lab_free(struct lab *lab)
{
    inputs_free(&lab->inputs);
    outputs_free(&lab->outputs);
    free(lab->o_exact);
    free(lab->lse_exact);
    free(lab->rows);
    free(lab->numbers);
    free(lab->keys);
    for (int n = 0; n < lab->runs; n++)
        free(lab->past[n].rows);
    free(lab->past);
    lab->runs = 0;
    lab->o_exact = lab->lse_exact = NULL;
    lab->rows = NULL;
    lab->numbers = lab->keys = NULL;
    lab->past = NULL;
}

bool lab_run(struct lab *lab)
{
    const attest_problem *problem = &lab->problem;
    struct past_run *past = realloc(lab->past, ((size_t)lab->runs + 1) * sizeof *past);
    struct past_row *rows = calloc((size_t)lab->row_count + 1, sizeof *rows);
    if (past)
        lab->past = past;
    if (!past || !rows) {
        free(rows);
        return false;
    }
    past[lab->runs++].rows = rows;
    memset(lab->outputs.o.base, LAB_POISON, lab->outputs.o.bytes);
    if (lab->outputs.lse.base)
        memset(lab->outputs.lse.base, LAB_POISON, lab->outputs.lse.bytes);
    lab->trouble = lab->subject.run(lab->subject.data, &lab->inputs, &lab->outputs);
    if (lab->trouble.end != EXECUTION_DONE)
        return false;
    int64_t size = (int64_t)element_size(problem->dtype_o);
    for (int64_t n = 0; n < lab->row_count; n++) {
        struct place place = lab->rows[n];
        int64_t at = layout_row_at(&lab->inputs.layout, problem->stride_o, place.b, place.h, place.i);
        rows[n].digest = digest_bytes(1, (const char *)lab->outputs.o.at + at * size, (size_t)(problem->dim_v * size));
    }
    return true;
}

/* Whether a row of a run is that of an earlier run in which it was right. */
static bool row_repeats(const struct lab *lab, int run, int64_t row)
{
    for (int before = 0; before < run; before++)
        if (lab->past[before].rows[row].right && lab->past[before].rows[row].digest == lab->past[run].rows[row].digest)
            return true;
    return false;
}

bool lab_repeats(const struct lab *lab, const struct reading *reading)
{
    for (int n = reading->first_run; n < reading->end_run; n++) {
        int64_t wrong = 0, old = 0;
        for (int64_t row = 0; row < lab->row_count; row++) {
            wrong += !lab->past[n].rows[row].right;
            old += !lab->past[n].rows[row].right && row_repeats(lab, n, row);
        }
        if (old > 0 && 2 * old >= wrong)
            return true;
    }
    return false;
}

bool lab_evaluate(struct lab *lab, const attest_problem *problem, const attest_tensors *tensors, double *o, double *lse)
{
    attest_status worst = ATTEST_OK;
#pragma omp parallel num_threads(lab->threads)
    {
        attest_context *context = NULL;
        attest_status status = attest_context_create_on("cpu", &context);
#pragma omp for schedule(dynamic, 16)
        for (int64_t n = 0; n < lab->row_count; n++)
            if (status == ATTEST_OK)
                status = attest_reference(context, problem, tensors, ATTEST_EXACT, lab->numbers[n], lab->numbers[n] + 1, o, lse);
        if (status != ATTEST_OK) {
#pragma omp critical
            {
                worst = status;
                snprintf(lab->why, lab->why_size, "the reference: %s",
                         context ? attest_context_detail(context) : attest_status_name(status));
            }
        }
        attest_context_destroy(context);
    }
    return worst == ATTEST_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

static double norm(const struct buffer *buffer, int64_t at, int64_t dim)
{
    double sum = 0;
    for (int64_t d = 0; d < dim; d++) {
        double value = (double)element_load(buffer->at, buffer->dtype, at + d);
        sum += value * value;
    }
    return sqrt(sum);
}

/* T of judge.c for every row, without |LSE|. */
static bool measure_reach(const struct lab *lab, double *reach)
{
    const attest_problem *problem = &lab->problem;
    const struct layout *layout = &lab->inputs.layout;
    double *longest = calloc((size_t)(problem->batch * problem->heads_kv) + 1, sizeof *longest);
    if (!longest)
        return false;
    for (int64_t bh = 0; bh < problem->batch * problem->heads_kv; bh++)
        for (int64_t j = 0; j < layout_keys(layout, bh / problem->heads_kv); j++) {
            int64_t at = layout_key_at(layout, problem->stride_k, bh / problem->heads_kv, bh % problem->heads_kv, j);
            longest[bh] = fmax(longest[bh], norm(&lab->inputs.k, at, problem->dim));
        }
    for (int64_t n = 0; n < lab->row_count; n++) {
        struct place place = lab->rows[n];
        double query = norm(&lab->inputs.q, layout_row_at(layout, problem->stride_q, place.b, place.h, place.i), problem->dim);
        reach[n] = fabs((double)problem->scale) * query * longest[place.b * problem->heads_kv + lab_head_kv(lab, place.h)];
        if (problem->flags & ATTEST_SOFTCAP)
            reach[n] += fmin((double)problem->softcap, 8 * reach[n]);
    }
    free(longest);
    return true;
}

/* Keys with the largest score that the row sees, where the design says that they are all equal; else 0. */
static int64_t equal_keys(const struct lab *lab, const struct experiment *experiment, int64_t row)
{
    int64_t begin, end, count = 0;
    bool top = experiment->scores == SCORES_TOP, equal = experiment->scores == SCORES_EQUAL;
    lab_visible(lab, row, &begin, &end);
    for (int64_t j = begin; j < end && (top || equal); j++)
        count += equal || (experiment->at > 0 ? j < experiment->at : j % -experiment->at == 0);
    return count;
}

/* Spacing of the output's type at a number. */
static double spacing(uint32_t dtype, double value)
{
    int exponent;
    frexp(value, &exponent);
    return ldexp(unit_roundoff(dtype) * 2, exponent - 1);
}

static void set_bounds(const struct lab *lab, struct reading *reading, const double *reach)
{
    const struct experiment *experiment = &reading->experiment;
    uint32_t dtype_o = lab->problem.dtype_o, dtype = lab->problem.dtype;
    double unit_p = dtype == ATTEST_F32 ? 0 : unit_roundoff(dtype), unit_o = unit_roundoff(dtype_o);
    double tiny = 2 * (dtype_o == ATTEST_F16 ? 0x1p-25 : (double)FLT_MIN) + (dtype == ATTEST_F16 ? 0x1p-23 : 0);
    for (int64_t n = 0; n < reading->rows; n++) {
        int64_t begin, end, equal = equal_keys(lab, experiment, n);
        lab_visible(lab, n, &begin, &end);
        double lse = reading->lse_expected[n], root = sqrt((double)(end > begin ? end - begin : 0));
        double size = reach[n] * (1 + (double)lab->problem.dim / 8) + (isfinite(lse) ? fabs(lse) : 0);
        reading->lse_bound[n] = UNIT_F32 * (16 + 4 * size + 2 * root);
        bool whole = experiment->values == VALUES_WHOLE || experiment->values == VALUES_ROUNDING;
        bool exact = whole && equal > 0 && (equal & (equal - 1)) == 0 && fabs(exp(lse) - (double)equal) < 1e-9;
        for (int64_t c = 0; c < reading->columns; c++) {
            double expected = fabs(reading->o_expected[n * reading->columns + c]);
            double score = reading->by_key && expected > 0 && isfinite(lse) ? fabs(lse + log(expected)) : 0;
            double units = 2 * unit_o + 2 * unit_p + UNIT_F32 * (16 + 4 * (size + score) + 2 * root);
            double bound = expected * units + tiny;
            if (exact && expected > 0)
                bound = 0.5 * spacing(dtype_o, expected) + 16 * UNIT_F32 * expected;
            reading->o_bound[n * reading->columns + c] = bound;
        }
    }
}

/* Error divided by its bound: infinite where one is finite and the other is not, or both are infinite and differ. */
static double ratio_of(double found, double expected, double bound)
{
    if (!isfinite(found) || !isfinite(expected))
        return found == expected ? 0 : INFINITY;
    return fabs(found - expected) / bound;
}

bool reading_wrong_lse(const struct reading *reading, int64_t row)
{
    return !reading->skip[row] && ratio_of(reading->lse[row], reading->lse_expected[row], reading->lse_bound[row]) > 1;
}

bool reading_wrong_o(const struct reading *reading, int64_t row, int64_t column)
{
    int64_t at = row * reading->columns + column;
    return !reading->skip[row] && ratio_of(reading->o[at], reading->o_expected[at], reading->o_bound[at]) > 1;
}

double reading_lse_ratio(const struct reading *reading, const double *expected)
{
    double worst = 0;
    for (int64_t n = 0; n < reading->rows; n++)
        if (!reading->skip[n])
            worst = fmax(worst, ratio_of(reading->lse[n], expected[n], reading->lse_bound[n]));
    return worst;
}

static void compare(struct reading *reading)
{
    for (int64_t n = 0; n < reading->rows; n++) {
        if (reading->skip[n])
            continue;
        reading->lse_ratio = fmax(reading->lse_ratio, ratio_of(reading->lse[n], reading->lse_expected[n], reading->lse_bound[n]));
        if (isfinite(reading->lse[n]) && isfinite(reading->lse_expected[n]))
            reading->lse_error = fmax(reading->lse_error, fabs(reading->lse[n] - reading->lse_expected[n]));
        for (int64_t at = n * reading->columns; at < (n + 1) * reading->columns; at++) {
            reading->o_ratio = fmax(reading->o_ratio, ratio_of(reading->o[at], reading->o_expected[at], reading->o_bound[at]));
            if (isfinite(reading->o[at]))
                reading->o_error = fmax(reading->o_error, fabs(reading->o[at] - reading->o_expected[at]));
        }
    }
    reading->lse_right = reading->lse_ratio <= 1;
    reading->o_right = reading->o_ratio <= 1;
}

/* Copies O and LSE of one run, found and expected, into the reading. */
static void collect(const struct lab *lab, struct reading *reading, int64_t block)
{
    const attest_problem *problem = &lab->problem;
    const struct layout *layout = &lab->inputs.layout;
    for (int64_t n = 0; n < reading->rows; n++) {
        struct place place = lab->rows[n];
        int64_t found = layout_row_at(layout, problem->stride_o, place.b, place.h, place.i);
        int64_t exact = layout_row_at(layout, lab->plain.stride_o, place.b, place.h, place.i);
        for (int64_t d = 0; d < problem->dim_v; d++) {
            int64_t column = reading->by_key ? design_column(lab, block, place.b, lab_head_kv(lab, place.h), d) : d;
            if (column < 0)
                continue;
            reading->o[n * reading->columns + column] = (double)element_load(lab->outputs.o.at, problem->dtype_o, found + d);
            reading->o_expected[n * reading->columns + column] = lab->o_exact[exact + d];
        }
        if (block > 0)
            continue;
        reading->lse_expected[n] = lab->lse_exact[layout_row_at(layout, lab->plain.stride_lse, place.b, place.h, place.i)];
        reading->lse[n] = reading->lse_expected[n];
        if (lab->lse)
            reading->lse[n] =
                (double)((const float *)lab->outputs.lse.at)[layout_row_at(layout, problem->stride_lse, place.b, place.h, place.i)];
    }
}

static bool make_reading(struct reading *reading, const struct lab *lab, const struct experiment *experiment)
{
    size_t rows = (size_t)lab->row_count;
    *reading = (struct reading){.experiment = *experiment, .by_key = experiment->values == VALUES_KEYS, .rows = lab->row_count};
    reading->columns = reading->by_key ? lab->key_count : lab->problem.dim_v;
    size_t cells = rows * (size_t)reading->columns;
    double **arrays[] = {&reading->lse, &reading->lse_expected, &reading->lse_bound,
                         &reading->o,   &reading->o_expected,   &reading->o_bound};
    bool made = (reading->skip = calloc(rows + 1, 1)) != NULL;
    for (int n = 0; n < COUNT_OF(arrays); n++)
        made = (*arrays[n] = calloc((n < 3 ? rows : cells) + 1, sizeof(double))) && made;
    return made;
}

void reading_free(struct reading *reading)
{
    free(reading->skip);
    free(reading->lse);
    free(reading->lse_expected);
    free(reading->lse_bound);
    free(reading->o);
    free(reading->o_expected);
    free(reading->o_bound);
    *reading = (struct reading){0};
}

/* A design with anchors says nothing about a row whose first key is none: its maximum would change on the way. */
static void skip_rows(const struct lab *lab, struct reading *reading)
{
    enum scores scores = reading->experiment.scores;
    bool anchored =
        scores == SCORES_COMB || scores == SCORES_FINE || scores == SCORES_SMALL || scores == SCORES_DIMS || scores == SCORES_LEVEL;
    for (int64_t n = 0; n < reading->rows && anchored; n++) {
        int64_t begin, end;
        lab_visible(lab, n, &begin, &end);
        reading->skip[n] = begin < end && !design_anchor(&reading->experiment, begin);
    }
}

/* Notes which rows of a run were right. */
static void note_rows(const struct lab *lab, const struct reading *reading, int64_t block)
{
    struct past_row *rows = lab->past[reading->first_run + block].rows;
    for (int64_t n = 0; n < reading->rows; n++) {
        int64_t head = lab_head_kv(lab, lab->rows[n].h);
        rows[n].right = !reading_wrong_lse(reading, n);
        for (int64_t d = 0; d < lab->problem.dim_v && rows[n].right; d++) {
            int64_t column = reading->by_key ? design_column(lab, block, lab->rows[n].b, head, d) : d;
            rows[n].right = column < 0 || !reading_wrong_o(reading, n, column);
        }
    }
}

bool lab_read(struct lab *lab, const struct experiment *experiment, struct reading *reading)
{
    int64_t width = lab->problem.dim_v;
    double *reach = calloc((size_t)lab->row_count + 1, sizeof *reach);
    bool done = reach && make_reading(reading, lab, experiment);
    snprintf(lab->why, lab->why_size, "out of memory for the stage oracle");
    lab->trouble.end = EXECUTION_DONE;
    int64_t blocks = done && reading->by_key && lab->key_count > 0 ? (lab->key_count + width - 1) / width : 1;
    reading->first_run = lab->runs;
    if (done) {
        design_scores(lab, experiment);
        skip_rows(lab, reading);
        done = measure_reach(lab, reach);
    }
    for (int64_t block = 0; block < blocks && done; block++) {
        design_values(lab, experiment, block);
        done =
            lab_run(lab) && lab_evaluate(lab, &lab->plain, &lab->inputs.tensors, lab->o_exact, block == 0 ? lab->lse_exact : NULL);
        if (done)
            collect(lab, reading, block);
    }
    if (done) {
        set_bounds(lab, reading, reach);
        compare(reading);
        reading->end_run = lab->runs;
        for (int64_t block = 0; block < blocks; block++)
            note_rows(lab, reading, block);
    }
    free(reach);
    if (!done)
        reading_free(reading);
    return done;
}
