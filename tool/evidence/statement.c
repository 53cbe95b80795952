/*
 * statement.c - evidence files: made, extended and read. See statement.h; the format and what it protects are in docs/evidence.md.
 *
 * How an edit is noticed. The predicate of each line names the digest of the line before it ("previous"), so a line can be
 * changed, moved or taken out only together with all that follow; and SHA256SUMS names the digest of each whole file, so the last
 * line cannot either. A signed line is protected by its key as well. Without signatures this finds accidents, and edits that
 * do not know how to go about it; someone who writes lines, chain and sums anew is stopped by signatures or by the history of
 * the repository alone.
 *
 * The lines of different files are tied together as well (statement_order.c): each names the statements that were last when it was appended
 * ("after"), and its number follows from theirs.
 *
 * How a kill is survived. Two files change, and never at once. First the extended file is written under another name (.next-NAME);
 * then SHA256SUMS gets two lines for it, its digest before (that of no bytes, if it is not there) and after; then the extended file
 * takes its place; then SHA256SUMS has one line again. Each step replaces one file whole, so at every moment the file is what one of
 * its lines says, and the other line is that of the file without its last line, or of the one that waits: no other second line is
 * accepted. Writers hold an exclusive lock on the folder, readers a shared one.
 */
#include "statement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dsse.h"
#include "evidence_folder.h"
#include "member.h"
#include "objects.h"
#include "statement_order.h"
#include "store.h"

/* NULL if it is not there, or no text. */
static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* A copy whose keys are in the order of the canonical form, so that walking it depends on nothing else. */
static json_t *in_order(const json_t *value)
{
    char *text = canonical_text(value);
    json_t *copy = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    free(text);
    return copy;
}

/* ---- making ---------------------------------------------------------------------------------------------------------------- */

static json_t *subject_entry(const char *name, const char *digest)
{
    return json_pack("{s:s, s:{s:s}}", "name", name, "digest", "sha256", digest);
}

static json_t *subject_of(const json_t *record)
{
    const json_t *candidate = json_object_get(record, "candidate");
    const char *kernel = text_of(record, "kernel"), *image = text_of(candidate, "image"), *backend = text_of(record, "backend");
    json_t *subject = json_array(), *sources = in_order(json_object_get(candidate, "sources")), *digest;
    const char *path;
    json_object_foreach(sources, path, digest)
    {
        if (json_is_string(digest))
            json_add(subject, subject_entry(path, json_string_value(digest)));
    }
    if (kernel && image) {
        char name[256];
        snprintf(name, sizeof name, "%s.%s", kernel, backend && strcmp(backend, "cuda") == 0 ? "cubin" : "so");
        json_add(subject, subject_entry(name, image));
    }
    json_decref(sources);
    return subject;
}

json_t *statement_wrap(const json_t *subject, const char *predicate_type, const json_t *predicate)
{
    return json_pack("{s:s, s:O, s:s, s:O}", "_type", STATEMENT_TYPE, "subject", subject, "predicateType", predicate_type,
                     "predicate", predicate);
}

json_t *statement_make(const json_t *record)
{
    json_t *subject = subject_of(record);
    json_t *statement = statement_wrap(subject, PREDICATE_PROOF, record);
    json_decref(subject);
    return statement;
}

json_t *statement_artefacts(const json_t *record)
{
    json_t *found = json_object(), *gate, *digest;
    size_t index;
    const char *name;
    json_array_foreach(json_object_get(record, "gates"), index, gate)
    {
        json_object_foreach(json_object_get(gate, "artefacts"), name, digest)
        {
            if (json_is_string(digest) && !json_object_get(found, json_string_value(digest)))
                json_put(found, json_string_value(digest),
                         json_text("%s: %s", text_of(gate, "gate") ? text_of(gate, "gate") : "a gate", name));
        }
    }
    json_t *ordered = in_order(found);
    json_decref(found);
    return ordered;
}

/* ---- where a statement belongs --------------------------------------------------------------------------------------------- */

/* "cpu-avx2/cpu_fwd_f32_avx2.intoto.jsonl"; false if the predicate does not name a device class and a kernel. */
static bool file_of(const json_t *predicate, char *file, size_t size)
{
    const char *device = text_of(json_object_get(predicate, "device"), "class"), *kernel = text_of(predicate, "kernel");
    if (!is_plain_name(device) || !is_plain_name(kernel))
        return false;
    snprintf(file, size, "%s/%s" EVIDENCE_ENDING, device, kernel);
    return true;
}

/* A descriptor that holds the lock of the folder; -1 on failure. Closing it gives the lock back. */
static int lock_folder(const char *evidence, int kind)
{
    int folder = open(evidence, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    while (flock(folder, kind) != 0) {
        if (errno == EINTR)
            continue;
        close(folder);
        return -1;
    }
    return folder;
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

void set_problem(json_t *entry, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!json_object_get(entry, "problem"))
        json_put(entry, "problem", json_string(text));
}

/* A canonical line of JSON: the same bytes again when written. NULL if it is not. */
static json_t *parse_line(const char *line, size_t size)
{
    json_t *value = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
    char *again = value ? canonical_text(value) : NULL;
    if (value && (!again || strlen(again) != size || memcmp(again, line, size) != 0)) {
        json_decref(value);
        value = NULL;
    }
    free(again);
    return value;
}

/* Puts the statement of a line into its entry, out of its envelope if it is in one. */
static void read_statement(json_t *entry, const char *line, size_t size)
{
    char why[256] = "", key[KEY_TEXT], file[512];
    json_t *value = parse_line(line, size);
    json_put(entry, "signed", json_false());
    if (json_object_get(value, "payloadType")) {
        char *payload = dsse_open(value, key, why, sizeof why);
        json_decref(value);
        value = payload ? parse_line(payload, strlen(payload)) : NULL;
        free(payload);
        if (*why)
            set_problem(entry, "%s", why);
        if (value) {
            json_put(entry, "signed", json_true());
            json_put(entry, "key", json_string(key));
        }
    }
    const char *type = text_of(value, "_type"), *predicate_type = text_of(value, "predicateType");
    if (!value)
        set_problem(entry, "it is not a statement in canonical JSON");
    else if (!type || strcmp(type, STATEMENT_TYPE) != 0 || !predicate_type ||
             !json_is_object(json_object_get(value, "predicate")) || !json_is_array(json_object_get(value, "subject")))
        set_problem(entry, "it is not an in-toto statement, version 1");
    else if (!file_of(json_object_get(value, "predicate"), file, sizeof file) || strcmp(file, text_of(entry, "file")) != 0)
        set_problem(entry, "it is about another kernel or device class than its file");
    if (value)
        json_put(entry, "statement", value);
}

/* The entry's line must name the digest of the line before it, and only the first none. */
static void check_chain(json_t *entry, json_t *before)
{
    const json_t *predicate = json_object_get(json_object_get(entry, "statement"), "predicate");
    const char *previous = text_of(predicate, "previous");
    if (!predicate || (before ? previous && strcmp(previous, text_of(before, "digest")) == 0 : !previous))
        return;
    if (before)
        set_problem(before, "it was edited, or lines after it were: the next line follows another");
    set_problem(entry, before ? "it was edited, or the line before it was: it follows another" : "lines before it were removed");
}

/* Appends an entry for each line of a file. */
static void read_file(const char *evidence, const char *file, const json_t *sums, json_t *entries)
{
    char path[4096], digest[DIGEST_TEXT];
    size_t size = 0, first = json_array_size(entries), number = 0;
    snprintf(path, sizeof path, "%s/%s", evidence, file);
    const char *irregular = evidence_irregular(evidence, file);
    char *text = irregular ? NULL : file_read(path, &size);
    bool missing = !irregular && !text && errno == ENOENT;
    bool known = json_object_get(sums, file) != NULL;
    const char *different = text || missing ? sums_difference(evidence, sums, file, text, size) : NULL;
    bool intact = (text || missing) && !different;
    json_t *before = NULL;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        digest_of_bytes(text + at, length, digest);
        json_t *entry = json_pack("{s:s, s:I, s:s}", "file", file, "line", (json_int_t)++number, "digest", digest);
        read_statement(entry, text + at, length);
        check_chain(entry, before);
        if (!end)
            set_problem(entry, "its line has no end");
        json_add(entries, entry);
        before = entry;
        at += length + 1;
    }
    const char *problem = irregular           ? irregular
                          : !text && !missing ? "the file cannot be read"
                          : !known            ? "the file is not named in " SUMS_FILE
                          : missing           ? "the file is named in " SUMS_FILE " and is not there"
                                              : different;
    if (!intact && number == 0) {
        json_t *entry = json_pack("{s:s, s:i, s:s, s:b}", "file", file, "line", 0, "digest", "", "signed", 0);
        set_problem(entry, "%s", problem);
        json_add(entries, entry);
    }
    for (size_t i = first; !intact && i < json_array_size(entries); i++)
        set_problem(json_array_get(entries, i), "%s", problem);
    free(text);
}

/* Everything, with the lock held by the caller. */
static json_t *load_locked(const char *evidence, json_t *sums)
{
    json_t *files = evidence_files(evidence), *entries = json_array(), *unused;
    const char *file;
    json_object_foreach(sums, file, unused) json_put(files, file, json_true());
    json_t *ordered = in_order(files);
    json_object_foreach(ordered, file, unused) read_file(evidence, file, sums, entries);
    order_check(entries);
    json_decref(ordered);
    json_decref(files);
    return entries;
}

const json_t *statements_find(const json_t *statements, const char *digest)
{
    const json_t *entry;
    size_t index;
    json_array_foreach(statements, index, entry)
    {
        if (text_is(entry, "digest", digest))
            return entry;
    }
    return NULL;
}

json_t *statements_load(const char *evidence, char *why, size_t why_size)
{
    int lock = lock_folder(evidence, LOCK_SH);
    if (lock < 0 && errno == ENOENT)
        return json_array();
    if (lock < 0) {
        evidence_fail(why, why_size, "%s cannot be read: %s", evidence, strerror(errno));
        return NULL;
    }
    json_t *sums = sums_read(evidence, why, why_size);
    json_t *entries = sums ? load_locked(evidence, sums) : NULL;
    json_decref(sums);
    close(lock);
    return entries;
}

/* ---- appending ------------------------------------------------------------------------------------------------------------- */

/* What the folder's present state says about the line to come. False and a sentence if the file it belongs to is not in order. */
static bool look_around(const json_t *entries, const char *file, json_int_t *sequence, const char **previous, char *why,
                        size_t why_size)
{
    json_t *entry;
    size_t index;
    *sequence = 1;
    *previous = NULL;
    json_array_foreach(entries, index, entry)
    {
        const json_t *predicate = json_object_get(json_object_get(entry, "statement"), "predicate");
        json_int_t number = json_integer_value(json_object_get(predicate, "sequence"));
        if (number >= *sequence)
            *sequence = number + 1;
        if (strcmp(text_of(entry, "file"), file) != 0)
            continue;
        if (text_of(entry, "problem"))
            return evidence_fail(why, why_size, "%s, line %lld: %s; nothing was appended", file,
                                 (long long)json_integer_value(json_object_get(entry, "line")), text_of(entry, "problem"));
        *previous = text_of(entry, "digest");
    }
    return true;
}

/* A CUDA kernel has many images, and the record has the digest of each and all it takes to build them again. */
static bool is_one_of_many(const char *name)
{
    return strncmp(name, "build: image ", strlen("build: image ")) == 0;
}

/* Copies the artefacts that are small enough; the others are added to `omitted`. */
static bool copy_artefacts(const char *evidence, const json_t *record, struct store *store, json_t *omitted, char *why,
                           size_t why_size)
{
    json_t *artefacts = statement_artefacts(record), *unused;
    const char *digest;
    bool copied = true;
    json_object_foreach(artefacts, digest, unused)
    {
        char *path = store ? store_artefact(store, digest) : NULL, found[DIGEST_TEXT];
        struct stat status;
        if (store && (!path || stat(path, &status) != 0))
            copied = evidence_fail(why, why_size, "the artefact %s (%s) is not in the store", digest, json_string_value(unused));
        else if (!store || status.st_size > LARGEST_ARTEFACT || is_one_of_many(json_string_value(unused)))
            json_add(omitted, json_string(digest));
        else if (!object_keep(evidence, path, found))
            copied = evidence_fail(why, why_size, "the artefact %s (%s) cannot be copied to %s: %s", digest,
                                   json_string_value(unused), evidence, strerror(errno));
        else if (strcmp(found, digest) != 0)
            copied =
                evidence_fail(why, why_size, "the artefact %s (%s) was changed in the store", digest, json_string_value(unused));
        free(path);
        if (!copied)
            break;
    }
    json_decref(artefacts);
    return copied;
}

/* Keeps the sources too, so that a later reader can compile them beside those of their own day: see audit.c. What is not here, such
 * as a header that the program carries, is left out; the record names its digest all the same. */
static void copy_sources(const char *evidence, const json_t *record)
{
    json_t *sources = json_object_get(json_object_get(record, "candidate"), "sources"), *digest;
    const char *path;
    json_object_foreach(sources, path, digest)
    {
        char found[DIGEST_TEXT];
        if (json_is_string(digest) && digest_of_file(path, found) && strcmp(found, json_string_value(digest)) == 0)
            object_keep(evidence, path, found);
    }
}

/* The line, without its end; to be freed. */
static char *make_line(const json_t *statement, json_int_t sequence, const char *previous, json_t *after, const json_t *omitted,
                       const char *key, char *why, size_t why_size)
{
    json_t *copy = json_deep_copy(statement), *predicate = json_object_get(copy, "predicate");
    json_put(predicate, "sequence", json_integer(sequence));
    json_put(predicate, "omitted", json_deep_copy(omitted));
    json_put(predicate, "after", after);
    json_object_del(predicate, "previous");
    if (previous)
        json_put(predicate, "previous", json_string(previous));
    char *text = canonical_text(copy);
    json_decref(copy);
    if (text && key) {
        json_t *envelope = dsse_sign(text, key, why, why_size);
        free(text);
        text = envelope ? canonical_text(envelope) : NULL;
        json_decref(envelope);
    } else if (!text) {
        evidence_fail(why, why_size, "out of memory, or the record holds what JSON cannot");
    }
    return text;
}

/* The four steps at the head of this file. */
static bool extend_file(const char *evidence, const char *file, const char *line, json_t *sums, char *why, size_t why_size)
{
    char path[4096], next[4096], before[DIGEST_TEXT], after[DIGEST_TEXT];
    size_t size = 0, length = strlen(line);
    snprintf(path, sizeof path, "%s/%s", evidence, file);
    evidence_next(evidence, file, next, sizeof next);
    char *text = file_read(path, &size);
    if (!text && errno != ENOENT)
        return evidence_fail(why, why_size, "%s cannot be read: %s", path, strerror(errno));
    char *grown = realloc(text, size + length + 2);
    if (!grown) {
        free(text);
        return evidence_fail(why, why_size, "out of memory");
    }
    digest_of_bytes(grown, size, before);
    memcpy(grown + size, line, length);
    grown[size + length] = '\n';
    size += length + 1;
    digest_of_bytes(grown, size, after);

    bool done = file_replace(next, grown, size);
    if (!done)
        evidence_fail(why, why_size, "%s cannot be written: %s", next, strerror(errno));
    json_put(sums, file, json_pack("[s, s]", before, after));
    done = done && sums_write(evidence, sums, why, why_size);
    if (done && !file_rename(next, path))
        done = evidence_fail(why, why_size, "%s cannot be written: %s", path, strerror(errno));
    if (done) {
        json_put(sums, file, json_pack("[s]", after));
        done = sums_write(evidence, sums, why, why_size);
    }
    free(grown);
    return done;
}

static bool append_locked(const char *evidence, const json_t *statement, const char *key, struct store *store, char *why,
                          size_t why_size)
{
    char file[512], folder[4096];
    const char *previous = NULL;
    json_int_t sequence = 0;
    const json_t *predicate = json_object_get(statement, "predicate");
    if (!file_of(predicate, file, sizeof file))
        return evidence_fail(why, why_size, "the record names no device class or kernel that can be the name of a file");
    snprintf(folder, sizeof folder, "%s/%.*s", evidence, (int)strcspn(file, "/"), file);
    if (!folder_make(folder))
        return evidence_fail(why, why_size, "%s cannot be made: %s", folder, strerror(errno));
    leavings_remove(evidence, 0);
    leavings_remove(folder, 0);
    snprintf(folder, sizeof folder, "%s/objects", evidence);
    leavings_remove(folder, 0);

    json_t *sums = sums_read(evidence, why, why_size), *omitted = json_array();
    json_t *entries = sums ? load_locked(evidence, sums) : NULL;
    char *line = NULL;
    bool done = entries && sums_settle(evidence, sums, why, why_size) &&
                look_around(entries, file, &sequence, &previous, why, why_size) &&
                copy_artefacts(evidence, predicate, store, omitted, why, why_size) &&
                (line = make_line(statement, sequence, previous, order_heads(entries), omitted, key, why, why_size)) &&
                extend_file(evidence, file, line, sums, why, why_size);
    if (done)
        copy_sources(evidence, predicate);
    free(line);
    json_decref(entries);
    json_decref(sums);
    json_decref(omitted);
    return done;
}

bool statement_append(const char *evidence, const json_t *statement, const char *key, struct store *store, char *why,
                      size_t why_size)
{
    if (!folder_make(evidence))
        return evidence_fail(why, why_size, "%s cannot be made: %s", evidence, strerror(errno));
    int lock = lock_folder(evidence, LOCK_EX);
    if (lock < 0)
        return evidence_fail(why, why_size, "%s cannot be locked: %s", evidence, strerror(errno));
    bool done = append_locked(evidence, statement, key, store, why, why_size);
    close(lock);
    return done;
}

const json_t *statement_predicate(const json_t *entry)
{
    return json_object_get(json_object_get(entry, "statement"), "predicate");
}

json_int_t statement_sequence(const json_t *entry)
{
    return json_integer_value(json_object_get(statement_predicate(entry), "sequence"));
}
