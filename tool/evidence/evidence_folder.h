/*
 * evidence_folder.h - the files of an evidence folder: which ones belong there, SHA256SUMS, and what is refused: links, devices,
 * files that nothing names, and files that are too large to be evidence.
 */
#ifndef ATTEST_EVIDENCE_FOLDER_H
#define ATTEST_EVIDENCE_FOLDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define EVIDENCE_ENDING ".intoto.jsonl"
#define SUMS_FILE       "SHA256SUMS"
enum { LARGEST_EVIDENCE_FILE = 256 << 20 }; /* bytes */

/* Writes the sentence and returns false, so that a function can end with it. */
bool evidence_fail(char *why, size_t why_size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A name without a path and without letters that a shell or a file system could take otherwise; no dot at its beginning. */
bool is_plain_name(const char *name);

/* NULL if the file, named from the folder on, is an ordinary one, or is not there. Else a sentence: it is a link, or reached through
 * one, or has a second name (a hard link), or is a device, a pipe, a folder, or too large. */
const char *evidence_irregular(const char *evidence, const char *file);

/* {"class/kernel.intoto.jsonl": true} for all that are there, by name alone. New reference. */
json_t *evidence_files(const char *evidence);

/* Where the extended file waits while a line is appended. */
void evidence_next(const char *evidence, const char *file, char *path, size_t size);

/* Adds an object {"file", "line": 0, "digest": "", "signed": false, "problem"} to `entries` for everything in the folder that does not
 * belong there, and for every object that is not what its name says. Evidence files are the business of statements_load. */
void evidence_check(const char *evidence, json_t *entries);

/* ---- SHA256SUMS: {"file": [digest], ...}; while a line is appended [digest before, digest after] ---- */

/* NULL and a sentence if a line is not as sha256sum writes it, or names what cannot be a file of evidence. */
json_t *sums_read(const char *evidence, char *why, size_t why_size);
bool sums_write(const char *evidence, const json_t *sums, char *why, size_t why_size);

/* NULL if the contents of a file (no bytes if it is not there) are what its line says, or what one of its two lines says while the
 * other is that of the step before or after. Else a sentence. */
const char *sums_difference(const char *evidence, const json_t *sums, const char *file, const char *text, size_t size);

/* A writer that was killed left two lines for a file; the one that is true stays. Also removes what waited. */
bool sums_settle(const char *evidence, json_t *sums, char *why, size_t why_size);

#endif
