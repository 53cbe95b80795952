/* drive.h - runs kernels on instances and applies every check that any run must pass. */
#ifndef DRIVE_H
#define DRIVE_H

#include "tolerance.h"

/* The type a kernel rounds P to: bf16 tiles do, as attest.h declares; all else keeps float32. */
uint32_t kernel_p_dtype(const attest_kernel_info *info, const attest_problem *problem);

/* tap_case with the problem's line as the name. False too, with a tap failure, if the library refuses the problem. */
bool drive_case(const attest_problem *problem);

/* A new context with this many threads, or a tap failure and NULL. */
attest_context *drive_context(int threads);

/*
 * Poisons the outputs and a workspace of exactly the planned size (between guard pages as the placement says), runs the kernel,
 * and checks the status and that nothing outside the outputs was written.
 */
bool drive_run(attest_context *context, const char *kernel, struct instance *in, enum placement placement);

/* drive_run on every kernel that takes the problem, each judged against the basis. Returns how many kernels ran. */
int drive_run_all(attest_context *context, struct instance *in, const struct verdict_basis *basis, enum placement placement);

/* Walks the kernels that take a problem: index of the next one at or after `index`, or -1. */
int drive_next(attest_context *context, const attest_problem *problem, int index, attest_kernel_info *info);

/* A copy of O and LSE, row by row in logical order (whatever the strides), to compare bits with. Free it with free. */
unsigned char *drive_snapshot(const struct instance *in, size_t *size);

/* The same for the rows of one sequence. */
unsigned char *drive_snapshot_sequence(const struct instance *in, int64_t b, size_t *size);

#endif
