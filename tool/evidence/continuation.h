/*
 * continuation.h - records that continue earlier ones: when a gate is added or becomes stricter, what a kernel passed before still
 * holds, and a later record with the results of the new gates alone ("continues": the digest of the earlier line) completes it.
 */
#ifndef ATTEST_CONTINUATION_H
#define ATTEST_CONTINUATION_H

#include <jansson.h>
#include <stddef.h>

/* The record of an entry of statements_load with the results of all the records it continues: a copy, in which "gates" has the newest
 * result of each gate, and each result the number of the policy it was run under ("policy_number"). NULL and a sentence if the chain
 * of records is broken: one is not there, is about another kernel, device class or image, or was rejected. */
json_t *continuation_combine(const json_t *statements, const json_t *entry, char *why, size_t why_size);

/* The same for a record that is in no statement yet; `base` is a combined one, or NULL. New reference. */
json_t *continuation_add(const json_t *base, const json_t *record);

/* The gates that a combined record has not passed as they are today, by name, in their order: an array; empty if it is complete. */
json_t *continuation_missing(const json_t *combined);

/* "proven under policy 1; gates build and memory of policy 2 not run"; "" if nothing is missing. */
void continuation_sentence(const json_t *combined, const json_t *missing, char *text, size_t size);

#endif
