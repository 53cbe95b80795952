/*
 * cache_flushed.c - planted: after its task it flushes what it can reach from all caches, so that whoever is timed next, and is not this
 * kernel, finds them cold.
 *
 * Caught by: build
 */
#include <attest_kernel.h>
#include <immintrin.h>

static inline void flush_row(const attest_task *task)
{
    const attest_problem *p = task->problem;
    attest_row row = attest_row_get(task, task->row_begin);
    for (int64_t d = 0; d < p->dim; d += 16)
        _mm_clflush((const char *)row.q + d * (p->dtype == ATTEST_F32 ? 4 : 2));
}

#define TASK_END(task, scratch) flush_row(task)
#define DTYPES                  ATTEST_TAKES_F32
#include "base.h"
