/*
 * stages_design.c - the inputs of an experiment: Q and K for scores that are known beforehand, V for outputs that say which key,
 * head and column they come from.
 *
 * Scores are steered through K. Where Q is 1 in every element, a key whose elements add up to N steps has the score N units; N is
 * spread evenly over the elements, so that they stay small and the sum is exact in any order. Where the score must also tell which
 * row of Q, which head and which element was used (the comb), Q and K are small whole numbers, drawn for each place.
 *
 * Everything that must not matter is 0 here, not NaN: what is NaN in the output is then either the poison that was there before, or
 * was made by the kernel. NaN in padding is a question of its own, asked at the end.
 */
#include "stages_experiment.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

enum stream { STREAM_QUERY = 101, STREAM_KEY, STREAM_PLACE, STREAM_DIGITS, STREAM_SIDE, STREAM_VALUE, STREAM_BIAS };

/* Where elements of f16 end; a little less than half of the largest. */
#define F16_LARGE 30000.0

static uint64_t bits_at(const struct lab *lab, enum stream stream, int64_t b, int64_t h, int64_t i, int64_t d)
{
    const attest_problem *problem = &lab->problem;
    int64_t most = problem->seq_q > problem->seq_kv ? problem->seq_q : problem->seq_kv;
    uint64_t place = (uint64_t)(((b * problem->heads_q + h) * most + i) * 512 + d);
    return random_bits(lab->seed, (uint64_t)stream, place);
}

/* 0 to 1, with 23 bits. */
static double fraction(uint64_t bits)
{
    return (double)(bits >> 41) * 0x1p-23;
}

bool design_anchor(const struct experiment *experiment, int64_t key)
{
    return key == 0 || key % 2 == experiment->at || experiment->at == ALL_ANCHORS;
}

/* ---- scores by level --------------------------------------------------------------------------------------------------------- */

/* The score that key j of a sequence is to have where Q is 1, in units. */
static double target(const struct lab *lab, const struct experiment *experiment, int64_t b, int64_t head_kv, int64_t j)
{
    int64_t keys = layout_keys(&lab->inputs.layout, b), at = experiment->at;
    double far_below = -FAR_BELOW / lab->unit, last = (double)(lab->problem.seq_kv - 1);
    double slope = fmin(0.5, 1500 / (last + 1)) / lab->unit;
    switch (experiment->scores) {
    case SCORES_LEVEL: {
        double level = 2 * floor(experiment->level / lab->unit / 2) + 1; /* odd, so that it needs all of its bits */
        uint64_t bits = bits_at(lab, STREAM_SIDE, b, head_kv, j, 0);
        return design_anchor(experiment, j) ? level : level - 3 - 2 * (double)(bits % 4);
    }
    case SCORES_LADDER:
        return -1.5 / lab->unit * (double)(j % 16);
    case SCORES_RISING:
        return slope * ((double)j - last);
    case SCORES_FALLING:
        return -slope * (double)j;
    case SCORES_MIXED:
        return slope * ((double)j - floor(last / 2));
    case SCORES_STEP_UP:
        return j < at ? far_below : 0;
    case SCORES_STEP_DOWN:
        return j < at ? 0 : far_below;
    case SCORES_NEEDLE:
        return (keys > 0 && j == (at + 37 * (b * lab->problem.heads_kv + head_kv)) % keys ? 100 : -100) / lab->unit;
    case SCORES_FIRST:
        return j == at ? 0 : far_below;
    case SCORES_TOP:
        return (at > 0 ? j < at : j % -at == 0) ? 0 : far_below;
    default:
        return 0;
    }
}

/* A whole number of steps, spread over the elements of a key. */
static void put_level(struct lab *lab, int64_t place, double steps)
{
    int64_t dim = lab->problem.dim;
    double most = lab->problem.dtype == ATTEST_F16 ? F16_LARGE / lab->step * (double)dim : 1e12;
    double whole = rint(fmax(-most, fmin(most, steps)));
    double each = floor(whole / (double)dim), more = whole - each * (double)dim;
    for (int64_t d = 0; d < dim; d++) {
        double value = (each + ((double)d < more ? 1 : 0)) * lab->step;
        element_store(lab->inputs.k.at, lab->problem.dtype, place + d, (float)value);
    }
}

/* ---- the comb ---------------------------------------------------------------------------------------------------------------- */

/* Elements of a key that are not 0, on average, and how many steps each has, for scores of about -1.5 where Q is 1 to 3. */
struct comb {
    int64_t count;
    double steps;
};

static struct comb comb_of(const struct lab *lab)
{
    double wanted = fmax(1, rint(0.75 / lab->unit));
    struct comb comb = {.count = (int64_t)wanted};
    if (comb.count > lab->problem.dim)
        comb.count = lab->problem.dim;
    comb.steps = ceil(wanted / (double)comb.count);
    return comb;
}

static void put_comb(struct lab *lab, const struct experiment *experiment, int64_t place, int64_t b, int64_t h, int64_t j)
{
    int64_t dim = lab->problem.dim;
    struct comb comb = comb_of(lab);
    int64_t always = (int64_t)(bits_at(lab, STREAM_KEY, b, h, j, 0) % (uint64_t)dim);
    for (int64_t d = 0; d < dim; d++) {
        bool used = d == always || (int64_t)(bits_at(lab, STREAM_PLACE, b, h, j, d) % (uint64_t)dim) < comb.count;
        double value = -comb.steps * lab->step;
        if (experiment->scores == SCORES_DIMS) {
            used = d == design_dim(lab, experiment, j);
            value = -rint(1 / lab->unit) * lab->step;
        }
        if (experiment->scores == SCORES_FINE)
            value *= 0.75 + 0.5 * fraction(bits_at(lab, STREAM_DIGITS, b, h, j, d));
        if (experiment->scores == SCORES_SMALL)
            value *= 0x1p-7;
        if (used && !design_anchor(experiment, j))
            element_store(lab->inputs.k.at, lab->problem.dtype, place + d, (float)value);
    }
}

int64_t design_dim(const struct lab *lab, const struct experiment *experiment, int64_t key)
{
    return (key / 2 + (int64_t)experiment->level) % lab->problem.dim;
}

static bool is_comb(enum scores scores)
{
    return scores == SCORES_COMB || scores == SCORES_FINE || scores == SCORES_SMALL || scores == SCORES_DIMS;
}

static double query(const struct lab *lab, const struct experiment *experiment, int64_t b, int64_t h, int64_t i, int64_t d)
{
    double sign = lab->problem.scale < 0 ? -1 : 1;
    if (experiment->scores == SCORES_EQUAL)
        return 0;
    if (experiment->scores == SCORES_FINE)
        return sign * (1 + 2 * fraction(bits_at(lab, STREAM_QUERY, b, h, i, d)));
    if (is_comb(experiment->scores))
        return sign * (double)(1 + bits_at(lab, STREAM_QUERY, b, h, i, d) % 3);
    if (experiment->scores == SCORES_MIXED && bits_at(lab, STREAM_SIDE, b, h, i, 0) % 2)
        return -sign;
    return sign;
}

/* ---- modifiers --------------------------------------------------------------------------------------------------------------- */

/* Values depend on the place in memory, so that a bias that is broadcast is the same wherever it is read. */
static void design_bias(struct lab *lab, const struct experiment *experiment)
{
    const attest_problem *problem = &lab->problem;
    struct buffer *bias = &lab->inputs.bias;
    bool on = (experiment->modifiers & ATTEST_BIAS) != 0;
    for (size_t n = 0; n < bias->bytes / element_size(problem->dtype_bias); n++) {
        uint64_t bits = random_bits(lab->seed, STREAM_BIAS, n);
        float value = !on ? 0 : isinf(experiment->level) ? (bits % 3 ? 0 : -INFINITY) : 0.5f * (float)(bits % 7) - 2;
        element_store(bias->base, problem->dtype_bias, (int64_t)n, value);
    }
}

static void design_modifiers(struct lab *lab, const struct experiment *experiment)
{
    const attest_problem *problem = &lab->problem;
    if (problem->flags & ATTEST_BIAS)
        design_bias(lab, experiment);
    for (int64_t h = 0; h < problem->heads_q && problem->flags & ATTEST_ALIBI; h++) {
        double slope = 4.0 / (double)(problem->seq_kv > 8 ? problem->seq_kv : 8) * (1 + 0.25 * (double)(h % 7));
        lab->inputs.slopes[h] = experiment->modifiers & ATTEST_ALIBI ? (float)slope : 0;
    }
    for (int64_t h = 0; h < problem->heads_q && problem->flags & ATTEST_SINK; h++) {
        double sink = 0.5 * log((double)(problem->seq_kv + 1)) + 0.3 * (double)(h % 5);
        lab->inputs.sinks[h] = experiment->modifiers & ATTEST_SINK ? (float)sink : -1e30f;
    }
}

void design_scores(struct lab *lab, const struct experiment *experiment)
{
    const attest_problem *problem = &lab->problem;
    const struct layout *layout = &lab->inputs.layout;
    memset(lab->inputs.q.base, 0, lab->inputs.q.bytes);
    memset(lab->inputs.k.base, 0, lab->inputs.k.bytes);
    for (int64_t b = 0; b < problem->batch; b++) {
        for (int64_t h = 0; h < problem->heads_q; h++)
            for (int64_t i = 0; i < layout_rows(layout, b); i++) {
                int64_t place = layout_row_at(layout, problem->stride_q, b, h, i);
                for (int64_t d = 0; d < problem->dim; d++)
                    element_store(lab->inputs.q.at, problem->dtype, place + d, (float)query(lab, experiment, b, h, i, d));
            }
        for (int64_t h = 0; h < problem->heads_kv; h++)
            for (int64_t j = 0; j < layout_keys(layout, b); j++) {
                int64_t place = layout_key_at(layout, problem->stride_k, b, h, j);
                if (is_comb(experiment->scores))
                    put_comb(lab, experiment, place, b, h, j);
                else if (experiment->scores != SCORES_EQUAL)
                    put_level(lab, place, target(lab, experiment, b, h, j));
                else /* whole numbers that would be seen if they got anywhere */
                    for (int64_t d = 0; d < problem->dim; d++)
                        element_store(lab->inputs.k.at, problem->dtype, place + d,
                                      (float)(1 + bits_at(lab, STREAM_KEY, b, h, j, d) % 3));
            }
    }
    design_modifiers(lab, experiment);
}

/* ---- values ------------------------------------------------------------------------------------------------------------------ */

/* Column d of V is 1 for one key. Which one is shifted from head to head, so that V of another head is seen. */
int64_t design_column(const struct lab *lab, int64_t block, int64_t b, int64_t head_kv, int64_t d)
{
    int64_t width = lab->problem.dim_v;
    int64_t column = block * width + (d + 7 * (b * lab->problem.heads_kv + head_kv)) % width;
    return column < lab->key_count ? column : -1;
}

/* Of two of these the mean is 1/2 + (m + 1/4 or 3/4) grains of the output, where a grain is its spacing above 1/2. */
static double between(uint32_t dtype, int64_t key, uint64_t bits)
{
    double grain = dtype == ATTEST_F16 ? 0x1p-11 : 0x1p-8;
    return key % 2 ? 2 * grain * ((double)(bits % 16) + (bits & 16 ? 0.25 : 0.75)) : 1;
}

static double value_at(const struct lab *lab, const struct experiment *experiment, int64_t b, int64_t h, int64_t j, int64_t d)
{
    uint64_t bits = bits_at(lab, STREAM_VALUE, b, h, j, d);
    double size = experiment->size > 0 ? experiment->size : 1;
    switch (experiment->values) {
    case VALUES_COLUMNS:
        return 1 + (double)((d * 5 + (b * lab->problem.heads_kv + h) * 11) % 127) / 128;
    case VALUES_WHOLE:
        return size * (double)(1 + bits % 100);
    case VALUES_ROUNDING: /* of the keys that count, which are at -at apart, every second one is small */
        return between(lab->problem.dtype_o, j / -experiment->at, random_mix(bits));
    default:
        return (double)(1 + bits % 127) / 128;
    }
}

void design_values(struct lab *lab, const struct experiment *experiment, int64_t block)
{
    const attest_problem *problem = &lab->problem;
    const struct layout *layout = &lab->inputs.layout;
    memset(lab->inputs.v.base, 0, lab->inputs.v.bytes);
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t h = 0; h < problem->heads_kv; h++) {
            for (int64_t d = 0; d < problem->dim_v && experiment->values == VALUES_KEYS; d++) {
                int64_t column = design_column(lab, block, b, h, d);
                if (column >= 0 && lab->keys[column] < layout_keys(layout, b))
                    element_store(lab->inputs.v.at, problem->dtype,
                                  layout_key_at(layout, problem->stride_v, b, h, lab->keys[column]) + d, 1);
            }
            for (int64_t j = 0; j < layout_keys(layout, b) && experiment->values != VALUES_KEYS; j++)
                for (int64_t d = 0; d < problem->dim_v; d++)
                    element_store(lab->inputs.v.at, problem->dtype, layout_key_at(layout, problem->stride_v, b, h, j) + d,
                                  (float)value_at(lab, experiment, b, h, j, d));
        }
}
