/*
 * cuda_tools.h - the gates of CUDA candidates that need a GPU and NVIDIA's tools: memory (compute-sanitizer) and profile (ncu).
 * Without a GPU they are INCONCLUSIVE, and say so.
 */
#ifndef ATTEST_CUDA_TOOLS_H
#define ATTEST_CUDA_TOOLS_H

#include "cuda_finding.h"
#include "gate.h"

void cuda_gate_memory(struct proof *proof, struct gate_result *result);
void cuda_gate_profile(struct proof *proof, struct gate_result *result);

/* The first GPU. */
struct cuda_device {
    char name[128];
    int major, minor;    /* compute capability */
    int multiprocessors; /* SMs */
};

/* Asks the driver, in a process of its own, so that CUDA is never initialised in this one. False, with a sentence, if there is no
 * driver or no GPU. */
bool cuda_device_find(struct cuda_device *device, char *why, size_t why_size);

/*
 * The command that runs one problem on the candidate's images under a tool:
 *
 *     attest worker --cuda INDEX PROBLEM --seed N --marker MARKER
 *
 * INDEX is candidate.image, the index that the build gate wrote. The worker draws the inputs from the seed, launches the kernel at
 * least four times, with guard bands round every buffer, prints MARKER on a line of its own, and exits with 0; with EXIT_LACKING if
 * it cannot run the kernel here.
 */
struct cuda_worker_command {
    const char *argv[12];
    char program[512], marker[40], seed[24], problem[ATTEST_PROBLEM_TEXT];
    struct cuda_worker worker;
};
bool cuda_worker_make(const struct proof *proof, const attest_problem *problem, struct cuda_worker_command *command);

#endif
