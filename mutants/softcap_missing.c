/*
 * softcap_missing.c - planted: the softcap is left out.
 *
 * Caught by: oracle (S)
 */
#define CAP(p, s) (s)
#include "base.h"
