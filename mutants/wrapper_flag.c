/*
 * wrapper_flag.c - planted: has the compiler run a program of its own choice.
 *
 * Caught by: build (the flag -wrapper)
 *
 * attest-flags: -wrapper /bin/true
 */
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
