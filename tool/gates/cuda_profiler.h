/*
 * cuda_profiler.h - runs a worker under ncu (Nsight Compute) and says what limits the kernel, and whether it did the work it
 * claims.
 */
#ifndef ATTEST_CUDA_PROFILER_H
#define ATTEST_CUDA_PROFILER_H

#include "build/cuda_finding.h"
#include "cuda/cuda_manifest.h"
#include "data/layout.h"

/* The metrics, in the order of the table in cuda_profiler.c. */
enum cuda_metric {
    METRIC_TIME,       /* nanoseconds */
    METRIC_SM,         /* busy, in percent */
    METRIC_TENSOR,     /* tensor pipe busy, in percent */
    METRIC_DRAM,       /* busy, in percent */
    METRIC_L2,         /* busy, in percent */
    METRIC_HMMA,       /* instructions of warps, */
    METRIC_HFMA2,      /* of which these are no products: HFMA2.MMA; not counted on every GPU */
    METRIC_GMMA,       /* likewise; from 9.0 on */
    METRIC_DRAM_READ,  /* bytes */
    METRIC_DRAM_WRITE, /* bytes */
    METRIC_L2_READ,    /* sectors of 32 bytes */
    METRIC_L2_WRITE,   /* likewise */
    METRIC_L2_HITS,    /* in percent */
    METRIC_REGISTERS,  /* of a thread */
    METRIC_COUNT
};
const char *cuda_metric_name(enum cuda_metric metric);

struct cuda_profile {
    bool there[METRIC_COUNT];
    double values[METRIC_COUNT];
    char kernel[128];
};

/* Reads what `ncu --csv --page raw` printed: a row of names, a row of units, a row for each launch, of which `launch` is wanted,
 * from 0 on. Metrics that are not there, or that say n/a, are not there. False, with a sentence, if there is no such row. */
bool cuda_profile_parse(const char *csv, int launch, struct cuda_profile *profile, char *why, size_t why_size);

/* The work that a problem is: what no kernel can do without, and what one with the manifest's tiles does if it skips nothing. */
struct cuda_workload {
    double pairs;                 /* of rows and keys that see each other, over all heads */
    double padded_pairs;          /* the same with whole tiles and no mask */
    double read, written;         /* bytes */
    int64_t dim, dim_v, instance; /* of the problem, and ATTEST_DIM */
};
struct cuda_workload cuda_workload(const struct layout *layout, const struct cuda_manifest *manifest,
                                   const struct cuda_configuration *configuration);

/* What limits the kernel: "tensor cores (71 % busy)". */
void cuda_limiter(const struct cuda_profile *profile, char *text, size_t size);

/* Tensor instructions that match the work and the claim, bytes that are not below the compulsory, a limiter that is named. `arch`
 * is the number of the device, 90. */
void cuda_profile_judge(const struct cuda_profile *profile, const struct cuda_workload *workload,
                        const struct cuda_manifest *manifest, const struct cuda_configuration *configuration, int arch,
                        struct cuda_finding *finding);

/* Words to put before the command of the worker, as in cuda_sanitizer.h, to profile so many launches. */
int cuda_profiler_words(const char *program, const char *log, int arch, int launches, const char *words[CUDA_MOST_WORDS]);

/* Runs it. What it logged, to be freed; NULL, and the finding filled, if there is nothing to be judged. */
char *cuda_profiler_run(const char *program, int arch, int launches, const struct cuda_worker *worker, double seconds,
                        const char *log, struct cuda_finding *finding);

#endif
