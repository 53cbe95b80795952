/*
 * Tests of the statistics of the speed gate: estimates against values that SciPy found, the rules one by one, and error rates by
 * simulation. The noise model of the simulations is that of simulated_clock: 0.4 % log-normal samples, a clock that drifts by 1 %
 * over 400 calls, spikes of 8 % in one sample of a hundred.
 */
#include "data/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gates/gate.h"
#include "base/random.h"
#include "statistics_values.h"
#include "tap.h"

enum { MOST_BLOCKS = 64, MOST_SHAPES = 4 };

/* The rules are tested on sittings that do not change: at the edge of a rule one in twenty falls on its other side. */
static const uint64_t fixed_seed = 1;

static const struct policy policy = {
#define POLICY(name, value, text) value,
#include "evidence/policy.def"
#undef POLICY
};

static struct speed_rules rules_of(int resamples, uint64_t seed)
{
    return (struct speed_rules){.opponent = "B",
                                .resamples = resamples,
                                .confidence = policy.confidence,
                                .least_effect = policy.least_effect,
                                .worst_shape = policy.worst_shape,
                                .seed = seed};
}

/* ------------------------------------------------------------------------------------------------------ known values -- */

static bool near(double x, double y, double room)
{
    return fabs(x - y) <= room;
}

static void check_interval(const char *name, struct interval found, double estimate, double low, double high)
{
    double room = 0.025 * (high - low); /* four times the Monte Carlo error of 20000 resamples */
    tap_check(near(found.estimate, estimate, 1e-9 * fmax(fabs(estimate), 1e-3)), "%s: estimate %.12g, SciPy %.12g", name,
              found.estimate, estimate);
    tap_check(near(found.low, low, room) && near(found.high, high, room), "%s: interval %.9g to %.9g, SciPy %.9g to %.9g", name,
              found.low, found.high, low, high);
}

static void test_known_values(void)
{
    int singles = (int)(sizeof known_samples / sizeof *known_samples), pairs = (int)(sizeof known_pairs / sizeof *known_pairs);
    for (int i = 0; i < singles; i++) {
        const struct known_sample *known = &known_samples[i];
        if (!tap_case("%s", known->name))
            continue;
        struct stratum stratum = {known->x, known->count, 1};
        check_interval(known->name, bca_interval(&stratum, 1, 0.95, 20000, tap.seed), known->estimate, known->low, known->high);
        double gz = paired_gz(known->x, known->count), mad = mad_of(known->x, known->count);
        tap_check(near(gz, known->gz, 1e-9 * fabs(known->gz)), "g_z is %.12g, not %.12g", gz, known->gz);
        tap_check(near(mad, known->mad, 1e-9 * known->mad), "MAD is %.12g, not %.12g", mad, known->mad);
        double mean = trimmed_mean(known->x, known->count);
        tap_check(near(mean, known->estimate, 1e-9 * fmax(fabs(mean), 1e-3)), "trimmed mean is %.12g", mean);
    }
    for (int i = 0; i < pairs; i++) {
        const struct known_pair *known = &known_pairs[i];
        const struct known_sample *a = &known_samples[known->a], *b = &known_samples[known->b];
        if (!tap_case("%s, and %s", a->name, b->name))
            continue;
        struct stratum strata[] = {{a->x, a->count, 3}, {b->x, b->count, 1}};
        check_interval("two strata", bca_interval(strata, 2, 0.95, 20000, tap.seed), known->estimate, known->low, known->high);
        double g = hedges_g(a->x, a->count, b->x, b->count), back = hedges_g(b->x, b->count, a->x, a->count);
        tap_check(near(g, known->g, 1e-9 * fabs(known->g)), "g is %.12g, not %.12g", g, known->g);
        tap_check(near(back, -g, 1e-12 * fabs(g)), "g of the samples exchanged is %.12g, not %.12g", back, -g);
    }
}

static void test_estimates_at_the_edge(void)
{
    double same[] = {0.01, 0.01, 0.01, 0.01, 0.01, 0.01}, one[] = {1}, two[] = {3, 1}, three[] = {9, 1, 2};
    struct stratum flat = {same, 6, 1}, single = {one, 1, 1}, none = {one, 0, 1};
    struct interval interval = bca_interval(&flat, 1, 0.95, 500, 1);
    tap_check(near(interval.low, 0.01, 1e-15) && near(interval.high, 0.01, 1e-15), "equal values: %g to %g", interval.low,
              interval.high);
    tap_check(isnan(bca_interval(&single, 1, 0.95, 500, 1).low), "an interval of one value");
    tap_check(isnan(bca_interval(&none, 1, 0.95, 500, 1).low), "an interval of no value");
    tap_check(isnan(bca_interval(&flat, 0, 0.95, 500, 1).low), "an interval of no stratum");
    tap_check(isnan(bca_interval(&flat, 1, 0.95, 0, 1).low), "an interval without resamples");
    tap_check(median_of(two, 2) == 2 && median_of(three, 3) == 2 && median_of(one, 1) == 1, "medians");
    tap_check(isnan(median_of(one, 0)) && isnan(mad_of(one, 0)), "a median of nothing");
    tap_check(isnan(hedges_g(one, 1, two, 2)) && isnan(paired_gz(two, 2)), "effect sizes of too few values");
    const struct known_sample *known = &known_samples[0];
    struct stratum stratum = {known->x, known->count, 1};
    struct interval first = bca_interval(&stratum, 1, 0.95, 300, 5), again = bca_interval(&stratum, 1, 0.95, 300, 5);
    struct interval other = bca_interval(&stratum, 1, 0.95, 300, 6);
    tap_check(first.low == again.low && first.high == again.high, "the same seed gives another interval");
    tap_check(first.low != other.low || first.high != other.high, "another seed gives the same interval");
}

/* --------------------------------------------------------------------------------------------------------- sittings -- */

/* One simulated sitting on one shape. */
struct sitting {
    struct block blocks[MOST_BLOCKS], self[MOST_BLOCKS];
    struct shape_samples samples;
};

static void draw_blocks(struct block *blocks, int count, struct simulated_clock *clock, bool self)
{
    for (int i = 0; i < count; i++) {
        blocks[i].a_first = random_bits(clock->seed, self ? 5 : 4, (uint64_t)i) & 1;
        blocks[i].process = i * (int)policy.processes / count;
        for (int k = 0; k < BLOCK_CALLS; k++)
            blocks[i].seconds[k] = simulated_clock_next(clock, !self && block_is_a(&blocks[i], k));
    }
}

static void sitting_make(struct sitting *sitting, const char *model, uint64_t seed)
{
    struct simulated_clock clock;
    char why[256];
    int count = (int)policy.blocks;
    if (!tap_check(simulated_clock_parse(model, &clock, why, sizeof why), "%s", why))
        exit(1);
    clock.seed = seed;
    draw_blocks(sitting->self, count, &clock, true);
    draw_blocks(sitting->blocks, count, &clock, false);
    sitting->samples = (struct shape_samples){.problem = "fwd:f32:s1:d1",
                                              .weight = 1,
                                              .blocks = sitting->blocks,
                                              .count = count,
                                              .self = sitting->self,
                                              .self_count = count};
}

/* Times of one kernel in one process are all longer by a factor; a process of -1 means every process. */
static void slow_down(struct block *blocks, int count, int process, bool a, double factor)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < BLOCK_CALLS; k++)
            if ((process < 0 || blocks[i].process == process) && block_is_a(&blocks[i], k) == a)
                blocks[i].seconds[k] *= factor;
}

static struct shape_verdict judge_sitting(const struct sitting *sitting, uint64_t seed)
{
    struct shape_verdict verdict;
    struct speed_rules rules = rules_of(300, seed);
    judge_shape(&sitting->samples, &rules, &verdict);
    return verdict;
}

static void expect(const struct sitting *sitting, enum speed speed, const char *word, const char *what)
{
    struct shape_verdict verdict = judge_sitting(sitting, fixed_seed);
    tap_check(verdict.speed == speed, "%s: %s, not %s: %s", what, speed_name(verdict.speed), speed_name(speed), verdict.sentence);
    tap_check(strstr(verdict.sentence, word) != NULL, "%s: no '%s' in: %s", what, word, verdict.sentence);
}

static void test_blocks(void)
{
    struct block abba = {.a_first = true}, baab = {.a_first = false};
    static const char order[] = "ABBAABBA";
    for (int k = 0; k < BLOCK_CALLS; k++) {
        tap_check(block_is_a(&abba, k) == (order[k] == 'A'), "call %d of ABBA", k);
        tap_check(block_is_a(&baab, k) == (order[k] == 'B'), "call %d of BAAB", k);
        abba.seconds[k] = block_is_a(&abba, k) ? 1 : 2;
        baab.seconds[k] = block_is_a(&baab, k) ? 1 : 2;
    }
    tap_check(near(block_statistic(&abba), log(2), 1e-12) && near(block_statistic(&baab), log(2), 1e-12),
              "half the time is log 2: %g, %g", block_statistic(&abba), block_statistic(&baab));
    for (int k = 0; k < BLOCK_CALLS; k++) {
        struct block spiked = abba, drifting = abba;
        spiked.seconds[k] *= 50;
        tap_check(near(block_statistic(&spiked), log(2), 1e-12), "a spike in call %d moves the statistic", k);
        for (int i = 0; i < BLOCK_CALLS; i++)
            drifting.seconds[i] *= exp(0.01 * k * i);
        tap_check(near(block_statistic(&drifting), log(2), 1e-12), "a drift of %d %% a call moves the statistic", k);
    }
}

static void test_refusals(void)
{
    static const double rubbish[] = {NAN, 0, -1e-3, INFINITY, -INFINITY};
    struct sitting sitting;
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++) {
        sitting_make(&sitting, "a=0.5", fixed_seed);
        sitting.blocks[3].seconds[5] = rubbish[i];
        expect(&sitting, SPEED_INCONCLUSIVE, "is no time", "rubbish in the comparison");
        sitting_make(&sitting, "a=0.5", fixed_seed);
        sitting.self[9].seconds[0] = rubbish[i];
        expect(&sitting, SPEED_INCONCLUSIVE, "is no time", "rubbish in A/A");
    }
    for (int count = 0; count < LEAST_BLOCKS; count++) {
        sitting_make(&sitting, "a=0.5", fixed_seed);
        sitting.samples.count = count;
        expect(&sitting, SPEED_INCONCLUSIVE, "too few", "few blocks");
        sitting_make(&sitting, "a=0.5", fixed_seed);
        sitting.samples.self_count = count;
        expect(&sitting, SPEED_INCONCLUSIVE, "too few", "few A/A blocks");
    }
    sitting_make(&sitting, "a=0.5", fixed_seed);
    sitting.samples.count = sitting.samples.self_count = LEAST_BLOCKS;
    expect(&sitting, SPEED_FASTER, "x as fast as B", "twice as fast in the least number of blocks");
}

static void test_agreement(void)
{
    struct sitting sitting;
    int count = (int)policy.blocks;
    sitting_make(&sitting, "a=0.98", fixed_seed);
    expect(&sitting, SPEED_FASTER, "x as fast as B", "2 % faster");
    sitting.samples.clock_a = sitting.samples.clock_b = 3e9;
    expect(&sitting, SPEED_FASTER, "x as fast as B", "2 % faster at the same clock");
    sitting.samples.clock_a = 3.06e9;
    expect(&sitting, SPEED_INCONCLUSIVE, "in cycles", "2 % faster at a clock that was 2 % higher");
    sitting.samples.clock_a = 2.8e9;
    expect(&sitting, SPEED_FASTER, "x as fast as B", "faster although its clock was lower");
    sitting_make(&sitting, "a=1.02", fixed_seed);
    sitting.samples.clock_a = 2.94e9, sitting.samples.clock_b = 3e9;
    expect(&sitting, SPEED_INCONCLUSIVE, "in cycles", "2 % slower at a clock that was 2 % lower");

    sitting_make(&sitting, "a=1", fixed_seed);
    slow_down(sitting.blocks, count, 1, false, 1.04);
    expect(&sitting, SPEED_INCONCLUSIVE, "", "4 % faster in one of two processes");
    sitting_make(&sitting, "a=0.98,noise=0.001", fixed_seed);
    slow_down(sitting.blocks, count, 1, true, 1.016);
    expect(&sitting, SPEED_INCONCLUSIVE, "in every process", "2 % faster in one process, 0.4 % in the other");
    sitting_make(&sitting, "a=0.98", fixed_seed);
    slow_down(sitting.self, count, 0, true, 1.03);
    slow_down(sitting.self, count, 1, false, 1.03);
    expect(&sitting, SPEED_INCONCLUSIVE, "counts here", "2 % faster where two workers of the same kernel differ by 3 %");
    sitting_make(&sitting, "a=0.98,noise=0.04,spikes=0", fixed_seed);
    expect(&sitting, SPEED_INCONCLUSIVE, "quieten", "2 % faster with 4 % noise");
}

static void test_floor(void)
{
    struct sitting sitting;
    sitting_make(&sitting, "a=0.5", fixed_seed);
    sitting.samples.floor = 0.4e-3;
    expect(&sitting, SPEED_FASTER, "x as fast as B", "above the floor");
    sitting.blocks[4].seconds[0] = sitting.blocks[4].seconds[1] = 0.3e-3;
    struct shape_verdict verdict = judge_sitting(&sitting, 1);
    tap_check(verdict.below_floor && verdict.speed == SPEED_INCONCLUSIVE, "one sample below the floor: %s", verdict.sentence);
    sitting_make(&sitting, "a=0.001", fixed_seed);
    sitting.samples.floor = 0.4e-3;
    verdict = judge_sitting(&sitting, 1);
    tap_check(verdict.below_floor && verdict.speed == SPEED_INCONCLUSIVE && strstr(verdict.sentence, "faster than physics"),
              "a thousand times faster: %s", verdict.sentence);
    struct suite_verdict suite;
    struct speed_rules rules = rules_of(300, 1);
    judge_suite(&sitting.samples, &verdict, 1, &rules, &suite);
    tap_check(suite.below_floor && suite.speed == SPEED_INCONCLUSIVE && strstr(suite.sentence, "faster than physics"), "suite: %s",
              suite.sentence);
    sitting.samples.floor = 2e-3;
    slow_down(sitting.blocks, sitting.samples.count, -1, true, 1e4);
    verdict = judge_sitting(&sitting, 1);
    tap_check(!verdict.below_floor && verdict.speed == SPEED_INCONCLUSIVE && strstr(verdict.sentence, "floor"),
              "an opponent below the floor: %s", verdict.sentence);
}

/* A against B and B against A; seconds and milliseconds. */
static void test_symmetry(void)
{
    for (int i = 0; i < 20; i++) {
        static const char *const models[] = {"a=0.9", "a=0.99", "a=1", "a=1.01", "a=3"};
        struct sitting sitting, mirrored, scaled;
        sitting_make(&sitting, models[i % 5], fixed_seed + (uint64_t)i);
        mirrored = scaled = sitting;
        mirrored.samples.blocks = mirrored.blocks, mirrored.samples.self = mirrored.self;
        scaled.samples.blocks = scaled.blocks, scaled.samples.self = scaled.self;
        for (int k = 0; k < sitting.samples.count; k++)
            mirrored.blocks[k].a_first = !mirrored.blocks[k].a_first;
        slow_down(scaled.blocks, scaled.samples.count, -1, true, 1024);
        slow_down(scaled.blocks, scaled.samples.count, -1, false, 1024);
        struct shape_verdict here = judge_sitting(&sitting, 1), there = judge_sitting(&mirrored, 1),
                             larger = judge_sitting(&scaled, 1);
        static const enum speed opposite[] = {SPEED_SLOWER, SPEED_FASTER, SPEED_SAME, SPEED_INCONCLUSIVE};
        tap_check(there.speed == opposite[here.speed], "%s: %s, and %s with A and B exchanged", models[i % 5],
                  speed_name(here.speed), speed_name(there.speed));
        tap_check(near(here.log_ratio.estimate, -there.log_ratio.estimate, 1e-12) && near(here.g, -there.g, 1e-9) &&
                      near(here.gz, -there.gz, 1e-9),
                  "signs of g: %g and %g, of g_z: %g and %g", here.g, there.g, here.gz, there.gz);
        tap_check(larger.speed == here.speed && near(larger.log_ratio.low, here.log_ratio.low, 1e-9),
                  "other units, other verdict: %s and %s", speed_name(here.speed), speed_name(larger.speed));
    }
}

/* ------------------------------------------------------------------------------------------------------------ suites -- */

/* Judges four shapes with these models. */
static struct suite_verdict judge_models(const char *const models[MOST_SHAPES], const double *weights, uint64_t seed, int resamples)
{
    struct sitting sittings[MOST_SHAPES];
    struct shape_samples shapes[MOST_SHAPES];
    struct shape_verdict verdicts[MOST_SHAPES];
    struct suite_verdict suite;
    struct speed_rules rules = rules_of(resamples, seed);
    for (int i = 0; i < MOST_SHAPES; i++) {
        sitting_make(&sittings[i], models[i], seed * MOST_SHAPES + (uint64_t)i);
        shapes[i] = sittings[i].samples;
        shapes[i].weight = weights ? weights[i] : 1;
        judge_shape(&shapes[i], &rules, &verdicts[i]);
    }
    judge_suite(shapes, verdicts, MOST_SHAPES, &rules, &suite);
    return suite;
}

static void test_suites(void)
{
    static const struct {
        const char *models[MOST_SHAPES];
        enum speed speed;
        const char *word, *what;
    } cases[] = {
        {{"a=0.8", "a=0.8", "a=0.8", "a=0.8"}, SPEED_FASTER, "4 shapes", "faster everywhere"},
        {{"a=0.8", "a=1", "a=1.01", "a=1"}, SPEED_FASTER, "4 shapes", "faster on one, not much slower on any"},
        {{"a=0.5", "a=0.5", "a=0.5", "a=1.1"}, SPEED_SLOWER, "no shape may lose", "faster on the whole, 10 % slower on one"},
        {{"a=0.5", "a=0.5", "a=0.5", "a=1.0204"}, SPEED_INCONCLUSIVE, "not excluded", "faster on the whole, 2 % slower on one"},
        {{"a=0.5", "a=0.5", "a=0.5", "a=1.012"}, SPEED_FASTER, "4 shapes", "faster on the whole, 1.2 % slower on one"},
        {{"a=1", "a=1", "a=1", "a=1"}, SPEED_SAME, "within", "the same everywhere"},
        {{"a=1.2", "a=1.1", "a=1", "a=1.3"}, SPEED_SLOWER, "x slower than B", "slower"},
        {{"a=2", "a=0.5", "a=1", "a=1"}, SPEED_SAME, "within", "twice as slow, twice as fast: the same on the whole"},
        {{"a=0.995", "a=0.995", "a=0.995", "a=0.995"}, SPEED_INCONCLUSIVE, "cannot be told", "a gain of just the least effect"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!tap_case("%s", cases[i].what))
            continue;
        struct suite_verdict suite = judge_models(cases[i].models, NULL, fixed_seed, 500);
        tap_check(suite.speed == cases[i].speed && strstr(suite.sentence, cases[i].word), "%s: %s", speed_name(suite.speed),
                  suite.sentence);
    }
    static const double weights[] = {100, 1, 1, 1};
    static const char *const lopsided[] = {"a=1.015", "a=0.9", "a=0.9", "a=0.9"};
    struct suite_verdict plain = judge_models(lopsided, NULL, fixed_seed, 500);
    struct suite_verdict weighted = judge_models(lopsided, weights, fixed_seed, 500);
    tap_check(plain.speed == SPEED_FASTER && weighted.speed == SPEED_SLOWER, "weights: %s and %s", plain.sentence,
              weighted.sentence);
    tap_check(near(plain.worst, -log(1.015), 0.005), "the worst shape: %g", plain.worst);
    struct suite_verdict none;
    struct speed_rules rules = rules_of(500, 1);
    judge_suite(NULL, NULL, 0, &rules, &none);
    tap_check(none.speed == SPEED_INCONCLUSIVE, "a suite of nothing: %s", none.sentence);
}

/* ------------------------------------------------------------------------------------------------------- error rates -- */

struct rates {
    int runs, speeds[4];
    int covered; /* intervals that contain the truth */
    int literal; /* would be FASTER if e were 3 MAD of the A/A blocks */
    double largest_g;
};

static struct rates simulate(const char *model, double truth, int runs, int resamples)
{
    struct rates rates = {.runs = runs};
    for (int i = 0; i < runs; i++) {
        struct sitting sitting;
        struct shape_verdict verdict;
        uint64_t seed = tap.seed * 1000003 + (uint64_t)i;
        struct speed_rules rules = rules_of(resamples, seed);
        sitting_make(&sitting, model, seed);
        judge_shape(&sitting.samples, &rules, &verdict);
        rates.speeds[verdict.speed]++;
        rates.covered += verdict.log_ratio.low <= truth && truth <= verdict.log_ratio.high;
        rates.literal += verdict.log_ratio.low > fmax(log1p(policy.least_effect), 3 * verdict.self_mad);
        rates.largest_g = fmax(rates.largest_g, fabs(verdict.g));
    }
    tap_note("%-32s FASTER %5.2f %%, SLOWER %5.2f %%, SAME %5.2f %%, INCONCLUSIVE %5.2f %%, interval right %.1f %%; %d runs, %d "
             "resamples",
             model, 100.0 * rates.speeds[SPEED_FASTER] / runs, 100.0 * rates.speeds[SPEED_SLOWER] / runs,
             100.0 * rates.speeds[SPEED_SAME] / runs, 100.0 * rates.speeds[SPEED_INCONCLUSIVE] / runs, 100.0 * rates.covered / runs,
             runs, resamples);
    return rates;
}

/* The least effect cannot hide an interval that is too narrow: its coverage is measured as well. */
static void check_rates(const char *model, double gain, int runs, int resamples)
{
    struct rates rates = simulate(model, log1p(gain), runs, resamples);
    if (gain == 0)
        tap_check(100 * rates.speeds[SPEED_FASTER] < runs, "%s: identical kernels FASTER in %d of %d runs", model,
                  rates.speeds[SPEED_FASTER], runs);
    else
        tap_check(100 * rates.speeds[SPEED_FASTER] > 95 * runs, "%s: a gain of %g %% found in %d of %d runs", model, 100 * gain,
                  rates.speeds[SPEED_FASTER], runs);
    if (runs >= 1000) /* the share of fewer is too uncertain itself */
        tap_check(100 * rates.covered > 90 * runs, "%s: only %d of %d intervals contain the truth", model, rates.covered, runs);
}

static void test_identical_kernels(void)
{
    static const char *const models[] = {"a=1", "drift=0.05,period=100", "drift=0.02,period=2000", "spikes=0.05", "noise=0.02"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (tap_case("%s", models[i]))
            check_rates(models[i], 0, i == 0 ? tap_amount(200, 4000, 20000) : tap_amount(100, 1000, 5000), 300);
    if (tap_case("the policy's resamples"))
        check_rates("a=1", 0, tap_amount(100, 1000, 5000), (int)policy.resamples);
}

static void test_small_gains(void)
{
    static const char *const models[] = {"b=1.01", "b=1.01,drift=0.05,period=100", "b=1.01,drift=0.02,period=2000",
                                         "b=1.01,spikes=0.05"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (tap_case("%s", models[i]))
            check_rates(models[i], 0.01, i == 0 ? tap_amount(200, 4000, 20000) : tap_amount(100, 1000, 5000), 300);
    if (tap_case("the policy's resamples"))
        check_rates("b=1.01", 0.01, tap_amount(100, 1000, 5000), (int)policy.resamples);
}

/* Why e is not 3 MAD of the A/A blocks: see the head of statistics.c. */
static void test_literal_effect(void)
{
    struct rates rates = simulate("b=1.01", log(1.01), 500, 300);
    tap_note("with 3 MAD of the blocks a gain of 1 %% would be found in %.1f %% of runs", 100.0 * rates.literal / rates.runs);
    tap_check(2 * rates.literal < rates.runs, "3 MAD of the blocks would do: %d of %d runs", rates.literal, rates.runs);
}

/* A slower kernel is not faster, however visible the difference is. */
static void test_slower_kernels(void)
{
    static const char *const models[] = {"a=1.01", "a=1.1", "a=2,noise=0.0001,drift=0,spikes=0", "a=50", "a=1.02,spikes=0.1"};
    double largest = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (!tap_case("%s", models[i]))
            continue;
        struct rates rates = simulate(models[i], 0, tap_amount(100, 500, 2000), 300);
        tap_check(rates.speeds[SPEED_FASTER] == 0, "%s: FASTER in %d runs", models[i], rates.speeds[SPEED_FASTER]);
        largest = fmax(largest, rates.largest_g);
    }
    tap_check(tap.one_case || largest > 100, "the largest |g| was only %g", largest);
}

static void test_suite_rates(void)
{
    static const char *const same[] = {"a=1", "a=1", "a=1", "a=1"}, *const better[] = {"b=1.01", "b=1.01", "b=1.01", "b=1.01"};
    int runs = tap_amount(50, 500, 3000), promoted = 0, found = 0;
    for (int i = 0; i < runs; i++) {
        promoted += judge_models(same, NULL, tap.seed * 7919 + (uint64_t)i, 300).speed == SPEED_FASTER;
        found += judge_models(better, NULL, tap.seed * 7919 + (uint64_t)i, 300).speed == SPEED_FASTER;
    }
    tap_note("suites of %d shapes: identical promoted %d, gain of 1 %% found %d, of %d", MOST_SHAPES, promoted, found, runs);
    tap_check(100 * promoted < runs, "identical suites promoted in %d of %d runs", promoted, runs);
    tap_check(100 * found > 95 * runs, "a gain of 1 %% found in %d of %d runs", found, runs);
}

/* --------------------------------------------------------------------------------------------------- simulated clock -- */

static void test_simulated_clock(void)
{
    static const char *const wrong[] = {"c=1",    "a",       "a=",       "a=x",   "a=0",  "a=-1",     "noise=2", "spikes=1.5",
                                        "seed=x", "seed=-1", "a=1,,b=1", "a=nan", "aa=1", "period=0", "a=1 b=2"};
    struct simulated_clock clock, again;
    char why[256];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        why[0] = '\0';
        tap_check(!simulated_clock_parse(wrong[i], &clock, why, sizeof why) && *why, "'%s' was taken", wrong[i]);
    }
    bool parsed = simulated_clock_parse("a=2,b=3,noise=0,drift=0,spikes=0,seed=9", &clock, why, sizeof why);
    tap_check(parsed && near(simulated_clock_next(&clock, true), 2e-3, 1e-15) &&
                  near(simulated_clock_next(&clock, false), 3e-3, 1e-15),
              "without noise the times are the true ones");
    tap_check(simulated_clock_parse("seed=3", &clock, why, sizeof why) && simulated_clock_parse("seed=3", &again, why, sizeof why),
              "%s", why);
    enum { CALLS = 40000 };
    static double logs[CALLS];
    int spikes = 0;
    bool same = true;
    clock.drift = again.drift = 0;
    for (int i = 0; i < CALLS; i++) {
        double time = simulated_clock_next(&clock, i % 2);
        same = same && time == simulated_clock_next(&again, i % 2);
        logs[i] = log(time / 1e-3);
        spikes += logs[i] > 0.05;
    }
    tap_check(same, "the same seed gave other times");
    tap_check(spikes > 300 && spikes < 500, "%d spikes in %d calls", spikes, CALLS);
    tap_check(near(mad_of(logs, CALLS), 0.004, 0.0001), "noise of %g instead of 0.004", mad_of(logs, CALLS));
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"known_values", test_known_values},
        {"estimates_at_the_edge", test_estimates_at_the_edge},
        {"blocks", test_blocks},
        {"refusals", test_refusals},
        {"agreement", test_agreement},
        {"floor", test_floor},
        {"symmetry", test_symmetry},
        {"suites", test_suites},
        {"simulated_clock", test_simulated_clock},
        {"slower_kernels", test_slower_kernels},
        {"identical_kernels", test_identical_kernels},
        {"small_gains", test_small_gains},
        {"literal_effect", test_literal_effect},
        {"suite_rates", test_suite_rates},
    };
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
