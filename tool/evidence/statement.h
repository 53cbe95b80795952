/*
 * statement.h - evidence: in-toto statements, one JSON line each, in <evidence>/<device>/<kernel>.intoto.jsonl, with their
 * artefacts in <evidence>/objects/ and the digest of every such file in <evidence>/SHA256SUMS. The format is in docs/evidence.md.
 */
#ifndef ATTEST_STATEMENT_H
#define ATTEST_STATEMENT_H

#include "base/session.h"

#define STATEMENT_TYPE  "https://in-toto.io/Statement/v1"
#define PREDICATE_PROOF "urn:attest:proof:v1"    /* the record of a proof */
#define PREDICATE_REIGN "urn:attest:champion:v1" /* an earlier champion was restored */
enum { LARGEST_ARTEFACT = 256 * 1024 };          /* bytes; larger ones, and CUDA images, are named by their digest only */

/* A statement about a record: subject (source and image) and predicate. New reference. */
json_t *statement_make(const json_t *record);

/* A statement of any of our types, with the subject of another one. New reference. */
json_t *statement_wrap(const json_t *subject, const char *predicate_type, const json_t *predicate);

/* The artefacts that a record names: {digest: "gate: name"}, in the order of the digests. New reference. */
json_t *statement_artefacts(const json_t *record);

/* Appends it, signed if `key` (a file of `attest keygen`) is not NULL, with the artefacts it names copied from the store. The file
 * is replaced whole, so that there is never half a line. False and a sentence on failure. */
struct store;
bool statement_append(const char *evidence, const json_t *statement, const char *key, struct store *store, char *why,
                      size_t why_size);

/* All statements below `evidence`, file by file: an array of {"file", "line", "digest" (of the line), "statement" (absent if it
 * cannot be read), "signed": bool, "key": public key (if signed), "problem": sentence or absent}. One with a problem proves
 * nothing. A folder that is not there has no statements. NULL and a sentence if memory or the disk fails. */
json_t *statements_load(const char *evidence, char *why, size_t why_size);

/* The entry of such a list whose line has this digest; NULL if there is none. Borrowed. */
const json_t *statements_find(const json_t *statements, const char *digest);

/* The predicate of an entry, which is a record if it is a proof; and its number in the folder. */
const json_t *statement_predicate(const json_t *entry);
json_int_t statement_sequence(const json_t *entry);

/* Sets the problem of an entry; the first one is the one that is told. */
void set_problem(json_t *entry, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
