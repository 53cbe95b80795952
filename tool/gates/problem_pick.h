/*
 * problem_pick.h - a few problems of the suite that between them have every feature the kernel takes, for gates that cannot run them all.
 */
#ifndef ATTEST_PICK_H
#define ATTEST_PICK_H

#include "gate.h"

/* At most `most` problems, none of more than about `flops` operations; the first is the one with the most features. */
int pick_problems(const struct proof *proof, double flops, const struct problem_entry **picked, int most);

/* The cheapest of them. */
const struct problem_entry *pick_cheapest(const struct problem_entry *const *picked, int count);

/* The same problem with gaps between all rows and between the elements of LSE. */
attest_problem pick_padded(const attest_problem *problem);

#endif
