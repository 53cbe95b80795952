/*
 * stages_before.c - LSE is wrong (or there is none, and O is): which stage before the product with V. Equal scores are in
 * stages_mask.c and combs in stages_scores.c; here are levels, staircases and modifiers.
 *
 * What each reading can blame, given that those before it in the battery were right:
 *     a level           scores and their differences are right when small. Infinities, NaN or nothing: the maximum (P). Weights
 *                       slightly off: scores kept in too few bits (S). O right: LSE alone (epilogue).
 *     a falling row     the maximum is that of the first tile and never changes; p of later tiles is relative to something else (P)
 *     a rising row      the maximum changes in every tile: what is carried must be scaled down (rescale)
 *     a ladder          weights of e^-1.5 to e^-22: the exponential (P)
 *     one modifier      S; the sink: normalisation
 */
#include "stages_inquiry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- LSE alone --------------------------------------------------------------------------------------------------------------- */

/* LSE as functions of the maximum m and the sum l, that are wrong in known ways. */
static double lse_formula(int number, double m, double l)
{
    switch (number) {
    case 0:
        return (m + log(l)) / M_LN2;
    case 1:
        return log(l);
    case 2:
        return m;
    case 3:
        return -(m + log(l));
    case 4:
        return m / M_LN2 + log(l);
    case 5:
        return m + log(l) / M_LN2;
    case 6:
        return m * M_LN2 + log(l);
    case 7:
        return l;
    case 8:
        return m + l;
    default:
        return 0;
    }
}

static const char *const lse_formulas[] = {"LSE is in units of log2",
                                           "LSE lacks the maximum",
                                           "LSE lacks the logarithm of the sum: it is the maximum",
                                           "LSE has the wrong sign",
                                           "the maximum that LSE adds is in units of log2",
                                           "LSE adds log2 of the sum, not its natural logarithm",
                                           "the maximum that LSE adds is multiplied with ln 2 once too often",
                                           "LSE is the sum itself, not its logarithm",
                                           "LSE adds the sum itself, not its logarithm",
                                           "LSE is always 0"};

/* The formula that gives what was found at a flat level, where m and l are known; -1 if none does. */
static int find_formula(struct inquiry *inquiry)
{
    struct experiment flat = flat_level(inquiry->lab, 20);
    struct reading reading;
    int found = -1;
    if (!ask(inquiry, &flat, &reading))
        return -1;
    for (int number = 0; number < COUNT_OF(lse_formulas) && found < 0; number++) {
        bool fits = true;
        for (int64_t n = 0; n < reading.rows && fits; n++) {
            int64_t begin, end;
            lab_visible(inquiry->lab, n, &begin, &end);
            if (begin >= end)
                continue;
            double l = (double)(end - begin), m = reading.lse_expected[n] - log(l);
            fits = fabs(reading.lse[n] - lse_formula(number, m, l)) <= 8 * reading.lse_bound[n];
        }
        if (fits)
            found = number;
    }
    reading_free(&reading);
    return found;
}

bool inquire_lse(struct inquiry *inquiry, const struct reading *reading)
{
    struct lab *lab = inquiry->lab;
    if (!lab->lse || !reading->o_right)
        return false;
    /* Weights that were read less exactly than LSE is wrong do not clear the sum. */
    for (int64_t n = 0; n < reading->rows; n++)
        for (int64_t c = 0; c < reading->columns && reading_wrong_lse(reading, n); c++) {
            double expected = reading->o_expected[n * reading->columns + c];
            double factor = fabs(expm1(reading->lse_expected[n] - reading->lse[n]));
            if (expected > 0 && factor * expected < 2 * reading->o_bound[n * reading->columns + c])
                return false;
        }
    bool equal = reading->experiment.scores == SCORES_EQUAL, single = single_keys(inquiry, reading);
    int formula = find_formula(inquiry);
    if (inquiry->failed)
        return true;
    if (single && !equal)
        conclude(inquiry, STAGE_S | STAGE_P | STAGE_EPILOGUE, reading, SIGHT_LSE,
                 "LSE is wrong in rows that see one key, whose weight is 1 whatever its score is");
    else if (formula >= 0)
        conclude(inquiry, STAGE_EPILOGUE, reading, SIGHT_LSE, "%s, while O is right", lse_formulas[formula]);
    else
        conclude(inquiry, STAGE_EPILOGUE | (equal ? 0 : STAGE_S), reading, SIGHT_LSE,
                 equal ? "LSE is written wrong, while O is right"
                       : "LSE is off and O is right: all scores of a row are off by the same, or LSE is written wrong");
    return true;
}

struct experiment flat_level(const struct lab *lab, double level)
{
    double most = lab->problem.flags & ATTEST_SOFTCAP ? 0.5 * (double)lab->problem.softcap : level;
    return (struct experiment){.scores = SCORES_LEVEL, .level = fmin(level, most), .at = ALL_ANCHORS, .values = VALUES_PLAIN};
}

/* ---- levels ------------------------------------------------------------------------------------------------------------------ */

/* A row in which a key that must not be seen has a weight; -1 if there is none. */
static int64_t row_with_hidden(const struct inquiry *inquiry, const struct reading *reading)
{
    for (int64_t n = 0; n < reading->rows && reading->by_key; n++) {
        int64_t begin, end;
        lab_visible(inquiry->lab, n, &begin, &end);
        for (int64_t c = 0; c < reading->columns; c++) {
            int64_t key = inquiry->lab->keys[c];
            if ((key < begin || key >= end) && reading->o[n * reading->columns + c] > 0)
                return n;
        }
    }
    return -1;
}

/* Bits that scores seem to be kept in, from the error of LSE relative to the level; 0 if it is not small. */
static int score_bits(const struct reading *reading)
{
    double worst = 0;
    for (int64_t n = 0; n < reading->rows; n++)
        if (reading_wrong_lse(reading, n) || !isfinite(reading->lse[n]))
            worst = fmax(worst, fabs(reading->lse[n] - reading->lse_expected[n]) / fabs(reading->lse_expected[n]));
    return worst > 0 && worst < 0x1p-5 ? (int)floor(-log2(worst)) : 0;
}

static bool finite_everywhere(const struct reading *reading)
{
    for (int64_t n = 0; n < reading->rows; n++) {
        if (!isfinite(reading->lse[n]) && isfinite(reading->lse_expected[n]))
            return false;
        for (int64_t c = 0; c < reading->columns; c++)
            if (!isfinite(reading->o[n * reading->columns + c]))
                return false;
    }
    return true;
}

static void inquire_level(struct inquiry *inquiry, const struct reading *reading)
{
    struct lab *lab = inquiry->lab;
    double level = reading->experiment.level;
    int64_t hidden = row_with_hidden(inquiry, reading);
    int bits = score_bits(reading);
    enum sight sight = reading->o_right ? SIGHT_LSE : SIGHT_O;
    struct cause cause;
    if (hidden >= 0 && level < 0)
        conclude(inquiry, STAGE_MASK, reading, SIGHT_O,
                 "keys that are masked have a finite score, about %.4g, and win where all others are lower",
                 lab->lse ? reading->lse[hidden] : level);
    else if (lab->problem.flags & ATTEST_SOFTCAP && cause_find(inquiry, reading, QUESTION_SOFTCAP, &cause))
        conclude(inquiry, cause.stages, reading, SIGHT_O, "%s", cause.text);
    else if (inquire_lse(inquiry, reading))
        return;
    else if (!finite_everywhere(reading) || (lab->lse && fabs(level) > 80 && reading->lse_error > fabs(level) / 4))
        conclude(inquiry, STAGE_P, reading, sight, "%s",
                 level > 0 ? "exp overflows for large scores: the maximum is not subtracted first"
                           : "nothing is left of scores far below 0: the maximum begins at 0, or is not subtracted");
    else if (bits > 0)
        conclude(inquiry, STAGE_S, reading, sight,
                 "scores are kept in too few bits: they are off by 2^-%d of their size, where float32 has 2^-24 (%s)", bits,
                 bits < 10 ? "like bf16" : "like f16 or TF32");
    else
        conclude(inquiry, STAGE_S | STAGE_P, reading, sight, "scores near %g are wrong, smaller ones are right", level);
}

/* ---- staircases -------------------------------------------------------------------------------------------------------------- */

static bool is_right(const struct lab *lab, const struct reading *reading)
{
    return lab->lse ? reading->lse_right : reading->o_right;
}

/* Whether a staircase is right; `otherwise` if that could not be found out. */
static bool staircase_right(struct inquiry *inquiry, enum scores scores, bool otherwise)
{
    struct experiment experiment = {.scores = scores, .values = VALUES_KEYS};
    struct reading reading;
    if (!ask(inquiry, &experiment, &reading))
        return otherwise;
    bool right = is_right(inquiry->lab, &reading);
    reading_free(&reading);
    return right;
}

int64_t find_tile(struct inquiry *inquiry, int64_t row, bool up)
{
    struct lab *lab = inquiry->lab;
    int64_t begin, end, boundary, last = 0;
    lab_visible(lab, row, &begin, &end);
    boundary = end;
    /* One step that is not handled shows the boundary between it and the tile before (or after) it. */
    for (int n = 0; n < 24 && boundary - 1 > begin && !inquiry->failed; n++) {
        struct experiment step = {.scores = up ? SCORES_STEP_UP : SCORES_STEP_DOWN, .values = VALUES_KEYS};
        struct reading reading;
        int64_t found = -1;
        step.at = up ? boundary - 1 : begin + 1;
        if (!ask(inquiry, &step, &reading))
            return 0;
        for (int64_t c = 0; c < reading.columns && !reading.o_right; c++) {
            int64_t key = lab->keys[c];
            double weight = reading.o[row * reading.columns + c];
            bool low = up ? key < step.at : key >= step.at;
            if (low && weight > 1e-9 && (up || found < 0))
                found = up ? key + 1 : key;
        }
        /* Weights that are all scaled down say that only the sum is wrong: then LSE counts the keys. */
        if (found < 0 && lab->lse && isfinite(reading.lse[row]) && reading_wrong_lse(&reading, row)) {
            double extra = rint(exp(reading.lse[row]) - exp(reading.lse_expected[row]));
            found = up ? begin + (int64_t)extra : end - (int64_t)extra;
        }
        reading_free(&reading);
        if (found <= begin || found >= end)
            break;
        last = up && n > 0 ? boundary - found : found;
        if (!up)
            break;
        boundary = found;
    }
    return last;
}

/* LSE speaks for the sum; without it the weights may have been lost on their way to V. */
static void inquire_ladder(struct inquiry *inquiry, const struct reading *reading)
{
    double lost = INFINITY;
    for (int64_t at = 0; at < reading->rows * reading->columns; at++)
        if (reading_wrong_o(reading, at / reading->columns, at % reading->columns) && reading->o[at] == 0)
            lost = fmin(lost, -log(reading->o_expected[at]) - reading->lse_expected[at / reading->columns]);
    unsigned stages = inquiry->lab->lse ? STAGE_P : STAGE_P | STAGE_PV;
    if (isfinite(lost))
        conclude(inquiry, stages, reading, SIGHT_O, "weights below e^-%.3g of the largest are dropped", lost);
    else
        conclude(inquiry, stages, reading, reading->o_right ? SIGHT_LSE : SIGHT_O,
                 "the exponential is wrong for scores well below the maximum");
}

/* Staircases are wrong, and not as a mistake of the carry has it: a ladder tells whether small weights are. */
static void inquire_weights(struct inquiry *inquiry, const struct reading *reading, bool both)
{
    struct experiment ladder = {.scores = SCORES_LADDER, .values = VALUES_KEYS};
    struct reading weights;
    if (!ask(inquiry, &ladder, &weights))
        return;
    if (!weights.o_right || !both)
        inquire_ladder(inquiry, weights.o_right ? reading : &weights);
    else
        conclude(inquiry, STAGE_P | STAGE_RESCALE, reading, reading->o_right ? SIGHT_LSE : SIGHT_O,
                 "rising and falling rows are wrong: the maximum, or what is carried from tile to tile");
    reading_free(&weights);
}

static void inquire_staircase(struct inquiry *inquiry, const struct reading *reading)
{
    struct lab *lab = inquiry->lab;
    enum scores scores = reading->experiment.scores;
    bool up = scores == SCORES_RISING ? false : staircase_right(inquiry, SCORES_RISING, false);
    bool down = scores == SCORES_FALLING ? false : staircase_right(inquiry, SCORES_FALLING, false);
    enum sight sight = reading->o_right ? SIGHT_LSE : SIGHT_O;
    char after[96] = "";
    if (inquiry->failed)
        return;
    if (single_keys(inquiry, reading)) {
        conclude(inquiry, STAGE_S | STAGE_P | STAGE_EPILOGUE, reading, sight,
                 "LSE is wrong in rows that see one key, whose weight is 1 whatever its score is");
        return;
    }
    if (scores == SCORES_MIXED && up && down) {
        conclude(inquiry, STAGE_P | STAGE_RESCALE, reading, sight,
                 "rows are right where all rise or all fall, and wrong where they differ: a row takes the maximum or the factor of "
                 "another row");
        return;
    }
    struct pattern pattern = conclude(inquiry, STAGE_RESCALE, reading, sight, "%s", "");
    int64_t tile = pattern.first >= 0 && up != down ? find_tile(inquiry, pattern.first, !up) : 0;
    if (tile > 0) {
        inquiry->diagnosis->tile = tile;
        snprintf(after, sizeof after, " (tiles of %lld keys)", (long long)tile);
    }
    if (inquiry->failed)
        return;
    if (up == down || (up && tile == 0)) {
        inquire_weights(inquiry, reading, up == down);
    } else if (up && !down) {
        conclude(inquiry, STAGE_P, reading, sight,
                 "rising rows are right and falling ones are not: p is taken relative to the maximum of its tile, not to the "
                 "running one%s",
                 after);
    } else if (down && !up) {
        bool factor = lab->lse && !reading->lse_right;
        conclude(inquiry, STAGE_RESCALE, reading, sight,
                 "falling rows are right and rising ones are not: %s when the maximum rises from one tile to the next%s",
                 factor ? "the sum is not scaled down (or by the wrong factor)" : "what was summed up is not scaled down", after);
    }
    if (tile > 0)
        inquiry->diagnosis->tile = tile;
}

/* ---- modifiers and the rest -------------------------------------------------------------------------------------------------- */

static void inquire_modifier(struct inquiry *inquiry, const struct reading *reading, enum question question, const char *name)
{
    struct cause cause;
    enum sight sight = reading->o_right ? SIGHT_LSE : SIGHT_O;
    unsigned stages = question == QUESTION_SINK ? STAGE_NORMALISATION : STAGE_S;
    if (reading->o_right && single_keys(inquiry, reading))
        conclude(inquiry, stages | STAGE_P | STAGE_EPILOGUE, reading, sight,
                 "LSE is wrong with %s in rows that see one key, whose weight is 1 whatever its score is", name);
    else if (cause_find(inquiry, reading, question, &cause))
        conclude(inquiry, cause.stages, reading, sight, "%s", cause.text);
    else if (reading->o_right && inquiry->lab->lse)
        conclude(inquiry, stages | (question == QUESTION_SINK ? STAGE_EPILOGUE : 0), reading, sight,
                 question == QUESTION_SINK ? "LSE is wrong with %s, and O is right"
                                           : "with %s scores are off by a constant of the row",
                 name);
    else
        conclude(inquiry, stages, reading, sight, "wrong only with %s%s", name,
                 stages == STAGE_S && inquiry->lab->problem.flags & ATTEST_SOFTCAP ? " (which comes after the softcap)" : "");
}

void inquire_before(struct inquiry *inquiry, const struct reading *reading)
{
    const struct experiment *experiment = &reading->experiment;
    uint64_t modifiers = experiment->modifiers;
    switch (experiment->scores) {
    case SCORES_EQUAL:
        if (modifiers & ATTEST_SINK)
            inquire_modifier(inquiry, reading, QUESTION_SINK, "sinks");
        else if (modifiers & ATTEST_ALIBI)
            inquire_modifier(inquiry, reading, QUESTION_ALIBI, "ALiBi");
        else if (modifiers & ATTEST_BIAS && isinf(experiment->level) && inquire_empty(inquiry, reading))
            break;
        else if (modifiers & ATTEST_BIAS && isinf(experiment->level))
            conclude(inquiry, STAGE_MASK, reading, reading->o_right ? SIGHT_LSE : SIGHT_O,
                     "keys whose bias is -inf are not left out as they should be");
        else if (modifiers & ATTEST_BIAS)
            inquire_modifier(inquiry, reading, QUESTION_BIAS, "a bias");
        else
            inquire_mask(inquiry, reading);
        break;
    case SCORES_LEVEL:
        inquire_level(inquiry, reading);
        break;
    case SCORES_RISING:
    case SCORES_FALLING:
    case SCORES_MIXED:
        inquire_staircase(inquiry, reading);
        break;
    case SCORES_LADDER:
        inquire_ladder(inquiry, reading);
        break;
    case SCORES_NEEDLE:
        conclude(inquiry, single_keys(inquiry, reading) ? STAGE_S | STAGE_P | STAGE_EPILOGUE : STAGE_P, reading,
                 reading->lse_right ? SIGHT_O : SIGHT_LSE,
                 "a key 200 above all others is not found: the maximum misses it, or exp overflows before it is subtracted");
        break;
    default:
        if (modifiers)
            conclude(inquiry, STAGE_S, reading, reading->o_right ? SIGHT_LSE : SIGHT_O,
                     "softcap, ALiBi and bias are right one by one and wrong together: their order is scale, softcap, ALiBi, bias");
        else
            inquire_scores(inquiry, reading);
    }
}
