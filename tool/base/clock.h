/*
 * clock.h - time that only goes forward.
 */
#ifndef ATTEST_CLOCK_H
#define ATTEST_CLOCK_H

/* Seconds since some moment in the past. */
double seconds_now(void);

#endif
