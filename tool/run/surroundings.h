/*
 * surroundings.h - the machine while something is timed on it: clocks, temperature, who else uses it; and what no machine can beat.
 */
#ifndef ATTEST_SURROUNDINGS_H
#define ATTEST_SURROUNDINGS_H

#include <jansson.h>

#include "data/layout.h"

/* The highest clock of a core now, in Hz; 0 if the system does not say, or takes too long to say it between two timed calls. */
double clock_now(void);

/* What is noted of a sitting. */
struct surroundings {
    double load, temperature; /* at the beginning; NaN if unknown */
    double busy, own;         /* seconds of processor time, of all and of this process and its workers, at the beginning */
    double time;
};
void surroundings_begin(struct surroundings *surroundings);

/* {"clock_hz", "load": [begin, end], "temperature_c": [begin, end], "others": share of the machine that others used}, with null for
 * what the system does not say. To be called when the workers have ended. New reference. */
json_t *surroundings_end(const struct surroundings *surroundings);

/* The time that no kernel can be below, in seconds: see the bounds in surroundings.c. */
double floor_seconds(const struct layout *layout, bool gpu);
json_t *floor_bounds(bool gpu); /* the bounds, for the record; new reference */

/* The level-2 cache of a core, in bytes. */
double cache_bytes(void);

#endif
