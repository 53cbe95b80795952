/*
 * cpu.h - the CPU backend: kernels as attest_kernel.h has them, one for each instruction set. Which tasks there are, and on which
 * thread each runs, is decided outside of them (schedule.c), so the thread count cannot change a bit of the result.
 */
#ifndef ATTEST_CPU_H
#define ATTEST_CPU_H

#include "../internal.h"

/* Sequences with so few rows are computed with the head dimension in vector lanes instead of the rows (decode_tile.h), and
 * those with at most SPLIT_ROWS rows are split over keys. Both depend on the sequence alone, so bits do not depend on its batch. */
enum { DECODE_ROWS = ATTEST_PREPARE_ROWS, SPLIT_ROWS = 64, SPLIT_KEYS = 1024 };

extern const attest_cpu_kernel cpu_fwd_scalar, cpu_fwd_avx2, cpu_fwd_avx512, cpu_fwd_avx512bf16, cpu_fwd_amx;

/* Sets tile_rows and workspace, and threads to 1 where others would only cost time, unless it shall be exactly as many as there are. */
void cpu_plan(struct attest_plan *plan, bool exactly);
void cpu_run(const struct attest_plan *plan, const attest_tensors *t, void *workspace);

/* Scores are kept in units of log2, so that the exponential is a power of two; with a bias, which may be as large as a float can
 * be, in natural units. */
#define LOG2E 1.44269504088896340736
static inline bool scores_are_natural(const attest_problem *p)
{
    return has(p, ATTEST_BIAS);
}

/* What a dot product is multiplied by to become a score, or with a softcap the argument of its tanh. */
static inline float score_scale(const attest_problem *p)
{
    if (has(p, ATTEST_SOFTCAP))
        return p->scale / p->softcap;
    return scores_are_natural(p) ? p->scale : (float)(p->scale * LOG2E);
}

#endif
