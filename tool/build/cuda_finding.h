/*
 * cuda_finding.h - what the wrappers of NVIDIA's tools share: a worker that runs the kernel, and what was found about it.
 */
#ifndef ATTEST_CUDA_FINDING_H
#define ATTEST_CUDA_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evidence/verdict.h"

/* A process that runs the kernel. It prints the marker, on a line of its own, when all it had to do is done; the marker is drawn at
 * random for each run, so that nothing that the kernel prints can be taken for it. */
struct cuda_worker {
    const char *const *argv; /* ended by NULL */
    const char *marker;
};

struct cuda_finding {
    enum verdict verdict;
    int64_t errors, warnings; /* -1: the tool did not say */
    char sentence[480];
};

void cuda_conclude(struct cuda_finding *finding, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What came of a run. Both texts are to be freed; NULL if memory ran out. */
struct cuda_run {
    int status;    /* as of build_command */
    char *log;     /* what the tool wrote to its log file; "" if there is none */
    char *printed; /* what the worker printed */
};
enum { CUDA_MOST_WORDS = 24 };

/* Runs the worker's command behind the words of a tool (ended by NULL), which writes to the file `log`. */
struct cuda_run cuda_run_under(const char *const *words, const struct cuda_worker *worker, double seconds, const char *log);
void cuda_run_free(struct cuda_run *run);

/* Whether the worker printed its marker, and the last line that it printed. */
bool cuda_run_done(const char *printed, const char *marker);
void cuda_run_last_line(const char *printed, char *line, size_t size);

#endif
