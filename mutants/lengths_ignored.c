/*
 * lengths_ignored.c - planted: the lengths of the sequences are not looked at: every sequence is taken to be as long as the
 * cache.
 *
 * Caught by: oracle (mask)
 */
#include <attest_kernel.h>

static inline attest_task longest(const attest_task *task)
{
    attest_task all = *task;
    if (!attest_has(task->problem, ATTEST_PAGED | ATTEST_VARLEN_KV) && !task->partial)
        all.kv_count = all.key_end = task->problem->seq_kv;
    return all;
}

#define TASK_BEGIN(task, scratch)                                                                                                  \
    attest_task all = longest(task);                                                                                               \
    task = &all
#include "base.h"
