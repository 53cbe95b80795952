/*
 * harmless_rows_odd.c - harmless: tasks of 7, 14 or 21 rows.
 */
#define ROW_STEP    7
#define ROWS_WANTED 21
#define DTYPES      ATTEST_TAKES_F32
#include "base.h"
