/*
 * registers.h - the processor state of a thread that a kernel must leave as it was, in the worker.
 */
#ifndef ATTEST_REGISTERS_H
#define ATTEST_REGISTERS_H

#include "protocol.h"

/* Takes the state of the calling thread as what it has to be in all threads, always. Before a kernel is loaded. `amx`: this machine has
 * tiles that can be used. */
void registers_begin(struct board *board, bool amx);

/* Random bits, in any thread. */
uint64_t registers_draw(void);

/* Before a call of a kernel: registers that a function may find in any state, and the stack below, are filled with what is left of
 * nothing. `thorough` is not for calls that are timed. */
void registers_before(bool thorough);

/* After a call: what is not as it was is noted on the board, and put right. */
void registers_after(enum kernel_function function, bool thorough);

#endif
