/*
 * scratch.h - scratch memory that is guarded to the byte, in the worker.
 */
#ifndef ATTEST_SCRATCH_H
#define ATTEST_SCRATCH_H

#include "protocol.h"

/* Scratch memory of `size` bytes for the calling thread, full of rubbish drawn from `seed`, that ends at (GUARD_END) or begins behind (GUARD_START,
 * GUARD_FAR) a page that cannot be touched. Without memory the process ends with EXIT_MEMORY. */
void *scratch_take(size_t size, enum guard guard, uint64_t seed);

/* The byte behind its end that was written, from 1 on, or 0: between the end and the page there are up to 63 bytes and more. */
int64_t scratch_overrun(void);

/* The guarded scratch memory of the calling thread, 0 and 0 if it has none. For signal handlers. */
void scratch_range(uint64_t *begin, uint64_t *end);

#endif
