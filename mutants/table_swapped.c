/*
 * table_swapped.c - planted: puts another function into its table once it has been taken, one that leaves out every other task.
 *
 * Caught by: build and memory (writable static storage + changed its table)
 */
#include <attest_kernel.h>

static inline void swap_table(void);
static const attest_cpu_kernel *table_of_base(void);

#define TASK_END(task, scratch) swap_table()
#define ENTRY                   table_of_base
#define DTYPES                  ATTEST_TAKES_F32
#include "base.h"

static attest_cpu_kernel mine;

static void lazy_tile(const attest_task *task, void *scratch)
{
    if (task->row_begin % 2 == 0)
        tile_task(task, scratch);
}

static inline void swap_table(void)
{
    mine.tile = lazy_tile;
}

const attest_cpu_kernel *attest_cpu_kernel_entry(void)
{
    mine = *table_of_base();
    return &mine;
}
