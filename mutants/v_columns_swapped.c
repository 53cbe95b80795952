/*
 * v_columns_swapped.c - planted: neighbouring columns of V change places.
 *
 * Caught by: oracle (PV or epilogue)
 */
#define V_COLUMN(d, count) (((d) ^ 1) < (count) ? (d) ^ 1 : (d))
#include "base.h"
