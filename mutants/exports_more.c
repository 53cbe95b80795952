/*
 * exports_more.c - planted: it exports a function beside the entry, which could take the place of one of the host.
 *
 * Caught by: build (exports attest_context_threads_of_mine too)
 */
#include "base.h"

ATTEST_API int64_t attest_context_threads_of_mine(void);
int64_t attest_context_threads_of_mine(void)
{
    return ROWS_WANTED;
}
