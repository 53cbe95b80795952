/*
 * warning_flag.c - planted: turns a warning off by a flag.
 *
 * Caught by: build (turns a warning off)
 *
 * attest-flags: -Wno-unused-function
 */
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
