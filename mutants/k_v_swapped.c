/*
 * k_v_swapped.c - planted: K and V are taken for each other.
 *
 * Caught by: oracle (S)
 */
#define KEY_POINTERS(task, is_v, first, count, out) attest_key_pointers(task, !(is_v), first, count, out)
#include "base.h"
