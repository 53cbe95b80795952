/*
 * worker_surroundings.h - takes from a process what tells a kernel where it runs, in the worker.
 */
#ifndef ATTEST_NEUTRAL_H
#define ATTEST_NEUTRAL_H

#include <stdint.h>

/* Replaces the words of the command line and the environment, on the stack where the system has put them, by some that any program
 * could have been started with, drawn from `seed`. */
void neutral_words(uint64_t seed);

#endif
