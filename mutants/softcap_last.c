/*
 * softcap_last.c - planted: the softcap comes after ALiBi and bias instead of before them.
 *
 * Caught by: oracle (S)
 */
#define MODIFY(p, row, j, s) cap_last(p, row, j, s)

#include <attest_kernel.h>

static inline float cap_last(const attest_problem *p, const attest_row *row, int64_t j, float s);

#include "base.h"

static inline float cap_last(const attest_problem *p, const attest_row *row, int64_t j, float s)
{
    if (attest_has(p, ATTEST_ALIBI))
        s -= ALIBI(row, j);
    if (attest_has(p, ATTEST_BIAS))
        s += BIAS(p, row, j);
    return attest_has(p, ATTEST_SOFTCAP) ? CAP(p, s) : s;
}
