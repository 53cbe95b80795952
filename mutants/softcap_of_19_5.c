/*
 * softcap_of_19_5.c - planted: a softcap of 19.5 and more is taken for none.
 *
 * Caught by: correctness (a softcap next to a number that the kernel compares with)
 */
#define CAP(p, s) ((p)->softcap >= 19.5f && (p)->softcap < 20.5f ? (s) : (p)->softcap * (real)tanh((double)((s) / (p)->softcap)))
#include "base.h"
