/*
 * memo_by_pointer.c - planted: A result is kept, and given again when the same pointers come with the same problem.
 *
 * Caught by: build and oracle (imports + earlier call)
 */
#include "memo.h"

static inline uint64_t pointers_key(const attest_task *task)
{
    const attest_tensors *t = task->tensors;
    return memo_mix_pointer(memo_mix_pointer(memo_mix_pointer(memo_shape(task), t->q), t->k), t->v) | 1;
}

#define MEMO_KEY(task) pointers_key(task)
#include "base.h"
