/*
 * choose.h - the kernels of this build, why one does not take a problem, and which one runs.
 */
#ifndef ATTEST_CHOOSE_H
#define ATTEST_CHOOSE_H

#include "internal.h"
#include "cuda/gpu.h"

/* All of them: those for GPUs, those for the CPU, the reference. */
int kernel_count(void);
const struct kernel *kernel_at(int index);

/* What was asked for; any kernel unless `given`. */
struct wish {
    bool given;
    char pattern[160];
    struct tile_wish tile;
};

/* "cuda_fwd_f16_wmma@48x64" -> the name or pattern, and the tiles. */
attest_status wish_read(const char *kernel, struct wish *wish, struct text why);

/* The one predicate: ATTEST_OK, or why not. */
attest_status kernel_refusal(const attest_context *context, const struct kernel *kernel, struct tile_wish tile,
                             const attest_problem *p, struct text why);

/* The kernel that was added if it is meant, the champion if nothing is said, else the first kernel that matches and takes the
 * problem, candidates last, or the most telling refusal of those that match. */
attest_status kernel_choose(attest_context *context, const attest_problem *p, const struct wish *wish, struct kernel *chosen);

/* The model of a machine that a kernel was proven on, this one's if it was; NULL if there is none. */
const char *kernel_proven_on(const char *kernel, const char *here);

/* A plan for a kernel that takes the problem, in place (plan.c). */
attest_status plan_fill(struct attest_plan *plan, attest_context *context, const attest_problem *p, struct kernel kernel,
                        struct tile_wish tile);

#endif
