/*
 * speed_same.c - A kernel that is exactly as fast. The kernel itself is right.
 */
#include "base.h"
