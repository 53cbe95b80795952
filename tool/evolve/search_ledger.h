/*
 * search_ledger.h - the state of searches in the run database: what a search is, and each candidate with what became of it. Everything is on
 * the disk before the next step is made, so that a search that was killed goes on where it was.
 */
#ifndef ATTEST_SEARCH_LEDGER_H
#define ATTEST_SEARCH_LEDGER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct store;

/* The newest search with this key that has no result: its number, or 0 if there is none, or -1 on failure. */
int64_t ledger_unfinished(struct store *store, const char *key);

/* A new search; its number, or -1. */
int64_t ledger_begin(struct store *store, const char *key, const json_t *start);

/* This process works on it from now on, in this folder; and what was used of the budget so far, in seconds. */
bool ledger_take(struct store *store, int64_t search, int64_t process, const char *scratch);
bool ledger_beat(struct store *store, int64_t search, double used);

/* Inserts or replaces a trial, by its member "number". */
bool ledger_trial(struct store *store, int64_t search, const json_t *trial);
bool ledger_finish(struct store *store, int64_t search, const json_t *result);

/* Searches, newest first: [{"search", "key", "start": {...}, "process", "scratch", "used", "result": {...} or null, "trials":
 * [...]}]. Only one of them if `search` is not 0. New reference; NULL on failure. */
json_t *ledger_searches(struct store *store, int64_t search);

#endif
