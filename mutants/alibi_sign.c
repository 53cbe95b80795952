/*
 * alibi_sign.c - planted: ALiBi is added where it has to be taken away.
 *
 * Caught by: oracle (S)
 */
#define ALIBI(row, j) (-(row)->slope * fabsf((float)((row)->place - (j))))
#include "base.h"
