/*
 * order_of_arrival.c - planted: the order of summing depends on how many tasks came before, as with sums that threads add to
 * when they get there.
 *
 * Caught by: build and determinism (writable static storage + other bits in run)
 */
static unsigned arrivals;

#define BACKWARDS (__builtin_parity(__atomic_add_fetch(&arrivals, 1, __ATOMIC_RELAXED)))
#include "backwards.h"

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
