/*
 * dsse.h - keys and signatures: Ed25519, in the envelope of the Dead Simple Signing Envelope, version 1.
 */
#ifndef ATTEST_DSSE_H
#define ATTEST_DSSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define DSSE_PAYLOAD_TYPE "application/vnd.in-toto+json"

enum { KEY_TEXT = 65 }; /* a public key as 64 hexadecimal digits, and the end */

/* Writes a new secret key to `path`, which only the owner can read, and its public key to `path`.pub. Neither may exist. */
bool key_generate(const char *path, char public_key[KEY_TEXT], char *why, size_t why_size);

/* Reads the public key in a file of key_generate, of either kind. */
bool key_read_public(const char *path, char public_key[KEY_TEXT], char *why, size_t why_size);

/* What is signed: "DSSEv1", the type and the payload, with their lengths. To be freed; its length goes to `size`. */
char *dsse_pae(const char *type, const char *payload, size_t payload_size, size_t *size);

/* The envelope {"payload", "payloadType", "signatures": [{"keyid", "sig"}]} of a text, signed with the secret key in a file. New
 * reference; NULL and a sentence on failure. */
json_t *dsse_sign(const char *text, const char *key_path, char *why, size_t why_size);

/* The payload of an envelope; to be freed. Every signature must be good; the key of the first goes to `public_key`. NULL and a
 * sentence if anything is wrong. */
char *dsse_open(const json_t *envelope, char public_key[KEY_TEXT], char *why, size_t why_size);

#endif
