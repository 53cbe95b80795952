/*
 * audit.c - checks of the evidence. See audit.h; docs/evidence.md says what is checked and what that is worth.
 */
#include "audit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit_policy.h"
#include "audit_speed.h"
#include "evidence/continuation.h"
#include "evidence/decision.h"
#include "base/digest.h"
#include "evidence/evidence_folder.h"
#include "evidence/member.h"
#include "evidence/objects.h"
#include "build/build.h"
#include "build/cuda_compile.h"
#include "gates/proof.h"
#include "evidence/statement.h"

static void find(json_t *findings, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void find(json_t *findings, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_add(findings, json_string(text));
}

void audit_free(struct audit *audit)
{
    json_decref(audit->images);
    audit->images = NULL;
}

/* ---- a record against itself ----------------------------------------------------------------------------------------------- */

/* The record says that `key` is the digest of `value`, of which a reference is taken over. */
static void check_digest(const json_t *record, const char *key, json_t *value, json_t *findings)
{
    char digest[DIGEST_TEXT] = "";
    if (value)
        digest_of_json(value, digest);
    if (!value || strcmp(digest, text_at(record, key)) != 0)
        find(findings, "%s is not the digest of what it names", key);
    json_decref(value);
}

static void check_digests(const json_t *record, json_t *findings)
{
    const json_t *candidate = json_object_get(record, "candidate"), *policy = json_object_get(record, "policy");
    check_digest(record, "policy_digest", json_deep_copy(policy), findings);
    check_digest(record, "suite_digest",
                 json_pack("{s:O, s:O}", "suite", json_object_get(record, "suite"), "timed", json_object_get(record, "timed")),
                 findings);
    if (json_object_get(candidate, "sources"))
        check_digest(
            candidate, "closure",
            json_pack("{s:O, s:O}", "sources", json_object_get(candidate, "sources"), "flags", json_object_get(candidate, "flags")),
            findings);
}

static void check_subject(const json_t *statement, const json_t *record, json_t *findings)
{
    json_t *again = statement_make(record);
    if (!json_equal(json_object_get(statement, "subject"), json_object_get(again, "subject")))
        find(findings, "the subject is not the sources and the image of the record");
    if (text_is(record, "verdict", "PROVEN") && json_array_size(json_object_get(statement, "subject")) == 0)
        find(findings, "nothing is its subject");
    json_decref(again);
}

/* Whether a path stays below the folder it begins in: it is relative, and .. never leads above. */
static bool stays_inside(const char *path)
{
    int depth = 0;
    if (!*path || *path == '/')
        return false;
    for (const char *at = path; *at && depth >= 0;) {
        size_t length = strcspn(at, "/");
        depth += length == 2 && at[0] == '.' && at[1] == '.' ? -1 : length == 0 || (length == 1 && at[0] == '.') ? 0 : 1;
        at += length + (at[length] == '/');
    }
    return depth > 0;
}

void audit_paths(const json_t *record, json_t *findings)
{
    json_t *sources = json_object_get(json_object_get(record, "candidate"), "sources"), *unused;
    const char *path;
    json_object_foreach(sources, path, unused)
    {
        bool absolute = *path == '/' && !text_is(record, "kind", "shipped");
        if (!stays_inside(absolute ? path + 1 : path))
            find(findings, "it names a source outside of the folder it was proven in: %s", path);
    }
}

static bool is_omitted(const json_t *record, const char *digest)
{
    const json_t *item;
    size_t index;
    json_array_foreach(json_object_get(record, "omitted"), index, item)
    {
        if (json_is_string(item) && strcmp(json_string_value(item), digest) == 0)
            return true;
    }
    return false;
}

static void check_artefacts(struct audit *audit, const json_t *record, json_t *findings)
{
    json_t *artefacts = statement_artefacts(record), *name;
    const char *digest;
    json_object_foreach(artefacts, digest, name)
    {
        char found[DIGEST_TEXT], *path = object_path(audit->evidence, digest);
        const char *irregular = path ? evidence_irregular(audit->evidence, path + strlen(audit->evidence) + 1) : NULL;
        if (!path)
            find(findings, "the artefact %s has no digest for a name", json_string_value(name));
        else if (is_omitted(record, digest))
            audit->omitted++;
        else if (irregular)
            find(findings, "the artefact %s, %s: %s", json_string_value(name), path, irregular);
        else if (!digest_of_file(path, found))
            find(findings, "the artefact %s is missing: %s", json_string_value(name), path);
        else if (strcmp(found, digest) != 0)
            find(findings, "the artefact %s was changed: %s", json_string_value(name), path);
        else
            audit->artefacts++;
        free(path);
    }
    json_decref(artefacts);
}

/* The decision follows from the gates; where an earlier record is continued, from those of both. */
static void check_decision(const struct audit *audit, const json_t *entry, const json_t *record, json_t *findings)
{
    struct decision decision;
    char why[256] = "";
    json_t *combined =
        json_object_get(record, "continues") ? continuation_combine(audit->statements, entry, why, sizeof why) : NULL;
    if (*why)
        find(findings, "%s", why);
    decide(combined ? combined : record, &decision);
    if (strcmp(decision.verdict, text_at(record, "verdict")) != 0)
        find(findings, "its verdict is %s, but its gates say %s: %s", text_at(record, "verdict"), decision.verdict,
             decision.sentence);
    else if (strcmp(decision.champion, text_at(record, "champion")) != 0)
        find(findings, "it says %s, but its gates say %s: %s", text_at(record, "champion"), decision.champion, decision.sentence);
    bool won = strcmp(decision.champion, "FIRST") == 0 || strcmp(decision.champion, "CHAMPION") == 0;
    json_t *classes = won ? decision_classes(record) : json_array();
    if (!json_equal(classes, json_object_get(record, "promoted")))
        find(findings, "it is promoted in other problem classes than those it won");
    json_decref(classes);
    json_decref(combined);
}

static void check_proof(struct audit *audit, const json_t *entry, const json_t *record, json_t *findings)
{
    const json_t *statement = json_object_get(entry, "statement");
    check_subject(statement, record, findings);
    check_digests(record, findings);
    audit_paths(record, findings);
    check_artefacts(audit, record, findings);
    check_decision(audit, entry, record, findings);
    audit_policy(record, findings);
    audit_speed(audit->evidence, record, findings);
}

/* A champion that was restored must have been promoted before, on the same device class, in the same problem classes. */
static void check_reign(const struct audit *audit, const json_t *reign, json_t *findings)
{
    const json_t *entry, *found = NULL, *class, *other;
    size_t index, at;
    json_array_foreach(audit->statements, index, entry)
    {
        if (strcmp(text_at(entry, "digest"), text_at(reign, "restores")) == 0 && !json_object_get(entry, "problem"))
            found = json_object_get(json_object_get(entry, "statement"), "predicate");
    }
    if (!found || strcmp(text_at(found, "kernel"), text_at(reign, "kernel")) != 0 ||
        strcmp(text_at(json_object_get(found, "device"), "class"), text_at(json_object_get(reign, "device"), "class")) != 0) {
        find(findings, "it restores a statement that is not there: %s", text_at(reign, "restores"));
        return;
    }
    json_array_foreach(json_object_get(reign, "promoted"), index, class)
    {
        bool had = false;
        json_array_foreach(json_object_get(found, "promoted"), at, other) had = had || json_equal(class, other);
        if (!had)
            find(findings, "it restores %s to a problem class that it did not win", text_at(reign, "kernel"));
    }
}

void audit_statement(struct audit *audit, const json_t *entry, json_t *findings)
{
    const json_t *statement = json_object_get(entry, "statement"), *predicate = json_object_get(statement, "predicate");
    const char *type = text_at(statement, "predicateType");
    if (strcmp(type, PREDICATE_PROOF) == 0)
        check_proof(audit, entry, predicate, findings);
    else if (strcmp(type, PREDICATE_REIGN) == 0)
        check_reign(audit, predicate, findings);
    else
        find(findings, "its predicate type is unknown: %s", type);
}

/* ---- a record against the files here --------------------------------------------------------------------------------------- */

/* A folder of its own for a build. */
static bool folder_open(char *folder, size_t size)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, size, "%.200s/attest-verify-XXXXXX", base && *base ? base : "/tmp");
    return mkdtemp(folder) != NULL;
}

/* The digest of the image that the source gives here; "" if it does not compile. Each source is built once. */
static const char *image_of(struct audit *audit, const char *source, const char *flags)
{
    char folder[256], out[512], log[4096], digest[DIGEST_TEXT] = "";
    if (json_object_get(audit->images, source))
        return text_at(audit->images, source);
    if (folder_open(folder, sizeof folder)) {
        snprintf(out, sizeof out, "%s/image.so", folder);
        if (build_image(source, flags, out, false, log, sizeof log))
            digest_of_file(out, digest);
        folder_remove(folder);
    }
    if (!audit->images)
        audit->images = json_object();
    json_put(audit->images, source, json_string(digest));
    return text_at(audit->images, source);
}

/* The first recorded file that is not what it was; NULL if all are. */
static const char *first_difference(json_t *recorded, const json_t *here)
{
    const char *path;
    json_t *digest;
    json_object_foreach(recorded, path, digest)
    {
        char found[DIGEST_TEXT];
        const char *now = here ? text_at(here, path) : digest_of_file(path, found) ? found : "";
        if (!json_is_string(digest) || strcmp(json_string_value(digest), now) != 0)
            return path;
    }
    return NULL;
}

/* For a kernel that was proven as an image, without its source. */
static enum sameness compare_image(const json_t *record, char *why, size_t why_size)
{
    char digest[DIGEST_TEXT];
    const char *path = text_at(record, "word");
    if (!digest_of_file(path, digest)) {
        snprintf(why, why_size, "%s is not here", path);
        return NOT_HERE;
    }
    if (strcmp(digest, text_at(json_object_get(record, "candidate"), "image")) == 0)
        return SAME_SOURCES;
    snprintf(why, why_size, "kernel changed after it was proven: %s differs", path);
    return CHANGED;
}

/* Lays out the recorded sources of a kernel in a folder: those that are still here as they are, the others from the objects of the
 * evidence, which are found by their digests. False if one is nowhere. */
static bool lay_out(const struct audit *audit, json_t *recorded, const char *folder)
{
    const char *path;
    json_t *digest;
    json_object_foreach(recorded, path, digest)
    {
        char found[DIGEST_TEXT], to[1024];
        char *object = object_path(audit->evidence, json_string_value(digest));
        const char *from = digest_of_file(path, found) && strcmp(found, json_string_value(digest)) == 0 ? path : object;
        size_t size = 0;
        char *data = from && stays_inside(path) ? file_read(from, &size) : NULL;
        snprintf(to, sizeof to, "%s/%s", folder, path);
        char *slash = strrchr(to, '/');
        *slash = '\0';
        bool laid = data && folder_make(to);
        *slash = '/';
        laid = laid && file_replace(to, data, size) && digest_of_file(to, found) && strcmp(found, json_string_value(digest)) == 0;
        free(data);
        free(object);
        if (!laid)
            return false;
    }
    return true;
}

/* The digest of the image that the recorded sources give with the compiler that is here; "" if they are not to be had. */
static void recorded_image(const struct audit *audit, const json_t *candidate, const char *flags, char digest[DIGEST_TEXT])
{
    char folder[256], here[4096], out[512], log[4096];
    digest[0] = '\0';
    if (!getcwd(here, sizeof here) || !folder_open(folder, sizeof folder))
        return;
    snprintf(out, sizeof out, "%s/image.so", folder);
    if (lay_out(audit, json_object_get(candidate, "sources"), folder) && chdir(folder) == 0) {
        bool built = build_image(text_at(candidate, "source"), flags, out, false, log, sizeof log);
        if (chdir(here) != 0 || !built || !digest_of_file(out, digest))
            digest[0] = '\0';
    }
    folder_remove(folder);
}

/* Files or flags differ, and `different` says which: is the image the same all the same? With the compiler of the record it has to be
 * the image of the record. With another one it is enough that the recorded sources and those here give the same: then what differs
 * does not reach the code. */
static enum sameness compare_built(struct audit *audit, const json_t *record, const char *flags, bool same_flags,
                                   const char *different, char *why, size_t why_size)
{
    const json_t *candidate = json_object_get(record, "candidate");
    const char *source = text_at(candidate, "source"), *image = text_at(candidate, "image");
    char expected[DIGEST_TEXT];
    if (!audit->compiler[0])
        build_compiler(audit->compiler, sizeof audit->compiler);
    bool same_compiler = strcmp(audit->compiler, text_at(candidate, "compiler")) == 0;
    snprintf(expected, sizeof expected, "%.*s", DIGEST_TEXT - 1, image);
    if (!same_compiler) {
        expected[0] = '\0';
        if (same_flags)
            recorded_image(audit, candidate, flags, expected);
    }
    if (*expected && strcmp(image_of(audit, source, flags), expected) == 0) {
        snprintf(why, why_size, same_compiler ? "%s, but the image is the same" : "%s, but the image by %s is the same", different,
                 audit->compiler);
        return SAME_IMAGE;
    }
    snprintf(why, why_size, "kernel changed after it was proven: %s", different);
    size_t used = strlen(why);
    if (!same_compiler && !*expected)
        snprintf(why + used, why_size - used, " (it was proven with %s, which is not here to compare the images: %s)",
                 text_at(candidate, "compiler"), audit->compiler[0] ? audit->compiler : "there is no compiler");
    return CHANGED;
}

/* ---- CUDA ---- */

void audit_cuda_compiler(char *text, size_t size)
{
    char *nvcc = cuda_tool_find("nvcc");
    snprintf(text, size, "%s", "");
    if (nvcc)
        cuda_compiler_version(nvcc, text, size);
    free(nvcc);
}

/* The digest of the index of the images that the record's candidate gives here, built as the build gate does it; "" if they are not
 * built. What else the gate looks at, with tools that may be missing here, it has seen when they were proven. Each word is built once. */
static const char *cuda_image_of(struct audit *audit, const char *word)
{
    struct session session = {.options = {.evidence = audit->evidence}};
    struct gate_result result = {.verdict = VERDICT_INCONCLUSIVE, .details = json_object(), .artefacts = json_object()};
    struct proof proof = {0};
    const char *image = "";
    if (json_object_get(audit->images, word))
        return text_at(audit->images, word);
    if (attest_context_create_on("cpu", &session.context) == ATTEST_OK && proof_open(&session, word, &proof) == EXIT_PASS) {
        gate_build(&proof, &result);
        if (result.verdict != VERDICT_FAIL)
            image = text_at(proof.candidate.facts, "image");
    }
    if (!audit->images)
        audit->images = json_object();
    json_put(audit->images, word, json_string(image));
    proof_close(&proof);
    attest_context_destroy(session.context);
    json_decref(result.details);
    json_decref(result.artefacts);
    return text_at(audit->images, word);
}

/* The flags that nvcc would be given now; to be freed. */
static char *cuda_flags_of(const char *source)
{
    struct cuda_manifest manifest;
    char why[512], *flags = NULL;
    if (cuda_manifest_read(source, true, &manifest, why, sizeof why)) {
        flags = cuda_compile_flags(manifest.flags);
        cuda_manifest_free(&manifest);
    }
    return flags;
}

/* As for the CPU: files or flags that differ are no matter if the compiler of the record makes the same images of them. */
static enum sameness compare_cuda(struct audit *audit, const json_t *record, const char *different, char *why, size_t why_size)
{
    const json_t *candidate = json_object_get(record, "candidate");
    char *flags = cuda_flags_of(text_at(candidate, "source")), what[1024];
    bool same_flags = flags && strcmp(flags, text_at(candidate, "flags")) == 0;
    free(flags);
    if (!different && same_flags)
        return SAME_SOURCES;
    if (!audit->cuda_compiler[0])
        audit_cuda_compiler(audit->cuda_compiler, sizeof audit->cuda_compiler);
    snprintf(what, sizeof what, different ? "%s differs" : "the compiler flags differ", different);
    snprintf(why, why_size, "kernel changed after it was proven: %s", what);
    if (strcmp(audit->cuda_compiler, text_at(candidate, "compiler")) != 0) {
        size_t used = strlen(why);
        snprintf(why + used, why_size - used, " (it was proven with %s, which is not here to compare the images: %s)",
                 text_at(candidate, "compiler"), audit->cuda_compiler[0] ? audit->cuda_compiler : "there is no nvcc");
        return CHANGED;
    }
    if (strcmp(cuda_image_of(audit, text_at(record, "word")), text_at(candidate, "image")) != 0)
        return CHANGED;
    snprintf(why, why_size, "%s, but the images are the same", what);
    return SAME_IMAGE;
}

enum sameness audit_sources(struct audit *audit, const json_t *record, char *why, size_t why_size)
{
    const json_t *candidate = json_object_get(record, "candidate");
    json_t *recorded = json_object_get(candidate, "sources");
    const char *source = text_at(candidate, "source");
    why[0] = '\0';
    if (!recorded || !*source)
        return compare_image(record, why, why_size);
    if (access(source, R_OK) != 0) {
        snprintf(why, why_size, "its source %s is not here", source);
        return NOT_HERE;
    }
    const char *different = first_difference(recorded, NULL);
    if (strcmp(text_at(record, "backend"), "cpu") != 0)
        return compare_cuda(audit, record, different, why, why_size);
    char *flags = candidate_flags(source), *all = flags ? build_flags(flags) : NULL;
    bool same_flags = all && strcmp(all, text_at(candidate, "flags")) == 0;
    json_t *here = NULL;
    /* A header that the program carries has no path here; the compiler finds it. */
    if (different && access(different, R_OK) != 0 && flags && (here = build_sources(source, flags)))
        different = first_difference(recorded, here);
    enum sameness sameness = SAME_SOURCES;
    if (!all) {
        snprintf(why, why_size, "%s cannot be read", source);
        sameness = CHANGED;
    } else if (different || !same_flags) {
        char what[1024];
        snprintf(what, sizeof what, different ? "%s differs" : "the compiler flags differ", different);
        sameness = compare_built(audit, record, flags, same_flags, what, why, why_size);
    }
    json_decref(here);
    free(flags);
    free(all);
    return sameness;
}

/* ---- what can be continued ------------------------------------------------------------------------------------------------- */

/* Whether a proof of the kernel on the device class. */
static bool is_about(const json_t *entry, const char *kernel, const char *device, const char *word)
{
    const json_t *record = statement_predicate(entry);
    return !json_object_get(entry, "problem") && text_is(json_object_get(entry, "statement"), "predicateType", PREDICATE_PROOF) &&
           text_is(record, "kernel", kernel) && text_is(record, "word", word) &&
           text_is(json_object_get(record, "device"), "class", device);
}

const json_t *continuation_base(struct audit *audit, const char *kernel, const char *device, const char *word, json_t **combined,
                                char *why, size_t why_size)
{
    const json_t *newest = NULL;
    json_t *entry, *findings = json_array();
    char sentence[1024] = "";
    size_t index;
    *combined = NULL;
    snprintf(why, why_size, "it has no record on %s", device);
    json_array_foreach(audit->statements, index, entry)
    {
        if (is_about(entry, kernel, device, word) && (!newest || statement_sequence(entry) > statement_sequence(newest)))
            newest = entry;
    }
    const json_t *record = statement_predicate(newest);
    if (newest) {
        enum sameness sameness = audit_sources(audit, record, sentence, sizeof sentence);
        audit_statement(audit, newest, findings);
        if (sameness != SAME_SOURCES && sameness != SAME_IMAGE)
            snprintf(why, why_size, "%s", sentence);
        else if (text_is(record, "verdict", "REJECTED"))
            snprintf(why, why_size, "its last record is a rejection");
        else if (json_array_size(findings) > 0)
            snprintf(why, why_size, "its last record is not in order: %s", json_string_value(json_array_get(findings, 0)));
        else
            *combined = continuation_combine(audit->statements, newest, why, why_size);
    }
    json_decref(findings);
    return *combined ? newest : NULL;
}
