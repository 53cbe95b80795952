/*
 * digest.h - SHA-256 names for bytes, files and JSON.
 */
#ifndef ATTEST_DIGEST_H
#define ATTEST_DIGEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { DIGEST_TEXT = 65 }; /* 64 hexadecimal digits and the end */

void digest_of_bytes(const void *data, size_t size, char text[DIGEST_TEXT]);
bool digest_of_file(const char *path, char text[DIGEST_TEXT]);
void digest_of_json(const json_t *value, char text[DIGEST_TEXT]); /* of its canonical form; "" if there is no memory */
bool digest_is_one(const char *text);                             /* 64 lower-case hexadecimal digits; NULL is not */

/* The canonical form: keys sorted, no spaces, no line end. To be freed. */
char *canonical_text(const json_t *value);

#endif
