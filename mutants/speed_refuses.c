/*
 * speed_refuses.c - a right kernel that is fast where it is timed, and takes no causal mask: shapes where it would lose are dropped from
 * the mean.
 */
#define REFUSES ATTEST_CAUSAL
#include "base.h"
