/*
 * precision.c - how good a kernel's numbers are, beyond being right.
 *
 * The errors of all components of many problems, in grains (judge.c), are put together for each type of the inputs and of O.
 *
 * 1. No worse than the champion: p99.9 of the kernel <= growth * max(p99.9 of the champion, p99.9 of the naive implementation), all
 *    on the same inputs. The naive implementation counts as a champion because it uses up exactly what SEMANTICS allows: float32,
 *    and P rounded to the type of the inputs. Without it no kernel that multiplies bf16 in hardware could follow one that does not:
 *    p99.9 is 0.61 grains for a kernel that keeps P in float32, 1.14 for one that rounds it, 1.15 for the naive implementation.
 * (For f32: 1.79 for the kernels of the library, 2.16 for the naive implementation.)
 *
 * 2. Not biased: the mean error, away from zero and upwards, is within 0.1 grains, and what so few rows can deviate by chance
 * (errors of one row share the error of its sum). Rounding to nearest gives 0.00; cutting off bits instead of rounding, of O or of
 * P, gives -0.29.
 *
 * Fewer than 10000 components, or 100 rows, say nothing about their p99.9 or their mean, and are not judged.
 */
#include "precision.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BINS_AN_OCTAVE = 64, LEAST_COMPONENTS = 10000, LEAST_ROWS = 100 };
#define MOST_BIAS  0.1
#define CHANCE     2.0 /* four deviations of half a grain, for one row */
#define MOST_SHARE 0.999

static int bin_of(double grains)
{
    double at = floor(log2(grains) * BINS_AN_OCTAVE) + PRECISION_BINS / 2;
    return at < 0 ? 0 : at >= PRECISION_BINS ? PRECISION_BINS - 1 : (int)at;
}

/* The upper edge of the bin below which 99.9 % lie; NaN if there is nothing. */
static double p999(const uint64_t bins[PRECISION_BINS])
{
    uint64_t total = 0, below = 0;
    for (int n = 0; n < PRECISION_BINS; n++)
        total += bins[n];
    for (int n = 0; n < PRECISION_BINS && total > 0; n++)
        if ((double)(below += bins[n]) >= MOST_SHARE * (double)total)
            return exp2((double)(n + 1 - PRECISION_BINS / 2) / BINS_AN_OCTAVE);
    return NAN;
}

static void see_own(void *data, const struct judged *judged)
{
    struct precision_pool *pool = data;
    double grains = judged->error / judged->grain;
    pool->own[bin_of(fabs(grains))]++;
    pool->naive[bin_of(fabs(judged->naive / judged->grain))]++;
    pool->away += judged->exact > 0 ? grains : -grains;
    pool->up += grains;
    pool->components++;
}

static void see_champion(void *data, const struct judged *judged)
{
    struct precision_pool *pool = data;
    pool->champion[bin_of(fabs(judged->error / judged->grain))]++;
}

void precision_add(struct precision *precision, const struct exam *exam, const struct outputs *own, const struct outputs *champion)
{
    const attest_problem *problem = &exam->inputs.problem;
    struct precision_pool *pool = &precision->pools[problem->dtype][problem->dtype == problem->dtype_o];
    judge_each(&exam->judge, exam->judge.row_count, own->o.at, problem->stride_o, see_own, pool);
    if (champion)
        judge_each(&exam->judge, exam->judge.row_count, champion->o.at, problem->stride_o, see_champion, pool);
    pool->rows += exam->judge.row_count;
}

static void judge_pool(const struct precision_pool *pool, uint32_t dtype, double growth, struct precision_verdict *verdict)
{
    double away = pool->away / (double)pool->components, up = pool->up / (double)pool->components;
    *verdict = (struct precision_verdict){
        .verdict = VERDICT_PASS,
        .p999 = p999(pool->own),
        .champion_p999 = p999(pool->champion),
        .naive_p999 = p999(pool->naive),
        .bias = fabs(away) > fabs(up) ? away : up,
        .components = pool->components,
    };
    double best = fmax(verdict->champion_p999, verdict->naive_p999); /* fmax leaves NaN out */
    double allowed = MOST_BIAS + CHANCE / sqrt((double)pool->rows);
    if (pool->components < LEAST_COMPONENTS || pool->rows < LEAST_ROWS) {
        verdict->verdict = VERDICT_NOT_APPLICABLE;
        snprintf(verdict->sentence, sizeof verdict->sentence, "%lld components of %s are too few for statistics of the error",
                 (long long)pool->components, element_name(dtype));
    } else if (!isnan(verdict->champion_p999) && verdict->p999 > growth * best) {
        verdict->verdict = VERDICT_FAIL;
        snprintf(verdict->sentence, sizeof verdict->sentence,
                 "less precise than the champion on %s: p99.9 of the error is %.2f grains, the champion's %.2f, a naive "
                 "implementation's %.2f, and %.2f times the larger is allowed",
                 element_name(dtype), verdict->p999, verdict->champion_p999, verdict->naive_p999, growth);
    } else if (fabs(verdict->bias) > allowed) {
        verdict->verdict = VERDICT_FAIL;
        snprintf(verdict->sentence, sizeof verdict->sentence,
                 "the errors on %s lean %s: %.2f grains on average, and %.2f are allowed; are bits cut off where they should be "
                 "rounded to nearest?",
                 element_name(dtype),
                 fabs(away) > fabs(up) ? (away < 0 ? "towards zero" : "away from zero") : (up < 0 ? "downwards" : "upwards"),
                 fabs(verdict->bias), allowed);
    }
}

/* A failure counts most; then, of those that could be judged, the one that is worst beside the naive implementation. */
static bool counts_more(const struct precision_verdict *one, const struct precision_verdict *other)
{
    if (one->verdict == VERDICT_NOT_APPLICABLE || other->verdict == VERDICT_FAIL)
        return other->components == 0;
    return one->verdict == VERDICT_FAIL || other->verdict == VERDICT_NOT_APPLICABLE ||
           one->p999 / one->naive_p999 > other->p999 / other->naive_p999;
}

void precision_judge(const struct precision *precision, double growth, struct precision_verdict *verdict)
{
    *verdict = (struct precision_verdict){
        .verdict = VERDICT_NOT_APPLICABLE, .p999 = NAN, .champion_p999 = NAN, .naive_p999 = NAN, .sentence = "nothing was counted"};
    for (uint32_t n = 2 * ATTEST_F32; n < 2 * ATTEST_BF16 + 2; n++) {
        const struct precision_pool *pool = &precision->pools[n / 2][n % 2];
        struct precision_verdict one;
        if (pool->components == 0)
            continue;
        judge_pool(pool, n / 2, growth, &one);
        if (counts_more(&one, verdict))
            *verdict = one;
    }
}
