/*
 * shape_variants.h - random problems near those of a suite, so that nothing is right on the shapes of the suite alone.
 */
#ifndef ATTEST_NEIGHBOURS_H
#define ATTEST_NEIGHBOURS_H

#include "base/session.h"

/* What a kernel declares that it takes. */
struct taker {
    bool (*takes)(const void *data, const attest_problem *problem);
    const void *data;
};
bool taker_takes(struct taker taker, const attest_problem *problem);

/* A problem near `base`: other sizes, heads, features, layouts. False if none that the kernel takes was found. The same seed gives
 * the same neighbour. */
bool neighbour_draw(const attest_problem *base, struct taker taker, uint64_t seed, attest_problem *neighbour);

/* The same problem with one row or key more or less, which is what a shape that is timed is compared with. `which` is 0 to 3. */
enum { NEXT_DOOR = 4 };
bool neighbour_next_door(const attest_problem *base, int which, attest_problem *neighbour);

#endif
