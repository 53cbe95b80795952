/*
 * dsse.c - keys and signatures. See dsse.h.
 *
 * A key file is one line: "attest-ed25519-secret " or "attest-ed25519-public " and 64 hexadecimal digits. The secret is the seed
 * from which the key pair is made. The keyid of a signature is the public key itself, so that anyone can check that a line was not
 * changed since it was signed; who signed it is known only to those who have the public key from somewhere else (verify --key).
 */
#include "dsse.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/regular_file.h"

static const char secret_mark[] = "attest-ed25519-secret ", public_mark[] = "attest-ed25519-public ";

/* ---- key files ------------------------------------------------------------------------------------------------------------- */

static bool write_line(const char *path, mode_t mode, const char *mark, const char *hex, char *why, size_t why_size)
{
    char line[128];
    int size = snprintf(line, sizeof line, "%s%s\n", mark, hex);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file < 0) {
        snprintf(why, why_size, "%s: %s", path, errno == EEXIST ? "it exists, and a key is never replaced" : strerror(errno));
        return false;
    }
    bool written = write(file, line, (size_t)size) == size && fsync(file) == 0;
    written = close(file) == 0 && written;
    sodium_memzero(line, sizeof line);
    if (!written) {
        snprintf(why, why_size, "%s cannot be written: %s", path, strerror(errno));
        unlink(path);
    }
    return written;
}

/* Reads a key file of either kind. `secret` gets the seed, and is left alone if the file is a public one. */
static bool read_key(const char *path, unsigned char public_key[crypto_sign_PUBLICKEYBYTES],
                     unsigned char secret[crypto_sign_SECRETKEYBYTES], bool *is_secret, char *why, size_t why_size)
{
    char line[160] = "";
    unsigned char bytes[crypto_sign_SEEDBYTES];
    const char *end;
    size_t length;
    FILE *file = regular_file_open(path, why, why_size);
    if (!file)
        return false;
    bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    line[strcspn(line, "\r\n")] = '\0';
    *is_secret = strncmp(line, secret_mark, strlen(secret_mark)) == 0;
    const char *hex = line + strlen(secret_mark);
    read = read && sodium_init() >= 0 && (*is_secret || strncmp(line, public_mark, strlen(public_mark)) == 0) &&
           strlen(hex) == 2 * sizeof bytes && sodium_hex2bin(bytes, sizeof bytes, hex, strlen(hex), NULL, &length, &end) == 0 &&
           length == sizeof bytes;
    if (!read)
        snprintf(why, why_size, "%s is no key: attest keygen FILE makes FILE and FILE.pub", path);
    else if (*is_secret)
        crypto_sign_seed_keypair(public_key, secret, bytes);
    else
        memcpy(public_key, bytes, sizeof bytes);
    sodium_memzero(line, sizeof line);
    sodium_memzero(bytes, sizeof bytes);
    return read;
}
_Static_assert(sizeof secret_mark == sizeof public_mark, "read_key takes the digits from the same place");

bool key_generate(const char *path, char public_key[KEY_TEXT], char *why, size_t why_size)
{
    unsigned char seed[crypto_sign_SEEDBYTES], key[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];
    char hex[2 * sizeof seed + 1], *public_path = NULL;
    if (sodium_init() < 0 || asprintf(&public_path, "%s.pub", path) < 0) {
        snprintf(why, why_size, "no random numbers, or no memory");
        return false;
    }
    randombytes_buf(seed, sizeof seed);
    crypto_sign_seed_keypair(key, secret, seed);
    sodium_bin2hex(hex, sizeof hex, seed, sizeof seed);
    sodium_bin2hex(public_key, KEY_TEXT, key, sizeof key);
    bool written = write_line(path, 0600, secret_mark, hex, why, why_size);
    if (written && !write_line(public_path, 0644, public_mark, public_key, why, why_size)) {
        unlink(path);
        written = false;
    }
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(hex, sizeof hex);
    free(public_path);
    return written;
}

bool key_read_public(const char *path, char public_key[KEY_TEXT], char *why, size_t why_size)
{
    unsigned char key[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];
    bool is_secret = false, read = read_key(path, key, secret, &is_secret, why, why_size);
    if (read)
        sodium_bin2hex(public_key, KEY_TEXT, key, sizeof key);
    sodium_memzero(secret, sizeof secret);
    return read;
}

/* ---- envelopes ------------------------------------------------------------------------------------------------------------- */

char *dsse_pae(const char *type, const char *payload, size_t payload_size, size_t *size)
{
    size_t room = strlen(type) + payload_size + 64;
    char *text = malloc(room);
    if (!text)
        return NULL;
    size_t head = (size_t)snprintf(text, room, "DSSEv1 %zu %s %zu ", strlen(type), type, payload_size);
    memcpy(text + head, payload, payload_size);
    *size = head + payload_size;
    return text;
}

static json_t *to_base64(const void *data, size_t size)
{
    size_t room = sodium_base64_ENCODED_LEN(size, sodium_base64_VARIANT_ORIGINAL);
    char *text = malloc(room);
    json_t *value = text ? json_string(sodium_bin2base64(text, room, data, size, sodium_base64_VARIANT_ORIGINAL)) : NULL;
    free(text);
    return value;
}

/* The bytes of a base64 string with a zero byte after them; to be freed. NULL if it is not one. */
static unsigned char *from_base64(const json_t *value, size_t *size)
{
    const char *text = json_string_value(value), *end;
    size_t length = json_string_length(value);
    unsigned char *data = text ? malloc(length + 1) : NULL;
    if (!data)
        return NULL;
    if (sodium_base642bin(data, length, text, length, NULL, size, &end, sodium_base64_VARIANT_ORIGINAL) != 0 ||
        end != text + length) {
        free(data);
        return NULL;
    }
    data[*size] = '\0';
    return data;
}

json_t *dsse_sign(const char *text, const char *key_path, char *why, size_t why_size)
{
    unsigned char key[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES], signature[crypto_sign_BYTES];
    char hex[KEY_TEXT];
    bool is_secret = false;
    size_t size;
    if (!read_key(key_path, key, secret, &is_secret, why, why_size))
        return NULL;
    if (!is_secret) {
        snprintf(why, why_size, "%s is a public key; signing needs the secret one, the file without .pub", key_path);
        return NULL;
    }
    json_t *envelope = NULL;
    char *signed_text = dsse_pae(DSSE_PAYLOAD_TYPE, text, strlen(text), &size);
    if (signed_text && crypto_sign_detached(signature, NULL, (unsigned char *)signed_text, size, secret) == 0) {
        sodium_bin2hex(hex, sizeof hex, key, sizeof key);
        envelope = json_pack("{s:o, s:s, s:[{s:s, s:o}]}", "payload", to_base64(text, strlen(text)), "payloadType",
                             DSSE_PAYLOAD_TYPE, "signatures", "keyid", hex, "sig", to_base64(signature, sizeof signature));
    }
    if (!envelope)
        snprintf(why, why_size, "out of memory");
    sodium_memzero(secret, sizeof secret);
    free(signed_text);
    return envelope;
}

static bool signature_good(const json_t *signature, const char *signed_text, size_t size)
{
    unsigned char key[crypto_sign_PUBLICKEYBYTES];
    size_t key_size = 0, bytes_size = 0;
    const char *end, *hex = json_string_value(json_object_get(signature, "keyid"));
    unsigned char *bytes = from_base64(json_object_get(signature, "sig"), &bytes_size);
    /* A public key has the shape of a digest: 64 lower-case digits. */
    bool good = bytes && bytes_size == crypto_sign_BYTES && digest_is_one(hex) &&
                sodium_hex2bin(key, sizeof key, hex, 2 * sizeof key, NULL, &key_size, &end) == 0 && key_size == sizeof key &&
                crypto_sign_verify_detached(bytes, (const unsigned char *)signed_text, size, key) == 0;
    free(bytes);
    return good;
}

char *dsse_open(const json_t *envelope, char public_key[KEY_TEXT], char *why, size_t why_size)
{
    const char *type = json_string_value(json_object_get(envelope, "payloadType"));
    const json_t *signatures = json_object_get(envelope, "signatures"), *signature;
    size_t payload_size = 0, size = 0, index;
    char *payload = (char *)from_base64(json_object_get(envelope, "payload"), &payload_size), *signed_text = NULL;
    const char *problem = NULL;
    if (sodium_init() < 0)
        problem = "signatures cannot be checked here";
    else if (!type || strcmp(type, DSSE_PAYLOAD_TYPE) != 0)
        problem = "the envelope's payload type is not " DSSE_PAYLOAD_TYPE;
    else if (!payload || strlen(payload) != payload_size || !(signed_text = dsse_pae(type, payload, payload_size, &size)))
        problem = "the envelope's payload is not base64 of a text";
    else if (!json_is_array(signatures) || json_array_size(signatures) == 0)
        problem = "the envelope has no signature";
    if (!problem) {
        json_array_foreach(signatures, index, signature)
        {
            if (!signature_good(signature, signed_text, size))
                problem = "its signature is not good: it was changed after it was signed";
        }
    }
    free(signed_text);
    if (!problem) {
        snprintf(public_key, KEY_TEXT, "%s", json_string_value(json_object_get(json_array_get(signatures, 0), "keyid")));
        return payload;
    }
    snprintf(why, why_size, "%s", problem);
    free(payload);
    return NULL;
}
