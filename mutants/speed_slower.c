/*
 * speed_slower.c - A kernel that is 5 % slower, presented as faster. The kernel itself is right.
 */
#include "base.h"
