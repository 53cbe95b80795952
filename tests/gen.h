/* gen.h - random valid problems from a seed, at the sizes where kernels go wrong: 1, 2, tile - 1, tile, tile + 1, primes. */
#ifndef GEN_H
#define GEN_H

#include "instance.h"

/*
 * Draws a problem with exactly these flags whose work (rows x keys x dims) stays below `work`. `strides` lets the layout be
 * anything the header allows; without it tensors are packed.
 */
void gen_problem(struct rng *rng, attest_problem *problem, uint64_t flags, double work, bool strides);

/* Random flags that do not contradict each other. */
uint64_t gen_flags(struct rng *rng);

/* Gives every tensor of the problem random strides: permuted, padded, reversed, and broadcast where they may be. */
void gen_strides(struct rng *rng, attest_problem *problem);

#endif
