/*
 * scratch.h - gives a kernel scratch memory that is guarded to the byte, in the worker.
 */
#ifndef ATTEST_SCRATCH_H
#define ATTEST_SCRATCH_H

#include <attest_kernel.h>

#include "protocol.h"

/* A table like the kernel's whose tasks run with scratch memory of exactly scratch_size bytes that ends at (GUARD_END) or begins
 * behind (GUARD_START) a page that cannot be touched. What was written between its end and the page is noted on the board. */
const attest_cpu_kernel *scratch_guard(const attest_cpu_kernel *kernel, enum guard guard, struct board *board);

/* The guarded scratch memory of the calling thread, 0 and 0 if it has none. For signal handlers. */
void scratch_range(uint64_t *begin, uint64_t *end);

#endif
