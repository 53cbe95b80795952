/*
 * scratch_overrun.c - planted: asks for 16 bytes of scratch too few where the head dimensions are small, and writes into what belongs to
 * another thread.
 *
 * Caught by: correctness (behind the end of its scratch memory)
 */
#define SCRATCH_EXTRA (p->dim < 16 && p->dim_v < 16 ? (size_t)-16 : 0)

#include "base.h"
