/*
 * stages_after.c - LSE is right in every reading, so scores, mask, maximum and sum are; O is not. What is left is the product with
 * V, the scaling of what was summed up, the division, and writing O.
 *
 * Where no maximum changes (equal scores, combs), O is P V / l and nothing else, and the way it is wrong tells which part:
 *     each row by a factor of its own              normalisation
 *     a row holds another row's weights            epilogue: written to the wrong place
 *     weights stand in columns of another head's V PV: V of the wrong head
 *     weights of some keys are missing or moved    PV: layout of P or V
 *     the same columns of O wrong for any V        PV or epilogue
 *     everything slightly off                      PV: precision. Cut off instead of rounded: epilogue
 * Where it takes a rising row to go wrong, it is the rescaling.
 */
#include "stages_inquiry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- factors ----------------------------------------------------------------------------------------------------------------- */

/* The factor between what was found and expected in a row, if there is one; NaN if not. A factor near 1 must explain nearly all of
 * the error, or it is only one of many errors that are small. */
double row_factor(const struct reading *reading, int64_t row)
{
    double factor = NAN, largest = 0;
    for (int64_t c = 0; c < reading->columns; c++) {
        int64_t at = row * reading->columns + c;
        if (reading->o_expected[at] > largest) {
            largest = reading->o_expected[at];
            factor = reading->o[at] / largest;
        }
    }
    for (int64_t c = 0; c < reading->columns; c++) {
        int64_t at = row * reading->columns + c;
        double expected = reading->o_expected[at], slack = 2 * reading->o_bound[at] * fmax(1, fabs(factor));
        if (fabs(factor - 1) < 0.01)
            slack = fmin(slack, fmax(0.25 * fabs(factor - 1) * expected, 0.4 * reading->o_bound[at]));
        if (!(fabs(reading->o[at] - factor * expected) <= slack))
            return NAN;
    }
    return isfinite(factor) ? factor : NAN;
}

bool row_is_wrong(const struct reading *reading, int64_t row)
{
    bool wrong = false;
    for (int64_t c = 0; c < reading->columns && !wrong; c++)
        wrong = reading_wrong_o(reading, row, c);
    return wrong;
}

/* Weights of a row that are not 0. One alone has a factor whatever is wrong. */
static int64_t weights_of(const struct reading *reading, int64_t row)
{
    int64_t count = 0;
    for (int64_t c = 0; c < reading->columns; c++)
        count += reading->o_expected[row * reading->columns + c] > 0;
    return count;
}

static bool inquire_factors(struct inquiry *inquiry, const struct reading *reading)
{
    double first = NAN, least = INFINITY, most = -INFINITY;
    bool undivided = true, several = false;
    for (int64_t n = 0; n < reading->rows; n++) {
        if (!row_is_wrong(reading, n))
            continue;
        double factor = row_factor(reading, n), sum = exp(reading->lse_expected[n]); /* the largest score is 0 in these designs */
        if (!isfinite(factor) || factor == 0)
            return false;
        several = several || weights_of(reading, n) > 1;
        first = isnan(first) ? factor : first;
        least = fmin(least, factor);
        most = fmax(most, factor);
        undivided = undivided && fabs(factor / sum - 1) < 0.05;
    }
    if (isnan(first) || !several)
        return false;
    bool single = most - least <= 0.02 * fabs(first);
    if (undivided)
        conclude(inquiry, STAGE_NORMALISATION, reading, SIGHT_O, "O is not divided by the sum");
    else if (fabs(most - 1) < 0.01 && fabs(least - 1) < 0.01)
        conclude(inquiry, STAGE_NORMALISATION, reading, SIGHT_O,
                 "rows of O are off by factors of %.6g to %.6g: the reciprocal of the sum is only approximate", least, most);
    else if (single)
        conclude(inquiry, STAGE_NORMALISATION | STAGE_PV | STAGE_EPILOGUE, reading, SIGHT_O,
                 "O is %.5g times what it should be, the same in every wrong row", first);
    else
        conclude(inquiry, STAGE_NORMALISATION, reading, SIGHT_O,
                 "each row of O has a factor of its own (%.4g to %.4g): it is divided by something else than its sum", least, most);
    snprintf(inquiry->diagnosis->pattern, sizeof inquiry->diagnosis->pattern, "row factor");
    return true;
}

/* Factors that change from one piece of the keys to the next: where they first change and how, and the last piece. */
struct pieces {
    int64_t boundary, last_begin, end;
    double before, after, last;
};

static bool row_pieces(const struct lab *lab, const struct reading *reading, int64_t row, struct pieces *pieces)
{
    int64_t changes = 0, begin, end;
    double last = NAN;
    lab_visible(lab, row, &begin, &end);
    for (int64_t c = 0; c < reading->columns; c++) {
        int64_t at = row * reading->columns + c;
        if (!(reading->o_expected[at] > 0))
            continue;
        double factor = reading->o[at] / reading->o_expected[at];
        double slack = 4 * reading->o_bound[at] / reading->o_expected[at] * fmax(1, fabs(factor));
        if (!isfinite(factor) || factor <= 0)
            return false;
        if (fabs(factor - last) > slack) {
            if (++changes == 1)
                *pieces = (struct pieces){.boundary = lab->keys[c], .end = end, .before = last, .after = factor};
            pieces->last_begin = lab->keys[c];
        }
        pieces->last = last = factor;
    }
    return 4 * changes < end - begin;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Equal scores: each piece of the keys has a factor of its own, and pieces end at multiples of one number. */
static bool inquire_pieces(struct inquiry *inquiry, const struct reading *reading)
{
    struct pieces first = {0};
    bool own_sums = true;
    int64_t step = 0;
    for (int64_t n = 0; n < reading->rows; n++) {
        struct pieces pieces = {0};
        if (!row_is_wrong(reading, n))
            continue;
        if (!row_pieces(inquiry->lab, reading, n, &pieces))
            return false;
        if (pieces.boundary == 0)
            continue;
        step = common_divisor(step, pieces.boundary);
        own_sums = own_sums && fabs(pieces.last * (double)(pieces.end - pieces.last_begin) - 1) < 0.02;
        if (first.boundary == 0)
            first = pieces;
    }
    if (first.boundary == 0 || step < 4)
        return false;
    conclude(inquiry, own_sums ? STAGE_NORMALISATION : STAGE_NORMALISATION | STAGE_RESCALE, reading, SIGHT_O,
             own_sums ? "pieces of the keys are divided by their own sums before they are joined, and then once more (the factor "
                        "changes at key %lld, from %.4g to %.4g)"
                      : "the factor of O changes at key %lld, from %.4g to %.4g: what is carried or joined there is scaled wrongly",
             (long long)first.boundary, first.before, first.after);
    inquiry->diagnosis->tile = first.boundary;
    return true;
}

/* ---- precision --------------------------------------------------------------------------------------------------------------- */

/* The number of the output's type next to `value` on the side of 0. */
static double cut_off(uint32_t dtype, double value)
{
    int exponent;
    double significand = frexp(value, &exponent), grain = 2 * unit_roundoff(dtype);
    return ldexp(trunc(significand / grain * 2) * grain / 2, exponent);
}

static double worst_relative(const struct reading *reading, bool *cut, uint32_t dtype)
{
    double worst = 0;
    *cut = dtype != ATTEST_F32;
    for (int64_t n = 0; n < reading->rows; n++)
        for (int64_t c = 0; c < reading->columns; c++) {
            int64_t at = n * reading->columns + c;
            if (!reading_wrong_o(reading, n, c))
                continue;
            double expected = reading->o_expected[at];
            worst = fmax(worst, isfinite(reading->o[at]) && expected > 0 ? fabs(reading->o[at] / expected - 1) : INFINITY);
            *cut = *cut && fabs(reading->o[at] - cut_off(dtype, expected)) <= 1e-6 * expected;
        }
    return worst;
}

/* Whether every wrong row is wrong by one factor. */
static bool all_factors(const struct reading *reading)
{
    for (int64_t n = 0; n < reading->rows; n++)
        if (row_is_wrong(reading, n) && isnan(row_factor(reading, n)))
            return false;
    return true;
}

/* Whether sums of two values are right where these, of more, are not, in rows that all divide by the same power of two: then neither
 * the division nor the last rounding is wrong. */
static bool wrong_by_number(struct inquiry *inquiry, const struct reading *reading)
{
    struct experiment two = reading->experiment;
    struct reading fewer;
    if (two.at <= 2)
        return false;
    for (int64_t n = 0; n < reading->rows; n++) {
        int64_t begin, end;
        lab_visible(inquiry->lab, n, &begin, &end);
        if (row_is_wrong(reading, n) && (begin > 0 || end < two.at))
            return false;
    }
    two.at = 2;
    if (!ask(inquiry, &two, &fewer))
        return false;
    bool right = fewer.o_right;
    reading_free(&fewer);
    return right;
}

/* Sums of whole numbers, and means of two numbers: only the result is rounded. */
static void inquire_sums(struct inquiry *inquiry, const struct reading *reading)
{
    uint32_t dtype = inquiry->lab->problem.dtype_o;
    bool cut;
    double worst = worst_relative(reading, &cut, dtype);
    if (cut)
        conclude(inquiry, STAGE_EPILOGUE, reading, SIGHT_O, "O is cut off to %s, not rounded to nearest: every error is towards 0",
                 element_name(dtype));
    else if (all_factors(reading))
        conclude(inquiry, STAGE_NORMALISATION | STAGE_PV, reading, SIGHT_O,
                 "rows of O are off by a factor, of up to %.2g: of the sum, or of what is kept in too few bits", worst);
    else if (wrong_by_number(inquiry, reading))
        conclude(
            inquiry, STAGE_PV, reading, SIGHT_O,
            "sums of two values are right, and of %lld they are off by up to %.2g of their size: they are kept in too few bits",
            (long long)reading->experiment.at, worst);
    else if (dtype != ATTEST_F32 && worst < 4 * unit_roundoff(dtype))
        conclude(inquiry, STAGE_NORMALISATION | STAGE_PV | STAGE_EPILOGUE, reading, SIGHT_O,
                 "O is not the nearest %s: it is rounded otherwise, or more than once", element_name(dtype));
    else
        conclude(inquiry, STAGE_PV, reading, SIGHT_O, "sums that are exact in float32 are off by up to %.2g of their size: %s",
                 worst, reading->experiment.size > 0 ? "small numbers get lost" : "they are kept in too few bits");
}

/* Whether every wrong row is 0 throughout. */
static bool all_zero(const struct reading *reading)
{
    for (int64_t at = 0; at < reading->rows * reading->columns; at++)
        if (reading->o[at] != 0 && row_is_wrong(reading, at / reading->columns))
            return false;
    return true;
}

/* Whether nothing is wrong but NaN and infinities. */
static bool all_infinite(const struct reading *reading)
{
    for (int64_t at = 0; at < reading->rows * reading->columns; at++)
        if (isfinite(reading->o[at]) && reading_wrong_o(reading, at / reading->columns, at % reading->columns))
            return false;
    return true;
}

static bool inquire_precision(struct inquiry *inquiry, const struct reading *reading)
{
    bool cut;
    double worst = worst_relative(reading, &cut, inquiry->lab->problem.dtype_o);
    if (worst > 0x1p-5)
        return false;
    bool fine = reading->experiment.scores == SCORES_FINE || reading->experiment.scores == SCORES_SMALL;
    conclude(inquiry, STAGE_PV | (fine ? STAGE_S : 0) | (single_keys(inquiry, reading) ? STAGE_NORMALISATION : 0), reading, SIGHT_O,
             "O is off by up to 2^%.0f of its size: P, V or their sum is kept in too few bits", log2(worst));
    return true;
}

/* ---- by experiment ----------------------------------------------------------------------------------------------------------- */

/* No maximum changes in these. */
static void inquire_product(struct inquiry *inquiry, const struct reading *reading)
{
    struct cause cause;
    const struct reading *equal = &inquiry->equal;
    unsigned early = inquiry->lab->lse ? 0 : STAGE_MASK | STAGE_P | STAGE_NORMALISATION;
    if (inquiry->lab->key_count < inquiry->lab->problem.seq_kv) /* a factor that changes between keys may have been missed */
        early |= STAGE_NORMALISATION | STAGE_RESCALE;
    if (reading->experiment.scores == SCORES_TOP) {
        inquire_sums(inquiry, reading);
        return;
    }
    if (reading->by_key && (inquire_factors(inquiry, reading) || inquire_precision(inquiry, reading) ||
                            (equal->o && !equal->o_right && inquire_pieces(inquiry, equal)) || inquire_rows(inquiry, reading)))
        return;
    if (cause_find(inquiry, reading, QUESTION_VALUES, &cause))
        conclude(inquiry, cause.stages | (single_keys(inquiry, reading) ? STAGE_EPILOGUE : 0), reading, SIGHT_O, "%s", cause.text);
    else if (!reading->by_key)
        conclude(inquiry, STAGE_PV, reading, SIGHT_O,
                 "each weight by itself is right and the sum of many values is not: it is kept in too few bits");
    else if (all_zero(reading))
        conclude(inquiry, early | STAGE_NORMALISATION | STAGE_PV | STAGE_EPILOGUE, reading, SIGHT_O, "rows of O are 0");
    else if (all_infinite(reading))
        conclude(inquiry, early | STAGE_PV | STAGE_EPILOGUE, reading, SIGHT_O,
                 "O is not finite%s: memory that was not initialised, or not waited for, meets P or is written out",
                 inquiry->lab->lse ? " where LSE is right" : "");
    else if (!inquire_columns(inquiry) && !inquire_keys(inquiry, reading) && !inquire_order(inquiry, reading))
        conclude(inquiry, early | STAGE_PV | STAGE_EPILOGUE, reading, SIGHT_O, "%sthe weights that reach O are wrong%s",
                 inquiry->lab->lse ? "LSE is right and " : "", inquiry->lab->lse ? ": the layout of P, V or O" : "");
}

/* Equal scores hide which key is which, so a comb that is wrong too tells more. */
static const struct reading *clearest(struct inquiry *inquiry, const struct reading *reading)
{
    if (reading->experiment.scores != SCORES_EQUAL || !reading->by_key)
        return reading;
    for (int n = 0; n < COUNT_OF(inquiry->comb); n++)
        if (inquiry->comb[n].o && !inquiry->comb[n].o_right)
            return &inquiry->comb[n];
    return reading;
}

static void inquire_rising(struct inquiry *inquiry, const struct reading *reading)
{
    struct pattern pattern = conclude(inquiry, STAGE_RESCALE, reading, SIGHT_O, "%s", "");
    int64_t tile = pattern.first >= 0 ? find_tile(inquiry, pattern.first, true) : 0;
    char after[96] = "";
    if (tile > 0)
        snprintf(after, sizeof after, " (tiles of %lld keys)", (long long)tile);
    conclude(
        inquiry, tile > 0 ? STAGE_RESCALE : STAGE_RESCALE | STAGE_PV, reading, SIGHT_O,
        "falling rows are right and rising ones are not, and LSE is right: O is not scaled down (or by the wrong factor) when the "
        "maximum rises from one tile to the next%s",
        after);
    inquiry->diagnosis->tile = tile;
}

/* A column of V in block 0 that is 1 for a key of the sequence, not the first one if there are more; -1 if there is none. */
static int64_t changed_column(const struct lab *lab, int64_t b, int64_t head_kv)
{
    int64_t found = -1;
    for (int64_t d = 0; d < lab->problem.dim_v; d++) {
        int64_t column = design_column(lab, 0, b, head_kv, d);
        if (column >= 0 && lab->keys[column] < layout_keys(&lab->inputs.layout, b) && (found < 0 || lab->keys[column] == 1))
            found = d;
    }
    return found;
}

/* A kernel that leaves something out gives old results too; but rows of O that do not follow V have not been computed. */
bool inquire_stale(struct inquiry *inquiry, const struct reading *reading)
{
    struct lab *lab = inquiry->lab;
    const attest_problem *problem = &lab->problem;
    struct experiment equal = {.scores = SCORES_EQUAL, .values = VALUES_KEYS};
    int64_t seeing = 0, same = 0;
    if (!lab_repeats(lab, reading))
        return false;
    design_scores(lab, &equal);
    for (int half = 0; half < 2 && !inquiry->failed; half++) {
        design_values(lab, &equal, 0);
        for (int64_t bh = 0; bh < problem->batch * problem->heads_kv && half; bh++) {
            int64_t b = bh / problem->heads_kv, h = bh % problem->heads_kv, d = changed_column(lab, b, h);
            if (d >= 0)
                element_store(
                    lab->inputs.v.at, problem->dtype,
                    layout_key_at(&lab->inputs.layout, problem->stride_v, b, h, lab->keys[design_column(lab, 0, b, h, d)]) + d,
                    0.5f);
        }
        inquiry->failed = !lab_run(lab);
    }
    for (int64_t n = 0; n < lab->row_count && !inquiry->failed; n++) {
        int64_t begin, end, b = lab->rows[n].b, h = lab_head_kv(lab, lab->rows[n].h), d = changed_column(lab, b, h);
        int64_t key = d >= 0 ? lab->keys[design_column(lab, 0, b, h, d)] : -1;
        lab_visible(lab, n, &begin, &end);
        if (key < begin || key >= end)
            continue;
        seeing++;
        same += lab->past[lab->runs - 1].rows[n].digest == lab->past[lab->runs - 2].rows[n].digest;
    }
    if (inquiry->failed || same == 0 || 2 * same < seeing)
        return false;
    conclude(inquiry, STAGE_EPILOGUE, reading, SIGHT_O, "the output is that of an earlier call: it was not computed anew");
    inquiry->settled = true;
    return true;
}

void inquire_after(struct inquiry *inquiry, const struct reading *reading)
{
    const struct experiment *experiment = &reading->experiment;
    if (inquire_stale(inquiry, reading) || inquire_empty(inquiry, reading))
        return;
    unsigned alike = single_keys(inquiry, reading) ? STAGE_EPILOGUE : 0;
    switch (experiment->scores) {
    case SCORES_RISING:
        inquire_rising(inquiry, reading);
        break;
    case SCORES_FALLING:
        conclude(inquiry, STAGE_P | STAGE_RESCALE, reading, SIGHT_O,
                 "LSE of falling rows is right and O is not: the weights that meet V are not those that were summed up");
        break;
    case SCORES_MIXED:
        conclude(
            inquiry, STAGE_RESCALE, reading, SIGHT_O,
            "O is right where all rows rise or all fall, and wrong where they differ: a row is scaled by the factor of another");
        break;
    case SCORES_LADDER:
    case SCORES_LEVEL:
    case SCORES_NEEDLE:
        conclude(inquiry, alike | STAGE_P | STAGE_PV, reading, SIGHT_O, "LSE is right and O is not, where %s",
                 experiment->scores == SCORES_LADDER  ? "weights are small"
                 : experiment->scores == SCORES_LEVEL ? "scores are large"
                                                      : "one key is 200 above all others");
        break;
    default:
        if (experiment->modifiers & ATTEST_SINK)
            conclude(inquiry, STAGE_NORMALISATION, reading, SIGHT_O, "LSE has the sink and O is divided by a sum without it");
        else if (experiment->modifiers)
            conclude(inquiry, alike | STAGE_S | STAGE_P | STAGE_PV, reading, SIGHT_O,
                     "LSE is right and O is not, with modifiers of the scores");
        else
            inquire_product(inquiry, clearest(inquiry, reading));
    }
}
