/*
 * stages_mask.c - equal scores are wrong: every key that a row sees counts once, so LSE is ln n and O says which ones they are.
 */
#include "stages_inquiry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What the kernel seems to see: the number of keys behind LSE (without it, behind the weights), and whether a key is among them. */
static double keys_counted(const struct inquiry *inquiry, const struct reading *reading, int64_t row)
{
    double largest = 0;
    if (inquiry->lab->lse)
        return exp(reading->lse[row]);
    for (int64_t c = 0; c < reading->columns; c++)
        largest = fmax(largest, reading->o[row * reading->columns + c]);
    return largest > 0 ? 1 / largest : 0;
}

static bool key_seen(const struct reading *reading, int64_t row, int64_t column, double counted)
{
    return reading->o[row * reading->columns + column] > 0.5 / counted;
}

/* Every weight is 0 or 1 / n, with n what LSE says: the row is a right softmax over other keys. */
static bool is_uniform(const struct inquiry *inquiry, const struct reading *reading, int64_t row)
{
    double counted = keys_counted(inquiry, reading, row);
    double slack = 4 * unit_roundoff(inquiry->lab->problem.dtype_o) + 2 * unit_roundoff(inquiry->lab->problem.dtype) + 1e-5;
    for (int64_t c = 0; c < reading->columns; c++) {
        double weight = reading->o[row * reading->columns + c] * counted;
        if (!(fabs(weight) < 1e-3 || fabs(weight - 1) < slack))
            return false;
    }
    return isfinite(counted);
}

bool same_keys(const struct inquiry *inquiry, const struct reading *reading)
{
    for (int64_t n = 0; n < reading->rows; n++) {
        int64_t begin, end;
        double counted = keys_counted(inquiry, reading, n);
        lab_visible(inquiry->lab, n, &begin, &end);
        for (int64_t c = 0; c < reading->columns; c++) {
            int64_t key = inquiry->lab->keys[c];
            if (key_seen(reading, n, c, counted) != (key >= begin && key < end))
                return false;
        }
    }
    return true;
}

/* ---- masks that are known mistakes ------------------------------------------------------------------------------------------- */

struct mask {
    uint64_t needs;  /* flags of the problem without which it does not apply; where alignment is the mistake, one of them will do */
    uint64_t drops;  /* flags that are ignored */
    int left, right; /* how much further left and right a row sees, at the limit that is set by `needs` */
    bool flipped;    /* the other alignment */
    const char *text;
};

static const struct mask masks[] = {
    {ATTEST_CAUSAL, 0, 0, 1, false, "causal off by one: a row sees one key too many"},
    {ATTEST_CAUSAL, 0, 0, -1, false, "causal off by one: a row does not see its own key"},
    {ATTEST_CAUSAL, ATTEST_CAUSAL, 0, 0, false, "the causal mask is missing"},
    {ATTEST_WINDOW_LEFT, 0, 1, 0, false, "the window is off by one on the left: one key too many"},
    {ATTEST_WINDOW_LEFT, 0, -1, 0, false, "the window is off by one on the left: one key too few"},
    {ATTEST_WINDOW_LEFT, ATTEST_WINDOW_LEFT, 0, 0, false, "the window is not applied on the left"},
    {ATTEST_WINDOW_RIGHT, 0, 0, 1, false, "the window is off by one on the right: one key too many"},
    {ATTEST_WINDOW_RIGHT, 0, 0, -1, false, "the window is off by one on the right: one key too few"},
    {ATTEST_WINDOW_RIGHT, ATTEST_WINDOW_RIGHT, 0, 0, false, "the window is not applied on the right"},
    {ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT, ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT, 0, 0, false, "the window is missing"},
    {ATTEST_CAUSAL | ATTEST_WINDOW_LEFT, ATTEST_CAUSAL | ATTEST_WINDOW_LEFT, 0, 0, false, "no mask is applied at all"},
    {ATTEST_CAUSAL | ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT, 0, 0, 0, true,
     "rows and keys are aligned at the wrong end (top left or bottom right)"},
    {ATTEST_KV_LENGTHS, ATTEST_KV_LENGTHS, 0, 0, false, "the lengths of the sequences are ignored"},
};

static void mask_visible(const struct lab *lab, const struct mask *mask, int64_t row, int64_t *begin, int64_t *end)
{
    attest_problem problem = lab->problem;
    struct layout layout = lab->inputs.layout;
    layout.problem = &problem;
    problem.flags &= ~mask->drops;
    if (mask->drops & ATTEST_KV_LENGTHS)
        layout.lengths = NULL;
    if (mask->flipped)
        problem.flags ^= ATTEST_BOTTOM_RIGHT;
    layout_visible(&layout, lab->rows[row].b, lab->rows[row].i, begin, end);
    if (mask->left == 0 && mask->right == 0)
        return;
    int64_t keys = layout_keys(&layout, lab->rows[row].b), rows = layout_rows(&layout, lab->rows[row].b);
    int64_t place = lab->rows[row].i + (problem.flags & ATTEST_BOTTOM_RIGHT ? keys - rows : 0), low = 0, high = keys;
    if (problem.flags & ATTEST_WINDOW_LEFT && problem.window_left < INT32_MAX)
        low = place - problem.window_left - mask->left;
    if (problem.flags & ATTEST_WINDOW_RIGHT && problem.window_right < INT32_MAX)
        high = place + problem.window_right + 1 + (mask->needs & ATTEST_WINDOW_RIGHT ? mask->right : 0);
    if (problem.flags & ATTEST_CAUSAL && place + 1 + (mask->needs & ATTEST_CAUSAL ? mask->right : 0) < high)
        high = place + 1 + (mask->needs & ATTEST_CAUSAL ? mask->right : 0);
    *begin = low > 0 ? low : 0;
    *end = high < keys ? high : keys;
    if (*begin >= *end)
        *begin = *end = 0;
}

/* True if the mask explains every row, and at least one row that is wrong; certain if one of those still has keys. */
static bool mask_fits(struct inquiry *inquiry, const struct reading *reading, const struct mask *mask, bool *certain)
{
    const struct lab *lab = inquiry->lab;
    bool differs = false;
    *certain = false;
    uint64_t present = lab->problem.flags & mask->needs;
    if (mask->flipped ? present == 0 : present != mask->needs)
        return false;
    for (int64_t n = 0; n < reading->rows; n++) {
        int64_t begin, end, right_begin, right_end;
        mask_visible(lab, mask, n, &begin, &end);
        lab_visible(lab, n, &right_begin, &right_end);
        differs = differs || begin != right_begin || end != right_end;
        if (begin == end) /* an empty row that should not be one: whatever comes of it */
            continue;
        *certain = *certain || begin != right_begin || end != right_end;
        double counted = keys_counted(inquiry, reading, n);
        if (fabs(counted - (double)(end - begin)) > 1e-4 * (double)(end - begin))
            return false;
        for (int64_t c = 0; c < reading->columns; c++) {
            int64_t key = lab->keys[c];
            if (key < layout_keys(&lab->inputs.layout, lab->rows[n].b) &&
                key_seen(reading, n, c, counted) != (key >= begin && key < end))
                return false;
        }
    }
    return differs;
}

/* ---- keys that are not there, and keys that are not counted ------------------------------------------------------------------ */

/* Keys that nobody has asked for, such as zeros that fill up a tile, have a score of their own; where the true keys but one lie far
 * below, they show. */
static bool has_phantoms(struct inquiry *inquiry)
{
    struct experiment one = {.scores = SCORES_FIRST, .values = VALUES_PLAIN};
    struct reading reading;
    if (!ask(inquiry, &one, &reading))
        return false;
    bool more = false;
    for (int64_t n = 0; n < reading.rows; n++)
        more = more || (inquiry->lab->lse ? reading_wrong_lse(&reading, n) && reading.lse[n] > reading.lse_expected[n]
                                          : reading_wrong_o(&reading, n, 0));
    reading_free(&reading);
    return more;
}

static void conclude_phantoms(struct inquiry *inquiry, const struct reading *reading, int64_t row, double extra)
{
    int64_t begin, end, tile = 1;
    lab_visible(inquiry->lab, row, &begin, &end);
    enum sight sight = reading->o_right ? SIGHT_LSE : SIGHT_O;
    if (!has_phantoms(inquiry)) {
        if (!inquiry->failed)
            conclude(inquiry, STAGE_MASK | STAGE_P, reading, sight, "%.4g keys more than the row sees are counted in the sum",
                     extra);
        return;
    }
    while (tile < 1024 && (end + (int64_t)extra) % (2 * tile) == 0)
        tile *= 2;
    char text[96] = "";
    if (fabs(extra - rint(extra)) < 1e-3 && (double)tile > extra)
        snprintf(text, sizeof text, ": the last tile (of %lld keys, or a part of it) is not masked at its end", (long long)tile);
    /* Zeros in V are all that is known of them: whether they are masked in P or only in the sum makes no difference to see. */
    conclude(inquiry, STAGE_MASK | STAGE_P, reading, sight, "%.4g keys beyond the last one, %lld, are counted%s", extra,
             (long long)end - 1, text);
    inquiry->diagnosis->tile = end;
}

/* The keys that the sum lacks: one after the other is made the only one that counts. */
static void conclude_lacking(struct inquiry *inquiry, const struct reading *reading, int64_t row, double counted)
{
    struct lab *lab = inquiry->lab;
    int64_t begin, end, step = lab->key_count > 128 ? (lab->key_count + 127) / 128 : 1;
    unsigned char *cell = malloc((size_t)lab->key_count + 1);
    struct cells cells = {cell, &lab->rows[row], 1, lab->keys, lab->key_count, "row", "key"};
    lab_visible(lab, row, &begin, &end);
    for (int64_t c = 0; c < lab->key_count && cell && !inquiry->failed; c++) {
        struct experiment one = {.scores = SCORES_FIRST, .values = VALUES_PLAIN, .at = lab->keys[c]};
        struct reading single;
        cell[c] = CELL_UNKNOWN;
        if (c % step || lab->keys[c] < begin || lab->keys[c] >= end || !ask(inquiry, &one, &single))
            continue;
        cell[c] = reading_wrong_lse(&single, row) ? CELL_WRONG : CELL_RIGHT;
        reading_free(&single);
    }
    struct pattern pattern = cell ? pattern_find(&cells) : (struct pattern){.column = -1};
    free(cell);
    if (inquiry->failed)
        return;
    conclude(inquiry, STAGE_P, reading, reading->o_right ? SIGHT_LSE : SIGHT_O, "the sum has %.4g keys where the row sees %lld%s%s",
             counted, (long long)(end - begin), pattern.wrong ? "; it lacks " : "", pattern.text);
    if (pattern.wrong)
        inquiry->diagnosis->column = pattern.column;
}

/* ---- equal scores ------------------------------------------------------------------------------------------------------------ */

/* LSE of a row that sees no key is -inf, or the sink, which is -1e30 where it is not asked for. */
#define NOTHING (-1e29)

/* Rows that see no key are wrong, and no others. */
static bool only_empty_rows(const struct reading *reading, int64_t *row)
{
    *row = -1;
    for (int64_t n = 0; n < reading->rows; n++) {
        if (!reading_wrong_lse(reading, n) && !row_is_wrong(reading, n))
            continue;
        if (reading->lse_expected[n] > NOTHING)
            return false;
        if (*row < 0)
            *row = n;
    }
    return *row >= 0;
}

static void conclude_empty(struct inquiry *inquiry, const struct reading *reading, int64_t row)
{
    bool right = !reading_wrong_lse(reading, row), finite = isfinite(reading->lse[row]);
    enum sight sight = row_is_wrong(reading, row) ? SIGHT_O : SIGHT_LSE;
    if (inquiry->lab->problem.flags & ATTEST_SINK)
        conclude(inquiry, STAGE_MASK | STAGE_P | STAGE_NORMALISATION | STAGE_EPILOGUE, reading, sight,
                 "rows that see no key: O must be 0, and LSE the sink");
    else if (right && inquiry->lab->lse)
        conclude(inquiry, STAGE_NORMALISATION, reading, SIGHT_O, "rows that see no key: O must be 0, and is 0/0 or what was there");
    else if (finite)
        conclude(inquiry, STAGE_MASK, reading, sight, "rows that see no key are not empty: masked keys have a finite score");
    else
        conclude(inquiry, STAGE_MASK | STAGE_P | STAGE_NORMALISATION, reading, sight,
                 "rows that see no key are not handled: -inf - (-inf), or 0/0");
}

bool inquire_empty(struct inquiry *inquiry, const struct reading *reading)
{
    int64_t row;
    if (!only_empty_rows(reading, &row))
        return false;
    conclude_empty(inquiry, reading, row);
    return true;
}

void inquire_mask(struct inquiry *inquiry, const struct reading *reading)
{
    struct lab *lab = inquiry->lab;
    int64_t row = 0, begin, end;
    if (inquire_empty(inquiry, reading))
        return;
    bool certain;
    for (int n = 0; n < COUNT_OF(masks); n++)
        if (mask_fits(inquiry, reading, &masks[n], &certain)) {
            conclude(inquiry, certain ? STAGE_MASK : STAGE_MASK | STAGE_P, reading, reading->o_right ? SIGHT_LSE : SIGHT_O, "%s",
                     masks[n].text);
            return;
        }
    if (inquire_lse(inquiry, reading))
        return;
    bool wrong = false, uniform = true, same = same_keys(inquiry, reading);
    for (int64_t n = reading->rows - 1; n >= 0; n--) {
        bool row_wrong = reading_wrong_lse(reading, n);
        lab_visible(lab, n, &begin, &end);
        uniform = uniform && is_uniform(inquiry, reading, n);
        for (int64_t c = 0; c < reading->columns && !row_wrong; c++)
            row_wrong = reading_wrong_o(reading, n, c);
        if (row_wrong && begin < end) {
            wrong = true;
            row = n;
        }
    }
    lab_visible(lab, row, &begin, &end);
    double counted = keys_counted(inquiry, reading, row), extra = counted - (double)(end - begin);
    enum sight sight = reading->o_right ? SIGHT_LSE : SIGHT_O;
    if (!wrong || !uniform)
        conclude(inquiry, STAGE_MASK | STAGE_P, reading, sight, "where all scores are equal, LSE is not ln of the number of keys");
    else if (!same)
        conclude(inquiry, STAGE_MASK, reading, SIGHT_O, "rows see other keys than they should: %.6g, not %lld", counted,
                 (long long)(end - begin));
    else if (!lab->lse)
        conclude(inquiry, STAGE_MASK | STAGE_P | STAGE_NORMALISATION, reading, SIGHT_O,
                 "weights of equal scores are 1/%.6g, not 1/%lld: the sum is wrong, or has keys that are not there", counted,
                 (long long)(end - begin));
    else if (extra > 0)
        conclude_phantoms(inquiry, reading, row, extra);
    else
        conclude_lacking(inquiry, reading, row, counted);
}
