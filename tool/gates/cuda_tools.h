/*
 * cuda_tools.h - the gates of CUDA candidates that need a GPU and NVIDIA's tools: memory (compute-sanitizer) and profile (ncu).
 * Without a GPU they are INCONCLUSIVE, and say so.
 */
#ifndef ATTEST_CUDA_TOOLS_H
#define ATTEST_CUDA_TOOLS_H

#include "build/cuda_finding.h"
#include "gate.h"

void cuda_gate_memory(struct proof *proof, struct gate_result *result);
void cuda_gate_profile(struct proof *proof, struct gate_result *result);

/* The GPU that a proof is on. */
struct cuda_device {
    char name[128];
    int major, minor;    /* compute capability */
    int multiprocessors; /* SMs */
};

/* `word` is "cuda" or "cuda:N". False, with a sentence, if there is no driver or no such GPU. */
bool cuda_device_find(const char *word, struct cuda_device *device, char *why, size_t why_size);

/*
 * The command that runs problems on the candidate's images under a tool:
 *
 *     attest worker --cuda --device DEVICE --seed N --marker MARKER INDEX PROBLEM ...
 *
 * INDEX is candidate.image, the index that the build gate wrote. The worker draws the inputs from the seed, launches the kernel
 * once on each problem, with an allocation of exactly its size for every tensor and for the workspace, and nothing written to
 * outputs and workspace; prints MARKER on a line of its own, and exits with 0; with EXIT_LACKING if it cannot run the kernel here.
 * With --keep-going it runs the last problem until it is killed, to keep the GPU busy.
 */
enum { CUDA_MOST_PROBLEMS = 16 };
struct cuda_worker_command {
    const char *argv[12 + CUDA_MOST_PROBLEMS];
    char program[512], marker[40], seed[24], problems[CUDA_MOST_PROBLEMS][ATTEST_PROBLEM_TEXT];
    struct cuda_worker worker;
};
bool cuda_worker_make(const struct proof *proof, const attest_problem *const *problems, int count,
                      struct cuda_worker_command *command);

/* That worker. */
enum exit_code cuda_worker_main(struct session *session);

#endif
