/*
 * relations.h - truths about attention that need no reference: what must happen to the output of any right kernel when its inputs
 * change in a known way. Which of them hold to the bit, and why, is at the head of relations.c.
 */
#ifndef ATTEST_RELATIONS_H
#define ATTEST_RELATIONS_H

#include "run/executor.h"
#include "data/shape_variants.h"
#include "evidence/verdict.h"

extern const int relation_count;
const char *relation_name(int relation);

/* The relation of this name, which there must be. */
int relation_find(const char *name);

struct relation_verdict {
    enum verdict verdict; /* NOT APPLICABLE: the kernel does not take what the relation is about, or the problem does not have it */
    bool rounded;         /* it holds within rounding, where many kernels have the same bits */
    enum execution_end end;
    char sentence[480]; /* unless PASS */
};

/* Asks one relation on a dense problem without features other than CAUSAL, BOTTOM_RIGHT and LSE. `device`: bits depend on the batch
 * and the layout unless the problem is ATTEST_INVARIANT. */
void relation_check(int relation, struct subject subject, struct taker taker, const attest_problem *problem, bool device,
                    uint64_t seed, struct relation_verdict *verdict);

#endif
