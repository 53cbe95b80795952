/*
 * speed_impossible.c - times below what the bytes and operations of the problem allow. The kernel itself is right.
 */
#include "base.h"
