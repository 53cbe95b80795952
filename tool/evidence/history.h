/*
 * history.h - what the records of a kernel tell one after the other: what was changed, how the gates answered.
 */
#ifndef ATTEST_HISTORY_H
#define ATTEST_HISTORY_H

#include <jansson.h>
#include <stddef.h>

/* What a record was made from, compared with an earlier one of the same kernel (NULL: there is none): "first attempt", "nothing",
 * "my_kernel.c", "2 files: ...". */
void history_change(const json_t *record, const json_t *before, char *text, size_t size);

/* "build PASS, oracle FAIL". */
void history_gates(const json_t *record, char *text, size_t size);

#endif
