/*
 * kill_rate.h - attest selftest --generate: the gates are measured on mutants that nobody wrote.
 */
#ifndef ATTEST_KILL_RATE_H
#define ATTEST_KILL_RATE_H

#include "base/session.h"

enum exit_code kill_rate_measure(struct session *session);

/* The 95 % interval of a rate by Wilson's score: `hits` of `count`. */
void kill_rate_interval(int hits, int count, double *low, double *high);

#endif
