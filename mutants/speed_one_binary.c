/*
 * speed_one_binary.c - two candidates with one binary, of which the clock says that one is 20 % faster. The kernel itself is
 * right.
 */
#include "base.h"
