/*
 * statistics.h - when is faster faster. Pure arithmetic on samples: no clocks, no processes, no files. The rules, and why they are
 * as they are, are at the head of statistics.c.
 */
#ifndef ATTEST_STATISTICS_H
#define ATTEST_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "estimates.h"

/* One block: four calls of A and four of B as ABBA ABBA or BAAB BAAB, by coin. Times in seconds, in the order of the calls. */
enum { BLOCK_CALLS = 8 };
struct block {
    bool a_first;
    int process; /* which pair of processes it was measured in */
    double seconds[BLOCK_CALLS];
};
bool block_is_a(const struct block *block, int call);
double block_statistic(const struct block *block); /* median log t_B - median log t_A: positive if A is faster */

enum speed { SPEED_FASTER, SPEED_SLOWER, SPEED_SAME, SPEED_INCONCLUSIVE };
const char *speed_name(enum speed speed);

/* With fewer blocks there is nothing to resample. */
enum { LEAST_BLOCKS = 6 };

/* What is measured on one shape: A against B, and B against itself. */
struct shape_samples {
    const char *problem;
    double weight;
    const struct block *blocks; /* A against B */
    int count;
    const struct block *self; /* B against B */
    int self_count;
    double floor;            /* seconds below which no honest call can be; 0 if unknown */
    double clock_a, clock_b; /* mean clock in Hz during A and B; 0 if unknown */
};

struct shape_verdict {
    enum speed speed;
    struct interval log_ratio; /* log(t_B / t_A): positive if A is faster; NaN if nothing could be computed */
    double effect;             /* the least log ratio that counts here */
    double self_mad;           /* of the A/A blocks */
    double g, gz;              /* positive if A is faster */
    double median_a, median_b; /* seconds */
    bool below_floor;          /* A is faster than physics: something is wrong */
    char sentence[384];
};

struct suite_verdict {
    enum speed speed;
    struct interval log_ratio; /* of the weighted geometric mean */
    double effect;             /* the least log ratio that counts */
    double worst;              /* smallest log ratio of a shape */
    bool below_floor;          /* on some shape */
    char sentence[384];
};

struct speed_rules {
    const char *opponent; /* name of B, for the sentences */
    int resamples;
    double confidence; /* of the intervals */
    double least_effect, worst_shape;
    uint64_t seed;
};

void judge_shape(const struct shape_samples *samples, const struct speed_rules *rules, struct shape_verdict *verdict);
void judge_suite(const struct shape_samples *shapes, const struct shape_verdict *verdicts, int count,
                 const struct speed_rules *rules, struct suite_verdict *verdict);

/*
 * A simulated clock, for tests: the model of the noise is log-normal samples (`noise`, a standard deviation), a slow drift of the
 * clock (`drift`, the amplitude of a sine over `period` calls) and rare spikes (`spike`, with probability `spikes`). Text form,
 * with the defaults: "a=1,b=1,noise=0.004,drift=0.01,period=400,spike=0.08,spikes=0.01,seed=1", where a and b are true times in ms.
 * Words that are left out keep their defaults.
 */
struct simulated_clock {
    double a, b, noise, drift, period, spike, spikes;
    uint64_t seed, calls;
};
bool simulated_clock_parse(const char *text, struct simulated_clock *clock, char *why, size_t why_size);
double simulated_clock_next(struct simulated_clock *clock, bool is_a); /* seconds */

#endif
