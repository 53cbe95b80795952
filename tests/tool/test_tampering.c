/*
 * Tests of evidence that was tampered with, beyond flipped bytes: numbers and lines that do not follow from the others, links and
 * strange files, a second line in SHA256SUMS, random damage; and of records that continue others, which nothing but what was run may
 * complete.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verify/audit.h"
#include "evidence/continuation.h"
#include "evidence/dsse.h"
#include "evidence/evidence_folder.h"
#include "evidence/member.h"
#include "evidence/objects.h"
#include "evidence/statement.h"
#include "evidence/store.h"
#include "make_record.h"
#include "base/random.h"
#include "tap.h"

/* ---- order, folder and fuzz ------------------------------------------------------------------------------------------------ */

/* Writes SHA256SUMS anew for all evidence files, as an editor would who knows the format. */
static void sums_anew(const char *evidence)
{
    json_t *files = evidence_files(evidence), *sums = json_object(), *unused;
    const char *file;
    char path[512], digest[DIGEST_TEXT], why[256];
    json_object_foreach(files, file, unused)
    {
        snprintf(path, sizeof path, "%s/%s", evidence, file);
        if (digest_of_file(path, digest))
            json_put(sums, file, json_pack("[s]", digest));
    }
    sums_write(evidence, sums, why, sizeof why);
    json_decref(sums);
    json_decref(files);
}

/* Whether verify would notice: a file, a line or a record is not in order. `first` gets the first sentence. */
static bool is_noticed(const char *evidence, char *first, size_t size)
{
    char why[1024] = "";
    json_t *statements = statements_load(evidence, why, sizeof why), *findings = json_array(), *entry;
    struct audit audit = {.evidence = evidence, .statements = statements};
    size_t index;
    snprintf(first, size, "%s", why);
    bool noticed = !statements;
    if (statements)
        evidence_check(evidence, statements);
    json_array_foreach(statements, index, entry)
    {
        if (json_object_get(entry, "problem"))
            json_add(findings, json_incref(json_object_get(entry, "problem")));
        else
            audit_statement(&audit, entry, findings);
    }
    if (json_array_size(findings) > 0) {
        noticed = true;
        snprintf(first, size, "%s", json_string_value(json_array_get(findings, 0)));
    }
    audit_free(&audit);
    json_decref(findings);
    json_decref(statements);
    return noticed;
}

/* Replaces the first `from` in line `number` (from 0) of a file. */
static bool edit_line(const char *path, int number, const char *from, const char *to)
{
    size_t size = 0;
    char *text = file_read(path, &size), *line = text, *grown = malloc(size + strlen(to) + 1);
    for (int i = 0; i < number && line; i++)
        line = strchr(line, '\n') + 1;
    char *at = line ? strstr(line, from) : NULL;
    if (at) {
        size_t head = (size_t)(at - text), tail = size - head - strlen(from);
        memcpy(grown, text, head);
        memcpy(grown + head, to, strlen(to));
        memcpy(grown + head + strlen(to), at + strlen(from), tail);
        at = file_replace(path, grown, head + strlen(to) + tail) ? at : NULL;
    }
    free(text);
    free(grown);
    return at != NULL;
}

static void copy_folder(const char *from, const char *to)
{
    char command[1024];
    snprintf(command, sizeof command, "rm -rf %s && cp -r %s %s", to, from, to);
    tap_check(system(command) == 0, "%s", command);
}

/* Takes "after" out of every line and ties the lines of each file anew: evidence as it was written before there was "after". */
static void make_old(const char *evidence)
{
    char why[256];
    json_t *statements = statements_load(evidence, why, sizeof why), *entry;
    size_t index;
    char digest[DIGEST_TEXT] = "", file[256] = "", path[512], *all = NULL;
    json_array_foreach(statements, index, entry)
    {
        json_t *predicate = json_object_get(json_object_get(entry, "statement"), "predicate");
        bool same = strcmp(file, text_at(entry, "file")) == 0;
        json_object_del(predicate, "after");
        if (same)
            json_put(predicate, "previous", json_string(digest));
        char *line = canonical_text(json_object_get(entry, "statement")), *longer = NULL;
        digest_of_bytes(line, strlen(line), digest);
        if (asprintf(&longer, "%s%s\n", same ? all : "", line) < 0)
            return;
        free(all);
        free(line);
        all = longer;
        snprintf(file, sizeof file, "%s", text_at(entry, "file"));
        snprintf(path, sizeof path, "%s/%s", evidence, file);
        write_text(path, all);
    }
    free(all);
    json_decref(statements);
    sums_anew(evidence);
}

static void append_all(const char *evidence, const char *kernels)
{
    for (const char *at = kernels; *at; at++) {
        char name[] = {*at, '\0'};
        tap_check(append(evidence, &(struct recipe){.kernel = name, .device = "cpu-avx2"}, NULL, NULL), "append %s", name);
    }
}

static void test_order(void)
{
    char good[256], bad[256], path[512], sentence[512], command[2048];
    static const struct {
        const char *file, *from, *to;
        int line;
    } numbers[] = {
        {"a", "\"sequence\":1,", "\"sequence\":9,", 0},  {"a", "\"sequence\":3,", "\"sequence\":2,", 1},
        {"b", "\"sequence\":2,", "\"sequence\":3,", 0},  {"c", "\"sequence\":5,", "\"sequence\":6,", 0},
        {"c", "\"sequence\":5,", "\"sequence\":4,", 0},  {"c", "\"sequence\":5,", "\"sequence\":5.0,", 0},
        {"c", "\"sequence\":5,", "\"sequence\":-5,", 0}, {"b", "\"sequence\":4,", "\"sequence\":5,", 1},
    };
    snprintf(good, sizeof good, "%s", fresh("evidence"));
    snprintf(bad, sizeof bad, "%s", fresh("copy"));
    append_all(good, "ababc");
    for (int old = 0; old < 2; old++) {
        if (old)
            make_old(good);
        tap_check(!is_noticed(good, sentence, sizeof sentence), "in order: %s", sentence);
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            /* Of old statements alone the numbers are known less well: a lower number of another file is not noticed. */
            if (!tap_case("%s number %zu", old ? "old" : "new", i) || (old && (i == 1 || i == 2 || i == 4 || i == 7)))
                continue;
            copy_folder(good, bad);
            snprintf(path, sizeof path, "%s/cpu-avx2/%s.intoto.jsonl", bad, numbers[i].file);
            tap_check(edit_line(path, numbers[i].line, numbers[i].from, numbers[i].to), "there is %s", numbers[i].from);
            sums_anew(bad);
            tap_check(is_noticed(bad, sentence, sizeof sentence), "%s line %d: %s can be %s", numbers[i].file, numbers[i].line + 1,
                      numbers[i].from, numbers[i].to);
        }
    }
    tap_case("old statements are tied down by the next");
    append_all(good, "c");
    tap_check(!is_noticed(good, sentence, sizeof sentence), "in order: %s", sentence);
    copy_folder(good, bad);
    snprintf(path, sizeof path, "%s/cpu-avx2/b.intoto.jsonl", bad);
    edit_line(path, 1, "\"sequence\":4,", "\"sequence\":5,");
    sums_anew(bad);
    tap_check(is_noticed(bad, sentence, sizeof sentence), "an old number can be changed");

    tap_case("lines at the end of another file");
    snprintf(command, sizeof command, "sed -i '$d' %s", path);
    copy_folder(good, bad);
    tap_check(system(command) == 0, "sed");
    sums_anew(bad);
    tap_check(is_noticed(bad, sentence, sizeof sentence), "a last line can be removed");
    copy_folder(good, bad);
    unlink(path);
    sums_anew(bad);
    tap_check(is_noticed(bad, sentence, sizeof sentence), "a file can be removed");

    tap_case("branches");
    copy_folder(good, bad);
    append_all(good, "ab");
    append_all(bad, "d");
    snprintf(command, sizeof command, "cp %s/cpu-avx2/d.intoto.jsonl %s/cpu-avx2/ && cat %s/SHA256SUMS | grep /d >> %s/SHA256SUMS",
             bad, good, bad, good);
    tap_check(system(command) == 0, "merge");
    tap_check(!is_noticed(good, sentence, sizeof sentence), "two branches are merged: %s", sentence);
    append_all(good, "a");
    tap_check(!is_noticed(good, sentence, sizeof sentence), "and it goes on: %s", sentence);
    char why[256];
    json_t *statements = statements_load(good, why, sizeof why), *entry;
    size_t index, heads = 0;
    json_array_foreach(statements, index, entry)
    {
        const json_t *after = json_object_get(json_object_get(json_object_get(entry, "statement"), "predicate"), "after");
        heads = json_array_size(after) > heads ? json_array_size(after) : heads;
        if (text_is(entry, "file", "cpu-avx2/a.intoto.jsonl") && json_integer_value(json_object_get(entry, "line")) == 4)
            tap_check(json_array_size(after) == 2, "it comes after %zu statements", json_array_size(after));
    }
    tap_check(heads == 3, "the first after three old files names %zu", heads);
    json_decref(statements);
}

/* Things that do not belong into the folder, by a shell command in it. */
static void test_folder(void)
{
    static const struct {
        const char *command, *word;
    } rows[] = {
        {"mv cpu-avx2/a.intoto.jsonl ../aside && ln -s ../../aside cpu-avx2/a.intoto.jsonl", "symbolic link"},
        {"mv cpu-avx2 ../class && ln -s ../class cpu-avx2", "symbolic link"},
        {"ln -s nowhere cpu-avx2/b.intoto.jsonl", "symbolic link"},
        {"mv SHA256SUMS ../sums && ln -s ../sums SHA256SUMS", "symbolic link"},
        {"mv objects ../objects-aside && ln -s ../objects-aside objects", "symbolic link"},
        {"for f in objects/*/*; do mv $f ../object; ln -s ../../../object $f; done", "symbolic link"},
        {"ln -s / root", "symbolic link"},
        {"ln cpu-avx2/a.intoto.jsonl ../second", "hard link"},
        {"for f in objects/*/*; do ln $f ../second-object; done", "hard link"},
        {"ln SHA256SUMS ../second-sums", "hard link"},
        {"mkfifo cpu-avx2/b.intoto.jsonl", "no ordinary file"},
        {"rm cpu-avx2/a.intoto.jsonl; mkfifo cpu-avx2/a.intoto.jsonl", "no ordinary file"},
        {"for f in objects/*/*; do rm $f; mkfifo $f; done", "no ordinary file"},
        {"rm SHA256SUMS; mkfifo SHA256SUMS", "no ordinary file"},
        {"mkdir cpu-avx2/b.intoto.jsonl", "no ordinary file"},
        {"truncate -s 300M cpu-avx2/b.intoto.jsonl", "too large"},
        {"truncate -s 300M SHA256SUMS", "too large"},
        {"echo x > README", "does not belong here"},
        {"echo x > cpu-avx2/notes.txt", "does not belong here"},
        {"mkdir cpu-avx2/deeper && echo x > cpu-avx2/deeper/x", "does not belong here"},
        {"echo x > objects/x", "does not belong here"},
        {"mkdir -p objects/00 && echo x > objects/00/x", "does not belong here"},
        {"mkdir -p objects/00 && echo x > objects/00/$(printf %062d 0)", "the object was changed"},
        {"for f in objects/*/*; do echo y >> $f; done", "was changed"},
        {"cp cpu-avx2/a.intoto.jsonl cpu-avx2/b.intoto.jsonl", "about another"},
        {"mkdir cpu-avx512 && cp cpu-avx2/a.intoto.jsonl cpu-avx512/ && sha256sum cpu-avx512/* >> SHA256SUMS", "about another"},
        {"mv cpu-avx2/a.intoto.jsonl cpu-avx2/A.intoto.jsonl && sha256sum cpu-*/* > SHA256SUMS", "about another"},
        {"printf '%064d  cpu-avx2/a.intoto.jsonl\n' 1 >> SHA256SUMS", "two lines"},
        {"(printf '%064d  cpu-avx2/a.intoto.jsonl\n' 1; cat SHA256SUMS) > x; mv x SHA256SUMS", "two lines"},
        {"cat SHA256SUMS SHA256SUMS > x; mv x SHA256SUMS", "two lines"},
        {"cat SHA256SUMS SHA256SUMS SHA256SUMS > x; mv x SHA256SUMS", "more than two"},
        {"printf '%064d  ../x.intoto.jsonl\n' 1 >> SHA256SUMS", "cannot be evidence"},
        {"printf '%064d  cpu-avx2/../cpu-avx2/a.intoto.jsonl\n' 1 >> SHA256SUMS", "cannot be evidence"},
        {"printf '%064d  cpu-avx2/gone.intoto.jsonl\n' 1 >> SHA256SUMS", "is not there"},
        {"echo >> SHA256SUMS", "no digest"},
        {"printf x >> SHA256SUMS", "without an end"},
        {"printf '\\000rubbish\\n' >> SHA256SUMS", "no text"},
    };
    char good[256], bad[300], state[256], path[512], command[1024], sentence[1024], digest[DIGEST_TEXT], why[256];
    snprintf(good, sizeof good, "%s", fresh("evidence"));
    snprintf(state, sizeof state, "%s", fresh("state"));
    snprintf(path, sizeof path, "%s/log", state);
    write_text(path, "a log\n");
    struct store *store = store_open(state, why, sizeof why);
    store_keep(store, path, digest);
    append(good, &(struct recipe){.kernel = "a", .device = "cpu-avx2", .artefact = digest}, NULL, store);
    append(good, &(struct recipe){.kernel = "a", .device = "cpu-avx2"}, NULL, store);
    store_close(store);
    tap_check(!is_noticed(good, sentence, sizeof sentence), "in order: %s", sentence);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!tap_case("%s", rows[i].command))
            continue;
        snprintf(bad, sizeof bad, "%s/evidence", fresh("folder"));
        copy_folder(good, bad);
        snprintf(command, sizeof command, "cd %s && (%s)", bad, rows[i].command);
        tap_check(system(command) == 0, "%s", command);
        bool noticed = is_noticed(bad, sentence, sizeof sentence);
        tap_check(noticed && strstr(sentence, rows[i].word), "noticed: %d, %s", noticed, sentence);
    }
}

/* The `which`-th file of the folder, sorted; false if there are fewer. */
static bool pick_file(const char *folder, uint64_t bits, char *path, size_t size)
{
    char command[512];
    snprintf(command, sizeof command, "find %s -type f | LC_ALL=C sort", folder);
    FILE *list = popen(command, "r");
    char lines[64][512];
    int count = 0;
    while (list && count < 64 && fgets(lines[count], sizeof lines[0], list))
        count++;
    if (list)
        pclose(list);
    if (count == 0)
        return false;
    snprintf(path, size, "%s", lines[random_below(bits, count - 1)]);
    path[strcspn(path, "\n")] = '\0';
    return true;
}

/* One random change of the bytes of a random file, or of the lines of an evidence file with the sums written anew; false if it would
 * change nothing. */
static bool damage(const char *folder, uint64_t seed, uint64_t round, char *what, size_t what_size)
{
    char path[512];
    size_t size = 0;
    int64_t kind = random_below(random_bits(seed, 40, round), 7);
    if (!pick_file(folder, random_bits(seed, 41, round), path, sizeof path))
        return false;
    char *text = file_read(path, &size);
    size_t at = size ? (size_t)random_below(random_bits(seed, 42, round), (int64_t)size - 1) : 0;
    size_t other = size ? (size_t)random_below(random_bits(seed, 43, round), (int64_t)size - 1) : 0;
    bool changed = size > 0, lines = strstr(path, EVIDENCE_ENDING) != NULL;
    snprintf(what, what_size, "kind %d at %zu and %zu of %s", (int)kind, at, other, path);
    if (!changed) {
        free(text);
        return false;
    }
    size_t from = at, to = at;
    while (from > 0 && text[from - 1] != '\n')
        from--;
    while (to < size && text[to] != '\n')
        to++;
    to += to < size;
    switch (kind) {
    case 0: /* a bit */
        text[at] = (char)(text[at] ^ (1 << random_below(random_bits(seed, 44, round), 7)));
        break;
    case 1: /* a byte less */
        memmove(text + at, text + at + 1, size - at - 1);
        size--;
        break;
    case 2: /* cut short */
        size = at;
        break;
    case 3: /* two bytes swapped */
        changed = text[at] != text[other];
        char keep = text[at];
        text[at] = text[other];
        text[other] = keep;
        break;
    case 4: /* a line less */
        memmove(text + from, text + to, size - to);
        size -= to - from;
        break;
    case 5: { /* a line twice, with the sums written anew */
        char *grown = malloc(size + (to - from));
        memcpy(grown, text, to);
        memcpy(grown + to, text + from, size - from);
        size += to - from;
        free(text);
        text = grown;
        break;
    }
    case 6: /* a number changed, with the sums written anew */
    {
        char *number = lines ? strstr(text + from, "\"sequence\":") : NULL;
        if (number) {
            number += strlen("\"sequence\":");
            *number = (char)('1' + (*number - '1' + 1 + (int)random_below(random_bits(seed, 45, round), 6)) % 9);
        }
        changed = number != NULL;
        break;
    }
    default: /* the file is gone */
        unlink(path);
        free(text);
        return true;
    }
    if (changed) {
        FILE *file = fopen(path, "wb");
        fwrite(text, 1, size, file);
        fclose(file);
        if ((kind == 5 && lines) || kind == 6)
            sums_anew(folder);
    }
    free(text);
    return changed;
}

static void test_fuzz(void)
{
    char good[256], bad[256], state[256], path[512], digest[DIGEST_TEXT], why[256], key[512], text[KEY_TEXT];
    int rounds = (int)tap_amount(120, 500, 5000), changed = 0;
    snprintf(good, sizeof good, "%s", fresh("evidence"));
    snprintf(bad, sizeof bad, "%s", fresh("copy"));
    snprintf(state, sizeof state, "%s", fresh("state"));
    snprintf(key, sizeof key, "%s/key", fresh("key"));
    key_generate(key, text, why, sizeof why);
    snprintf(path, sizeof path, "%s/log", state);
    struct store *store = store_open(state, why, sizeof why);
    for (int i = 0; i < 8; i++) {
        char name[] = {(char)('a' + i % 3), '\0'}, line[32];
        snprintf(line, sizeof line, "log %d\n", i);
        write_text(path, line);
        store_keep(store, path, digest);
        append(good, &(struct recipe){.kernel = name, .device = i % 2 ? "cpu-avx2" : "cpu-amx", .artefact = digest},
               i == 4 ? key : NULL, store);
    }
    store_close(store);
    char sentence[1024], what[1024];
    tap_check(!is_noticed(good, sentence, sizeof sentence), "in order: %s", sentence);
    copy_folder(good, bad);
    for (int round = 0; round < rounds; round++) {
        if (!tap_case("round %d", round))
            continue;
        if (!damage(bad, tap.seed, (uint64_t)round, what, sizeof what))
            continue;
        changed++;
        tap_check(is_noticed(bad, sentence, sizeof sentence), "not noticed: %s", what);
        copy_folder(good, bad);
    }
    tap_check(changed > rounds / 2 || !tap_case("count"), "%d of %d rounds changed something", changed, rounds);
}

/* ---- records that continue others ------------------------------------------------------------------------------------------ */

/* Appends a record that continues the last one of kernel "one"; `gates` are those it ran. Its finding, if any, goes to `sentence`. */
static void continue_last(const char *evidence, struct recipe *recipe, char *sentence, size_t size, size_t *missing)
{
    char why[256] = "", digest[DIGEST_TEXT];
    json_t *statements = statements_load(evidence, why, sizeof why), *last = NULL, *entry;
    size_t index;
    json_array_foreach(statements, index, entry)
    {
        if (text_is(entry, "file", "cpu-avx2/one.intoto.jsonl"))
            last = entry;
    }
    json_t *base = continuation_combine(statements, last, why, sizeof why);
    snprintf(digest, sizeof digest, "%s", text_at(last, "digest"));
    if (!recipe->continues)
        recipe->continues = digest;
    recipe->base = base;
    tap_check(append(evidence, recipe, NULL, NULL), "append");
    json_decref(base);
    json_decref(statements);
    recipe->continues = NULL;
    recipe->base = NULL;
    statements = statements_load(evidence, why, sizeof why);
    last = NULL;
    json_array_foreach(statements, index, entry)
    {
        if (text_is(json_object_get(json_object_get(entry, "statement"), "predicate"), "kernel", recipe->kernel))
            last = entry;
    }
    json_t *combined = continuation_combine(statements, last, why, sizeof why), *names = continuation_missing(combined);
    *missing = json_array_size(names);
    continuation_sentence(combined, names, sentence, size);
    if (*why)
        snprintf(sentence, size, "%s", why);
    json_decref(names);
    json_decref(combined);
    json_decref(statements);
}

static void test_continuations(void)
{
    char evidence[256], sentence[1024];
    size_t missing = 0;
    struct recipe first = {.kernel = "one", .device = "cpu-avx2"};
    struct recipe whole = {
        .kernel = "one", .device = "cpu-avx2", .policy = POLICY_NUMBER, .gates = "build,memory,correctness,profile"};
    struct recipe part = {.kernel = "one", .device = "cpu-avx2", .policy = POLICY_NUMBER, .gates = "build,memory"};
    struct recipe rest = {.kernel = "one", .device = "cpu-avx2", .policy = POLICY_NUMBER, .gates = "build,correctness,profile"};
    struct recipe fails = whole, other = whole;
    fails.failing = "memory";
    other.candidate = NULL;

    snprintf(evidence, sizeof evidence, "%s", fresh("evidence"));
    append(evidence, &first, NULL, NULL);
    continue_last(evidence, &whole, sentence, sizeof sentence, &missing);
    tap_check(missing == 0 && !*sentence, "%zu missing: %s", missing, sentence);
    tap_check(!is_noticed(evidence, sentence, sizeof sentence), "in order: %s", sentence);

    snprintf(evidence, sizeof evidence, "%s", fresh("evidence"));
    append(evidence, &first, NULL, NULL);
    continue_last(evidence, &part, sentence, sizeof sentence, &missing);
    tap_check(missing == 2 && strcmp(sentence, "proven under policy 1; gates correctness and profile of policy 4 not run") == 0,
              "%zu missing: %s", missing, sentence);
    tap_check(!is_noticed(evidence, sentence, sizeof sentence), "in order: %s", sentence);
    char why[256];
    json_t *statements = statements_load(evidence, why, sizeof why);
    tap_check(text_is(json_object_get(json_object_get(json_array_get(statements, 1), "statement"), "predicate"), "verdict",
                      "INCONCLUSIVE"),
              "gates that were not run count as passed");
    json_decref(statements);
    continue_last(evidence, &rest, sentence, sizeof sentence, &missing);
    tap_check(missing == 0, "after the rest %zu are missing: %s", missing, sentence);
    tap_check(!is_noticed(evidence, sentence, sizeof sentence), "in order: %s", sentence);

    snprintf(evidence, sizeof evidence, "%s", fresh("evidence"));
    append(evidence, &first, NULL, NULL);
    continue_last(evidence, &fails, sentence, sizeof sentence, &missing);
    tap_check(missing > 0, "a gate that fails is passed");
    tap_check(!is_noticed(evidence, sentence, sizeof sentence), "in order: %s", sentence);
    continue_last(evidence, &whole, sentence, sizeof sentence, &missing);
    tap_check(strstr(sentence, "rejected") != NULL, "a rejected record is continued: %s", sentence);
    tap_check(is_noticed(evidence, sentence, sizeof sentence), "which is not noticed");

    snprintf(evidence, sizeof evidence, "%s", fresh("evidence"));
    append(evidence, &first, NULL, NULL);
    other.candidate = made_up_candidate("another source");
    continue_last(evidence, &other, sentence, sizeof sentence, &missing);
    tap_check(strstr(sentence, "another image") != NULL, "another image: %s", sentence);
    tap_check(is_noticed(evidence, sentence, sizeof sentence), "which is not noticed");

    snprintf(evidence, sizeof evidence, "%s", fresh("evidence"));
    append(evidence, &first, NULL, NULL);
    other = whole;
    other.kernel = "two";
    continue_last(evidence, &other, sentence, sizeof sentence, &missing);
    tap_check(strstr(sentence, "another kernel") != NULL, "another kernel: %s", sentence);
    other = whole;
    other.continues = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    continue_last(evidence, &other, sentence, sizeof sentence, &missing);
    tap_check(strstr(sentence, "not there") != NULL, "a record that is not there: %s", sentence);
    tap_check(is_noticed(evidence, sentence, sizeof sentence), "which is not noticed");
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"order", test_order}, {"folder", test_folder}, {"fuzz", test_fuzz}, {"continuations", test_continuations}};
    return main_with_folder(argc, argv, tests, sizeof tests / sizeof *tests);
}
