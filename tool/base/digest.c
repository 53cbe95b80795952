/*
 * digest.c - SHA-256 names for bytes, files and JSON.
 *
 * The canonical form of a JSON value is its text with the keys of objects in the order of their bytes, without blanks, in UTF-8.
 * A real number has 17 significant digits, which is enough to read back the same bits, so that reading a canonical text and
 * writing it again gives the same bytes. Integers stay integers: 1 and 1.0 are different values with different digests.
 */
#include "digest.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "regular_file.h"

static void to_text(const unsigned char hash[crypto_hash_sha256_BYTES], char text[DIGEST_TEXT])
{
    sodium_bin2hex(text, DIGEST_TEXT, hash, crypto_hash_sha256_BYTES);
}

void digest_of_bytes(const void *data, size_t size, char text[DIGEST_TEXT])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, data, size);
    to_text(hash, text);
}

bool digest_of_file(const char *path, char text[DIGEST_TEXT])
{
    unsigned char hash[crypto_hash_sha256_BYTES], buffer[1 << 14];
    crypto_hash_sha256_state state;
    size_t got;
    text[0] = '\0';
    char why[512];
    FILE *file = regular_file_open(path, why, sizeof why);
    if (!file)
        return false;
    crypto_hash_sha256_init(&state);
    while ((got = fread(buffer, 1, sizeof buffer, file)) > 0)
        crypto_hash_sha256_update(&state, buffer, got);
    bool read = !ferror(file);
    fclose(file);
    crypto_hash_sha256_final(&state, hash);
    if (read)
        to_text(hash, text);
    return read;
}

char *canonical_text(const json_t *value)
{
    return json_dumps(value, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
}

void digest_of_json(const json_t *value, char text[DIGEST_TEXT])
{
    char *canonical = canonical_text(value);
    text[0] = '\0';
    if (canonical)
        digest_of_bytes(canonical, strlen(canonical), text);
    free(canonical);
}

bool digest_is_one(const char *text)
{
    return text && strlen(text) == DIGEST_TEXT - 1 && strspn(text, "0123456789abcdef") == DIGEST_TEXT - 1;
}
