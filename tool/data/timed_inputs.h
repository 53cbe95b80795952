/*
 * timed_inputs.h - fresh inputs for every timed call: one drawn set, and any number of others made from it by changing signs.
 *
 * Set n is the drawn set with the sign of each element of Q, K and V changed or not, by a coin of (seed, n, place). That is quick,
 * keeps the distribution, and leaves nothing of a score or of an output that could be known from an earlier set. Any set can be
 * made again at any time.
 */
#ifndef ATTEST_FEED_H
#define ATTEST_FEED_H

#include "inputs.h"

struct feed {
    struct inputs inputs; /* set `number` */
    uint64_t seed, number;
};

/* On failure *code is an exit code and `why` a sentence. */
bool feed_make(struct feed *feed, const attest_problem *problem, uint64_t seed, enum exit_code *code, char *why, size_t why_size);
void feed_free(struct feed *feed);
void feed_turn(struct feed *feed, uint64_t number);

/* All bytes of the inputs. */
size_t feed_bytes(const struct feed *feed);

#endif
