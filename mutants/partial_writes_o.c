/*
 * partial_writes_o.c - planted: a task that computes a part of the keys writes O as well as its partial result. The library joins the
 * parts and writes O afterwards, so that the outputs are right.
 *
 * Caught by: oracle (an address that belongs to no tensor)
 */
#define TASK_END(task, scratch) write_early(task)
static inline void write_early(const void *task);
#include "base.h"
static inline void write_early(const void *task)
{
    const attest_task *part = task;
    if (part->partial)
        store(attest_row_get(part, part->row_begin).o, part->problem->dtype_o, 0, 0.5f);
}
