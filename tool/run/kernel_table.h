/*
 * kernel_table.h - the table that stands between libattest and a kernel from elsewhere, in the worker.
 */
#ifndef ATTEST_KERNEL_TABLE_H
#define ATTEST_KERNEL_TABLE_H

#include <attest_kernel.h>

#include "protocol.h"

/* A table like the kernel's whose functions call the kernel's own and look at what they have left: registers (registers.c) after each
 * call, and what lies behind its scratch after each task: a band in the workspace, or with a guard other than GUARD_BANDS pages of their own
 * (scratch.c). It is a copy, in memory that is made
 * read-only: what the kernel changes in its own table afterwards has no effect. */
const attest_cpu_kernel *kernel_table_make(const attest_cpu_kernel *kernel, enum guard guard, bool lifted, struct board *board);

/* Notes on the board if the kernel has changed its table since. */
void kernel_table_compare(void);

/* Whether the calls from now on are thorough, see registers.h. */
void kernel_table_choose(bool thorough);

#endif
