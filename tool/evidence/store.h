/*
 * store.h - the run database (SQLite) and the artefacts, below one state folder: everything that was ever tried here. A result that
 * was reported is on disk before it is reported; a kill at any point loses nothing that was finished.
 */
#ifndef ATTEST_STORE_H
#define ATTEST_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/* `folder` is made if it is not there. NULL and a sentence on failure. */
struct store *store_open(const char *folder, char *why, size_t why_size);
void store_close(struct store *store); /* NULL is fine */

/* Whether there is a run database in the folder, for those who only want to read. */
bool store_exists(const char *folder);

/* A run: begun with what is known before the first gate, then one result a gate, then the whole record (see docs/evidence.md). */
int64_t store_begin(struct store *store, const json_t *start); /* run number, or -1 */
bool store_gate(struct store *store, int64_t run, const char *gate, const json_t *result);
bool store_finish(struct store *store, int64_t run, const json_t *record);

/* Copies a file into the artefacts, under its digest, which is written to `digest` (DIGEST_TEXT bytes). */
bool store_keep(struct store *store, const char *path, char *digest);
char *store_artefact(const struct store *store, const char *digest); /* its path; to be freed; NULL if it is not there */

/* Finished records, newest first, of one kernel (NULL: all), at most `most` (0: all). New reference to an array. A run that was
 * begun and never finished is there too, as far as it got, with "verdict": "INTERRUPTED". Each has its number added as "run". NULL
 * on failure. */
json_t *store_records(struct store *store, const char *kernel, int most);

/* For tables of others in the same database: those of a search (evolve/search_ledger.c). */
struct sqlite3;
struct sqlite3 *store_database(struct store *store);

const char *store_error(const struct store *store); /* sentence of the last failure */

#endif
