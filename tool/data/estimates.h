/*
 * estimates.h - estimates from samples: location, spread, effect size, and a bootstrap interval. Pure arithmetic.
 */
#ifndef ATTEST_ESTIMATES_H
#define ATTEST_ESTIMATES_H

#include <stdint.h>

struct interval {
    double estimate, low, high;
};

double trimmed_mean(const double *x, int count); /* without the lowest and the highest fifth; NaN without memory */
double median_of(double *x, int count);          /* sorts x */
double mad_of(const double *x, int count);       /* median absolute deviation, times 1.4826; NaN without memory */
double hedges_g(const double *a, int count_a, const double *b, int count_b); /* positive if a is larger */
double paired_gz(const double *difference, int count);                       /* small-sample corrected, signed */

/* Values that are resampled together, and their weight in the suite's mean. */
struct stratum {
    const double *x;
    int count;
    double weight;
};

/* BCa bootstrap interval of the weighted mean of the strata's trimmed means; `confidence` is 0.95 for one of 95 %. Bounds are NaN
 * without memory. */
struct interval bca_interval(const struct stratum *strata, int count, double confidence, int resamples, uint64_t seed);

#endif
