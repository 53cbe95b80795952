/*
 * harmless_columns_reversed.c - harmless: columns of V are kept in the opposite order, and turned round when O is written.
 */
#define COLUMN(d, count) ((count)-1 - (d))
#define DTYPES           ATTEST_TAKES_F32
#include "base.h"
