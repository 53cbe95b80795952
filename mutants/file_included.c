/*
 * file_included.c - planted: includes a file of the host.
 *
 * Caught by: build (/etc/passwd)
 */
#include "/etc/passwd"
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
