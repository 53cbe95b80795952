/*
 * measure.h - one kernel timed against another, for the speed gate and for `attest bench --vs`. How a sitting goes is at the head
 * of measure.c; what its samples mean is in statistics.c.
 */
#ifndef ATTEST_MEASURE_H
#define ATTEST_MEASURE_H

#include "gate.h"
#include "data/statistics.h"

struct contestant {
    const char *name;   /* for people */
    const char *image;  /* the .so, or the index of CUDA images; NULL: a kernel of the library, */
    const char *kernel; /* by its name, or NULL for the library's choice */
};

struct measure_spec {
    struct contestant a, b; /* the candidate, the opponent */
    const struct problem_list *problems;
    uint32_t dtype; /* only problems of this dtype; 0: all */
    const struct policy *policy;
    const char *device; /* NULL: the CPU; else both run on this GPU, and its clock counts */
    int threads;
    uint64_t seed;
    const char *clock;       /* NULL: the real one; else a model of it, see statistics.h */
    attest_context *chooser; /* NULL; else problems are left out for which a plan here would take neither of the two */
};

/* What was measured on one problem. */
struct shape_measure {
    const struct problem_entry *entry;
    struct block *blocks, *self; /* A against B, B against itself */
    int count;                   /* of each */
    int calls;                   /* in one sample, by the time of B */
    int replays;                 /* on a GPU: of a graph of these calls, in one sample; else 0 */
    int slots;                   /* places in memory that the calls rotate over */
    double bytes;                /* of all slots of a worker */
    int judged, neighbours;      /* timed calls of A, and problems next door, that the judge saw */
    double floor;                /* seconds */
    double clock_sum[2];         /* of A and of B, in Hz */
    int clock_count[2];
    char refusal[320]; /* why it was not measured; "" if it was */
    bool refused_by_a; /* and B takes it */
    struct shape_verdict verdict;
};

enum measure_end {
    MEASURE_DONE,
    MEASURE_WRONG,       /* A did not compute what it was timed for, or did not survive it */
    MEASURE_LACKING,     /* B or the machine failed: nothing is said about A */
    MEASURE_INAPPLICABLE /* there is no problem that both take */
};

struct measurement {
    enum measure_end end;
    char sentence[640]; /* if not DONE */
    bool same_binary;   /* there was nothing to measure: SAME by definition */
    bool simulated;
    struct shape_measure *shapes;
    int count;
    struct suite_verdict suite;
    json_t *surroundings;
};

void measure(const struct measure_spec *spec, struct measurement *measurement);
void measurement_free(struct measurement *measurement);

/* What the speed gate puts into its details: "shapes", "refused" (those that one of the kernels does not take), "suite", "clock",
 * "opponent", "same_binary", "floor" (its bounds), "surroundings". */
void measurement_put(const struct measurement *measurement, const struct measure_spec *spec, json_t *details);

/* Every sample. New reference. */
json_t *measurement_samples(const struct measurement *measurement, const struct measure_spec *spec);

#endif
