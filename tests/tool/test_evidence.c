/*
 * Tests of the evidence: digests and canonical JSON, signatures, statements and what happens when they are edited, and the checks
 * of verify. `test_evidence make ...` writes a record for tests/evidence.t.
 */
#include "evidence/statement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verify/audit.h"
#include "verify/audit_speed.h"
#include "evidence/decision.h"
#include "evidence/dsse.h"
#include "evidence/evidence_folder.h"
#include "evidence/member.h"
#include "evidence/objects.h"
#include "evidence/store.h"
#include "make_record.h"
#include "base/random.h"
#include "data/statistics.h"
#include "tap.h"

/* ---- digests and canonical form ------------------------------------------------------------------------------------------------
 */

static void test_digests(void)
{
    static const struct {
        const char *text, *digest;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char digest[DIGEST_TEXT], path[512];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        digest_of_bytes(known[i].text, strlen(known[i].text), digest);
        tap_check(strcmp(digest, known[i].digest) == 0, "sha256(\"%s\") is %s", known[i].text, digest);
    }
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    snprintf(path, sizeof path, "%s/million", fresh("digests"));
    file_replace(path, million, 1000000);
    free(million);
    tap_check(digest_of_file(path, digest) &&
                  strcmp(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") == 0,
              "sha256 of a file of a million times a is %s", digest);
    tap_check(!digest_of_file("/no/such/file", digest) && !digest[0], "a missing file has a digest");
    tap_check(digest_is_one(known[0].digest) && !digest_is_one("abc") && !digest_is_one(NULL), "what is a digest is told apart");
}

static void check_canonical(const char *text, const char *expected)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    char *once = canonical_text(value);
    tap_check(once && strcmp(once, expected) == 0, "%s becomes %s", text, once ? once : "nothing");
    json_t *read = json_loads(once, JSON_DECODE_ANY, NULL);
    char *twice = canonical_text(read);
    tap_check(twice && strcmp(once, twice) == 0, "%s becomes %s, then %s", text, once, twice ? twice : "nothing");
    free(once);
    free(twice);
    json_decref(value);
    json_decref(read);
}

static void test_canonical(void)
{
    check_canonical("{\"b\": 1, \"a\": [true, null, \"x\\/y\"], \"B\": {\"z\": 0, \"y\": 1}}",
                    "{\"B\":{\"y\":1,\"z\":0},\"a\":[true,null,\"x/y\"],\"b\":1}");
    check_canonical("\"\\u00e9 \\u0001 \\\"\"", "\"\xc3\xa9 \\u0001 \\\"\"");
    check_canonical("1", "1");
    check_canonical("1.0", "1.0");
    check_canonical("1e3", "1000.0");
    check_canonical("-0.0", "-0.0");
    check_canonical("0.1", "0.10000000000000001");
    check_canonical("9007199254740993", "9007199254740993");
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = random_bits(tap.seed, 1, i);
        double number, again;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
            continue;
        json_t *value = json_real(number);
        char *text = canonical_text(value);
        json_t *read = json_loads(text, JSON_DECODE_ANY, NULL);
        char *twice = canonical_text(read);
        again = json_real_value(read);
        tap_check(memcmp(&number, &again, sizeof number) == 0 && strcmp(text, twice) == 0, "%a is written as %s, read as %a",
                  number, text, again);
        json_decref(value);
        json_decref(read);
        free(text);
        free(twice);
    }
    json_t *one = json_loads("{\"a\": 1, \"b\": 2.5}", 0, NULL), *other = json_loads("{\"b\":2.5,\"a\":1}", 0, NULL);
    char digests[2][DIGEST_TEXT];
    digest_of_json(one, digests[0]);
    digest_of_json(other, digests[1]);
    tap_check(strcmp(digests[0], digests[1]) == 0 && digest_is_one(digests[0]), "the order of keys changes a digest");
    json_decref(one);
    json_decref(other);
}

/* ---- signatures ----------------------------------------------------------------------------------------------------------------
 */

static void test_signatures(void)
{
    char path[512], key[KEY_TEXT], again[KEY_TEXT], why[512] = "";
    size_t size = 0;
    /* The example of the DSSE specification, protocol.md. */
    char *pae = dsse_pae("http://example.com/HelloWorld", "hello world", 11, &size);
    static const char expected[] = "DSSEv1 29 http://example.com/HelloWorld 11 hello world";
    tap_check(pae && size == strlen(expected) && memcmp(pae, expected, size) == 0, "PAE is %.*s", (int)size, pae);
    free(pae);

    /* The first key pair of RFC 8032, 7.1. */
    const char *folder = fresh("keys");
    snprintf(path, sizeof path, "%s/rfc", folder);
    write_text(path, "attest-ed25519-secret 9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n");
    tap_check(key_read_public(path, key, why, sizeof why) &&
                  strcmp(key, "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a") == 0,
              "the public key of RFC 8032 is %s, %s", key, why);

    char made[512], public_path[600];
    struct stat status;
    snprintf(made, sizeof made, "%s/made", folder);
    snprintf(public_path, sizeof public_path, "%s.pub", made);
    tap_check(key_generate(made, key, why, sizeof why), "keygen: %s", why);
    tap_check(stat(made, &status) == 0 && (status.st_mode & 0777) == 0600, "the secret key has mode %o", status.st_mode & 0777);
    tap_check(key_read_public(public_path, again, why, sizeof why) && strcmp(key, again) == 0, "FILE.pub has another key");
    tap_check(!key_generate(made, again, why, sizeof why), "a key is replaced");

    json_t *envelope = dsse_sign("{\"a\":1}", made, why, sizeof why);
    char *payload = envelope ? dsse_open(envelope, again, why, sizeof why) : NULL;
    tap_check(payload && strcmp(payload, "{\"a\":1}") == 0 && strcmp(key, again) == 0, "signed and opened: %s", why);
    free(payload);
    json_object_set_new(envelope, "payload", json_string("eyJhIjoyfQ=="));
    tap_check(!dsse_open(envelope, again, why, sizeof why), "another payload is accepted");
    json_decref(envelope);
    tap_check(!dsse_sign("x", public_path, why, sizeof why) && strstr(why, "secret"), "signing with a public key says: %s", why);
    write_text(path, "-----BEGIN PRIVATE KEY-----\n");
    tap_check(!dsse_sign("x", path, why, sizeof why) && strstr(why, "keygen"), "a file that is no key says: %s", why);
}

/* ---- statements ----------------------------------------------------------------------------------------------------------------
 */

static void test_statements(void)
{
    char evidence[256], state[256], key[512], text[KEY_TEXT], why[1024] = "", path[512], digest[DIGEST_TEXT], large[DIGEST_TEXT];
    snprintf(evidence, sizeof evidence, "%s", fresh("evidence"));
    snprintf(state, sizeof state, "%s", fresh("state"));
    snprintf(key, sizeof key, "%s/key", fresh("key"));
    key_generate(key, text, why, sizeof why);
    struct store *store = store_open(state, why, sizeof why);
    snprintf(path, sizeof path, "%s/log", state);
    write_text(path, "a log\n");
    tap_check(store && store_keep(store, path, digest), "store: %s", why);
    char *bytes = calloc(1, LARGEST_ARTEFACT + 1);
    file_replace(path, bytes, LARGEST_ARTEFACT + 1);
    free(bytes);
    tap_check(store_keep(store, path, large), "store: %s", store_error(store));

    tap_check(append(evidence, &(struct recipe){.kernel = "one", .device = "cpu-avx2", .artefact = digest}, NULL, store), "first");
    tap_check(append(evidence, &(struct recipe){.kernel = "one", .device = "cpu-avx2", .artefact = large}, key, store),
              "second, signed");
    tap_check(append(evidence, &(struct recipe){.kernel = "two", .device = "cpu-avx2", .failing = "oracle"}, NULL, store),
              "another kernel");
    json_t *statements = statements_load(evidence, why, sizeof why), *second = json_array_get(statements, 1);
    tap_check(json_array_size(statements) == 3, "%zu statements: %s", json_array_size(statements), why);
    for (size_t i = 0; i < json_array_size(statements); i++) {
        const json_t *entry = json_array_get(statements, i), *statement = json_object_get(entry, "statement");
        tap_check(!json_object_get(entry, "problem"), "%s: %s", text_at(entry, "file"), text_at(entry, "problem"));
        tap_check(text_is(statement, "_type", "https://in-toto.io/Statement/v1") &&
                      text_is(statement, "predicateType", "urn:attest:proof:v1"),
                  "it is an in-toto statement");
        tap_check(json_integer_value(json_object_get(json_object_get(statement, "predicate"), "sequence")) == (json_int_t)i + 1,
                  "sequence");
    }
    const json_t *predicate = json_object_get(json_object_get(second, "statement"), "predicate");
    tap_check(json_is_true(json_object_get(second, "signed")) && text_is(second, "key", text), "the second is signed");
    tap_check(text_is(predicate, "previous", text_at(json_array_get(statements, 0), "digest")), "the second follows the first");
    tap_check(strcmp(json_string_value(json_array_get(json_object_get(predicate, "omitted"), 0)), large) == 0,
              "a large artefact is named as omitted");
    char *object = object_path(evidence, digest);
    tap_check(digest_of_file(object, text) && strcmp(text, digest) == 0, "a small artefact is copied");
    free(object);
    json_decref(statements);
    store_close(store);
    snprintf(path, sizeof path, "cd %s && sha256sum --quiet -c SHA256SUMS", evidence);
    tap_check(system(path) == 0, "sha256sum -c reads SHA256SUMS");

    json_t *record = make_record(&(struct recipe){.kernel = "../../evil", .device = "cpu-avx2"}),
           *statement = statement_make(record);
    tap_check(!statement_append(evidence, statement, NULL, NULL, why, sizeof why), "a kernel named ../../evil gets a file");
    json_decref(statement);
    json_decref(record);
    tap_check(count_problems("/no/such/folder", NULL) == 0, "a folder that is not there has statements");
}

/* Every flipped byte of an evidence file must be noticed, and so must lines that are taken away or put in another order. */
static void test_tampering(void)
{
    char evidence[256], path[512], sums[512], key[512], text[KEY_TEXT], why[512];
    size_t size = 0, sums_size = 0;
    snprintf(evidence, sizeof evidence, "%s", fresh("evidence"));
    snprintf(key, sizeof key, "%s/key", fresh("key"));
    key_generate(key, text, why, sizeof why);
    struct recipe recipe = {.kernel = "one", .device = "cpu-avx2"};
    append(evidence, &recipe, NULL, NULL);
    append(evidence, &recipe, NULL, NULL);
    append(evidence, &recipe, key, NULL);
    snprintf(path, sizeof path, "%s/cpu-avx2/one.intoto.jsonl", evidence);
    snprintf(sums, sizeof sums, "%s/SHA256SUMS", evidence);
    char *good = file_read(path, &size), *good_sums = file_read(sums, &sums_size);
    tap_check(good && count_problems(evidence, NULL) == 0, "as it was written it is in order");
    char *bad = malloc(size + 1);
    size_t step = (size_t)tap_amount(97, 11, 1);
    for (size_t i = 0; i<size; i += i + 200> size ? 1 : step) {
        memcpy(bad, good, size);
        bad[i] = (char)(bad[i] ^ (1 << random_below(random_bits(tap.seed, 2, i), 7)));
        FILE *file = fopen(path, "wb");
        fwrite(bad, 1, size, file);
        fclose(file);
        tap_check(count_problems(evidence, NULL) > 0, "byte %zu of %zu can be flipped", i, size);
    }
    char *second = memchr(good, '\n', size), *third = memchr(second + 1, '\n', size - (size_t)(second + 1 - good));
    size_t first_length = (size_t)(second + 1 - good), two_length = (size_t)(third + 1 - good);
    file_replace(path, good, two_length);
    tap_check(count_problems(evidence, NULL) > 0, "the last line can be taken away");
    file_replace(path, good + first_length, size - first_length);
    tap_check(count_problems(evidence, NULL) > 0, "the first line can be taken away");
    unlink(path);
    tap_check(count_problems(evidence, NULL) > 0, "the file can be taken away");

    /* Whoever knows the format writes the sums anew; the chain, and in the last line the signature, still notice. */
    for (int line = 0; line < 3; line += 2) {
        char digest[DIGEST_TEXT], row[DIGEST_TEXT + 64];
        memcpy(bad, good, size);
        size_t from = line == 0 ? 0 : two_length;
        char *at = line == 0 ? memmem(bad, first_length, "a sentence", 10) : memchr(bad + from + 20, 'e', size - from - 20);
        tap_check(at != NULL, "there is something to edit in line %d", line + 1);
        *at = line == 0 ? 'b' : 'f';
        digest_of_bytes(bad, size, digest);
        file_replace(path, bad, size);
        snprintf(row, sizeof row, "%s  cpu-avx2/one.intoto.jsonl\n", digest);
        write_text(sums, row);
        tap_check(count_problems(evidence, NULL) > 0, "line %d can be edited with its sum", line + 1);
    }
    file_replace(path, good, size);
    file_replace(sums, good_sums, sums_size);
    tap_check(count_problems(evidence, NULL) == 0, "put back it is in order again");
    write_text(sums, "rubbish\n");
    tap_check(count_problems(evidence, NULL) == -1, "SHA256SUMS can be rubbish");
    unlink(sums);
    tap_check(count_problems(evidence, NULL) > 0, "SHA256SUMS can be taken away");
    tap_check(!append(evidence, &recipe, NULL, NULL), "a file that is not in order is extended");
    free(bad);
    free(good);
    free(good_sums);
}

/* A writer can be killed between two of its three steps; see the head of statement.c. */
static void test_half_way(void)
{
    char evidence[256], path[512], sums[512], row[512], before[DIGEST_TEXT], after[DIGEST_TEXT];
    struct recipe recipe = {.kernel = "one", .device = "cpu-avx2"};
    size_t size = 0;
    int entries = 0;
    snprintf(evidence, sizeof evidence, "%s", fresh("evidence"));
    append(evidence, &recipe, NULL, NULL);
    snprintf(path, sizeof path, "%s/cpu-avx2/one.intoto.jsonl", evidence);
    snprintf(sums, sizeof sums, "%s/SHA256SUMS", evidence);
    char *one = file_read(path, &size);
    digest_of_file(path, before);
    append(evidence, &recipe, NULL, NULL);
    digest_of_file(path, after);
    snprintf(row, sizeof row, "%s  cpu-avx2/one.intoto.jsonl\n%s  cpu-avx2/one.intoto.jsonl\n", before, after);
    write_text(sums, row);
    tap_check(count_problems(evidence, &entries) == 0 && entries == 2, "after the second step: %d entries", entries);
    char next[512];
    evidence_next(evidence, "cpu-avx2/one.intoto.jsonl", next, sizeof next);
    size_t two_size = 0;
    char *two = file_read(path, &two_size);
    file_replace(path, one, size);
    tap_check(count_problems(evidence, NULL) > 0, "a second line that is that of no file is accepted");
    file_replace(next, two, two_size);
    tap_check(count_problems(evidence, &entries) == 0 && entries == 1, "after the first step: %d entries", entries);
    two[size + 30] ^= 1;
    file_replace(next, two, two_size);
    tap_check(count_problems(evidence, NULL) > 0, "a second line that is not that of the file that waits is accepted");
    two[size + 30] ^= 1;
    file_replace(next, two, two_size);
    free(two);
    tap_check(append(evidence, &recipe, NULL, NULL) && count_problems(evidence, &entries) == 0 && entries == 2, "then it goes on");
    char *text = file_read(sums, &size);
    tap_check(text && size == strlen("  cpu-avx2/one.intoto.jsonl\n") + 64, "with one sum: %s", text);
    free(text);
    tap_check(access(next, F_OK) != 0, "what waited stays for ever");

    char other[256];
    snprintf(other, sizeof other, "%s", fresh("evidence"));
    append(other, &(struct recipe){.kernel = "new", .device = "cpu-avx2"}, NULL, NULL);
    snprintf(path, sizeof path, "%s/cpu-avx2/new.intoto.jsonl", other);
    char *line = file_read(path, &size);
    digest_of_file(path, after);
    snprintf(row, sizeof row, "%s  cpu-avx2/new.intoto.jsonl\n%s  cpu-avx2/new.intoto.jsonl\n",
             "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", after);
    snprintf(evidence, sizeof evidence, "%s", fresh("evidence"));
    snprintf(sums, sizeof sums, "%s/SHA256SUMS", evidence);
    write_text(sums, row);
    tap_check(count_problems(evidence, NULL) > 0, "two lines for a file that is not there, and nothing waits");
    evidence_next(evidence, "cpu-avx2/new.intoto.jsonl", next, sizeof next);
    snprintf(path, sizeof path, "%s/cpu-avx2", evidence);
    folder_make(path);
    file_replace(next, line, size);
    free(line);
    free(one);
    tap_check(count_problems(evidence, &entries) == 0 && entries == 0, "a file that was not made yet is no problem");
    tap_check(append(evidence, &recipe, NULL, NULL) && count_problems(evidence, &entries) == 0 && entries == 1, "then it goes on");
}

/* ---- what verify finds
 * ----------------------------------------------------------------------------------------------------------- */

/* The findings about the record that `change` makes of a good one, joined; to be freed. */
static char *findings_of(const char *evidence, const struct recipe *recipe, void (*change)(json_t *record))
{
    json_t *record = make_record(recipe);
    if (change)
        change(record);
    json_t *statement = statement_make(record), *findings = json_array();
    json_t *entry = json_pack("{s:o, s:s}", "statement", statement, "digest", "");
    struct audit audit = {.evidence = evidence};
    json_put(json_object_get(statement, "predicate"), "omitted", json_array());
    audit_statement(&audit, entry, findings);
    char *text = canonical_text(findings);
    audit_free(&audit);
    json_decref(findings);
    json_decref(entry);
    json_decref(record);
    return text;
}

static void change_verdict(json_t *record)
{
    json_put(record, "verdict", json_string("PROVEN"));
}
static void change_gate(json_t *record)
{
    json_put(json_array_get(json_object_get(record, "gates"), 2), "verdict", json_string("FAIL"));
}
static void change_policy(json_t *record)
{
    json_put(json_object_get(record, "policy"), "blocks", json_real(2));
}
/* Rules made laxer, with all digests as they should be. */
static void lax_policy(json_t *record)
{
    json_t *policy = json_object_get(record, "policy");
    json_put(policy, "determinism_runs", json_real(2));
    put_digest_of(record, "policy_digest", json_incref(policy));
}
static void lax_growth(json_t *record)
{
    json_t *policy = json_object_get(record, "policy");
    json_put(policy, "error_growth", json_real(1000));
    put_digest_of(record, "policy_digest", json_incref(policy));
}
static void strict_policy(json_t *record)
{
    json_t *policy = json_object_get(record, "policy");
    json_put(policy, "determinism_runs", json_real(300));
    put_digest_of(record, "policy_digest", json_incref(policy));
}
static void change_needed(json_t *record)
{
    json_array_remove(json_object_get(record, "needed"), 2);
}
static void change_number(json_t *record)
{
    json_put(record, "policy_number", json_integer(POLICY_NUMBER + 1));
}
static void change_kind(json_t *record)
{
    json_put(record, "kind", json_string("shipped"));
}
static void change_source(json_t *record, const char *path)
{
    json_t *candidate = json_object_get(record, "candidate"), *sources = json_object_get(candidate, "sources");
    json_put(sources, path, json_string("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    put_digest_of(candidate, "closure", json_pack("{s:O, s:O}", "sources", sources, "flags", json_object_get(candidate, "flags")));
}
static void source_above(json_t *record)
{
    change_source(record, "lib/../../x.h");
}
static void source_inside(json_t *record)
{
    change_source(record, "lib/cpu/../x.h");
}
static void change_suite(json_t *record)
{
    json_array_clear(json_object_get(record, "suite"));
}
static void change_flags(json_t *record)
{
    json_put(json_object_get(record, "candidate"), "flags", json_string("-O3 -ffast-math"));
}
static void change_promotion(json_t *record)
{
    json_put(record, "promoted", json_pack("[s, s]", "fwd:f32", "fwd:bf16"));
}
static void change_champion(json_t *record)
{
    json_put(record, "champion", json_string("CHAMPION"));
}
static void change_speed(json_t *record)
{
    json_t *gate = json_array_get(json_object_get(record, "gates"), 5);
    json_put(json_object_get(json_object_get(gate, "details"), "suite"), "speed", json_string("SAME"));
}
static void change_clock(json_t *record)
{
    json_t *gate = json_array_get(json_object_get(record, "gates"), 5);
    json_put(json_object_get(gate, "details"), "clock", json_string("simulated"));
}

static void test_findings(void)
{
    const struct recipe good = {.kernel = "one", .device = "cpu-avx2"};
    const struct recipe bad = {.kernel = "one", .device = "cpu-avx2", .failing = "oracle"};
    const struct recipe fast = {.kernel = "one", .device = "cpu-avx2", .opponent = "X", .speed = "FASTER", .ratio = 2};
    const struct recipe slow = {.kernel = "one", .device = "cpu-avx2", .opponent = "X", .speed = "SLOWER", .ratio = 0.5};
    const struct recipe now = {.kernel = "one", .device = "cpu-avx2", .policy = POLICY_NUMBER};
    struct recipe kept = good;
    char evidence[256], path[512], digest[DIGEST_TEXT];
    snprintf(evidence, sizeof evidence, "%s", fresh("evidence"));
    snprintf(path, sizeof path, "%s/log", evidence);
    write_text(path, "a log\n");
    object_keep(evidence, path, digest);
    kept.artefact = digest;
    const struct {
        const char *name;
        const struct recipe *recipe;
        void (*change)(json_t *);
        const char *word; /* NULL: nothing is found */
    } rows[] = {
        {"good", &good, NULL, NULL},
        {"rejected", &bad, NULL, NULL},
        {"fast", &fast, NULL, NULL},
        {"slow", &slow, NULL, NULL},
        {"kept", &kept, NULL, NULL},
        {"verdict", &bad, change_verdict, "gates say REJECTED"},
        {"gate", &good, change_gate, "gates say REJECTED"},
        {"policy", &good, change_policy, "policy_digest"},
        {"suite", &good, change_suite, "suite_digest"},
        {"flags", &good, change_flags, "closure"},
        {"promotion", &good, change_promotion, "promoted"},
        {"champion", &slow, change_champion, "gates say SLOWER"},
        {"speed", &fast, change_speed, "suite is SAME"},
        {"clock", &fast, change_clock, "simulated clock"},
        {"the present policy", &now, NULL, NULL},
        {"laxer policy", &now, lax_policy, "determinism_runs is 2, and must be"},
        {"laxer growth", &now, lax_growth, "error_growth is 1000, and must be"},
        {"stricter policy", &now, strict_policy, NULL},
        {"another list of gates", &now, change_needed, "gates it says it needs"},
        {"unknown policy", &now, change_number, "use a newer one"},
        {"a suite that was edited", &now, change_kind, "its suite lacks"},
        {"a source above", &good, source_above, "outside of the folder"},
        {"a source beside", &good, source_inside, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!tap_case("%s", rows[i].name))
            continue;
        char *text = findings_of(evidence, rows[i].recipe, rows[i].change);
        tap_check(text && (rows[i].word ? strstr(text, rows[i].word) != NULL : strcmp(text, "[]") == 0), "found: %s", text);
        free(text);
    }
    char *object = object_path(evidence, digest);
    tap_case("artefact changed");
    write_text(object, "another log\n");
    char *text = findings_of(evidence, &kept, NULL);
    tap_check(strstr(text, "was changed") != NULL, "found: %s", text);
    free(text);
    tap_case("artefact missing");
    unlink(object);
    text = findings_of(evidence, &kept, NULL);
    tap_check(strstr(text, "is missing") != NULL, "found: %s", text);
    free(text);
    free(object);
}

/* A speed gate with samples of a simulated clock, judged as the gate judges them. `samples` goes to the artefacts. */
static void add_speed(const char *evidence, json_t *record, uint64_t seed)
{
    enum { BLOCKS = 20 };
    static const struct speed_rules rules = {
        .opponent = "X", .resamples = 200, .confidence = 0.95, .least_effect = 0.005, .worst_shape = 0.02, .seed = 12345};
    struct simulated_clock clock;
    struct block blocks[2][BLOCKS];
    json_t *lists[2] = {json_array(), json_array()};
    char why[256], path[512], digest[DIGEST_TEXT];
    simulated_clock_parse("a=1,b=1.3", &clock, why, sizeof why);
    clock.seed = seed;
    for (int list = 0; list < 2; list++) {
        for (int i = 0; i < BLOCKS; i++) {
            struct block *block = &blocks[list][i];
            json_t *seconds = json_array();
            *block = (struct block){.a_first = i % 3 == 0, .process = i % 2};
            for (int call = 0; call < BLOCK_CALLS; call++) {
                block->seconds[call] = simulated_clock_next(&clock, list == 0 && block_is_a(block, call));
                json_add(seconds, json_real(block->seconds[call]));
            }
            json_add(lists[list], json_pack("{s:s, s:i, s:o}", "order", block->a_first ? "ABBAABBA" : "BAABBAAB", "process",
                                            block->process, "seconds", seconds));
        }
    }
    struct shape_samples samples = {
        .problem = "fwd:f32:h1:s8:d8", .weight = 1, .blocks = blocks[0], .count = BLOCKS, .self = blocks[1], .self_count = BLOCKS};
    struct shape_verdict shape;
    struct suite_verdict suite;
    judge_shape(&samples, &rules, &shape);
    judge_suite(&samples, &shape, 1, &rules, &suite);
    json_t *kept = json_pack("{s:i, s:s, s:[{s:s, s:o, s:o}]}", "seed", 12345, "b", "X", "shapes", "problem", samples.problem,
                             "blocks", lists[0], "self", lists[1]);
    snprintf(path, sizeof path, "%s/samples.json", evidence);
    json_dump_file(kept, path, JSON_COMPACT);
    json_decref(kept);
    object_keep(evidence, path, digest);
    json_t *gate = json_array_get(json_object_get(record, "gates"), 5), *details = json_object_get(gate, "details");
    json_put(json_object_get(gate, "artefacts"), "samples", json_string(digest));
    json_put(details, "shapes",
             json_pack("[{s:s, s:s, s:f, s:f, s:f}]", "problem", samples.problem, "speed", speed_name(shape.speed), "ratio",
                       exp(shape.log_ratio.estimate), "low", exp(shape.log_ratio.low), "high", exp(shape.log_ratio.high)));
    json_put(details, "suite",
             json_pack("{s:s, s:f, s:f, s:f}", "speed", speed_name(suite.speed), "ratio", exp(suite.log_ratio.estimate), "low",
                       exp(suite.log_ratio.low), "high", exp(suite.log_ratio.high)));
    json_put(json_object_get(record, "policy"), "resamples", json_real(rules.resamples));
    json_put(json_object_get(record, "policy"), "worst_shape", json_real(rules.worst_shape));
    decision_make(record);
}

static void test_speed_again(void)
{
    char evidence[256];
    snprintf(evidence, sizeof evidence, "%s", fresh("evidence"));
    json_t *record =
        make_record(&(struct recipe){.kernel = "one", .device = "cpu-avx2", .opponent = "X", .speed = "FASTER", .ratio = 1});
    json_t *findings = json_array(), *details, *gate;
    add_speed(evidence, record, 1);
    gate = json_array_get(json_object_get(record, "gates"), 5);
    details = json_object_get(gate, "details");
    audit_speed(evidence, record, findings);
    char *text = canonical_text(findings);
    tap_check(strcmp(text, "[]") == 0 && text_is(json_object_get(details, "suite"), "speed", "FASTER"), "samples judged again: %s",
              text);
    free(text);

    json_put(json_object_get(details, "suite"), "ratio", json_real(1.5));
    audit_speed(evidence, record, findings);
    tap_check(json_array_size(findings) == 1, "another ratio of the suite gives %zu findings", json_array_size(findings));
    json_array_clear(findings);
    add_speed(evidence, record, 1);
    json_put(json_array_get(json_object_get(details, "shapes"), 0), "low", json_real(1.31));
    audit_speed(evidence, record, findings);
    tap_check(json_array_size(findings) == 1, "another bound of a shape gives %zu findings", json_array_size(findings));
    json_array_clear(findings);

    json_t *good = json_deep_copy(json_object_get(details, "suite"));
    add_speed(evidence, record, 2);
    json_put(details, "suite", good);
    audit_speed(evidence, record, findings);
    tap_check(json_array_size(findings) > 0, "the samples of another sitting are accepted");
    json_array_clear(findings);
    add_speed(evidence, record, 1);
    json_put(record, "seed", json_integer(7));
    audit_speed(evidence, record, findings);
    tap_check(json_array_size(findings) > 0, "another seed is accepted");
    json_decref(findings);
    json_decref(record);
}

/* ---- for tests/evidence.t
 * -------------------------------------------------------------------------------------------------------- */

/* test_evidence make EVIDENCE KERNEL SOURCE KIND DEVICE [built | plain | lacking] [KEY]: appends a record that says PROVEN of a source, or,
 * if it is `lacking`, one of the present policy in which the profile gate was not run. */
static int make(int argc, char **argv)
{
    char scratch[] = "/tmp/attest-make-XXXXXX", why[1024] = "";
    if (argc < 8)
        return 2;
    int file = mkstemp(scratch);
    if (file >= 0)
        close(file);
    bool cuda = strstr(argv[4], ".cu") != NULL;
    struct recipe recipe = {.kernel = argv[3],
                            .device = argv[6],
                            .problem_class = strstr(argv[3], "_bf16_")  ? "fwd:bf16"
                                             : strstr(argv[3], "_f16_") ? "fwd:f16"
                                                                        : "fwd:f32",
                            .kind = argv[5],
                            .word = strcmp(argv[5], "shipped") == 0 ? argv[3] : argv[4],
                            .candidate =
                                cuda ? cuda_candidate(argv[4]) : real_candidate(argv[4], strcmp(argv[7], "plain") != 0, scratch),
                            .backend = cuda ? "cuda" : "cpu"};
    if (strcmp(argv[7], "lacking") == 0) {
        recipe.policy = POLICY_NUMBER;
        recipe.gates = "build,oracle,memory,determinism,correctness,speed";
    }
    json_t *record = make_record(&recipe), *statement = statement_make(record);
    bool done = statement_append(argv[2], statement, argc > 8 ? argv[8] : NULL, NULL, why, sizeof why);
    if (!done)
        fprintf(stderr, "%s\n", why);
    json_decref(statement);
    json_decref(record);
    unlink(scratch);
    return !done;
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"digests", test_digests},         {"canonical", test_canonical}, {"signatures", test_signatures},
        {"statements", test_statements},   {"tampering", test_tampering}, {"half_way", test_half_way},
        {"speed_again", test_speed_again}, {"findings", test_findings},
    };
    if (argc > 1 && strcmp(argv[1], "make") == 0)
        return make(argc, argv);
    return main_with_folder(argc, argv, tests, sizeof tests / sizeof *tests);
}
