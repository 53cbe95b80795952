/*
 * address_in_bits.c - planted: the order of summing depends on the address of K.
 *
 * Caught by: determinism (another process)
 */
#define BACKWARDS (__builtin_parityll((unsigned long long)(uintptr_t)task->tensors->k))
#include "backwards.h"

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
