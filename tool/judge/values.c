/*
 * values.c - inputs that break kernels (see values.h).
 *
 * Every set keeps something in it that a wrong answer shows in: a set in which zeros, or the mean of V, would pass too proves
 * nothing. So rows alternate between the extreme and the ordinary, and where all V are too small to count, some columns are not.
 */
#include "values.h"

#include <float.h>
#include <math.h>

#include "base/random.h"

/* ---- the types ----------------------------------------------------------------------------------------------------- */

static double smallest(uint32_t dtype)
{
    return dtype == ATTEST_F32 ? 0x1p-149 : dtype == ATTEST_F16 ? 0x1p-24 : 0x1p-133;
}
static double largest(uint32_t dtype)
{
    return dtype == ATTEST_F32 ? (double)FLT_MAX : dtype == ATTEST_F16 ? 65504 : 0x1.fep127;
}

static double integer(uint64_t bits, int64_t reach)
{
    return (double)(random_below(bits, 2 * reach) - reach);
}

/* The queries of a head differ, and so do the heads where there is one query. */
static int64_t turn(const struct value_place *place, int64_t period)
{
    return (place->row + place->h) % period;
}

/* Sets of one score a key: q is (x, 0, 0 ...), k is (y, 1, 1 ...), and the scale is 1, so that the score is x y exactly. */
static void unit_scale(attest_problem *problem)
{
    problem->scale = 1;
}
static double scored(const struct value_place *place, double x, double y)
{
    if (place->tensor == 'q')
        return place->column == 0 ? x : 0;
    if (place->tensor == 'k')
        return place->column == 0 ? y : 1;
    return NAN;
}

/* ---- logits -------------------------------------------------------------------------------------------------------- */

/* Rows of Q are drawn with lengths up to 4 sqrt(d), keys with sqrt(d). Scores then go to some 1e4; where products are not exact, a
 * naive implementation errs too, and says how much is to be expected. */
static void steep_scale(attest_problem *problem)
{
    problem->scale = 2500 / sqrtf((float)problem->dim);
}

/* Scores that rise or fall from key to key: the maximum moves in every tile, or never. */
static double monotone(const struct inputs *inputs, const struct value_place *place)
{
    static const double slopes[] = {0.5, -0.5, 0.03125, -0.03125, 8, -8};
    int64_t keys = inputs->problem.seq_kv;
    int64_t key = keys <= 256 ? place->row : place->row * 255 / (keys - 1);
    return scored(place, slopes[turn(place, COUNT_OF(slopes))], (double)key);
}

static double equal(const struct inputs *inputs, const struct value_place *place)
{
    (void)inputs;
    if (place->tensor == 'k')
        return (double)(place->column % 5) - 2;
    return place->tensor == 'q' ? (double)((place->row + place->column) % 7 - 3) * (turn(place, 3) ? 1 : 32) : NAN;
}

/* The last key, behind the last full tile of any size, outweighs all others by far, or by little; for every other row it is the first key,
 * by the second column. A sum that begins with its largest term errs more than one that ends with it: in each block of rows the naive
 * implementation meets both orders, as kernels that take the keys from the first or from the last do. The other weights differ from each
 * other: equal ones, added to a larger sum, are all rounded the same way. */
static double last_maximum(const struct inputs *inputs, const struct value_place *place)
{
    int64_t turns = turn(place, 4), last = layout_keys(&inputs->layout, place->b) - 1;
    if (place->tensor == 'q')
        return place->column == turns / 2 ? (turns % 2 ? 1 : 0.125) : 0;
    if (place->tensor == 'k' && place->column < 2)
        return place->row == (place->column == 0 ? last : 0) ? 60 : integer(place->bits, 127) / 64;
    return place->tensor == 'k' ? 1 : NAN;
}

/* One key outweighs each of the others, but not all of them together: who drops small weights drops half of the row. The last keys
 * have the largest V, so that the row shows who drops those. */
static double many_small(const struct inputs *inputs, const struct value_place *place)
{
    if (place->tensor == 'v')
        return (place->row * 10 >= 9 * inputs->problem.seq_kv ? 4 : 1) + (double)random_below(place->bits, 8) / 8;
    bool top = place->tensor == 'k' && place->row == layout_keys(&inputs->layout, place->b) / 2;
    return scored(place, 4 + 2 * (double)turn(place, 4), top ? 1 : 0);
}

/* ---- biases, masks, sinks ------------------------------------------------------------------------------------------- */

static double one_finite(const struct inputs *inputs, const struct value_place *place)
{
    int64_t keys = layout_keys(&inputs->layout, place->b);
    if (place->tensor != 'b')
        return NAN;
    bool seen = place->row % 8 != 3 && place->column == (place->row * 7 + place->h * 5 + keys - 1) % keys;
    return seen ? 0.5 : (double)-INFINITY;
}

static double large_bias(const struct inputs *inputs, const struct value_place *place)
{
    (void)inputs;
    return place->tensor == 'b' ? 16 * integer(place->bits, 640) : NAN;
}

static void narrow_window(attest_problem *problem)
{
    problem->window_left = 2;
}

/* Rows begin to see keys one after another, and the scores of those that have begun rise. */
static void wide_window(attest_problem *problem)
{
    unit_scale(problem);
    problem->window_left = 40;
}

static double any_sink(const struct inputs *inputs, const struct value_place *place)
{
    static const double sinks[] = {-1e4, 1e4, (double)-INFINITY, 0};
    (void)inputs;
    return place->tensor == 's' ? sinks[place->h % 4] : NAN;
}

/* ---- magnitudes ----------------------------------------------------------------------------------------------------- */

static double denormal(const struct inputs *inputs, const struct value_place *place)
{
    double tiny = smallest(inputs->problem.dtype) * (double)(1 + random_below(place->bits, 59));
    bool chosen = place->tensor == 'q'   ? turn(place, 2) == 0
                  : place->tensor == 'k' ? place->row % 4 == 1
                                         : place->tensor == 'v' && place->column % 3 == 0;
    return chosen ? tiny : NAN;
}

/* attest.h: |v| times the number of keys must be finite in float32. There is room for weights up to e^8 besides: kernels may leave a
 * maximum alone until it has grown by so much. */
static double largest_values(const struct inputs *inputs, const struct value_place *place)
{
    const attest_problem *problem = &inputs->problem;
    double room = problem->dtype == ATTEST_F16 ? 1 : 4096 * fmax((double)problem->seq_kv, 1);
    double share = 0.5 + (double)(place->bits >> 32 & 0xff) / 512;
    return place->tensor == 'v' ? (place->bits & 1 ? 1 : -1) * share * largest(problem->dtype) / room : NAN;
}

static double all_magnitudes(const struct inputs *inputs, const struct value_place *place)
{
    int64_t octaves = inputs->problem.dtype == ATTEST_F16 ? 10 : 40;
    double value = (double)random_normal(place->bits);
    if (place->tensor == 'q')
        return ldexp(value, -(int)(turn(place, 8)));
    return place->tensor == 'v' ? ldexp(value, -(int)(place->column % octaves)) : NAN;
}

/* Q and K far from 1, and a scale that undoes it. */
static int scale_shift(uint32_t dtype)
{
    return dtype == ATTEST_F16 ? 6 : 30;
}
static void huge_scale(attest_problem *problem)
{
    problem->scale = ldexpf(problem->scale, 2 * scale_shift(problem->dtype));
}
static double for_huge_scale(const struct inputs *inputs, const struct value_place *place)
{
    return place->tensor == 'q' || place->tensor == 'k'
               ? ldexp((double)random_normal(place->bits), -scale_shift(inputs->problem.dtype))
               : NAN;
}
static void tiny_scale(attest_problem *problem)
{
    problem->scale = ldexpf(problem->scale, -2 * scale_shift(problem->dtype));
}
static double for_tiny_scale(const struct inputs *inputs, const struct value_place *place)
{
    return place->tensor == 'q' || place->tensor == 'k'
               ? ldexp((double)random_normal(place->bits), scale_shift(inputs->problem.dtype))
               : NAN;
}

/* ---- what must not matter: inputs_make fills it with NaN ------------------------------------------------------------ */

static void three_sequences(attest_problem *problem)
{
    problem->batch = 3;
    attest_problem_pack(problem);
}

/* Rows that are further apart than they are long, by numbers that no vector length divides. */
static void gaps(attest_problem *problem)
{
    struct {
        int64_t *stride, heads, rows, columns;
    } tensors[] = {{problem->stride_q, problem->heads_q, problem->seq_q, problem->dim},
                   {problem->stride_k, problem->heads_kv, problem->seq_kv, problem->dim},
                   {problem->stride_v, problem->heads_kv, problem->seq_kv, problem->dim_v},
                   {problem->stride_o, problem->heads_q, problem->seq_q, problem->dim_v}};
    for (int n = 0; n < COUNT_OF(tensors); n++) {
        tensors[n].stride[2] = tensors[n].columns + 3 + n;
        tensors[n].stride[1] = tensors[n].rows * tensors[n].stride[2] + 5;
        tensors[n].stride[0] = tensors[n].heads * tensors[n].stride[1] + 7;
    }
}

const struct value_set value_sets[] = {
    {"logits to +-1e4", 0, steep_scale, NULL},
    {"rising and falling rows", 0, unit_scale, monotone},
    {"all-equal rows", 0, NULL, equal},
    {"the maximum in the ragged tail", 0, unit_scale, last_maximum},
    {"many small weights", 0, unit_scale, many_small},
    {"one finite key among -inf", ATTEST_BIAS, NULL, one_finite},
    {"biases to +-1e4", ATTEST_BIAS, NULL, large_bias},
    {"fully masked leading blocks", ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT | ATTEST_WINDOW_LEFT, narrow_window, NULL},
    {"rising and falling rows in a window", ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT | ATTEST_WINDOW_LEFT, wide_window, monotone},
    {"sinks of any size", ATTEST_SINK, NULL, any_sink},
    {"denormals", 0, NULL, denormal},
    {"V near the largest finite", 0, NULL, largest_values},
    {"values of all magnitudes", 0, NULL, all_magnitudes},
    {"a huge scale", 0, huge_scale, for_huge_scale},
    {"a tiny scale", 0, tiny_scale, for_tiny_scale},
    {"NaN beyond the lengths", ATTEST_KV_LENGTHS, three_sequences, NULL},
    {"NaN in the gaps", 0, gaps, NULL},
};
const int value_set_count = COUNT_OF(value_sets);

attest_problem values_problem(const struct value_set *set, const attest_problem *base)
{
    attest_problem problem = *base;
    problem.flags |= set->flags;
    if (set->flags & ATTEST_BIAS)
        problem.dtype_bias = problem.dtype;
    attest_problem_pack(&problem);
    if (set->change)
        set->change(&problem);
    return problem;
}

static void put(const struct value_set *set, struct inputs *inputs, uint64_t seed, struct value_place place, void *base,
                uint32_t dtype, int64_t at)
{
    if (isnan(element_load(base, dtype, at)))
        return;
    uint64_t index = (uint64_t)(place.b * 64 + place.h) << 40 | (uint64_t)place.row << 20 | (uint64_t)place.column;
    place.bits = random_bits(seed, 200 + (uint64_t)place.tensor, index);
    double value = set->value(inputs, &place);
    if (!isnan(value))
        element_store(base, dtype, at, (float)value);
}

void values_apply(const struct value_set *set, struct inputs *inputs, uint64_t seed)
{
    const attest_problem *problem = &inputs->problem;
    const struct layout *layout = &inputs->layout;
    for (int64_t b = 0; b < problem->batch && set->value; b++) {
        int64_t keys = layout_keys(layout, b);
        for (int64_t h = 0; h < problem->heads_q; h++) {
            for (int64_t i = 0; i < layout_rows(layout, b); i++) {
                int64_t at = layout_row_at(layout, problem->stride_q, b, h, i);
                for (int64_t d = 0; d < problem->dim; d++)
                    put(set, inputs, seed, (struct value_place){'q', b, h, i, d, 0}, inputs->q.at, problem->dtype, at + d);
                at = b * problem->stride_bias[0] + h * problem->stride_bias[1] + i * problem->stride_bias[2];
                for (int64_t j = 0; inputs->bias.at && j < keys; j++)
                    put(set, inputs, seed, (struct value_place){'b', b, h, i, j, 0}, inputs->bias.at, problem->dtype_bias,
                        at + j * problem->stride_bias[3]);
            }
            if (inputs->sinks)
                put(set, inputs, seed, (struct value_place){'s', b, h, 0, 0, 0}, inputs->sinks, ATTEST_F32, h);
        }
        for (int64_t h = 0; h < problem->heads_kv; h++)
            for (int64_t j = 0; j < keys; j++) {
                int64_t at = layout_key_at(layout, problem->stride_k, b, h, j);
                for (int64_t d = 0; d < problem->dim; d++)
                    put(set, inputs, seed, (struct value_place){'k', b, h, j, d, 0}, inputs->k.at, problem->dtype, at + d);
                at = layout_key_at(layout, problem->stride_v, b, h, j);
                for (int64_t d = 0; d < problem->dim_v; d++)
                    put(set, inputs, seed, (struct value_place){'v', b, h, j, d, 0}, inputs->v.at, problem->dtype, at + d);
            }
    }
}
