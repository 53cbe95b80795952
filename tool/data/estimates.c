/*
 * estimates.c - estimates of location, spread and effect size, and the bootstrap (see estimates.h). How they are used, and why
 * these, is at the head of statistics.c.
 */
#include "estimates.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define MAD_SCALE 1.4826

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A sorted copy, to be freed; NULL if there is nothing, or no memory. */
static double *sorted_copy(const double *x, int count)
{
    double *copy = count > 0 ? malloc((size_t)count * sizeof *copy) : NULL;
    if (!copy)
        return NULL;
    memcpy(copy, x, (size_t)count * sizeof *copy);
    qsort(copy, (size_t)count, sizeof *copy, by_value);
    return copy;
}

double median_of(double *x, int count)
{
    if (count <= 0)
        return NAN;
    qsort(x, (size_t)count, sizeof *x, by_value);
    return count % 2 ? x[count / 2] : (x[count / 2 - 1] + x[count / 2]) / 2;
}

double mad_of(const double *x, int count)
{
    double *copy = sorted_copy(x, count);
    if (!copy)
        return NAN;
    double middle = median_of(copy, count);
    for (int i = 0; i < count; i++)
        copy[i] = fabs(copy[i] - middle);
    double mad = MAD_SCALE * median_of(copy, count);
    free(copy);
    return mad;
}

/* The trimmed mean of a sample that has copies[i] times the value sorted[i], `total` values in all. */
static double trimmed_mean_of_copies(const double *sorted, const int *copies, int total)
{
    int trimmed = total / 5, kept = total - 2 * trimmed, skip = trimmed;
    double sum = 0;
    for (int i = 0, left = kept; left > 0; i++) {
        int here = copies[i] - skip;
        if (here <= 0) {
            skip = -here;
            continue;
        }
        skip = 0;
        if (here > left)
            here = left;
        sum += here * sorted[i];
        left -= here;
    }
    return sum / kept;
}

double trimmed_mean(const double *x, int count)
{
    double *sorted = sorted_copy(x, count);
    int trimmed = count / 5;
    double sum = 0;
    if (!sorted)
        return NAN;
    for (int i = trimmed; i < count - trimmed; i++)
        sum += sorted[i];
    free(sorted);
    return sum / (count - 2 * trimmed);
}

static void mean_and_squares(const double *x, int count, double *mean, double *squares)
{
    double sum = 0, sum2 = 0;
    for (int i = 0; i < count; i++)
        sum += x[i];
    *mean = sum / count;
    for (int i = 0; i < count; i++)
        sum2 += (x[i] - *mean) * (x[i] - *mean);
    *squares = sum2;
}

/* Hedges' exact correction for the bias of a standardised difference with so many degrees of freedom. */
static double small_sample_correction(double freedom)
{
    return freedom < 2 ? NAN : exp(lgamma(freedom / 2) - lgamma((freedom - 1) / 2)) / sqrt(freedom / 2);
}

double hedges_g(const double *a, int count_a, const double *b, int count_b)
{
    double mean_a, mean_b, squares_a, squares_b;
    if (count_a < 2 || count_b < 2)
        return NAN;
    mean_and_squares(a, count_a, &mean_a, &squares_a);
    mean_and_squares(b, count_b, &mean_b, &squares_b);
    int freedom = count_a + count_b - 2;
    return small_sample_correction(freedom) * (mean_a - mean_b) / sqrt((squares_a + squares_b) / freedom);
}

double paired_gz(const double *difference, int count)
{
    double mean, squares;
    if (count < 3)
        return NAN;
    mean_and_squares(difference, count, &mean, &squares);
    return small_sample_correction(count - 1) * mean / sqrt(squares / (count - 1));
}

/* --------------------------------------------------------------------------------------------------------- bootstrap -- */

static double normal_share(double z)
{
    return 0.5 * erfc(-z * sqrt(0.5));
}

/* The z below which this share of a normal distribution lies, by bisection. */
static double normal_point(double share)
{
    double low = -9, high = 9;
    for (int i = 0; i < 64; i++) {
        double middle = (low + high) / 2;
        if (normal_share(middle) < share)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* The value below which this share of a sorted sample lies, with linear interpolation. */
static double quantile(const double *sorted, int count, double share)
{
    double at = share * (count - 1);
    int below = at <= 0 ? 0 : at >= count - 1 ? count - 1 : (int)at;
    int above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

/* A stratum got ready: its values sorted, and room to say how often a resample has each of them. */
struct pool {
    double *sorted;
    int *copies;
    int count;
    double weight; /* of all weights */
};

/* Adds the pool's part of the acceleration: third and second powers of the influence of each value, by the jackknife. */
static void add_influence(struct pool *pool, double *thirds, double *seconds)
{
    int n = pool->count;
    double mean = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++)
            pool->copies[i] = 1;
        for (int i = 0; i < n; i++) {
            pool->copies[i] = 0;
            double without = pool->weight * trimmed_mean_of_copies(pool->sorted, pool->copies, n - 1);
            pool->copies[i] = 1;
            if (pass == 0) {
                mean += without / n;
            } else {
                double influence = (mean - without) * (n - 1) / n;
                *seconds += influence * influence;
                *thirds += influence * influence * influence;
            }
        }
    }
}

static double resample(struct pool *pools, int count, uint64_t seed, uint64_t number)
{
    double sum = 0;
    uint64_t draw = 0;
    for (int s = 0; s < count; s++) {
        struct pool *pool = &pools[s];
        memset(pool->copies, 0, (size_t)pool->count * sizeof *pool->copies);
        for (int i = 0; i < pool->count; i++)
            pool->copies[random_below(random_bits(seed, number, draw++), pool->count - 1)]++;
        sum += pool->weight * trimmed_mean_of_copies(pool->sorted, pool->copies, pool->count);
    }
    return sum;
}

/* The bounds, from the values of all resamples. */
static void set_bounds(struct interval *interval, double confidence, double *values, int resamples, double acceleration)
{
    int below = 0, equal = 0;
    for (int r = 0; r < resamples; r++) {
        below += values[r] < interval->estimate;
        equal += values[r] == interval->estimate;
    }
    double share = (below + 0.5 * equal) / resamples, least = 0.5 / resamples;
    double bias = normal_point(share < least ? least : share > 1 - least ? 1 - least : share);
    qsort(values, (size_t)resamples, sizeof *values, by_value);
    for (int side = 0; side < 2; side++) {
        double z = bias + normal_point(side ? (1 + confidence) / 2 : (1 - confidence) / 2);
        double bound = quantile(values, resamples, normal_share(bias + z / (1 - acceleration * z)));
        *(side ? &interval->high : &interval->low) = bound;
    }
}

struct interval bca_interval(const struct stratum *strata, int count, double confidence, int resamples, uint64_t seed)
{
    struct interval interval = {NAN, NAN, NAN};
    struct pool *pools = calloc(count > 0 ? (size_t)count : 1, sizeof *pools);
    double *values = resamples > 0 ? malloc((size_t)resamples * sizeof *values) : NULL;
    double weights = 0, estimate = 0, thirds = 0, seconds = 0;
    bool ready = pools && values && count > 0;
    for (int s = 0; s < count; s++)
        weights += strata[s].weight;
    for (int s = 0; ready && s < count; s++) {
        int n = strata[s].count;
        pools[s] = (struct pool){sorted_copy(strata[s].x, n), n > 0 ? calloc((size_t)n, sizeof(int)) : NULL, n,
                                 strata[s].weight / weights};
        ready = n >= 2 && pools[s].sorted && pools[s].copies;
        if (ready)
            add_influence(&pools[s], &thirds, &seconds);
        for (int i = 0; ready && i < n; i++)
            pools[s].copies[i] = 1;
        if (ready)
            estimate += pools[s].weight * trimmed_mean_of_copies(pools[s].sorted, pools[s].copies, n);
    }
    if (ready) {
        for (int r = 0; r < resamples; r++)
            values[r] = resample(pools, count, seed, (uint64_t)r);
        interval.estimate = estimate;
        set_bounds(&interval, confidence, values, resamples, seconds > 0 ? thirds / (6 * pow(seconds, 1.5)) : 0);
    }
    for (int s = 0; pools && s < count; s++) {
        free(pools[s].sorted);
        free(pools[s].copies);
    }
    free(pools);
    free(values);
    return interval;
}
