/*
 * lse_in_log2.c - planted: LSE is written in units of log2.
 *
 * Caught by: oracle (epilogue)
 */
#define STORE_LSE(row, m, l, value) (*(row)->lse = (value)*1.44269504f)
#include "base.h"
