/*
 * explained.h - survivors that somebody has looked at: docs/survivors.md.
 *
 * An entry is a heading `### KEY CLASS`, then prose, then the changed lines as a diff. KEY names the edit: the beginning of the digest of
 * its file's path and its changed lines, whatever their line numbers. CLASS is
 *     equivalent         no input tells the mutant from the kernel
 *     within-the-bound   results differ by less than the errors that the documentation allows
 *     gap                the gates should have killed it, and the entry says what is missing
 */
#ifndef ATTEST_EXPLAINED_H
#define ATTEST_EXPLAINED_H

#include <jansson.h>

enum { EXPLAINED_KEY = 13 }; /* twelve hexadecimal digits and the end */

/* The key of a unified diff of one edit. */
void explained_key(const char *diff, char key[EXPLAINED_KEY]);

/* {"KEY": "CLASS"}; empty if there is no such file. New reference; NULL if an entry is wrong, and then `why` says which. */
json_t *explained_load(const char *path, char *why, size_t why_size);

#endif
