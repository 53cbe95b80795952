/*
 * stages_scores.c - a comb is wrong: scores are read one by one. An anchor has score 0 whatever the kernel does to Q and K, so the
 * weight of a key divided by that of the anchors is exp of its score: two combs, one with the even keys and one with the odd ones
 * for anchors, read the whole matrix S as the kernel sees it. No maximum changes on the way, so nothing is ever rescaled.
 */
#include "stages_inquiry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Scores of the lab's rows and keys. */
struct table {
    double *expected, *found, *slack;
    unsigned char *cell;
    int64_t rows, columns, wrong;
};

static bool table_make(struct table *table, int64_t rows, int64_t columns)
{
    size_t count = (size_t)(rows * columns) + 1;
    *table = (struct table){.rows = rows, .columns = columns};
    table->expected = calloc(count, sizeof(double));
    table->found = calloc(count, sizeof(double));
    table->slack = calloc(count, sizeof(double));
    table->cell = malloc(count);
    if (!table->expected || !table->found || !table->slack || !table->cell)
        return false;
    memset(table->cell, CELL_UNKNOWN, count);
    return true;
}

static void table_free(struct table *table)
{
    free(table->expected);
    free(table->found);
    free(table->slack);
    free(table->cell);
    *table = (struct table){0};
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median weight of the anchors that a row sees, and the relative bound of one; 0 if there is none. */
static double anchor_weight(const struct lab *lab, const struct reading *reading, int64_t row, double *sorted, double *relative)
{
    int64_t count = 0;
    for (int64_t c = 0; c < reading->columns; c++) {
        int64_t at = row * reading->columns + c;
        if (!design_anchor(&reading->experiment, lab->keys[c]) || !(reading->o_expected[at] > 0))
            continue;
        *relative = reading->o_bound[at] / reading->o_expected[at];
        if (isfinite(reading->o[at]))
            sorted[count++] = reading->o[at];
    }
    qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
    return count > 0 ? sorted[count / 2] : 0;
}

static void table_add(struct table *table, const struct lab *lab, const struct reading *reading, double *sorted)
{
    for (int64_t n = 0; n < reading->rows; n++) {
        double relative = 0, anchor = anchor_weight(lab, reading, n, sorted, &relative);
        for (int64_t c = 0; c < reading->columns && !reading->skip[n] && anchor > 0; c++) {
            int64_t at = n * reading->columns + c;
            double weight = reading->o_expected[at];
            if (!(weight > 0) || design_anchor(&reading->experiment, lab->keys[c]))
                continue;
            table->expected[at] = log(weight) + reading->lse_expected[n];
            table->found[at] = log(reading->o[at] / anchor);
            table->slack[at] = 2 * (relative + reading->o_bound[at] / weight);
            table->cell[at] = fabs(table->found[at] - table->expected[at]) <= table->slack[at] ? CELL_RIGHT : CELL_WRONG;
        }
    }
}

static void table_count(struct table *table)
{
    table->wrong = 0;
    for (int64_t at = 0; at < table->rows * table->columns; at++)
        table->wrong += table->cell[at] == CELL_WRONG;
}

/* S as found: from both combs if it is a comb that went wrong, else from the reading alone. */
static bool table_read(struct inquiry *inquiry, const struct reading *reading, struct table *table)
{
    struct lab *lab = inquiry->lab;
    double *sorted = malloc(((size_t)lab->key_count + 1) * sizeof *sorted);
    bool done = sorted && table_make(table, lab->row_count, lab->key_count);
    if (done)
        table_add(table, lab, reading, sorted);
    if (done && reading->experiment.scores == SCORES_COMB) {
        struct experiment other = reading->experiment;
        struct reading second;
        other.at = !other.at;
        done = ask(inquiry, &other, &second);
        if (done) {
            table_add(table, lab, &second, sorted);
            reading_free(&second);
        }
    }
    free(sorted);
    if (done)
        table_count(table);
    else
        table_free(table);
    return done;
}

/* ---- what the scores are like ------------------------------------------------------------------------------------------------ */

/* One factor that turns every expected score into the one found; 0 if there is none. */
static double common_factor(const struct table *table)
{
    int64_t count = 0, cells = table->rows * table->columns;
    double *ratios = malloc(((size_t)cells + 1) * sizeof *ratios), factor = 0;
    for (int64_t at = 0; at < cells && ratios; at++)
        if (table->cell[at] != CELL_UNKNOWN && fabs(table->expected[at]) > 8 * table->slack[at] && isfinite(table->found[at]))
            ratios[count++] = table->found[at] / table->expected[at];
    if (count > 0) {
        qsort(ratios, (size_t)count, sizeof *ratios, compare_doubles);
        factor = ratios[count / 2];
    }
    free(ratios);
    for (int64_t at = 0; at < cells && factor != 0; at++) {
        double slack = 2 * table->slack[at] + 1e-3 * fabs(table->expected[at] * factor);
        if (table->cell[at] != CELL_UNKNOWN && !(fabs(table->found[at] - factor * table->expected[at]) <= slack)) {
            /* Weights too small to be read say nothing against a large factor. */
            if (!(factor * table->expected[at] < -12 && table->found[at] < -10))
                return 0;
        }
    }
    return factor;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 0.01 * fabs(b);
}

/* Whether what was found depends on the expected score alone, the same in every row and for every key. Unknown where too few scores
 * are the same. */
enum answer { ANSWER_NO, ANSWER_YES, ANSWER_UNKNOWN };

struct sample {
    double expected, found, slack;
};

static int compare_samples(const void *a, const void *b)
{
    return compare_doubles(&((const struct sample *)a)->expected, &((const struct sample *)b)->expected);
}

static enum answer is_function(const struct table *table)
{
    int64_t count = 0, cells = table->rows * table->columns, pairs = 0, groups = 1;
    struct sample *samples = malloc(((size_t)cells + 1) * sizeof *samples);
    bool function = samples != NULL;
    for (int64_t at = 0; at < cells && function; at++)
        if (table->cell[at] != CELL_UNKNOWN && table->expected[at] < -1e-9)
            samples[count++] = (struct sample){table->expected[at], table->found[at], table->slack[at]};
    if (function)
        qsort(samples, (size_t)count, sizeof *samples, compare_samples);
    for (int64_t n = 1; n < count && function; n++) {
        if (samples[n].expected - samples[n - 1].expected > 1e-9) {
            groups++;
            continue;
        }
        pairs++;
        bool both_lost = samples[n].found < -10 && samples[n - 1].found < -10;
        function = both_lost || fabs(samples[n].found - samples[n - 1].found) <= samples[n].slack + samples[n - 1].slack;
    }
    free(samples);
    return !function ? ANSWER_NO : pairs > count / 2 && groups >= 3 ? ANSWER_YES : ANSWER_UNKNOWN;
}

/* Whether LSE is right where all scores are equal and large: no exponential but exp(0) is needed there. */
static bool level_right(struct inquiry *inquiry, double level)
{
    struct experiment flat = flat_level(inquiry->lab, level);
    struct reading reading;
    if (!ask(inquiry, &flat, &reading))
        return false;
    bool right = reading.lse_right;
    reading_free(&reading);
    return right;
}

/* Whether an anchor weighs something else than key 0, which is one in every design. */
static bool anchors_differ(const struct reading *reading, const struct lab *lab, int64_t at)
{
    int64_t row = at / reading->columns * reading->columns;
    double slack = 4 * reading->o_bound[at] * fmax(1, reading->o[row] / reading->o_expected[row]);
    return lab->keys[0] == 0 && reading->o_expected[row] > 0 && !(fabs(reading->o[at] - reading->o[row]) <= slack);
}

/* Whether the score found for one key is that of another in every row that sees both, if any does. */
static bool score_moved(const struct reading *reading, int64_t key, int64_t source, const double *anchors)
{
    for (int64_t n = 0; n < reading->rows; n++) {
        int64_t at = n * reading->columns + key, there = n * reading->columns + source;
        if (reading->skip[n] || !(anchors[n] > 0) || !(reading->o_expected[at] > 0) || !(reading->o_expected[there] > 0))
            continue;
        double slack = 2 * (reading->o_bound[there] / reading->o_expected[there] + reading->o_bound[at] / reading->o_expected[at]);
        double expected = log(reading->o_expected[there]) + reading->lse_expected[n];
        if (!(fabs(log(reading->o[at] / anchors[n]) - expected) <= slack))
            return false;
    }
    return true;
}

/* Anchors that have the scores of other keys: the first of them and its source, if every anchor has a source or is right. */
static bool keys_moved(const struct lab *lab, const struct reading *reading, int64_t *key, int64_t *source)
{
    double *anchors = malloc((size_t)(reading->rows + reading->columns + 1) * sizeof *anchors), relative;
    *key = -1;
    for (int64_t n = 0; n < reading->rows && anchors; n++)
        anchors[n] = anchor_weight(lab, reading, n, anchors + reading->rows, &relative);
    bool all = anchors != NULL;
    for (int64_t c = 1; c < reading->columns && all; c++) {
        if (!design_anchor(&reading->experiment, lab->keys[c]) || score_moved(reading, c, 0, anchors))
            continue;
        int64_t from = -1;
        for (int64_t other = 1; other < reading->columns && from < 0; other++)
            if (!design_anchor(&reading->experiment, lab->keys[other]) && score_moved(reading, c, other, anchors))
                from = other;
        all = from >= 0;
        if (*key < 0) {
            *key = c;
            *source = from;
        }
    }
    free(anchors);
    return all && *key >= 0;
}

/* ---- elements of the dot product --------------------------------------------------------------------------------------------- */

/* Which elements of Q and K do not reach the score, in words; "" if all do, or if they are not simply missing. */
static void missing_elements(struct inquiry *inquiry, char *text, size_t size)
{
    struct lab *lab = inquiry->lab;
    int64_t dim = lab->problem.dim, each = lab->key_count / 2, lost = 0, other = 0;
    unsigned char *cell = malloc((size_t)(lab->row_count * dim) + 1);
    double *sorted = malloc(((size_t)lab->key_count + 1) * sizeof *sorted);
    text[0] = '\0';
    if (cell)
        memset(cell, CELL_UNKNOWN, (size_t)(lab->row_count * dim) + 1);
    for (int64_t first = 0, n = 0; first < dim && each > 0 && n < 32 && cell && sorted && !inquiry->failed; first += each, n++) {
        struct experiment dims = {.scores = SCORES_DIMS, .values = VALUES_KEYS, .level = (double)first};
        struct reading reading;
        struct table table;
        if (!ask(inquiry, &dims, &reading))
            break;
        if (table_make(&table, lab->row_count, lab->key_count))
            table_add(&table, lab, &reading, sorted);
        for (int64_t at = 0; table.cell && at < table.rows * table.columns; at++) {
            int64_t key = lab->keys[at % table.columns];
            if (design_anchor(&dims, key)) /* if these are not alike, keys are mixed up, and nothing is known to be missing */
                other += reading_wrong_o(&reading, at / table.columns, at % table.columns) && anchors_differ(&reading, lab, at);
            if (table.cell[at] == CELL_UNKNOWN || design_anchor(&dims, key))
                continue;
            bool gone = fabs(table.found[at]) < 0.1 && table.expected[at] < -0.5;
            lost += gone;
            other += table.cell[at] == CELL_WRONG && !gone;
            cell[at / table.columns * dim + design_dim(lab, &dims, key)] = gone ? CELL_WRONG : CELL_RIGHT;
        }
        table_free(&table);
        reading_free(&reading);
    }
    struct cells cells = {cell, lab->rows, lab->row_count, NULL, dim, "row", "element"};
    if (lost > 0 && other == 0)
        snprintf(text, size, "%s", pattern_find(&cells).text);
    free(cell);
    free(sorted);
}

/* ---- rows -------------------------------------------------------------------------------------------------------------------- */

/* The row whose expected LSE and weights are those found in this one; -1 if there is none, or it is the row itself. */
static int64_t source_row(const struct lab *lab, const struct reading *reading, int64_t row)
{
    for (int64_t n = 0; n < reading->rows; n++) {
        bool same = n != row && fabs(reading->lse[row] - reading->lse_expected[n]) <= 2 * reading->lse_bound[n];
        bool head = lab->rows[n].b == lab->rows[row].b && lab_head_kv(lab, lab->rows[n].h) == lab_head_kv(lab, lab->rows[row].h);
        for (int64_t c = 0; c < reading->columns && same && head; c++) {
            int64_t at = n * reading->columns + c;
            same = fabs(reading->o[row * reading->columns + c] - reading->o_expected[at]) <= 2 * reading->o_bound[at];
        }
        if (same)
            return n;
    }
    return -1;
}

static bool rows_moved(struct inquiry *inquiry, const struct reading *reading)
{
    const struct lab *lab = inquiry->lab;
    int64_t first = -1, source = -1;
    for (int64_t n = 0; n < reading->rows; n++) {
        if (!reading_wrong_lse(reading, n))
            continue;
        int64_t from = source_row(lab, reading, n);
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
    conclude(
        inquiry, STAGE_S | STAGE_EPILOGUE, reading, SIGHT_O,
        "rows are mixed up: (sequence, head, row) (%lld, %lld, %lld) holds what belongs to (%lld, %lld, %lld); Q was read from "
        "there, or O and LSE were written to the wrong place",
        (long long)to->b, (long long)to->h, (long long)to->i, (long long)from->b, (long long)from->h, (long long)from->i);
    return true;
}

/* ---- conclusions ------------------------------------------------------------------------------------------------------------- */

/* Where the sizes of the scores are off by one factor. */
static void factor_text(const struct lab *lab, double factor, char *text, size_t size)
{
    double scale = (double)lab->problem.scale, usual = 1 / sqrt((double)lab->problem.dim);
    const char *reason = "";
    if (near(factor * scale, 1))
        reason = ": the scale is dropped";
    else if (near(factor, scale))
        reason = ": the scale is applied twice";
    else if (near(factor * scale, usual))
        reason = ": 1/sqrt(D) is used, not the problem's scale";
    else if (near(factor, M_LN2) || near(factor, 1 / M_LN2))
        reason = ": a factor of log2(e) is missing or once too often where scores become powers of 2";
    else if (near(factor, -1))
        reason = ": the sign is wrong";
    snprintf(text, size, "all scores are %.4g times what they should be%s", factor, reason);
}

static void conclude_scores(struct inquiry *inquiry, unsigned stages, struct table *table, const char *text)
{
    const struct lab *lab = inquiry->lab;
    struct cells cells = {table->cell, lab->rows, table->rows, lab->keys, table->columns, "row", "key"};
    struct exhibit exhibit = {table->rows, table->columns, true, table->expected, table->found};
    table->expected = table->found = NULL;
    conclude_table(inquiry, stages, &cells, exhibit, "%s", text);
}

/* The largest relative error of a score that is wrong; infinite if one has no finite value at all. */
static double worst_relative(const struct table *table)
{
    double worst = 0;
    for (int64_t at = 0; at < table->rows * table->columns; at++)
        if (table->cell[at] == CELL_WRONG && fabs(table->expected[at]) > 0.1)
            worst = fmax(worst, isfinite(table->found[at]) ? fabs(table->found[at] / table->expected[at] - 1) : INFINITY);
    return worst;
}

static void inquire_table(struct inquiry *inquiry, const struct reading *reading, struct table *table)
{
    struct lab *lab = inquiry->lab;
    char text[256], elements[128];
    double factor = common_factor(table);
    double worst = worst_relative(table);
    if (reading->experiment.scores == SCORES_FINE) {
        snprintf(
            text, sizeof text,
            "scores of small whole numbers are right, those of numbers with all their digits are off by up to 2^%.0f: Q or K is "
            "rounded to fewer bits than it has",
            log2(worst));
        conclude_scores(inquiry, STAGE_S, table, text);
        return;
    }
    if (reading->experiment.scores == SCORES_SMALL) {
        conclude_scores(inquiry, STAGE_S | STAGE_P, table,
                        "scores that differ little are not told apart: something is approximated below a magnitude");
        return;
    }
    if (worst < 0x1p-5 && lab->problem.dtype == ATTEST_F32) {
        bool level = lab->lse && level_right(inquiry, 20);
        snprintf(text, sizeof text, "%s off by up to 2^%.0f, where float32 has 2^-24: %s",
                 level ? "the exponential is" : "scores are", log2(worst),
                 level ? "it is an approximation" : "they are kept in too few bits");
        conclude_scores(inquiry, level ? STAGE_P : lab->lse ? STAGE_S : STAGE_S | STAGE_P, table, text);
        return;
    }
    if (factor != 0) {
        bool level = lab->lse && level_right(inquiry, 20);
        bool logarithm = near(factor, M_LN2) || near(factor, 1 / M_LN2);
        factor_text(lab, factor, text, sizeof text);
        if (level)
            snprintf(text, sizeof text, "exp(%.4g x) is taken in place of exp(x)%s", factor,
                     near(factor, M_LN2) ? ": the base is 2, and log2(e) is missing" : "");
        conclude_scores(inquiry, level ? STAGE_P : logarithm || !lab->lse ? STAGE_S | STAGE_P : STAGE_S, table, text);
        return;
    }
    enum answer function = is_function(table);
    if (function == ANSWER_YES) {
        bool level = lab->lse && level_right(inquiry, 20);
        conclude_scores(inquiry,
                        level      ? STAGE_P
                        : lab->lse ? STAGE_S
                                   : STAGE_S | STAGE_P,
                        table,
                        level ? "the exponential is wrong: weights depend on the score alone, and not as exp does"
                              : "weights depend on the score alone, and not as exp of it does");
        return;
    }
    int64_t first = -1, source = -1;
    if (keys_moved(lab, reading, &first, &source)) {
        snprintf(text, sizeof text, "keys are taken in the wrong order: key %lld has the score of key %lld",
                 (long long)lab->keys[first], (long long)lab->keys[source]);
        conclude_scores(inquiry, lab->lse ? STAGE_S : STAGE_S | STAGE_PV, table, text);
        return;
    }
    missing_elements(inquiry, elements, sizeof elements);
    if (elements[0])
        snprintf(text, sizeof text, "elements of Q and K do not reach the dot product: %s", elements);
    else if (function == ANSWER_UNKNOWN)
        snprintf(text, sizeof text, "scores, or their exponentials, are wrong");
    else
        snprintf(text, sizeof text, "scores are made of the wrong elements, rows or keys: the layout of Q, K or S");
    bool sure = lab->lse && (elements[0] || function == ANSWER_NO || !level_right(inquiry, 20));
    conclude_scores(inquiry, sure ? STAGE_S : STAGE_S | STAGE_P, table, text);
}

/* Only the last key that a row sees is wrong, or the first: if it is alone in its tile, it has no anchor there, and the maximum and
 * the carry are not as the design has them. */
static bool only_ends(const struct inquiry *inquiry, const struct table *table)
{
    for (int64_t at = 0; at < table->rows * table->columns; at++) {
        int64_t begin, end, key = inquiry->lab->keys[at % table->columns];
        if (table->cell[at] != CELL_WRONG)
            continue;
        lab_visible(inquiry->lab, at / table->columns, &begin, &end);
        if ((key != end - 1 && key > begin + 1) || end - begin < 6)
            return false;
    }
    return true;
}

/* Falling rows tell whether it is the maximum, rising ones whether it is the carry. */
static void inquire_ends(struct inquiry *inquiry, struct table *table)
{
    static const enum scores stairs[] = {SCORES_FALLING, SCORES_RISING};
    for (int n = 0; n < COUNT_OF(stairs); n++) {
        struct experiment experiment = {.scores = stairs[n], .values = VALUES_KEYS};
        struct reading reading;
        if (!ask(inquiry, &experiment, &reading))
            return;
        bool right = reading.lse_right && reading.o_right;
        if (!right)
            inquire_before(inquiry, &reading);
        reading_free(&reading);
        if (!right)
            return;
    }
    conclude_scores(inquiry, STAGE_S | STAGE_P | STAGE_RESCALE, table, "the score of the first or the last key that a row sees");
}

/* LSE is wrong, and the weights are right as far as they could be read. */
static void inquire_sum(struct inquiry *inquiry, const struct reading *reading)
{
    struct lab *lab = inquiry->lab;
    enum sight sight = reading->o_right ? SIGHT_LSE : SIGHT_O;
    bool rough = lab->problem.dtype_o != ATTEST_F32 || lab->problem.dtype != ATTEST_F32;
    if (!lab->lse)
        conclude(inquiry, STAGE_P | STAGE_NORMALISATION, reading, SIGHT_O,
                 "the weights of a row are in proportion, and their sum is wrong");
    else if (rough && (reading->experiment.scores == SCORES_FINE || !level_right(inquiry, 512)))
        conclude(inquiry, STAGE_S, reading, sight, "scores are slightly off: they, or Q and K, are kept in too few bits");
    else if (rough)
        conclude(inquiry, STAGE_S | STAGE_P | (reading->o_right ? STAGE_EPILOGUE : 0), reading, sight,
                 "LSE is off by less than a weight of this type can tell: scores, exponentials or their sum are not float32");
    else
        conclude(inquiry, STAGE_P | (reading->o_right ? STAGE_EPILOGUE : 0), reading, sight,
                 "the weights of a row are in proportion, and their sum is wrong");
}

/* Where equal scores gave the right number of keys but not the right ones, the mask is wrong, and combs only show it again. */
static bool is_mask(const struct inquiry *inquiry)
{
    const struct reading *equal = &inquiry->equal;
    for (int64_t n = 0; n < equal->rows && !equal->o_right; n++) {
        double n_keys = exp(equal->lse_expected[n]);
        for (int64_t c = 0; c < equal->columns; c++) {
            double weight = equal->o[n * equal->columns + c] * n_keys;
            if (!(fabs(weight) < 1e-3 || fabs(weight - 1) < 0.05))
                return false;
        }
    }
    return !equal->o_right;
}

void inquire_scores(struct inquiry *inquiry, const struct reading *reading)
{
    struct table table;
    struct cause cause;
    if (inquire_lse(inquiry, reading))
        return;
    bool comb = reading->experiment.scores == SCORES_COMB, capped = (inquiry->lab->problem.flags & ATTEST_SOFTCAP) != 0;
    if ((capped && cause_find(inquiry, reading, QUESTION_SOFTCAP, &cause)) ||
        (comb && cause_find(inquiry, reading, QUESTION_SCORES, &cause))) {
        conclude(inquiry, cause.stages, reading, SIGHT_O, "%s", cause.text);
        return;
    }
    if (inquiry->lab->lse && is_mask(inquiry)) {
        inquire_mask(inquiry, &inquiry->equal);
        return;
    }
    if (inquiry->lab->lse && comb && rows_moved(inquiry, reading))
        return;
    if (!table_read(inquiry, reading, &table))
        return;
    if (table.wrong == 0)
        inquire_sum(inquiry, reading);
    else if (comb && only_ends(inquiry, &table))
        inquire_ends(inquiry, &table);
    else
        inquire_table(inquiry, reading, &table);
    table_free(&table);
}
