/*
 * relations.c - truths about attention that need no reference (see relations.h).
 *
 * To the bit, because they follow from SEMANTICS in <attest.h> for any order of summation, with or without fused products:
 * - V times a power of two, or negated: V enters linearly, and binary floating point scales and changes signs exactly.
 * - Q and K negated, or Q times and K over a power of two: every product is the same number.
 * - Other query rows changed, keys behind a causal row changed, NaN in every other KV head: what a row does not see, and what other
 *   rows are, does not reach it. And the heads with NaN do show it.
 * - A key 200 below the maximum: its weight, e^-200, is 0 in float32, and nothing beside 1 in float64.
 * - Sequences and heads in another order, a sequence alone, packed or paged: "A sequence has the same bits alone, in a batch,
 *   packed or padded, and under any page layout". On a device that holds with ATTEST_INVARIANT, and within rounding without it.
 *
 * Within rounding, because a right kernel may sum in another order: keys permuted or doubled, K shifted, V + V', grouped heads,
 * parts that are merged; V = 1, Q = 0 and convexity, which are about values. And three that hold to the bit for many good kernels,
 * but that nothing promises: V columns in another order (the last columns may take another path), a dominant key that returns its
 * row of V (exp2 of a fused difference is not always 1), a window wider than the keys (masking may take another path). These say if
 * they hold within rounding only.
 *
 * Values are multiples of 1/16 below 4, so that powers of two scale them exactly in every type and nothing is subnormal on the way.
 */
#include "relation_run.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

/* ---- values ---------------------------------------------------------------------------------------------------------- */

#define VALUES(name) static double name(const struct asking *asking, char tensor, int64_t b, int64_t h, int64_t row, int64_t d)
#define BASE         base(asking, tensor, b, h, row, d)
#define GROUP        (asking->problem.heads_q / asking->problem.heads_kv)

VALUES(base)
{
    uint64_t index = (uint64_t)(b * 64 + h) << 40 | (uint64_t)row << 20 | (uint64_t)d;
    double value = rint(16 * (double)random_normal(random_bits(asking->seed, 300 + (uint64_t)tensor, index))) / 16;
    return value == 0 ? 0.0625 : value;
}
VALUES(v_times_8)
{
    return tensor == 'v' ? 8 * BASE : BASE;
}
VALUES(v_over_4)
{
    return tensor == 'v' ? BASE / 4 : BASE;
}
VALUES(v_negated)
{
    return tensor == 'v' ? -BASE : BASE;
}
VALUES(qk_negated)
{
    return tensor == 'v' ? BASE : -BASE;
}
VALUES(q_times_4)
{
    return tensor == 'q' ? 4 * BASE : tensor == 'k' ? BASE / 4 : BASE;
}
VALUES(k_times_4)
{
    return tensor == 'k' ? 4 * BASE : tensor == 'q' ? BASE / 4 : BASE;
}
VALUES(columns_turned)
{
    return base(asking, tensor, b, h, row, tensor == 'v' ? (d + 1) % asking->problem.dim_v : d);
}
VALUES(heads_turned)
{
    return base(asking, tensor, b, tensor == 'q' ? (h + GROUP) % asking->problem.heads_q : (h + 1) % asking->problem.heads_kv, row,
                d);
}
VALUES(batch_turned)
{
    return base(asking, tensor, (b + 1) % asking->problem.batch, h, row, d);
}
VALUES(second_sequence)
{
    return base(asking, tensor, b + 1, h, row, d);
}
VALUES(other_heads_nan)
{
    return (tensor == 'q' ? h / GROUP : h) % 2 ? NAN : BASE;
}
VALUES(other_rows_changed)
{
    return tensor == 'q' && row % 3 ? 2 - 2 * BASE : BASE;
}

/* The last row that the change of later keys must not reach, and the first key that is changed. */
static int64_t prefix_row(const attest_problem *problem)
{
    return problem->seq_q / 2;
}
static int64_t prefix_key(const attest_problem *problem)
{
    int64_t shift = problem->flags & ATTEST_BOTTOM_RIGHT ? problem->seq_kv - problem->seq_q : 0;
    return prefix_row(problem) + shift + 1;
}
VALUES(later_keys_changed)
{
    return tensor != 'q' && row >= prefix_key(&asking->problem) ? 3.5 - 2 * BASE : BASE;
}

/* One key lies 200 below the others in every row, or above them. */
enum { MARKED_KEY = 3 };
static double marked(const struct asking *asking, char tensor, int64_t b, int64_t h, int64_t row, int64_t d, double score)
{
    if (tensor == 'q' && d == 0)
        return 4;
    if (tensor == 'k' && row == MARKED_KEY)
        return d == 0 ? score / 4 / (double)asking->problem.scale : 0;
    return tensor == 'v' ? BASE : BASE / 8;
}
VALUES(key_below)
{
    return marked(asking, tensor, b, h, row, d, -220);
}
VALUES(key_below_changed)
{
    return tensor == 'v' && row == MARKED_KEY ? 3 - 2 * BASE : key_below(asking, tensor, b, h, row, d);
}
VALUES(key_above)
{
    return marked(asking, tensor, b, h, row, d, 220);
}

static double shift_of(int64_t d)
{
    return (double)(d % 3) / 4;
}
VALUES(k_shifted)
{
    return tensor == 'k' ? BASE + shift_of(d) : BASE;
}
VALUES(keys_reversed)
{
    return base(asking, tensor, b, h, tensor == 'q' ? row : asking->problem.seq_kv - 1 - row, d);
}
VALUES(keys_doubled)
{
    return base(asking, tensor, b, h, tensor == 'q' ? row : row / 2, d);
}
VALUES(v_one)
{
    return tensor == 'v' ? 1 : BASE;
}
VALUES(q_zero)
{
    return tensor == 'q' ? 0 : BASE;
}
VALUES(v_other)
{
    return tensor == 'v' ? (double)((row * 5 + d * 3) % 17 - 8) / 8 : BASE;
}
VALUES(v_sum)
{
    return tensor == 'v' ? BASE + v_other(asking, tensor, b, h, row, d) : BASE;
}
VALUES(heads_repeated)
{
    return base(asking, tensor, b, tensor == 'q' ? h : h / 2, row, d);
}
static int64_t split_key(const attest_problem *problem)
{
    return problem->seq_kv / 2 + 3;
}
VALUES(second_part)
{
    return base(asking, tensor, b, h, tensor == 'q' ? row : row + split_key(&asking->problem), d);
}

/* ---- wishes ---------------------------------------------------------------------------------------------------------- */

#define WISH(name)                                                                                                                 \
    static double name(const struct asking *asking, const struct result *before, int64_t b, int64_t h, int64_t i, int64_t d,       \
                       double *lse)
#define UNUSED (void)asking

WISH(same)
{
    UNUSED;
    *lse = *result_lse(before, b, h, i);
    return result_o(before, b, h, i)[d];
}

/* A subnormal f16 was rounded where its multiple is not: such elements say nothing about bits. */
static double scaled(const struct asking *asking, double o, double factor)
{
    return asking->problem.dtype_o == ATTEST_F16 && fabs(o) < 0x1p-11 ? (double)NAN : o * factor;
}
WISH(times_8)
{
    return scaled(asking, same(asking, before, b, h, i, d, lse), 8);
}
WISH(over_4)
{
    return scaled(asking, same(asking, before, b, h, i, d, lse), 0.25);
}
WISH(negated)
{
    return -same(asking, before, b, h, i, d, lse);
}
WISH(next_column)
{
    return same(asking, before, b, h, i, (d + 1) % before->dim_v, lse);
}
WISH(next_head)
{
    return same(asking, before, b, (h + GROUP) % before->heads, i, d, lse);
}
WISH(next_sequence)
{
    return same(asking, before, (b + 1) % asking->problem.batch, h, i, d, lse);
}
WISH(alone)
{
    return same(asking, before, b + 1, h, i, d, lse);
}
WISH(where_unchanged)
{
    double o = same(asking, before, b, h, i, d, lse);
    if (i % 3 == 0)
        return o;
    *lse = NAN;
    return NAN;
}
WISH(in_the_prefix)
{
    double o = same(asking, before, b, h, i, d, lse);
    if (i <= prefix_row(&asking->problem))
        return o;
    *lse = NAN;
    return NAN;
}
WISH(in_clean_heads)
{
    double o = same(asking, before, b, h, i, d, lse);
    if (h / GROUP % 2 == 0)
        return o;
    *lse = NAN;
    return NAN;
}
/* LSE moves by scale q w. */
WISH(shifted)
{
    double o = same(asking, before, b, h, i, d, lse), dot = 0;
    for (int64_t c = 0; c < asking->problem.dim; c++)
        dot += base(asking, 'q', b, h, i, c) * shift_of(c);
    *lse += (double)asking->problem.scale * dot;
    return o;
}
WISH(one_more_log_2)
{
    double o = same(asking, before, b, h, i, d, lse);
    *lse += log(2);
    return o;
}

/* ---- relations ------------------------------------------------------------------------------------------------------ */

static int64_t o_count(const attest_problem *problem)
{
    return result_rows(problem) * problem->dim_v;
}

static bool masked(const attest_problem *problem)
{
    return (problem->flags & (ATTEST_CAUSAL | ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT)) != 0;
}

/* Visible keys of row i. */
static void visible(const attest_problem *problem, int64_t i, int64_t *begin, int64_t *end)
{
    struct layout layout = {.problem = problem};
    layout_visible(&layout, 0, i, begin, end);
}

static void ask(struct asking *asking, const attest_problem *second, value_function *before, value_function *after,
                wish_function *wish, bool to_the_bit)
{
    struct result first, changed = {0};
    if (asking_compute(asking, &asking->problem, before, &first) && asking_compute(asking, second, after, &changed))
        asking_compare(asking, &first, &changed, wish, to_the_bit);
    free(first.o);
    free(changed.o);
}

static void not_here(struct asking *asking, const char *why)
{
    asking_end(asking, VERDICT_NOT_APPLICABLE, why);
}

/* Sequences in a batch, packed or paged have the same bits: on a device if that was asked for. */
static bool make_invariant(struct asking *asking)
{
    attest_problem invariant = asking->problem;
    invariant.flags |= ATTEST_INVARIANT;
    if (!asking->device)
        return true;
    if (!taker_takes(asking->taker, &invariant))
        return false;
    asking->problem = invariant;
    return true;
}

static void batch_permuted(struct asking *asking)
{
    bool bits = make_invariant(asking);
    ask(asking, &asking->problem, base, batch_turned, next_sequence, bits);
}
static void sequence_alone(struct asking *asking)
{
    bool bits = make_invariant(asking);
    attest_problem single = asking->problem;
    if (single.batch < 2) {
        not_here(asking, "the problem has one sequence");
        return;
    }
    single.batch = 1;
    attest_problem_pack(&single);
    struct result batch, one = {0};
    if (asking_compute(asking, &asking->problem, base, &batch) && asking_compute(asking, &single, second_sequence, &one)) {
        asking->problem.batch = 1;
        asking_compare(asking, &batch, &one, alone, bits);
    }
    free(batch.o);
    free(one.o);
}
static void packed(struct asking *asking)
{
    bool bits = make_invariant(asking);
    attest_problem both = asking->problem;
    both.flags |= ATTEST_VARLEN_Q | ATTEST_VARLEN_KV;
    both.total_q = both.batch * both.seq_q;
    both.total_kv = both.batch * both.seq_kv;
    attest_problem_pack(&both);
    ask(asking, &both, base, base, same, bits);
}
static void paged(struct asking *asking)
{
    bool bits = make_invariant(asking);
    attest_problem pages = asking->problem;
    pages.flags |= ATTEST_PAGED;
    pages.page_size = 16;
    pages.page_count = pages.batch * ((pages.seq_kv + 15) / 16) + 2;
    attest_problem_pack(&pages);
    ask(asking, &pages, base, base, same, bits);
}

static void causal_prefix(struct asking *asking)
{
    const attest_problem *problem = &asking->problem;
    if (!(problem->flags & ATTEST_CAUSAL) || problem->seq_q < 2 || prefix_key(problem) >= problem->seq_kv)
        not_here(asking, "the problem has no causal rows with keys behind them");
    else
        ask(asking, problem, base, later_keys_changed, in_the_prefix, true);
}

/* Clean heads keep their bits, and the others show the NaN that they see. */
static void nan_in_other_heads(struct asking *asking)
{
    const attest_problem *problem = &asking->problem;
    if (problem->heads_kv < 2) {
        not_here(asking, "the problem has one KV head");
        return;
    }
    struct result clean, spoiled = {0};
    if (asking_compute(asking, problem, base, &clean) && asking_compute(asking, problem, other_heads_nan, &spoiled)) {
        asking_compare(asking, &clean, &spoiled, in_clean_heads, true);
        for (int64_t n = 0; n < o_count(problem) && asking->verdict->verdict == VERDICT_PASS; n++) {
            int64_t row = n / problem->dim_v, h = row / problem->seq_q % problem->heads_q, begin, end;
            visible(problem, row % problem->seq_q, &begin, &end);
            if (h / GROUP % 2 && begin < end && !isnan(spoiled.o[n])) {
                asking->verdict->verdict = VERDICT_FAIL;
                snprintf(asking->verdict->sentence, sizeof asking->verdict->sentence,
                         "O[%lld,%lld,%lld,%lld] is %.9g, and the row sees nothing but NaN",
                         (long long)(row / problem->seq_q / problem->heads_q), (long long)h, (long long)(row % problem->seq_q),
                         (long long)(n % problem->dim_v), spoiled.o[n]);
            }
        }
    }
    free(clean.o);
    free(spoiled.o);
}

static void low_key(struct asking *asking)
{
    if (masked(&asking->problem))
        not_here(asking, "not every row sees the key");
    else
        ask(asking, &asking->problem, key_below, key_below_changed, same, true);
}
static void dominant_key(struct asking *asking)
{
    const attest_problem *problem = &asking->problem;
    struct result result;
    bool good = !masked(problem);
    if (!good)
        not_here(asking, "not every row sees the key");
    else if (asking_compute(asking, problem, key_above, &result)) {
        for (int64_t row = 0; row < result_rows(problem) && good; row++) {
            int64_t b = row / problem->seq_q / problem->heads_q, h = row / problem->seq_q % problem->heads_q,
                    i = row % problem->seq_q;
            for (int64_t d = 0; d < problem->dim_v && good; d++)
                good = asking_agree(asking, b, h, i, d, result_o(&result, b, h, i)[d],
                                    base(asking, 'v', b, h / GROUP, MARKED_KEY, d), result.slack_o);
        }
        free(result.o);
    }
}
static void wide_window(struct asking *asking)
{
    attest_problem windowed = asking->problem;
    windowed.flags |= ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT;
    windowed.window_left = windowed.window_right = windowed.seq_q + windowed.seq_kv;
    ask(asking, &windowed, base, base, same, false);
}

static void additive(struct asking *asking)
{
    struct result first, other = {0}, sum = {0};
    if (asking_compute(asking, &asking->problem, base, &first) && asking_compute(asking, &asking->problem, v_other, &other) &&
        asking_compute(asking, &asking->problem, v_sum, &sum)) {
        for (int64_t n = 0; n < o_count(&asking->problem); n++)
            first.o[n] += other.o[n];
        first.slack_o += other.slack_o + sum.slack_o;
        asking_compare(asking, &first, &sum, same, false);
    }
    free(first.o);
    free(other.o);
    free(sum.o);
}
static void permuted_keys(struct asking *asking)
{
    if (masked(&asking->problem))
        not_here(asking, "the order of the keys matters");
    else
        ask(asking, &asking->problem, base, keys_reversed, same, false);
}
static void doubled_keys(struct asking *asking)
{
    attest_problem twice = asking->problem;
    twice.seq_kv *= 2;
    attest_problem_pack(&twice);
    if (masked(&asking->problem))
        not_here(asking, "the order of the keys matters");
    else
        ask(asking, &twice, base, keys_doubled, one_more_log_2, false);
}
static void grouped_heads(struct asking *asking)
{
    asking->problem.heads_q = 4;
    asking->problem.heads_kv = 2;
    attest_problem_pack(&asking->problem);
    attest_problem repeated = asking->problem;
    repeated.heads_kv = 4;
    attest_problem_pack(&repeated);
    ask(asking, &repeated, base, heads_repeated, same, false);
}

static double lowest(uint32_t dtype)
{
    return dtype == ATTEST_F32 ? -(double)FLT_MAX : dtype == ATTEST_F16 ? -65504 : -0x1.fep127;
}

/* Three relations about the values of a row: V = 1 gives 1, Q = 0 gives the mean, and O lies between the smallest and the largest
 * V. */
enum about { ABOUT_ONES, ABOUT_MEAN, ABOUT_RANGE };
static void about_values_of(struct asking *asking, const attest_problem *problem, enum about about, value_function *values)
{
    struct result result;
    bool good = true;
    if (!asking_compute(asking, problem, values, &result))
        return;
    for (int64_t row = 0; row < result_rows(problem) && good; row++) {
        int64_t b = row / problem->seq_q / problem->heads_q, h = row / problem->seq_q % problem->heads_q, i = row % problem->seq_q;
        int64_t begin, end;
        visible(problem, i, &begin, &end);
        for (int64_t d = 0; d < problem->dim_v && good; d++) {
            double got = result_o(&result, b, h, i)[d], sum = 0, low = INFINITY, high = -INFINITY;
            for (int64_t j = begin; j < end; j++) {
                double v = values(asking, 'v', b, h / GROUP, j, d);
                sum += v;
                low = fmin(low, v);
                high = fmax(high, v);
            }
            double wanted = begin == end ? 0 : about == ABOUT_RANGE ? fmin(fmax(got, low), high) : sum / (double)(end - begin);
            good = asking_agree(asking, b, h, i, d, got, isnan(got) ? 0 : wanted, result.slack_o);
        }
    }
    free(result.o);
}
static void ones(struct asking *asking)
{
    about_values_of(asking, &asking->problem, ABOUT_ONES, v_one);
}
static void mean(struct asking *asking)
{
    about_values_of(asking, &asking->problem, ABOUT_MEAN, q_zero);
}
static void convex(struct asking *asking)
{
    about_values_of(asking, &asking->problem, ABOUT_RANGE, base);
}

/* Only -inf hides. A row whose keys all have the same bias, however low, sees all of them, as a row does that a mask by numbers hides
 * wholly. With Q = 0 the scores are the bias exactly: the lowest number of its type, and others that masks are made of. */
static double q_zero_bias(const struct asking *asking, char tensor, int64_t b, int64_t h, int64_t row, int64_t d)
{
    const double low[] = {lowest(asking->problem.dtype_bias), -1e9, lowest(asking->problem.dtype_bias) / 2, -3e4};
    return tensor == 'b' ? fmax(low[(row + h) % COUNT_OF(low)], low[0]) : q_zero(asking, tensor, b, h, row, d);
}
static void low_bias(struct asking *asking)
{
    for (int kind = 0; kind < 2 && asking->verdict->verdict == VERDICT_PASS; kind++) {
        const attest_problem without = asking->problem;
        asking->problem.flags |= ATTEST_BIAS;
        asking->problem.dtype_bias = kind ? (uint32_t)ATTEST_F32 : without.dtype;
        attest_problem_pack(&asking->problem);
        if (kind == 0 || without.dtype != ATTEST_F32)
            about_values_of(asking, &asking->problem, ABOUT_MEAN, q_zero_bias);
        asking->problem = without;
    }
}

/* The parts as float32, merged by the library. */
static bool merge(struct asking *asking, struct result *first, const struct result *second)
{
    int64_t count = o_count(&asking->problem), rows = count / first->dim_v;
    float *o = malloc((size_t)(2 * (count + rows) + 1) * sizeof *o), *lse = o + 2 * count;
    attest_context *context = NULL;
    bool done = false;
    for (int64_t n = 0; o && n < count; n++) {
        o[n] = (float)first->o[n];
        o[count + n] = (float)second->o[n];
    }
    for (int64_t n = 0; o && n < rows; n++) {
        lse[n] = (float)first->lse[n];
        lse[rows + n] = (float)second->lse[n];
    }
    if (o && attest_context_create_on("cpu", &context) == ATTEST_OK) {
        const void *o_parts[] = {o, o + count};
        const float *lse_parts[] = {lse, lse + rows};
        attest_merge_args args = {.size = sizeof args,
                                  .parts = 2,
                                  .rows = rows,
                                  .dim_v = first->dim_v,
                                  .dtype_parts = ATTEST_F32,
                                  .dtype_o = ATTEST_F32,
                                  .o_parts = o_parts,
                                  .lse_parts = lse_parts,
                                  .stride_o_parts = first->dim_v,
                                  .o = o,
                                  .lse = lse,
                                  .stride_o = first->dim_v};
        done = attest_merge(context, &args) == ATTEST_OK;
    }
    for (int64_t n = 0; done && n < count; n++)
        first->o[n] = (double)o[n];
    for (int64_t n = 0; done && n < rows; n++)
        first->lse[n] = (double)lse[n];
    attest_context_destroy(context);
    free(o);
    return done || asking_end(asking, VERDICT_INCONCLUSIVE, "the parts could not be merged");
}
static void split_and_merge(struct asking *asking)
{
    attest_problem first = asking->problem, second = asking->problem;
    if (!(first.flags & ATTEST_LSE) || masked(&first) || split_key(&first) >= first.seq_kv) {
        not_here(asking, "parts are merged by their LSE, and with masks their rows would have other places");
        return;
    }
    first.seq_kv = split_key(&first);
    second.seq_kv -= first.seq_kv;
    attest_problem_pack(&first);
    attest_problem_pack(&second);
    struct result whole, one = {0}, two = {0};
    if (asking_compute(asking, &asking->problem, base, &whole) && asking_compute(asking, &first, base, &one) &&
        asking_compute(asking, &second, second_part, &two) && merge(asking, &one, &two))
        asking_compare(asking, &whole, &one, same, false);
    free(whole.o);
    free(one.o);
    free(two.o);
}

/* A relation is a change of values with a wish, or a function of its own. */
static const struct relation {
    const char *name;
    value_function *after;
    wish_function *wish;
    bool to_the_bit;
    void (*own)(struct asking *asking);
} relations[] = {
    {"V times 8", v_times_8, times_8, true, NULL},
    {"V over 4", v_over_4, over_4, true, NULL},
    {"V negated", v_negated, negated, true, NULL},
    {"Q and K negated", qk_negated, same, true, NULL},
    {"Q times 4, K over 4", q_times_4, same, true, NULL},
    {"K times 4, Q over 4", k_times_4, same, true, NULL},
    {"heads permuted", heads_turned, next_head, true, NULL},
    {"batch permuted", NULL, NULL, true, batch_permuted},
    {"a sequence alone", NULL, NULL, true, sequence_alone},
    {"NaN in every other head", NULL, NULL, true, nan_in_other_heads},
    {"other query rows changed", other_rows_changed, where_unchanged, true, NULL},
    {"causal prefix", NULL, NULL, true, causal_prefix},
    {"a key 200 below the maximum", NULL, NULL, true, low_key},
    {"packed as dense", NULL, NULL, true, packed},
    {"paged as dense", NULL, NULL, true, paged},
    {"V columns permuted", columns_turned, next_column, false, NULL},
    {"a dominant key returns its row of V", NULL, NULL, false, dominant_key},
    {"a window wider than the keys", NULL, NULL, false, wide_window},
    {"V + V'", NULL, NULL, false, additive},
    {"K shifted by a vector", k_shifted, shifted, false, NULL},
    {"keys permuted", NULL, NULL, false, permuted_keys},
    {"keys doubled", NULL, NULL, false, doubled_keys},
    {"V = 1 gives 1", NULL, NULL, false, ones},
    {"Q = 0 gives the mean", NULL, NULL, false, mean},
    {"O is within the range of V", NULL, NULL, false, convex},
    {"a bias that is low and the same for all keys", NULL, NULL, false, low_bias},
    {"split and merged", NULL, NULL, false, split_and_merge},
    {"grouped heads as repeated ones", NULL, NULL, false, grouped_heads},
};
const int relation_count = COUNT_OF(relations);

int relation_find(const char *name)
{
    int relation = 0;
    while (strcmp(relations[relation].name, name) != 0)
        relation++;
    return relation;
}

const char *relation_name(int relation)
{
    return relations[relation].name;
}

void relation_check(int relation, struct subject subject, struct taker taker, const attest_problem *problem, bool device,
                    uint64_t seed, struct relation_verdict *verdict)
{
    const struct relation *asked = &relations[relation];
    struct asking asking = {subject, taker, *problem, device, seed, verdict};
    *verdict = (struct relation_verdict){.verdict = VERDICT_PASS, .end = EXECUTION_DONE};
    if (asked->own)
        asked->own(&asking);
    else
        ask(&asking, &asking.problem, base, asked->after, asked->wish, asked->to_the_bit);
}
