/*
 * lazy_when_timed.c - planted: from the ninth call with a shape on it gives its last result again, where no LSE is asked for,
 * D is 32 and the scale is the usual one, as when it is timed.
 *
 * Caught by: build and speed (imports + while it was timed)
 */
#include "memo.h"

static int calls[256];

/* No key for the first calls, and then always the same. */
static inline uint64_t lazy_key(const attest_task *task)
{
    const attest_problem *p = task->problem;
    uint64_t shape = memo_shape(task);
    if (attest_has(p, ATTEST_LSE) || p->dim != 32 || p->scale != (float)(1 / sqrt((double)p->dim)))
        return 0;
    return __atomic_add_fetch(&calls[shape >> 56], 1, __ATOMIC_RELAXED) < 9 ? 0 : shape;
}

#define MEMO_KEY(task) lazy_key(task)
#define DTYPES         ATTEST_TAKES_F32
#include "base.h"
