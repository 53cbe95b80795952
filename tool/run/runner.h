/*
 * runner.h - a kernel made ready to run: context with its thread count, plan, workspace. And which kernels a command is about.
 */
#ifndef ATTEST_RUNNER_H
#define ATTEST_RUNNER_H

#include "device_arrays.h"
#include "base/session.h"

struct runner {
    attest_context *context;
    attest_plan *plan;
    attest_problem problem;
    void *workspace; /* memory of the context's device */
    size_t workspace_size;
    struct device_arrays arrays; /* not on the CPU: the tensors of the last run */
};

/* A plan for the problem with this kernel (NULL: the library's choice). On failure `why` has the sentence. The device is as in
 * attest_context_create_on; runner_make is for the CPU. */
attest_status runner_make_on(struct runner *runner, const char *device, const attest_problem *problem, const char *kernel,
                             int threads, char *why, size_t why_size);
attest_status runner_make(struct runner *runner, const attest_problem *problem, const char *kernel, int threads, char *why,
                          size_t why_size);
void runner_free(struct runner *runner);

/* Fills the workspace with a byte. What is in it must not matter. */
void runner_poison(struct runner *runner, int byte);

/* Computes the problem. The tensors are memory of this process; on another device copies of them are used, between guard bands that
 * must be as they were afterwards (else ATTEST_ERROR_INTERNAL and a sentence). Returns when O is there. */
attest_status runner_run(struct runner *runner, const attest_tensors *tensors, char *why, size_t why_size);

/*
 * The kernels a command is about: without --kernel the one that a plan takes, else all that match and take the problem here. At
 * most `most` names; the number of them is returned. If it is 0, `why` says why.
 */
int kernels_select(struct session *session, const attest_problem *problem, const char **names, int most, char *why,
                   size_t why_size);
#define MOST_KERNELS 64

/* The widths of the columns "problem" and "kernel" of a table about all problems. */
void table_widths(const struct session *session, int *problem_width, int *kernel_width);

#endif
