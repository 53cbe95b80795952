/*
 * stages.c - the black-box stage oracle: which stage of a kernel goes wrong first, by choosing its inputs (see stages.h).
 *
 * A dump inside a kernel changes the kernel. But a kernel computes
 *
 *     s = scale q k + modifiers;  mask;  p = exp(s - m);  l = sum p;  o = sum p v;  O = o / l;  LSE = m + ln l
 *
 * and LSE never passes through V. So LSE speaks for S, mask, maximum and sum; and with columns of the identity for V, O is the
 * matrix of weights P as they reached the product. Every experiment reads both. What is wrong in LSE comes before the product;
 * what is wrong in O alone comes after the sum. Which of the stages it is follows from the first experiment that fails, because
 * each adds one thing to what those before it need:
 *
 *     equal scores          Q = 0, so no score can be wrong: LSE = ln n, O shows which n keys           mask, then the sum
 *     whole scores          every second key has score 0 whatever Q is, the maximum never changes       S, then exp
 *     all digits, near      the same with all bits of the type, and 128 times smaller                   S
 *     levels                the same at +-150, 512 and -20000                                           P, bits of S, mask
 *     falling, rising       the maximum stays; changes in every tile; differs from row to row           P; rescale
 *     ladder                weights of 1 to e^-22                                                       exp (P)
 *     modifiers             softcap, ALiBi, bias, each alone, then together; the sink                   S; normalisation
 *     needles               one key 200 above all others                                                maximum (P)
 *     columns, sums ...     V that names its head and column; whole numbers whose sums are exact        PV, epilogue
 *     drawn inputs          what is left: judged as `attest check` does, NaN wherever nothing may be read
 *
 * Each reading is compared with the float64 reference on the very same inputs, within bounds that hold for any right kernel
 * (stages_experiment.c). Then the failing one is looked at (stages_before.c, stages_mask.c, stages_scores.c, stages_after.c,
 * stages_layout.c): where, in which pattern, and whether a known mistake gives exactly this (stages_cause.c). Stages that would
 * show in the same way are all named.
 */
#include "stages_inquiry.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages_save.h"

static const char *const stage_names[STAGE_COUNT] = {"S", "mask", "P", "normalisation", "rescale", "PV", "epilogue"};

const char *stage_name(enum stage stage)
{
    for (int n = 0; n < STAGE_COUNT; n++)
        if (stage == (enum stage)(1 << n))
            return stage_names[n];
    return "none";
}

void stages_text(unsigned stages, char *text, size_t size)
{
    int left = __builtin_popcount(stages);
    size_t length = 0;
    snprintf(text, size, "none");
    for (int n = 0; n < STAGE_COUNT && length < size; n++)
        if (stages >> n & 1)
            length += (size_t)snprintf(text + length, size - length, "%s%s", stage_names[n],
                                       --left > 1  ? ", "
                                       : left == 1 ? " or "
                                                   : "");
}

/* ---- conclusions ------------------------------------------------------------------------------------------------------------- */

bool ask(struct inquiry *inquiry, const struct experiment *experiment, struct reading *reading)
{
    if (!inquiry->failed && lab_read(inquiry->lab, experiment, reading))
        return true;
    inquiry->failed = true;
    return false;
}

bool single_keys(const struct inquiry *inquiry, const struct reading *reading)
{
    for (int64_t n = 0; n < reading->rows; n++) {
        int64_t begin, end;
        lab_visible(inquiry->lab, n, &begin, &end);
        if (end - begin > 1 && (reading_wrong_lse(reading, n) || row_is_wrong(reading, n)))
            return false;
    }
    return true;
}

/* Keys that a row must not see, and does not, say nothing about a pattern. */
unsigned char *wrong_cells(const struct reading *reading, enum sight sight)
{
    int64_t columns = sight == SIGHT_LSE ? 1 : reading->columns;
    unsigned char *cell = malloc((size_t)(reading->rows * columns) + 1);
    for (int64_t at = 0; at < reading->rows * columns && cell; at++) {
        int64_t row = at / columns;
        bool wrong = sight == SIGHT_LSE ? reading_wrong_lse(reading, row) : reading_wrong_o(reading, row, at % columns);
        bool silent = reading->skip[row] || (sight == SIGHT_O && reading->by_key && reading->o_expected[at] == 0);
        cell[at] = wrong ? CELL_WRONG : silent ? CELL_UNKNOWN : CELL_RIGHT;
    }
    return cell;
}

static struct pattern conclude_with(struct inquiry *inquiry, unsigned stages, const struct cells *cells, struct exhibit exhibit,
                                    const char *format, va_list arguments)
{
    struct diagnosis *diagnosis = inquiry->diagnosis;
    struct pattern pattern = pattern_find(cells);
    free(inquiry->exhibit.expected);
    free(inquiry->exhibit.found);
    inquiry->exhibit = exhibit;
    diagnosis->wrong = true;
    diagnosis->stages = stages;
    diagnosis->tile = pattern.boundary;
    diagnosis->by_key = exhibit.by_key;
    if (pattern.first >= 0) {
        diagnosis->batch = cells->rows[pattern.first].b;
        diagnosis->head = cells->rows[pattern.first].h;
        diagnosis->row = cells->rows[pattern.first].i;
        diagnosis->column = cells->column_count > 1 ? pattern.column : -1;
        int64_t at = pattern.first * cells->column_count;
        while (cells->cell[at] != CELL_WRONG)
            at++;
        diagnosis->error = exhibit.found ? fabs(exhibit.found[at] - exhibit.expected[at]) : NAN;
    }
    snprintf(diagnosis->pattern, sizeof diagnosis->pattern, "%s", pattern.text);
    vsnprintf(diagnosis->cause, sizeof diagnosis->cause, format, arguments);
    return pattern;
}

struct pattern conclude_table(struct inquiry *inquiry, unsigned stages, const struct cells *cells, struct exhibit exhibit,
                              const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct pattern pattern = conclude_with(inquiry, stages, cells, exhibit, format, arguments);
    va_end(arguments);
    return pattern;
}

static double *copy_doubles(const double *from, int64_t count)
{
    double *copy = malloc(((size_t)count + 1) * sizeof *copy);
    if (copy)
        memcpy(copy, from, (size_t)count * sizeof *copy);
    return copy;
}

static struct exhibit exhibit_of(const struct reading *reading, enum sight sight)
{
    bool lse = sight == SIGHT_LSE;
    int64_t columns = lse ? 1 : reading->columns, count = reading->rows * columns;
    return (struct exhibit){.rows = reading->rows,
                            .columns = columns,
                            .by_key = !lse && reading->by_key,
                            .expected = copy_doubles(lse ? reading->lse_expected : reading->o_expected, count),
                            .found = copy_doubles(lse ? reading->lse : reading->o, count)};
}

struct pattern conclude(struct inquiry *inquiry, unsigned stages, const struct reading *reading, enum sight sight,
                        const char *format, ...)
{
    struct pattern pattern = {.first = -1};
    unsigned char *cell = wrong_cells(reading, sight);
    struct exhibit exhibit = exhibit_of(reading, sight);
    struct cells cells = {cell,
                          inquiry->lab->rows,
                          reading->rows,
                          exhibit.by_key ? inquiry->lab->keys : NULL,
                          exhibit.columns,
                          "row",
                          exhibit.by_key ? "key" : "column"};
    va_list arguments;
    va_start(arguments, format);
    if (cell)
        pattern = conclude_with(inquiry, stages, &cells, exhibit, format, arguments);
    va_end(arguments);
    free(cell);
    return pattern;
}

/* ---- what was never written -------------------------------------------------------------------------------------------------- */

static bool is_blank(const struct buffer *buffer, int64_t at)
{
    size_t size = element_size(buffer->dtype);
    const unsigned char *byte = (const unsigned char *)buffer->at + at * (int64_t)size;
    for (size_t n = 0; n < size; n++)
        if (byte[n] != LAB_POISON)
            return false;
    return true;
}

/* Cells of O ([rows][dim_v]) or LSE ([rows][1]) that are blank. */
static int64_t find_blanks(const struct lab *lab, bool lse, unsigned char *cell)
{
    const attest_problem *problem = &lab->problem;
    int64_t columns = lse ? 1 : problem->dim_v, blanks = 0;
    for (int64_t n = 0; n < lab->row_count; n++) {
        struct place place = lab->rows[n];
        const int64_t *stride = lse ? problem->stride_lse : problem->stride_o;
        int64_t row = layout_row_at(&lab->inputs.layout, stride, place.b, place.h, place.i);
        for (int64_t d = 0; d < columns; d++) {
            bool blank = is_blank(lse ? &lab->outputs.lse : &lab->outputs.o, row + d);
            cell[n * columns + d] = blank ? CELL_WRONG : CELL_RIGHT;
            blanks += blank;
        }
    }
    return blanks;
}

static void inquire_blanks(struct inquiry *inquiry)
{
    struct lab *lab = inquiry->lab;
    struct experiment plain = {.name = "poisoned outputs", .scores = SCORES_EQUAL, .values = VALUES_PLAIN};
    unsigned char *cell = malloc((size_t)(lab->row_count * lab->problem.dim_v) + 1);
    struct reading reading;
    inquiry->failed = !cell;
    if (ask(inquiry, &plain, &reading))
        reading_free(&reading);
    int64_t blanks = 0;
    for (int lse = 0; lse <= lab->lse && !inquiry->failed && blanks == 0; lse++) {
        blanks = find_blanks(lab, lse, cell);
        struct cells cells = {cell, lab->rows, lab->row_count, NULL, lse ? 1 : lab->problem.dim_v, "row", "column"};
        if (blanks == 0)
            continue;
        conclude_table(inquiry, STAGE_EPILOGUE, &cells, (struct exhibit){0}, "%s is not written: %s", lse ? "LSE" : "O",
                       pattern_find(&cells).text);
        inquiry->last = plain;
    }
    if (!inquiry->failed)
        save_probe(inquiry->diagnosis, plain.name, STAGE_EPILOGUE, blanks == 0, blanks ? INFINITY : 0, blanks ? INFINITY : 0);
    free(cell);
}

/* ---- the battery ------------------------------------------------------------------------------------------------------------- */

enum { MOST_EXPERIMENTS = 48 };

struct battery {
    struct experiment list[MOST_EXPERIMENTS];
    int count;
};

static void add(struct battery *battery, struct experiment experiment)
{
    if (battery->count < MOST_EXPERIMENTS)
        battery->list[battery->count++] = experiment;
}

static void add_scores(struct battery *battery, const struct lab *lab)
{
    bool capped = (lab->problem.flags & ATTEST_SOFTCAP) != 0;
    add(battery, (struct experiment){.name = "equal scores", .stage = STAGE_MASK, .scores = SCORES_EQUAL});
    add(battery, (struct experiment){.name = "whole scores, odd keys", .stage = STAGE_S, .scores = SCORES_COMB});
    add(battery, (struct experiment){.name = "whole scores, even keys", .stage = STAGE_S, .scores = SCORES_COMB, .at = 1});
    add(battery, (struct experiment){.name = "scores with all digits", .stage = STAGE_S, .scores = SCORES_FINE});
    add(battery, (struct experiment){.name = "scores near each other", .stage = STAGE_S, .scores = SCORES_SMALL});
    if (capped)
        add(battery, (struct experiment){
                         .name = "softcap", .stage = STAGE_S, .scores = SCORES_LEVEL, .level = 0.6 * (double)lab->problem.softcap});
    add(battery, (struct experiment){.name = "scores near 150", .stage = STAGE_P, .scores = SCORES_LEVEL, .level = 150});
    add(battery, (struct experiment){.name = "scores near -150", .stage = STAGE_P, .scores = SCORES_LEVEL, .level = -150});
    add(battery, (struct experiment){.name = "scores near 512", .stage = STAGE_S, .scores = SCORES_LEVEL, .level = 512});
    if (!capped)
        add(battery,
            (struct experiment){.name = "scores near -20000", .stage = STAGE_MASK, .scores = SCORES_LEVEL, .level = -20000});
    add(battery, (struct experiment){.name = "falling rows", .stage = STAGE_P, .scores = SCORES_FALLING});
    add(battery, (struct experiment){.name = "rising rows", .stage = STAGE_RESCALE, .scores = SCORES_RISING});
    add(battery, (struct experiment){.name = "rows that rise and fall", .stage = STAGE_RESCALE, .scores = SCORES_MIXED});
    add(battery, (struct experiment){.name = "weights down to e^-22", .stage = STAGE_P, .scores = SCORES_LADDER});
}

static void add_modifiers(struct battery *battery, const struct lab *lab)
{
    uint64_t flags = lab->problem.flags, several = flags & (ATTEST_SOFTCAP | ATTEST_ALIBI | ATTEST_BIAS);
    if (flags & ATTEST_ALIBI)
        add(battery, (struct experiment){.name = "ALiBi alone", .stage = STAGE_S, .modifiers = ATTEST_ALIBI});
    if (flags & ATTEST_BIAS) {
        add(battery, (struct experiment){.name = "bias alone", .stage = STAGE_S, .modifiers = ATTEST_BIAS});
        add(battery, (struct experiment){
                         .name = "keys hidden by the bias", .stage = STAGE_MASK, .modifiers = ATTEST_BIAS, .level = -INFINITY});
    }
    if (several & (several - 1))
        add(battery,
            (struct experiment){.name = "modifiers together", .stage = STAGE_S, .scores = SCORES_COMB, .modifiers = several});
    if (flags & ATTEST_SINK)
        add(battery, (struct experiment){.name = "sinks", .stage = STAGE_NORMALISATION, .modifiers = ATTEST_SINK});
}

static void add_values(struct battery *battery, const struct lab *lab)
{
    const attest_problem *problem = &lab->problem;
    int64_t keys = problem->seq_kv, power = 1, seen = keys;
    int64_t needles[] = {0, keys - 1, keys / 2, 63, 64, 128, 1024};
    if (problem->flags & ATTEST_WINDOW_LEFT && problem->window_left + 1 < seen)
        seen = problem->window_left + 1;
    while (2 * power <= keys)
        power *= 2;
    for (int n = 0; n < COUNT_OF(needles); n++)
        if (needles[n] >= 0 && needles[n] < keys && (n < 3 || needles[n] != keys / 2))
            add(battery, (struct experiment){.name = "one key 200 above the others",
                                             .stage = STAGE_P,
                                             .scores = SCORES_NEEDLE,
                                             .values = VALUES_PLAIN,
                                             .at = needles[n]});
    add(battery, (struct experiment){.name = "values that name head and column", .stage = STAGE_PV, .values = VALUES_COLUMNS});
    add(battery,
        (struct experiment){
            .name = "sums of whole numbers", .stage = STAGE_PV, .scores = SCORES_TOP, .values = VALUES_WHOLE, .at = power});
    add(battery, (struct experiment){.name = "sums of tiny numbers",
                                     .stage = STAGE_PV,
                                     .scores = SCORES_TOP,
                                     .values = VALUES_WHOLE,
                                     .at = power,
                                     .size = problem->dtype == ATTEST_F16 || problem->dtype_o == ATTEST_F16 ? 0x1p-10 : 0x1p-40});
    if (problem->dtype_o != ATTEST_F32 && seen > 1)
        add(battery, (struct experiment){.name = "means between two numbers of the type",
                                         .stage = STAGE_EPILOGUE,
                                         .scores = SCORES_TOP,
                                         .values = VALUES_ROUNDING,
                                         .at = -((seen + 1) / 2)});
}

/* What a kernel without LSE gets wrong: O must speak for both halves. */
static void inquire_alone(struct inquiry *inquiry, const struct reading *reading)
{
    bool plain = reading->experiment.modifiers == 0;
    bool comb = reading->experiment.scores == SCORES_COMB && plain;
    if (reading->experiment.scores == SCORES_EQUAL && plain && reading->by_key && !same_keys(inquiry, reading)) {
        struct experiment clearer = {.scores = SCORES_COMB, .values = VALUES_KEYS};
        struct reading second;
        if (!ask(inquiry, &clearer, &second))
            return;
        if (!inquire_layout(inquiry, &second))
            inquire_mask(inquiry, reading);
        reading_free(&second);
        return;
    }
    if (reading->experiment.values != VALUES_KEYS && reading->experiment.scores != SCORES_NEEDLE)
        inquire_after(inquiry, reading);
    else if (!comb || !inquire_layout(inquiry, reading))
        inquire_before(inquiry, reading);
}

/* Keeps a reading that others may go back to, or the first whose O is wrong; true if it was taken over. */
static bool keep(struct inquiry *inquiry, const struct reading *reading)
{
    const struct experiment *experiment = &reading->experiment;
    struct reading *place = NULL;
    if (experiment->modifiers == 0 && experiment->values == VALUES_KEYS) {
        if (experiment->scores == SCORES_EQUAL)
            place = &inquiry->equal;
        else if (experiment->scores == SCORES_COMB)
            place = &inquiry->comb[experiment->at];
    }
    if (place)
        *place = *reading;
    if (!reading->o_right && !inquiry->first_o) {
        if (!place)
            inquiry->other = *reading;
        inquiry->first_o = place ? place : &inquiry->other;
        return true;
    }
    return place != NULL;
}

static void run_battery(struct inquiry *inquiry)
{
    struct lab *lab = inquiry->lab;
    struct battery battery = {0};
    add_scores(&battery, lab);
    add_modifiers(&battery, lab);
    add_values(&battery, lab);
    for (int n = 0; n < battery.count && !inquiry->diagnosis->wrong && !inquiry->failed; n++) {
        const struct experiment *experiment = &battery.list[n];
        struct reading reading;
        if (!ask(inquiry, experiment, &reading))
            return;
        save_probe(inquiry->diagnosis, experiment->name, experiment->stage, reading.lse_right && reading.o_right,
                   fmax(reading.lse_error, reading.o_error), fmax(reading.lse_ratio, reading.o_ratio));
        if (!reading.lse_right && !inquire_stale(inquiry, &reading))
            inquire_before(inquiry, &reading);
        else if (!lab->lse && !reading.o_right && !inquire_stale(inquiry, &reading))
            inquire_alone(inquiry, &reading);
        if (inquiry->diagnosis->wrong)
            inquiry->last = reading.experiment;
        if (!keep(inquiry, &reading))
            reading_free(&reading);
    }
    if (!inquiry->diagnosis->wrong && !inquiry->failed && inquiry->first_o) {
        inquiry->last = inquiry->first_o->experiment;
        inquire_after(inquiry, inquiry->first_o);
    }
}

/* ---- drawn inputs ------------------------------------------------------------------------------------------------------------ */

enum { DRAWN_ROWS = 128 };

/* Everything in a buffer that is NaN becomes 0. */
static void clear_nan(struct buffer *buffer)
{
    for (size_t n = 0; buffer->base && n < buffer->bytes / element_size(buffer->dtype); n++)
        if (isnan(element_load(buffer->base, buffer->dtype, (int64_t)n)))
            element_store(buffer->base, buffer->dtype, (int64_t)n, 0);
}

/* The judge's word on O and LSE, and on O alone. */
static bool judge_drawn(struct inquiry *inquiry, const struct judge *judge, struct finding *both, struct finding *o_alone)
{
    struct lab *lab = inquiry->lab;
    const attest_problem *problem = &lab->problem;
    if (!lab_run(lab)) {
        inquiry->failed = true;
        return false;
    }
    judge_output(judge, judge->row_count, lab->outputs.o.at, problem->stride_o, lab->lse ? lab->outputs.lse.at : NULL,
                 problem->stride_lse, both);
    judge_output(judge, judge->row_count, lab->outputs.o.at, problem->stride_o, NULL, problem->stride_lse, o_alone);
    return true;
}

static void conclude_drawn(struct inquiry *inquiry, unsigned stages, const struct finding *finding, const char *text)
{
    struct diagnosis *diagnosis = inquiry->diagnosis;
    long long b, h, i, d;
    diagnosis->wrong = true;
    diagnosis->stages = stages;
    diagnosis->error = finding->max_error;
    snprintf(diagnosis->pattern, sizeof diagnosis->pattern, "on drawn inputs");
    snprintf(diagnosis->cause, sizeof diagnosis->cause, "%s; %s", text, finding->what);
    int read = sscanf(finding->what, "%*[OLSE][%lld,%lld,%lld,%lld]", &b, &h, &i, &d);
    if (read >= 3) {
        diagnosis->batch = b;
        diagnosis->head = h;
        diagnosis->row = i;
        diagnosis->column = read == 4 ? d : -1;
    }
}

static void inquire_drawn(struct inquiry *inquiry)
{
    struct lab *lab = inquiry->lab;
    struct judge judge = {0};
    struct finding both, o_alone, clean, clean_o;
    enum exit_code code;
    inputs_free(&lab->inputs);
    inquiry->failed = !inputs_make(&lab->problem, lab->seed, NULL, &lab->inputs, &code, lab->why, lab->why_size) ||
                      !judge_make(&judge, &lab->inputs, lab->seed, DRAWN_ROWS, lab->threads, lab->why, lab->why_size);
    if (inquiry->failed || !judge_drawn(inquiry, &judge, &both, &o_alone)) {
        judge_free(&judge);
        return;
    }
    save_probe(inquiry->diagnosis, "drawn inputs", STAGE_EPILOGUE, both.accepted, both.max_error, both.ratio);
    clean = both;
    if (!both.accepted) {
        clear_nan(&lab->inputs.q);
        clear_nan(&lab->inputs.k);
        clear_nan(&lab->inputs.v);
        judge_drawn(inquiry, &judge, &clean, &clean_o);
    }
    judge_free(&judge);
    if (both.accepted || inquiry->failed)
        return;
    bool before = lab->lse && strncmp(both.what, "LSE", 3) == 0;
    if (clean.accepted)
        conclude_drawn(inquiry, o_alone.accepted || before ? STAGE_MASK : STAGE_MASK | STAGE_PV, &both,
                       "NaN in padding or in keys that no row sees reaches the output: they are multiplied with 0, not left out");
    else if (o_alone.accepted || before)
        conclude_drawn(inquiry, STAGE_S | STAGE_P | STAGE_RESCALE, &both, "LSE is wrong on drawn inputs, and on no designed ones");
    else
        conclude_drawn(inquiry,
                       STAGE_P | STAGE_RESCALE | STAGE_PV | STAGE_EPILOGUE | (lab->lse ? 0 : STAGE_S) |
                           (isinf(both.ratio) ? STAGE_NORMALISATION : 0),
                       &both, "O is wrong on drawn inputs, and on no designed ones");
}

/* ---- the whole --------------------------------------------------------------------------------------------------------------- */

/* A kernel that gives something else the second time has a race; what it seemed to do wrong may be a part of it. */
static void look_again(struct inquiry *inquiry)
{
    struct reading first, second;
    struct diagnosis *diagnosis = inquiry->diagnosis;
    if (!inquiry->last.name || inquiry->settled || !ask(inquiry, &inquiry->last, &first))
        return;
    if (ask(inquiry, &inquiry->last, &second)) {
        size_t cells = (size_t)(first.rows * first.columns), length = strlen(diagnosis->cause);
        bool right = first.lse_right && first.o_right;
        if (right)
            snprintf(diagnosis->cause + length, sizeof diagnosis->cause - length,
                     " (asked again it is right: it keeps something from call to call)");
        else if (memcmp(first.o, second.o, cells * sizeof(double)) != 0 ||
                 memcmp(first.lse, second.lse, (size_t)first.rows * sizeof(double)) != 0)
            snprintf(diagnosis->cause + length, sizeof diagnosis->cause - length,
                     " (two runs on the same inputs differ: a race, or memory that was not initialised)");
        reading_free(&second);
    }
    reading_free(&first);
    inquiry->failed = false; /* the diagnosis stands without it */
}

static bool finish(struct inquiry *inquiry, const char *folder)
{
    struct diagnosis *diagnosis = inquiry->diagnosis;
    struct lab *lab = inquiry->lab;
    if (inquiry->failed && lab->trouble.end != EXECUTION_DONE) {
        diagnosis->trouble = lab->trouble;
        diagnosis->wrong = lab->trouble.end != EXECUTION_REFUSED && lab->trouble.end != EXECUTION_LACKING;
        return true;
    }
    if (inquiry->failed)
        return false;
    if (!inquiry->exhibit.found && inquiry->comb[0].o)
        inquiry->exhibit = exhibit_of(&inquiry->comb[0], SIGHT_O);
    save_heat(diagnosis, &inquiry->exhibit);
    return !folder || !diagnosis->wrong || save_arrays(folder, lab, diagnosis, &inquiry->exhibit, lab->why, lab->why_size);
}

bool stages_diagnose(struct subject subject, const attest_problem *problem, uint64_t seed, const char *folder,
                     struct diagnosis *diagnosis, char *why, size_t why_size)
{
    struct lab lab;
    struct inquiry inquiry = {.lab = &lab, .diagnosis = diagnosis};
    *diagnosis = (struct diagnosis){.batch = -1, .head = -1, .row = -1, .column = -1, .probes = json_array()};
    if (!lab_make(&lab, subject, problem, seed, why, why_size))
        return false;
    inquiry.failed = lab.trouble.end != EXECUTION_DONE;
    if (!inquiry.failed && lab.row_count > 0) {
        inquire_blanks(&inquiry);
        if (!inquiry.failed && !diagnosis->wrong)
            run_battery(&inquiry);
        if (!inquiry.failed && diagnosis->wrong)
            look_again(&inquiry);
        if (!inquiry.failed && !diagnosis->wrong)
            inquire_drawn(&inquiry);
    }
    bool done = finish(&inquiry, folder);
    reading_free(&inquiry.equal);
    reading_free(&inquiry.comb[0]);
    reading_free(&inquiry.comb[1]);
    reading_free(&inquiry.other);
    free(inquiry.exhibit.expected);
    free(inquiry.exhibit.found);
    lab_free(&lab);
    return done;
}
