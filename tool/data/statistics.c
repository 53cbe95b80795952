/*
 * statistics.c - when is faster faster: from the times of two kernels to FASTER, SLOWER, SAME or INCONCLUSIVE.
 *
 * A is the candidate, B its opponent. Everything is done on logarithms of times, where a gain is a shift and a disturbance that
 * slows both kernels down by the same factor cancels.
 *
 * The block. Eight samples, ABBA ABBA or BAAB BAAB by coin. Its statistic is median log t_B - median log t_A, each median over
 * four.
 * - A drift that is linear over the block cancels: both kernels have the same mean place in it, and so do the middle two of each.
 * - One spike among four samples of a kernel does not move their median; only two of four do.
 * - The coin makes "the first of a pair is slower" an error that changes its sign, instead of a gain.
 *
 * The shape. Its estimate is the mean of the block statistics without the lowest and the highest fifth of them. A and B suffer the
 * same disturbances, so that block statistics lie symmetrically about the truth, and a trimmed mean estimates what the mean does
 * with less harm from a block that was hit twice. A fifth, not a tenth, because of the bootstrap: a resample holds a bad block more
 * than twice in 8 of 100 cases, but more than four times in 4 of 1000, which is less than the tail that an interval of 95 % is
 * read from.
 *
 * The interval. BCa bootstrap over blocks (Efron 1987): resamples of the blocks, from a seed; bias correction from the share of
 * resamples below the estimate; acceleration from the jackknife; linear interpolation between order statistics. It is the same
 * arithmetic as scipy.stats.bootstrap(method='BCa'), with which the tests compare it. They also measure that at 20 blocks it
 * covers the truth in about 94 % of cases.
 *
 * The least effect, e. A gain must exceed what the opponent shows against itself (A/A), measured in the same sitting:
 *     e = max(least effect of the policy, 3 MAD of A/A, |A/A| in the worst process)
 * "MAD of A/A" is that of the result of A/A, not of its blocks: the MAD of the block statistics divided by the square root of their
 * number. The comparison is made between results, too. The MAD of single blocks would make the rule blind: with samples that
 * scatter by 0.4 % a block statistic scatters by 0.31 %, three times that is 0.93 %, and a true gain of 1 % would be found in
 * fewer than half of the sittings, as the tests show. The third term is for what repetition cannot average away: if two workers
 * that run the very same binary differ, in any one pair of processes (by the luck of addresses, say), then a difference of that
 * size between two kernels means nothing.
 *
 * The verdict of a shape, from the interval [low, high] of log(t_B / t_A):
 *     FASTER         low > log(1 + e), and the estimate of every single process is above it as well
 *     SLOWER         high < -log(1 + e), likewise
 *     SAME           both within the least effect of the policy: noise may hide a difference, and does not make kernels the same
 *     INCONCLUSIVE   otherwise; more blocks or a quieter machine can settle it
 * Where the clocks during A and B are known, FASTER and SLOWER must hold in cycles (time x clock) too. Hedges' g and the paired
 * g_z, with their signs, are reported and decide nothing: they measure how visible a difference is, not how large.
 *
 * The floor. A time below what the compulsory bytes and flops take is no speed but a sign that the work was not done. One such
 * sample is enough, because disturbances only ever make times longer.
 *
 * The suite. The weighted geometric mean of the ratios must be FASTER by the same rule, blocks being resampled within their shapes,
 * with the weighted mean of the shapes' e, and processes and cycles must agree there, too. And on no shape may the loss exceed 2 %:
 * that is a claim the candidate has to prove, so the *lower* bound of each shape must be above -2 %. The estimate would let half of
 * the kernels pass that lose exactly 2 %, and the upper bound would let a kernel pass because it was measured badly. A shape whose
 * upper bound is below -2 % is a loss, and the suite is SLOWER by it; one whose interval contains -2 % leaves the suite
 * INCONCLUSIVE.
 *
 * What this achieves on the noise model of the simulated clock (0.4 % log-normal samples, 1 % drift, 8 % spikes in 1 of 100
 * samples) is measured by tests/statistics.t: identical kernels FASTER in less than 1 % of comparisons, a gain of 1 % in more than
 * 95 %.
 */
#include "statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SELF_MADS 3

/* ------------------------------------------------------------------------------------------------------------ blocks -- */

bool block_is_a(const struct block *block, int call)
{
    return block->a_first == (call % 4 == 0 || call % 4 == 3);
}

/* Logarithms of the times of A, or of B; returns how many. */
static int block_logs(const struct block *block, bool of_a, double *logs)
{
    int count = 0;
    for (int i = 0; i < BLOCK_CALLS; i++)
        if (block_is_a(block, i) == of_a)
            logs[count++] = log(block->seconds[i]);
    return count;
}

double block_statistic(const struct block *block)
{
    double a[BLOCK_CALLS], b[BLOCK_CALLS];
    int count_a = block_logs(block, true, a), count_b = block_logs(block, false, b);
    return median_of(b, count_b) - median_of(a, count_a);
}

/* What is computed from the blocks of one comparison on one shape. */
struct comparison {
    const struct block *blocks;
    int count;
    double weight;
    double *statistics; /* one a block */
    double *own;        /* room for those of one process */
    double *a, *b;      /* logarithms of all times */
    int calls;          /* of each */
};

static bool comparison_make(struct comparison *comparison, const struct block *blocks, int count, double weight)
{
    size_t room = (size_t)count * sizeof(double);
    *comparison = (struct comparison){.blocks = blocks,
                                      .count = count,
                                      .weight = weight,
                                      .statistics = malloc(room),
                                      .own = malloc(room),
                                      .a = malloc(room * BLOCK_CALLS / 2),
                                      .b = malloc(room * BLOCK_CALLS / 2)};
    if (!comparison->statistics || !comparison->own || !comparison->a || !comparison->b)
        return false;
    for (int i = 0; i < count; i++) {
        comparison->statistics[i] = block_statistic(&blocks[i]);
        block_logs(&blocks[i], false, comparison->b + comparison->calls);
        comparison->calls += block_logs(&blocks[i], true, comparison->a + comparison->calls);
    }
    return true;
}

static void comparison_free(struct comparison *comparison)
{
    free(comparison->statistics);
    free(comparison->own);
    free(comparison->a);
    free(comparison->b);
}

/* The smallest and the largest of the estimates that each process gives on its own, over all shapes. */
struct range {
    double least, most;
};

static struct range range_of_processes(struct comparison *shapes, int count)
{
    struct range range = {INFINITY, -INFINITY};
    bool more = true;
    for (int process = 0; more; process++) {
        double sum = 0, weights = 0;
        more = false;
        for (int s = 0; s < count; s++) {
            struct comparison *shape = &shapes[s];
            int n = 0;
            for (int i = 0; i < shape->count; i++) {
                more = more || shape->blocks[i].process > process;
                if (shape->blocks[i].process == process)
                    shape->own[n++] = shape->statistics[i];
            }
            if (n == 0)
                continue;
            sum += shape->weight * trimmed_mean(shape->own, n);
            weights += shape->weight;
        }
        if (weights > 0) {
            range.least = fmin(range.least, sum / weights);
            range.most = fmax(range.most, sum / weights);
        }
    }
    return range;
}

/* ------------------------------------------------------------------------------------------------- words and numbers -- */

const char *speed_name(enum speed speed)
{
    static const char *const names[] = {"FASTER", "SLOWER", "SAME", "INCONCLUSIVE"};
    return names[speed];
}

/* A ratio with as many digits as it deserves, being uncertain by `width`. */
static void number_text(double ratio, double width, char *text, size_t size)
{
    int least = ratio >= 100 ? 0 : ratio >= 10 ? 1 : 2, digits = width > 0 ? (int)ceil(-log10(width)) : 4;
    snprintf(text, size, "%.*f", digits < least ? least : digits > 4 ? 4 : digits, ratio);
}

static void ratio_text(struct interval interval, char *text, size_t size)
{
    char number[32];
    bool slower = interval.estimate < 0;
    double width = fabs(exp(slower ? -interval.low : interval.high) - exp(slower ? -interval.high : interval.low));
    number_text(exp(fabs(interval.estimate)), width, number, sizeof number);
    snprintf(text, size, "%s x %s", number, slower ? "slower" : "as fast");
}

/* ---------------------------------------------------------------------------------------------------------- verdicts -- */

/* What a verdict rests on, for a shape and for a suite alike. */
struct finding_of_speed {
    struct interval log_ratio;
    double effect, least_effect; /* here, and by the policy */
    struct range processes;
    double clock_shift; /* log(clock of B / clock of A); 0 if unknown */
    double confidence;
    const char *opponent;
    const char *where; /* ends the parenthesis of the sentence, such as ", 4 shapes" */
};

static enum speed classify(struct interval interval, double effect, double least)
{
    if (interval.low > effect)
        return SPEED_FASTER;
    if (interval.high < -effect)
        return SPEED_SLOWER;
    return interval.low > -least && interval.high < least ? SPEED_SAME : SPEED_INCONCLUSIVE;
}

/* The verdict and its sentence. FASTER and SLOWER are withdrawn where a process on its own, or the count of cycles, does not agree.
 */
static enum speed decide(const struct finding_of_speed *found, char *text, size_t size)
{
    struct interval interval = found->log_ratio;
    enum speed speed = classify(interval, found->effect, found->least_effect);
    char ratio[48], low[32], high[32];
    bool slower = speed == SPEED_SLOWER; /* an interval of "x slower" is turned round */
    double least = exp(slower ? -interval.high : interval.low), most = exp(slower ? -interval.low : interval.high);
    ratio_text(interval, ratio, sizeof ratio);
    number_text(least, most - least, low, sizeof low);
    number_text(most, most - least, high, sizeof high);
    if (speed == SPEED_INCONCLUSIVE) {
        snprintf(text, size,
                 "cannot be told from %s (%.4g %% interval of the ratio %s to %s%s; %.3g %% counts here): quieten the machine or "
                 "measure "
                 "more blocks",
                 found->opponent, 100 * found->confidence, low, high, found->where, 100 * expm1(found->effect));
        return speed;
    }
    if (speed == SPEED_SAME) {
        snprintf(text, size, "as fast as %s, within %.3g %% (%.4g %% interval of the ratio %s to %s%s)", found->opponent,
                 100 * expm1(found->least_effect), 100 * found->confidence, low, high, found->where);
        return speed;
    }
    snprintf(text, size, "%s %s %s (%.4g %% interval %s to %s%s)", ratio, slower ? "than" : "as", found->opponent,
             100 * found->confidence, low, high, found->where);
    if ((slower ? -found->processes.most : found->processes.least) <= found->effect) {
        snprintf(text, size,
                 "%s %s %s in all, but not in every process: the ratios of single processes lie from %.4g to %.4g; measure in more "
                 "processes",
                 ratio, slower ? "than" : "as", found->opponent, exp(found->processes.least), exp(found->processes.most));
        return SPEED_INCONCLUSIVE;
    }
    interval.low += found->clock_shift;
    interval.high += found->clock_shift;
    if (classify(interval, found->effect, found->least_effect) != speed) {
        snprintf(text, size,
                 "%s %s %s in time, but the clock of the opponent was %.4g times as high, and in cycles the ratio is %.4g; fix the "
                 "clock and measure again",
                 ratio, slower ? "than" : "as", found->opponent, exp(found->clock_shift),
                 exp(interval.estimate + found->clock_shift));
        return SPEED_INCONCLUSIVE;
    }
    return speed;
}

static double clock_shift(const struct shape_samples *samples)
{
    return samples->clock_a > 0 && samples->clock_b > 0 ? log(samples->clock_b / samples->clock_a) : 0;
}

/* Says what is wrong with the samples; false if something is. */
static bool check_blocks(const struct block *blocks, int count, const char *what, char *text, size_t size)
{
    if (count < LEAST_BLOCKS) {
        snprintf(text, size, "%d blocks of %s are too few to conclude anything; at least %d are needed", count, what, LEAST_BLOCKS);
        return false;
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < BLOCK_CALLS; k++)
            if (!isfinite(blocks[i].seconds[k]) || blocks[i].seconds[k] <= 0) {
                snprintf(text, size, "sample %d of block %d of %s is %g seconds, which is no time; the clock is broken", k, i, what,
                         blocks[i].seconds[k]);
                return false;
            }
    return true;
}

static double least_of(const double *x, int count)
{
    double least = INFINITY;
    for (int i = 0; i < count; i++)
        least = fmin(least, x[i]);
    return least;
}

/* The numbers of a shape. */
static void measure_shape(const struct shape_samples *samples, const struct speed_rules *rules, struct comparison *pair,
                          struct comparison *self, struct shape_verdict *verdict)
{
    struct stratum stratum = {pair->statistics, pair->count, 1};
    struct range luck = range_of_processes(self, 1);
    verdict->log_ratio = bca_interval(&stratum, 1, rules->confidence, rules->resamples, rules->seed);
    verdict->self_mad = mad_of(self->statistics, self->count);
    verdict->effect =
        fmax(log1p(rules->least_effect), fmax(SELF_MADS * verdict->self_mad / sqrt(self->count), fmax(luck.most, -luck.least)));
    verdict->g = hedges_g(pair->b, pair->calls, pair->a, pair->calls);
    verdict->gz = paired_gz(pair->statistics, pair->count);
    verdict->median_a = exp(median_of(pair->a, pair->calls));
    verdict->median_b = exp(median_of(pair->b, pair->calls));
    verdict->below_floor = exp(least_of(pair->a, pair->calls)) < samples->floor;
}

void judge_shape(const struct shape_samples *samples, const struct speed_rules *rules, struct shape_verdict *verdict)
{
    struct comparison pair = {0}, self = {0};
    char *text = verdict->sentence;
    size_t size = sizeof verdict->sentence;
    *verdict = (struct shape_verdict){.speed = SPEED_INCONCLUSIVE,
                                      .log_ratio = {NAN, NAN, NAN},
                                      .effect = NAN,
                                      .self_mad = NAN,
                                      .g = NAN,
                                      .gz = NAN,
                                      .median_a = NAN,
                                      .median_b = NAN};
    if (!check_blocks(samples->blocks, samples->count, "the comparison", text, size) ||
        !check_blocks(samples->self, samples->self_count, "the opponent against itself", text, size))
        return;
    snprintf(text, size, "out of memory for the statistics");
    if (comparison_make(&pair, samples->blocks, samples->count, 1) &&
        comparison_make(&self, samples->self, samples->self_count, 1)) {
        measure_shape(samples, rules, &pair, &self, verdict);
        struct finding_of_speed found = {verdict->log_ratio,
                                         verdict->effect,
                                         log1p(rules->least_effect),
                                         range_of_processes(&pair, 1),
                                         clock_shift(samples),
                                         rules->confidence,
                                         rules->opponent,
                                         ""};
        if (verdict->below_floor) {
            snprintf(text, size,
                     "faster than physics: %.3g s where the compulsory bytes and flops take %.3g s; the work was not done",
                     exp(least_of(pair.a, pair.calls)), samples->floor);
        } else if (exp(least_of(pair.b, pair.calls)) < samples->floor) {
            verdict->log_ratio = (struct interval){NAN, NAN, NAN};
            snprintf(text, size, "%s takes less than the floor of %.3g s: the floor or the clock is wrong", rules->opponent,
                     samples->floor);
        } else if (!isnan(verdict->log_ratio.low)) {
            verdict->speed = decide(&found, text, size);
        }
    }
    comparison_free(&pair);
    comparison_free(&self);
}

/* -------------------------------------------------------------------------------------------------------------- suite -- */

/* The shape with the largest loss among those that lose too much for certain, or that may do so; -1 if there is none. */
static int find_loss(const struct shape_verdict *verdicts, int count, double bound, bool certain)
{
    int worst = -1;
    for (int i = 0; i < count; i++)
        if ((certain ? verdicts[i].log_ratio.high : verdicts[i].log_ratio.low) < bound &&
            (worst < 0 || verdicts[i].log_ratio.estimate < verdicts[worst].log_ratio.estimate))
            worst = i;
    return worst;
}

/* A gain on the whole is none if a shape pays for it. */
static enum speed check_losses(const struct shape_samples *shapes, const struct shape_verdict *verdicts, int count,
                               const struct speed_rules *rules, struct interval interval, char *text, size_t size)
{
    double bound = log1p(-rules->worst_shape);
    int certain = find_loss(verdicts, count, bound, true), possible = find_loss(verdicts, count, bound, false);
    int worst = certain >= 0 ? certain : possible;
    char ratio[48], loss[48];
    if (worst < 0)
        return SPEED_FASTER;
    ratio_text(interval, ratio, sizeof ratio);
    ratio_text(verdicts[worst].log_ratio, loss, sizeof loss);
    snprintf(text, size, "%s as %s on the whole, but %s on %.120s, %s %.2g %%%s", ratio, rules->opponent, loss,
             shapes[worst].problem,
             certain >= 0 ? "and no shape may lose more than" : "where it is not excluded that it loses more than",
             100 * rules->worst_shape, certain >= 0 ? "" : "; quieten the machine or measure more blocks");
    return certain >= 0 ? SPEED_SLOWER : SPEED_INCONCLUSIVE;
}

void judge_suite(const struct shape_samples *shapes, const struct shape_verdict *verdicts, int count,
                 const struct speed_rules *rules, struct suite_verdict *verdict)
{
    char *text = verdict->sentence, where[48];
    size_t size = sizeof verdict->sentence;
    struct comparison *comparisons = calloc(count > 0 ? (size_t)count : 1, sizeof *comparisons);
    struct stratum *strata = calloc(count > 0 ? (size_t)count : 1, sizeof *strata);
    double weights = 0, shift = 0;
    bool usable = count > 0, ready = comparisons && strata;
    *verdict = (struct suite_verdict){.speed = SPEED_INCONCLUSIVE, .log_ratio = {NAN, NAN, NAN}, .worst = NAN};
    snprintf(text, size, count > 0 ? "out of memory for the statistics" : "nothing was timed");

    for (int i = 0; i < count; i++) {
        bool below = verdicts[i].below_floor;
        if ((below && !verdict->below_floor) || (usable && isnan(verdicts[i].log_ratio.low)))
            snprintf(text, size, "%.120s: %.240s", shapes[i].problem, verdicts[i].sentence);
        verdict->below_floor = verdict->below_floor || below;
        usable = usable && !below && !isnan(verdicts[i].log_ratio.low);
        weights += shapes[i].weight;
        shift += shapes[i].weight * clock_shift(&shapes[i]);
        verdict->effect += shapes[i].weight * verdicts[i].effect;
        verdict->worst = fmin(verdict->worst, verdicts[i].log_ratio.estimate);
    }
    verdict->effect /= weights;
    for (int i = 0; usable && ready && i < count; i++) {
        ready = comparison_make(&comparisons[i], shapes[i].blocks, shapes[i].count, shapes[i].weight);
        strata[i] = (struct stratum){comparisons[i].statistics, comparisons[i].count, shapes[i].weight};
    }
    if (usable && ready)
        verdict->log_ratio = bca_interval(strata, count, rules->confidence, rules->resamples, rules->seed);
    if (!isnan(verdict->log_ratio.low)) {
        snprintf(where, sizeof where, ", %d shape%s", count, count == 1 ? "" : "s");
        struct finding_of_speed found = {verdict->log_ratio,
                                         verdict->effect,
                                         log1p(rules->least_effect),
                                         range_of_processes(comparisons, count),
                                         shift / weights,
                                         rules->confidence,
                                         rules->opponent,
                                         where};
        verdict->speed = decide(&found, text, size);
        if (verdict->speed == SPEED_FASTER)
            verdict->speed = check_losses(shapes, verdicts, count, rules, verdict->log_ratio, text, size);
    }
    for (int i = 0; comparisons && i < count; i++)
        comparison_free(&comparisons[i]);
    free(comparisons);
    free(strata);
}
