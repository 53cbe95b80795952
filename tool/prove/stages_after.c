/*
 * stages_after.c - LSE is right in every reading, so scores, mask, maximum and sum are; O is not. What is left is the product with V,
 * the scaling of what was summed up, the division, and writing O.
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

/* More pieces than this are no pieces. */
enum { MOST_PIECES = 16 };

/* ---- factors ------------------------------------------------------------------------------------------------------------------- */

/* The factor between what was found and expected in a row, if there is one; NaN if not. */
static double row_factor(const struct reading *reading, int64_t row)
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
        double slack = 2 * reading->o_bound[at] * fmax(1, fabs(factor));
        if (!(fabs(reading->o[at] - factor * reading->o_expected[at]) <= slack))
            return NAN;
    }
    return isfinite(factor) ? factor : NAN;
}

static bool row_is_wrong(const struct reading *reading, int64_t row)
{
    bool wrong = false;
    for (int64_t c = 0; c < reading->columns && !wrong; c++)
        wrong = reading_wrong_o(reading, row, c);
    return wrong;
}

static bool inquire_factors(struct inquiry *inquiry, const struct reading *reading)
{
    double first = NAN, least = INFINITY, most = -INFINITY;
    bool undivided = true;
    for (int64_t n = 0; n < reading->rows; n++) {
        if (!row_is_wrong(reading, n))
            continue;
        double factor = row_factor(reading, n), sum = exp(reading->lse_expected[n]); /* the largest score is 0 in these designs */
        if (!isfinite(factor) || factor == 0)
            return false;
        first = isnan(first) ? factor : first;
        least = fmin(least, factor);
        most = fmax(most, factor);
        undivided = undivided && fabs(factor / sum - 1) < 0.05;
    }
    if (isnan(first))
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
    return changes > 0 && changes <= MOST_PIECES;
}

/* Each piece of the keys has a factor of its own, with the same boundary in every wrong row. */
static bool inquire_pieces(struct inquiry *inquiry, const struct reading *reading)
{
    struct pieces first = {0}, pieces = {0};
    bool own_sums = true;
    for (int64_t n = 0; n < reading->rows; n++) {
        if (!row_is_wrong(reading, n))
            continue;
        if (!row_pieces(inquiry->lab, reading, n, &pieces) || (first.boundary && pieces.boundary != first.boundary))
            return false;
        own_sums = own_sums && reading->experiment.scores == SCORES_EQUAL &&
                   fabs(pieces.last * (double)(pieces.end - pieces.last_begin) - 1) < 0.02;
        if (!first.boundary)
            first = pieces;
    }
    if (!first.boundary)
        return false;
    conclude(inquiry, own_sums ? STAGE_NORMALISATION : STAGE_NORMALISATION | STAGE_RESCALE, reading, SIGHT_O,
             own_sums ? "pieces of the keys are divided by their own sums before they are joined, and then once more (the factor "
                        "changes at key %lld, from %.4g to %.4g)"
                      : "the factor of O changes at key %lld, from %.4g to %.4g: what is carried or joined there is scaled wrongly",
             (long long)first.boundary, first.before, first.after);
    inquiry->diagnosis->tile = first.boundary;
    return true;
}

/* ---- rows and heads that are mixed up ------------------------------------------------------------------------------------------- */

/* Whether O as found in `row` is what is expected in row `source` with V of head (b, head_kv). Keys go by columns of V, which are
 * shifted from head to head. */
static bool row_matches(const struct lab *lab, const struct reading *reading, int64_t row, int64_t source, int64_t b,
                        int64_t head_kv)
{
    int64_t width = lab->problem.dim_v;
    const struct place *to = &lab->rows[row];
    for (int64_t block = 0; block * width < reading->columns; block++)
        for (int64_t d = 0; d < width; d++) {
            int64_t found = design_column(lab, block, to->b, lab_head_kv(lab, to->h), d);
            int64_t expected = design_column(lab, block, b, head_kv, d);
            if (found < 0)
                continue;
            double value = reading->o[row * reading->columns + found];
            double wanted = expected < 0 ? 0 : reading->o_expected[source * reading->columns + expected];
            double bound = expected < 0 ? 1e-6 : 2 * reading->o_bound[source * reading->columns + expected];
            if (!(fabs(value - wanted) <= bound))
                return false;
        }
    return true;
}

static bool inquire_places(struct inquiry *inquiry, const struct reading *reading)
{
    const struct lab *lab = inquiry->lab;
    int64_t first = -1, source = -1;
    for (int64_t n = 0; n < reading->rows; n++) {
        if (!row_is_wrong(reading, n))
            continue;
        int64_t from = -1;
        for (int64_t other = 0; other < reading->rows && from < 0; other++)
            if (other != n && row_matches(lab, reading, n, other, lab->rows[other].b, lab_head_kv(lab, lab->rows[other].h)))
                from = other;
        if (from < 0)
            return false;
        if (first < 0) {
            first = n;
            source = from;
        }
    }
    if (first < 0)
        return false;
    const struct place *to = &lab->rows[first], *from = &lab->rows[source];
    const char *what = to->h != from->h && to->i == from->i && to->b == from->b ? "heads are mixed up"
                       : to->h == from->h && to->b == from->b                   ? "rows are mixed up"
                                                                                : "the strides of O are mixed up";
    conclude(inquiry, lab->lse ? STAGE_EPILOGUE : STAGE_S | STAGE_EPILOGUE, reading, SIGHT_O,
             "%s: O of (sequence, head, row) (%lld, %lld, %lld) is what belongs to (%lld, %lld, %lld)", what, (long long)to->b,
             (long long)to->h, (long long)to->i, (long long)from->b, (long long)from->h, (long long)from->i);
    return true;
}

static bool inquire_heads(struct inquiry *inquiry, const struct reading *reading)
{
    const struct lab *lab = inquiry->lab;
    const attest_problem *problem = &lab->problem;
    int64_t first = -1, b_taken = 0, head_taken = 0;
    for (int64_t n = 0; n < reading->rows; n++) {
        if (!row_is_wrong(reading, n))
            continue;
        bool found = false;
        for (int64_t bh = 0; bh < problem->batch * problem->heads_kv && !found; bh++) {
            int64_t b = bh / problem->heads_kv, h = bh % problem->heads_kv;
            if (b == lab->rows[n].b && h == lab_head_kv(lab, lab->rows[n].h))
                continue;
            found = row_matches(lab, reading, n, n, b, h);
            if (found && first < 0) {
                first = n;
                b_taken = b;
                head_taken = h;
            }
        }
        if (!found)
            return false;
    }
    if (first < 0)
        return false;
    const struct place *place = &lab->rows[first];
    struct cause cause;
    bool formula = cause_find(inquiry, reading, QUESTION_VALUES, &cause);
    conclude(inquiry, STAGE_PV, reading, SIGHT_O,
             "V of the wrong head: head %lld of sequence %lld takes V of KV head %lld of sequence "
             "%lld, not of %lld%s%s",
             (long long)place->h, (long long)place->b, (long long)head_taken, (long long)b_taken,
             (long long)lab_head_kv(lab, place->h), formula ? "; " : "", formula ? cause.text : "");
    return true;
}

/* ---- keys and columns ----------------------------------------------------------------------------------------------------------- */

/* Columns of O that are wrong for any V: where all keys have the same value. */
static bool inquire_columns(struct inquiry *inquiry)
{
    struct experiment same = {.scores = SCORES_EQUAL, .values = VALUES_COLUMNS};
    struct reading reading;
    if (!ask(inquiry, &same, &reading))
        return true;
    /* A row that is wrong by one factor in all columns is so because of its keys. */
    bool wrong = false;
    for (int64_t n = 0; n < reading.rows && !wrong; n++)
        wrong = row_is_wrong(&reading, n) && isnan(row_factor(&reading, n));
    bool whole = true;
    for (int64_t at = 0; at < reading.rows * reading.columns && whole; at++)
        whole =
            !row_is_wrong(&reading, at / reading.columns) || reading_wrong_o(&reading, at / reading.columns, at % reading.columns);
    if (wrong)
        conclude(inquiry, STAGE_PV | STAGE_EPILOGUE, &reading, SIGHT_O, "%s",
                 whole ? "whole rows of O are wrong whatever V is: something else than P V is summed up or written"
                       : "columns of O are wrong whatever V is: its columns are mixed up, or some are left out");
    reading_free(&reading);
    return wrong;
}

/* Whether the weights found in a column are those expected in another one, in every row of a reading. */
static bool column_matches(const struct reading *reading, int64_t column, int64_t source, bool *seen)
{
    for (int64_t n = 0; n < reading->rows; n++) {
        double found = reading->o[n * reading->columns + column];
        if (reading->skip[n])
            continue;
        *seen = *seen || found > 0;
        if (!(fabs(found - reading->o_expected[n * reading->columns + source]) <=
              2 * reading->o_bound[n * reading->columns + source]))
            return false;
    }
    return true;
}

/* The key whose weights are found at this one in every comb there is; -1 if there is none. */
static int64_t source_column(const struct inquiry *inquiry, const struct reading *reading, int64_t column)
{
    for (int64_t c = 0; c < reading->columns; c++) {
        bool seen = false, same = c != column && column_matches(reading, column, c, &seen);
        for (int n = 0; n < COUNT_OF(inquiry->comb) && same; n++)
            same = !inquiry->comb[n].o || column_matches(&inquiry->comb[n], column, c, &seen);
        if (same && seen)
            return c;
    }
    return -1;
}

/* A row that sees one of two keys and not the other: were their scores swapped, LSE would be wrong there. */
static bool told_apart(const struct lab *lab, int64_t key, int64_t other)
{
    for (int64_t n = 0; n < lab->row_count; n++) {
        int64_t begin, end;
        lab_visible(lab, n, &begin, &end);
        if ((key >= begin && key < end) != (other >= begin && other < end))
            return true;
    }
    return false;
}

static bool inquire_keys(struct inquiry *inquiry, const struct reading *reading)
{
    const struct lab *lab = inquiry->lab;
    int64_t moved = 0, lost = 0, other = 0, first = -1, source = -1;
    bool apart = false;
    for (int64_t c = 0; c < reading->columns; c++) {
        bool wrong = false, zero = true;
        for (int64_t n = 0; n < reading->rows; n++)
            if (reading_wrong_o(reading, n, c)) {
                wrong = true;
                zero = zero && reading->o[n * reading->columns + c] == 0;
            }
        if (!wrong)
            continue;
        int64_t from = zero ? -1 : source_column(inquiry, reading, c);
        lost += zero;
        moved += from >= 0;
        other += !zero && from < 0;
        apart = apart || (from >= 0 && lab->lse && told_apart(lab, lab->keys[c], lab->keys[from]));
        if (from >= 0 && first < 0) {
            first = c;
            source = from;
        }
    }
    if (other > 0 || moved + lost == 0)
        return false;
    if (moved > 0) {
        conclude(inquiry, apart ? STAGE_PV : STAGE_S | STAGE_PV, reading, SIGHT_O,
                 "V is taken in another order than %s: key %lld has the weight of key %lld", apart ? "P" : "K",
                 (long long)lab->keys[first], (long long)lab->keys[source]);
        snprintf(inquiry->diagnosis->pattern, sizeof inquiry->diagnosis->pattern, "columns permuted, %lld of %lld",
                 (long long)(moved + lost), (long long)reading->columns);
    } else {
        struct pattern pattern = conclude(inquiry, STAGE_PV, reading, SIGHT_O, "%s", "");
        conclude(inquiry, STAGE_PV, reading, SIGHT_O, "the sum has all keys and O has not: it lacks %s", pattern.text);
    }
    return true;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A wrong row: whether its weights add up to what they should, are the same ones, and stand at keys that it must not see. */
struct order {
    bool adds_up, more, same, hidden;
};

static struct order order_of(const struct lab *lab, const struct reading *reading, int64_t row, double *sorted)
{
    int64_t columns = reading->columns, at = row * columns;
    double found = 0, expected = 0, slack = 4 * unit_roundoff(lab->problem.dtype_o) + 2 * unit_roundoff(lab->problem.dtype) + 1e-5;
    struct order order = {.same = true};
    for (int64_t c = 0; c < columns; c++) {
        found += reading->o[at + c];
        expected += reading->o_expected[at + c];
        order.hidden = order.hidden || (reading->o_expected[at + c] == 0 && reading->o[at + c] > 0);
    }
    memcpy(sorted, reading->o + at, (size_t)columns * sizeof *sorted);
    memcpy(sorted + columns, reading->o_expected + at, (size_t)columns * sizeof *sorted);
    qsort(sorted, (size_t)columns, sizeof *sorted, compare_doubles);
    qsort(sorted + columns, (size_t)columns, sizeof *sorted, compare_doubles);
    for (int64_t c = 0; c < columns && order.same; c++)
        order.same = fabs(sorted[c] - sorted[columns + c]) <= slack * sorted[columns + c] + 1e-9;
    order.adds_up = fabs(found - expected) <= slack * expected;
    order.more = !(found <= expected * (1 + slack));
    return order;
}

/* Rows whose weights still add up to 1, but stand at other keys. */
static bool inquire_order(struct inquiry *inquiry, const struct reading *reading)
{
    struct lab *lab = inquiry->lab;
    double *sorted = malloc((size_t)(2 * reading->columns + 1) * sizeof *sorted);
    int64_t wrong = 0, adds_up = 0;
    bool same = true, hidden = false, more = reading->columns != lab->problem.seq_kv || !sorted;
    for (int64_t n = 0; n < reading->rows && !more; n++) {
        if (!row_is_wrong(reading, n))
            continue;
        struct order order = order_of(lab, reading, n, sorted);
        wrong++;
        adds_up += order.adds_up;
        more = order.more;
        same = same && order.same;
        hidden = hidden || order.hidden;
    }
    free(sorted);
    if (more || 2 * adds_up < wrong)
        return false;
    /* Weights at keys that must not be seen, or added to each other, while LSE is right: the order was lost after the sum. */
    bool late = lab->lse && (hidden || !same);
    conclude(inquiry, late ? STAGE_PV : STAGE_S | STAGE_PV, reading, SIGHT_O,
             "V is taken in another order than %s: the weights of a row add up, and stand at other keys", late ? "P" : "K");
    return true;
}

/* ---- precision ------------------------------------------------------------------------------------------------------------------ */

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

/* Sums of whole numbers, and means of two numbers: only the result is rounded. */
static void inquire_sums(struct inquiry *inquiry, const struct reading *reading)
{
    uint32_t dtype = inquiry->lab->problem.dtype_o;
    bool cut;
    double worst = worst_relative(reading, &cut, dtype);
    if (cut)
        conclude(inquiry, STAGE_EPILOGUE, reading, SIGHT_O, "O is cut off to %s, not rounded to nearest: every error is towards 0",
                 element_name(dtype));
    else if (dtype != ATTEST_F32 && worst < 4 * unit_roundoff(dtype))
        conclude(inquiry, STAGE_PV | STAGE_EPILOGUE, reading, SIGHT_O,
                 "O is not the nearest %s: it is rounded otherwise, or more than once", element_name(dtype));
    else
        conclude(inquiry, STAGE_PV, reading, SIGHT_O, "sums that are exact in float32 are off by up to %.2g of their size: %s",
                 worst, reading->experiment.size > 0 ? "small numbers get lost" : "they are kept in too few bits");
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
    conclude(inquiry, STAGE_PV, reading, SIGHT_O, "O is off by up to 2^%.0f of its size: P, V or their sum is kept in too few bits",
             log2(worst));
    return true;
}

/* ---- by experiment --------------------------------------------------------------------------------------------------------------- */

bool inquire_layout(struct inquiry *inquiry, const struct reading *reading)
{
    return inquire_places(inquiry, reading) || inquire_heads(inquiry, reading) || inquire_keys(inquiry, reading);
}

/* No maximum changes in these. */
static void inquire_product(struct inquiry *inquiry, const struct reading *reading)
{
    struct cause cause;
    const struct reading *equal = inquiry->equal.o && !inquiry->equal.o_right ? &inquiry->equal : reading;
    if (reading->experiment.scores == SCORES_TOP) {
        inquire_sums(inquiry, reading);
        return;
    }
    if (reading->by_key && (inquire_factors(inquiry, reading) || inquire_pieces(inquiry, equal) ||
                            inquire_places(inquiry, reading) || inquire_heads(inquiry, reading)))
        return;
    if (cause_find(inquiry, reading, QUESTION_VALUES, &cause))
        conclude(inquiry, cause.stages, reading, SIGHT_O, "%s", cause.text);
    else if (!reading->by_key)
        conclude(inquiry, STAGE_PV, reading, SIGHT_O,
                 "each weight by itself is right and the sum of many values is not: it is kept in too few bits");
    else if (all_infinite(reading))
        conclude(
            inquiry, STAGE_PV | STAGE_EPILOGUE, reading, SIGHT_O,
            "O is not finite where LSE is right: memory that was not initialised, or not waited for, meets P or is written out");
    else if (!inquire_precision(inquiry, reading) && !inquire_columns(inquiry) && !inquire_keys(inquiry, reading) &&
             !inquire_order(inquiry, reading))
        conclude(inquiry, STAGE_PV | STAGE_EPILOGUE, reading, SIGHT_O,
                 "LSE is right and the weights that reach O are not: the layout of P, V or O");
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
        inquiry, STAGE_RESCALE, reading, SIGHT_O,
        "falling rows are right and rising ones are not, and LSE is right: O is not scaled down (or by the wrong factor) when the "
        "maximum rises from one tile to the next%s",
        after);
    inquiry->diagnosis->tile = tile;
}

/* A kernel that leaves something out gives old results too; but rows of O that do not follow V have not been computed. */
bool inquire_stale(struct inquiry *inquiry, const struct reading *reading)
{
    struct lab *lab = inquiry->lab;
    const attest_problem *problem = &lab->problem;
    struct experiment equal = {.scores = SCORES_EQUAL, .values = VALUES_KEYS};
    int64_t d = (int64_t)(lab->seed % (uint64_t)problem->dim_v), seeing = 0, same = 0;
    if (!lab_repeats(lab, reading))
        return false;
    design_scores(lab, &equal);
    for (int half = 0; half < 2 && !inquiry->failed; half++) {
        design_values(lab, &equal, 0);
        for (int64_t bh = 0; bh < problem->batch * problem->heads_kv && half; bh++) {
            int64_t b = bh / problem->heads_kv, h = bh % problem->heads_kv, column = design_column(lab, 0, b, h, d);
            if (column >= 0 && lab->keys[column] < layout_keys(&lab->inputs.layout, b))
                element_store(lab->inputs.v.at, problem->dtype,
                              layout_key_at(&lab->inputs.layout, problem->stride_v, b, h, lab->keys[column]) + d, 0.5f);
        }
        inquiry->failed = !lab_run(lab);
    }
    for (int64_t n = 0; n < lab->row_count && !inquiry->failed; n++) {
        int64_t begin, end, column = design_column(lab, 0, lab->rows[n].b, lab_head_kv(lab, lab->rows[n].h), d);
        lab_visible(lab, n, &begin, &end);
        if (column < 0 || lab->keys[column] < begin || lab->keys[column] >= end)
            continue;
        seeing++;
        same += lab->past[lab->runs - 1].rows[n].digest == lab->past[lab->runs - 2].rows[n].digest;
    }
    if (inquiry->failed || same == 0 || 2 * same < seeing)
        return false;
    conclude(inquiry, STAGE_EPILOGUE, reading, SIGHT_O, "the output is that of an earlier call: it was not computed anew");
    return true;
}

void inquire_after(struct inquiry *inquiry, const struct reading *reading)
{
    const struct experiment *experiment = &reading->experiment;
    if (inquire_stale(inquiry, reading) || inquire_empty(inquiry, reading))
        return;
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
        conclude(inquiry, STAGE_P | STAGE_PV, reading, SIGHT_O, "LSE is right and O is not, where %s",
                 experiment->scores == SCORES_LADDER  ? "weights are small"
                 : experiment->scores == SCORES_LEVEL ? "scores are large"
                                                      : "one key is 200 above all others");
        break;
    default:
        if (experiment->modifiers & ATTEST_SINK)
            conclude(inquiry, STAGE_NORMALISATION, reading, SIGHT_O, "LSE has the sink and O is divided by a sum without it");
        else if (experiment->modifiers)
            conclude(inquiry, STAGE_P | STAGE_PV, reading, SIGHT_O, "LSE is right and O is not, with modifiers of the scores");
        else
            inquire_product(inquiry, clearest(inquiry, reading));
    }
}
