/*
 * statement_order.h - the order of all statements of a folder, across its files.
 */
#ifndef ATTEST_ORDER_H
#define ATTEST_ORDER_H

#include <jansson.h>

/* The digests of the statements that no other one names as "previous" or "after", sorted: what a new line names as "after". New
 * reference. */
json_t *order_heads(const json_t *entries);

/* Sets the problem of each entry (see statements_load) whose number or place among the others is not what it must be. */
void order_check(const json_t *entries);

#endif
