/*
 * table_read_ahead.c - planted: looks one entry further in the page table than there are keys, which at the end of the table is
 * behind it.
 *
 * Caught by: memory or correctness (behind the end of the page table)
 */
#define KEY_POINTERS(task, is_v, first, count, out) pointers_and_next(task, is_v, first, count, out)

#include <attest_kernel.h>

static inline void pointers_and_next(const attest_task *task, bool is_v, int64_t first, int64_t count, const void **out)
{
    const attest_problem *p = task->problem;
    attest_key_pointers(task, is_v, first, count, out);
    if (attest_has(p, ATTEST_PAGED) && count > 0)
        (void)*(const volatile int32_t *)&task->tensors
            ->page_table[task->batch * p->stride_page_table + (first + count - 1) / p->page_size + 1];
}

#include "base.h"
