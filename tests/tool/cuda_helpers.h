/*
 * cuda_helpers.h - what the tests of CUDA candidates share: files, a proof of one file, the comparison of sentences.
 */
#ifndef CUDA_HELPERS_H
#define CUDA_HELPERS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gates/cuda_build.h"
#include "base/random.h"
#include "tap.h"

static char folder[64]; /* a scratch folder of this run */

static inline char *read_text(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, strchr(name, '/') ? "%s" : "tests/data/cuda/%s", name);
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    tap_check(file != NULL, "%s cannot be read", path);
    if (file) {
        text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
        fclose(file);
    }
    return text;
}

/* Writes a file into the scratch folder; its path. */
static inline const char *write_text(const char *name, const char *text)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    tap_check(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s cannot be written", path);
    return path;
}

/* `text` with the first `from` replaced by `to`; to be freed. */
static inline char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    size_t size = strlen(text) + strlen(to) + 1;
    char *out = malloc(size);
    tap_check(at != NULL, "there is no '%s' to be replaced", from);
    snprintf(out, size, "%.*s%s%s", at ? (int)(at - text) : 0, text, to, at ? at + strlen(from) : "");
    return out;
}

static inline void contains(const char *text, const char *part)
{
    tap_check(strstr(text, part) != NULL, "'%s' does not say '%s'", text, part);
}

/* Reads a manifest file. */
static inline bool parse(const char *text, struct cuda_manifest *manifest, char *why, size_t size)
{
    return cuda_manifest_parse(text, strlen(text), "k.manifest", false, manifest, why, size);
}

/* A proof of one file, with nothing but what the gates of this test look at. */
static inline void proof_make(struct proof *proof, struct gate_result *result, const char *path)
{
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path, *ending = strrchr(path, '.');
    *proof = (struct proof){.policy = default_policy, .threads = 2, .folder = folder, .seed = 1};
    proof->candidate = (struct candidate){.kind = CANDIDATE_CU, .word = strdup(path), .cuda = true, .facts = json_object()};
    proof->candidate.name = strndup(stem, (size_t)(ending - stem));
    if (strcmp(ending, ".cu") == 0)
        proof->candidate.source = strdup(path);
    else
        proof->candidate.kind = CANDIDATE_IMAGE;
    *result = (struct gate_result){.details = json_object(), .artefacts = json_object()};
}

static inline void proof_drop(struct proof *proof, struct gate_result *result)
{
    candidate_close(&proof->candidate);
    json_decref(result->details);
    json_decref(result->artefacts);
}

static inline void remove_folder(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (folder[0] && system(command) != 0)
        fprintf(stderr, "%s could not be removed\n", folder);
}

/* Makes the scratch folder, which is gone when the program ends. */
static inline bool make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/attest-cuda-XXXXXX");
    return mkdtemp(folder) && atexit(remove_folder) == 0;
}

/* Random numbers that depend on the seed of the test alone. */
struct drawing {
    uint64_t count;
};

static inline uint64_t draw(struct drawing *drawing)
{
    return random_bits(tap.seed, 77, drawing->count++);
}

#endif
