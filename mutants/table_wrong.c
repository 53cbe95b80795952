/*
 * table_wrong.c - planted: the table says that a task has a multiple of 0 rows.
 *
 * Caught by: build (row_step)
 */
#define ROW_STEP 0
#include "base.h"
