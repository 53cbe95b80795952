/*
 * make_record.h - hand-made records for the tests of evidence: whole, consistent, and with nothing measured in them.
 */
#ifndef MAKE_RECORD_H
#define MAKE_RECORD_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/continuation.h"
#include "evidence/decision.h"
#include "base/digest.h"
#include "evidence/objects.h"
#include "evidence/statement.h"
#include "build/build.h"
#include "build/candidate.h"
#include "gates/gate.h"
#include "base/report.h"
#include "tap.h"
#include "build/cuda_compile.h"

struct recipe {
    const char *kernel, *device; /* device class */
    const char *problem_class;
    const char *opponent; /* NULL: none */
    const char *speed;    /* of the suite; NULL: the speed gate says NOT APPLICABLE */
    double ratio;
    const char *failing; /* gate that fails; NULL: none */
    json_t *candidate;   /* taken over; NULL: one that is made up */
    const char *kind, *word;
    const char *artefact; /* digest that the oracle gate names; NULL: none */
    const char *backend;  /* NULL: cpu */
    int policy;           /* number; 0: none is named, as in records of policy 1 */
    const char *gates;    /* those that were run, separated by commas; NULL: all */
    const char *continues;
    const json_t *base; /* combined record that is continued; NULL: none */
};

static inline void put_digest_of(json_t *object, const char *key, json_t *value)
{
    char digest[DIGEST_TEXT];
    digest_of_json(value, digest);
    json_put(object, key, json_string(digest));
    json_decref(value);
}

/* Facts of a candidate that exists in name only; `salt` makes one source differ from another. */
static inline json_t *made_up_candidate(const char *salt)
{
    char digest[DIGEST_TEXT];
    digest_of_bytes(salt, strlen(salt), digest);
    json_t *candidate =
        json_pack("{s:s, s:{s:s}, s:s, s:s, s:s, s:[s]}", "source", "no/such/kernel.c", "sources", "no/such/kernel.c", digest,
                  "flags", "-O3", "compiler", "a compiler", "image", digest, "dtypes", "f32");
    put_digest_of(
        candidate, "closure",
        json_pack("{s:O, s:O}", "sources", json_object_get(candidate, "sources"), "flags", json_object_get(candidate, "flags")));
    return candidate;
}

/* Facts of a source that is here, as the build gate finds them. With `image` the image is built too; else its digest is made up. */
static inline json_t *real_candidate(const char *source, bool image, const char *scratch)
{
    char *flags = candidate_flags(source), *all = build_flags(flags ? flags : ""), compiler[256], digest[DIGEST_TEXT] = "",
         log[4096];
    json_t *sources = build_sources(source, flags ? flags : "");
    build_compiler(compiler, sizeof compiler);
    digest_of_bytes(source, strlen(source), digest);
    if (image && build_image(source, flags, scratch, false, log, sizeof log))
        digest_of_file(scratch, digest);
    json_t *candidate = json_pack("{s:s, s:o, s:s, s:s, s:s, s:[s]}", "source", source, "sources", sources, "flags", all,
                                  "compiler", compiler, "image", digest, "dtypes", "f32");
    put_digest_of(
        candidate, "closure",
        json_pack("{s:O, s:O}", "sources", json_object_get(candidate, "sources"), "flags", json_object_get(candidate, "flags")));
    free(flags);
    free(all);
    return candidate;
}

/* Facts of a CUDA source, as if it included nothing. */
static inline json_t *cuda_candidate(const char *source)
{
    struct cuda_manifest manifest;
    char digest[DIGEST_TEXT] = "", why[512], *flags = NULL;
    digest_of_file(source, digest);
    if (cuda_manifest_read(source, true, &manifest, why, sizeof why)) {
        flags = cuda_compile_flags(manifest.flags);
        cuda_manifest_free(&manifest);
    }
    json_t *candidate = json_pack("{s:s, s:{s:s}, s:s, s:s, s:s, s:[s]}", "source", source, "sources", source, digest, "flags",
                                  flags ? flags : "", "compiler", "a compiler", "image", digest, "dtypes", "f32");
    put_digest_of(
        candidate, "closure",
        json_pack("{s:O, s:O}", "sources", json_object_get(candidate, "sources"), "flags", json_object_get(candidate, "flags")));
    free(flags);
    return candidate;
}

static inline json_t *make_gates(const struct recipe *recipe)
{
    static const char *const names[] = {"build", "oracle", "memory", "determinism", "correctness", "speed", "profile"};
    /* in the order of gates.def, those for CPU kernels */
    json_t *results = json_array();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool fails = recipe->failing && strcmp(recipe->failing, names[i]) == 0, speed = strcmp(names[i], "speed") == 0;
        const char *verdict = fails ? "FAIL" : "PASS";
        if (recipe->gates && !strstr(recipe->gates, names[i]))
            continue;
        json_t *details = json_object(), *artefacts = json_object();
        if (speed)
            verdict = !recipe->speed ? "NOT APPLICABLE" : strcmp(recipe->speed, "FASTER") == 0 ? "PASS" : "FAIL";
        if (speed && recipe->speed)
            json_put(details, "suite",
                     json_pack("{s:s, s:f, s:f, s:f}", "speed", recipe->speed, "ratio", recipe->ratio, "low", recipe->ratio * 0.99,
                               "high", recipe->ratio * 1.01));
        if (fails && strcmp(names[i], "oracle") == 0)
            json_put(details, "diagnosis",
                     json_pack("{s:[s, s], s:i, s:i, s:i, s:s, s:s}", "stages", "S", "mask", "tile", 64, "row", 3, "column", 65,
                               "pattern", "from key 64 on", "cause", "the scale is missing"));
        if (recipe->artefact && strcmp(names[i], "oracle") == 0)
            json_put(artefacts, "log", json_string(recipe->artefact));
        json_add(results,
                 json_pack("{s:s, s:s, s:s, s:f, s:o, s:o}", "gate", names[i], "verdict", verdict, "sentence",
                           fails ? "it is wrong" : "a sentence", "seconds", 0.1, "details", details, "artefacts", artefacts));
        if (fails)
            break;
    }
    return results;
}

static inline json_t *make_record(const struct recipe *recipe)
{
    json_t *policy = json_pack("{s:f, s:f}", "blocks", 20.0, "least_effect", 0.005);
    json_t *suite = json_pack("{s:[s], s:[]}", "suite", "fwd:f32:h1:s8:d8", "timed");
    json_t *record = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:f, s:i}", "kernel", recipe->kernel, "problem_class",
        recipe->problem_class ? recipe->problem_class : "fwd:f32", "backend", recipe->backend ? recipe->backend : "cpu", "kind",
        recipe->kind ? recipe->kind : "c", "word", recipe->word ? recipe->word : recipe->kernel, "device", "class", recipe->device,
        "model", "a model", "started", "2026-11-15T07:00:00Z", "finished", "2026-11-15T07:00:01Z", "seconds", 1.0, "seed", 12345);
    json_object_update(record, suite);
    put_digest_of(record, "suite_digest", suite);
    put_digest_of(record, "policy_digest", json_incref(policy));
    json_put(record, "policy", policy);
    json_put(record, "opponent", recipe->opponent ? json_string(recipe->opponent) : json_null());
    json_put(record, "candidate", recipe->candidate ? recipe->candidate : made_up_candidate(recipe->kernel));
    json_put(record, "gates", make_gates(recipe));
    if (recipe->policy) {
        json_put(record, "policy_number", json_integer(recipe->policy));
        json_put(record, "generator", json_integer(GENERATOR_VERSION));
        json_put(record, "needed", decision_needed(record));
        put_digest_of(record, "policy_digest", policy_json(&default_policy));
        json_put(record, "policy", policy_json(&default_policy));
    }
    if (recipe->continues)
        json_put(record, "continues", json_string(recipe->continues));
    json_t *decided = continuation_add(recipe->base, record);
    decision_make(recipe->base ? decided : record);
    if (recipe->base)
        for (const char *const *key = (const char *const[]){"verdict", "champion", "decision", "promoted", NULL}; *key; key++)
            json_put(record, *key, json_incref(json_object_get(decided, *key)));
    json_decref(decided);
    return record;
}

static char work_folder[64];

/* A fresh folder in the scratch folder; static storage. */
static inline const char *fresh(const char *name)
{
    static char path[256];
    static int count;
    snprintf(path, sizeof path, "%s/%s-%d", work_folder, name, ++count);
    folder_make(path);
    return path;
}

static inline bool write_text(const char *path, const char *text)
{
    return file_replace(path, text, strlen(text));
}

/* Appends a record to the evidence. */
static inline bool append(const char *evidence, const struct recipe *recipe, const char *key, struct store *store)
{
    char why[1024] = "";
    json_t *record = make_record(recipe), *statement = statement_make(record);
    bool done = statement_append(evidence, statement, key, store, why, sizeof why);
    if (!done)
        tap_note("append: %s", why);
    json_decref(statement);
    json_decref(record);
    return done;
}

/* Entries with a problem; -1 if nothing could be loaded. */
static inline int count_problems(const char *evidence, int *entries)
{
    char why[1024] = "";
    json_t *statements = statements_load(evidence, why, sizeof why), *entry;
    size_t index;
    int count = 0;
    if (!statements)
        return -1;
    json_array_foreach(statements, index, entry) count += json_object_get(entry, "problem") != NULL;
    if (entries)
        *entries = (int)json_array_size(statements);
    json_decref(statements);
    return count;
}

/* tap_main with a scratch folder, which is removed afterwards. */
static inline int main_with_folder(int argc, char **argv, const struct tap_test *tests, size_t count)
{
    char command[128];
    snprintf(work_folder, sizeof work_folder, "/tmp/attest-test-XXXXXX");
    if (!mkdtemp(work_folder))
        return 1;
    int status = tap_main(argc, argv, tests, count);
    snprintf(command, sizeof command, "rm -rf %s", work_folder);
    return system(command) == 0 ? status : 1;
}

#endif
