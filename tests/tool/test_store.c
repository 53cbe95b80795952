/*
 * Tests of the run database: what is kept and found again, and that a kill -9 at any point loses nothing that was reported and
 * leaves nothing by halves, in the database, among the artefacts, and in the evidence; and that two writers do not get in each
 * other's way.
 */
#include "evidence/store.h"

#include <dirent.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evidence/member.h"
#include "make_record.h"
#include "base/random.h"

static void test_runs(void)
{
    char state[300], path[512], why[512] = "", digest[DIGEST_TEXT];
    snprintf(state, sizeof state, "%s/deep/er", fresh("state"));
    tap_check(!store_exists(state), "a store is there before it was made");
    struct store *store = store_open(state, why, sizeof why);
    if (!tap_check(store != NULL, "open: %s", why))
        return;
    tap_check(store_exists(state), "a store is not there after it was made");
    json_t *record = make_record(&(struct recipe){.kernel = "one", .device = "cpu-avx2"});
    json_t *start = json_pack("{s:s, s:s}", "kernel", "one", "started", "2026-11-15T07:00:00Z");
    json_t *gate = json_pack("{s:s, s:s}", "gate", "build", "verdict", "PASS");
    int64_t first = store_begin(store, start), second = store_begin(store, start);
    tap_check(first > 0 && second > first, "runs %lld and %lld", (long long)first, (long long)second);
    tap_check(store_gate(store, first, "build", gate) && store_gate(store, second, "build", gate), "gates: %s", store_error(store));
    tap_check(store_finish(store, first, record), "finish: %s", store_error(store));
    tap_check(!store_finish(store, 999, record) && strstr(store_error(store), "999"), "a run that never began can be finished");
    json_t *nameless = json_object();
    tap_check(store_begin(store, nameless) == -1, "a run without a kernel can begin");
    json_decref(nameless);

    snprintf(path, sizeof path, "%s/file", state);
    write_text(path, "contents\n");
    tap_check(store_keep(store, path, digest) && store_keep(store, path, digest), "keep: %s", store_error(store));
    char *object = store_artefact(store, digest), found[DIGEST_TEXT];
    tap_check(object && digest_of_file(object, found) && strcmp(found, digest) == 0, "an artefact is not what it is called");
    free(object);
    tap_check(!store_artefact(store, "../../etc/passwd"), "what is no digest has an artefact");
    tap_check(!store_keep(store, "/no/such/file", digest) && strstr(store_error(store), "/no/such/file"), "a missing file is kept");
    store_close(store);

    store = store_open(state, why, sizeof why);
    json_t *records = store_records(store, NULL, 0), *newest = json_array_get(records, 0), *oldest = json_array_get(records, 1);
    tap_check(json_array_size(records) == 2, "%zu records", json_array_size(records));
    tap_check(text_is(newest, "verdict", "INTERRUPTED") && json_array_size(json_object_get(newest, "gates")) == 1 &&
                  json_integer_value(json_object_get(newest, "run")) == second,
              "the run that was not finished is %s", text_at(newest, "verdict"));
    json_object_del(oldest, "run");
    tap_check(json_equal(oldest, record), "a record is found again as it was");
    json_decref(records);
    records = store_records(store, "one", 1);
    tap_check(json_array_size(records) == 1, "at most one");
    json_decref(records);
    records = store_records(store, "two", 0);
    tap_check(json_array_size(records) == 0, "another kernel has records");
    json_decref(records);
    store_close(store);
    json_decref(start);
    json_decref(gate);
    json_decref(record);
    write_text(path, "");
    tap_check(!store_open(path, why, sizeof why) && strstr(why, "file"), "a store in a file: %s", why);
}

/* ---- writers that are killed
 * ------------------------------------------------------------------------------------------------------ */

struct place {
    char state[256], evidence[256];
};

/* What a writer reports on its pipe once it is on disk. */
struct message {
    char what; /* 'f' a finished run, 's' a statement, 'a' an artefact */
    int64_t number;
    char digest[DIGEST_TEXT];
};

static void report_to(int pipe, char what, int64_t number, const char *digest)
{
    struct message message = {.what = what, .number = number};
    snprintf(message.digest, sizeof message.digest, "%s", digest);
    if (write(pipe, &message, sizeof message) != (ssize_t)sizeof message)
        _exit(3);
}

/* One run after the other, `most` of them; each with an artefact, gates, a record and a statement. */
static void write_runs(const struct place *place, const char *kernel, int most, int pipe)
{
    char why[1024] = "", path[512], digest[DIGEST_TEXT], text[64];
    struct store *store = store_open(place->state, why, sizeof why);
    if (!store) {
        fprintf(stderr, "# %s\n", why);
        _exit(2);
    }
    for (int i = 0; i < most; i++) {
        json_t *start = json_pack("{s:s}", "kernel", kernel), *gate = json_pack("{s:s, s:s}", "gate", "build", "verdict", "PASS");
        int64_t run = store_begin(store, start);
        snprintf(path, sizeof path, "%s/file-%d", place->state, getpid());
        snprintf(text, sizeof text, "run %lld of %s\n", (long long)run, kernel);
        FILE *file = fopen(path, "w");
        bool good = run > 0 && file && fputs(text, file) >= 0 && fclose(file) == 0 && store_keep(store, path, digest);
        if (good)
            report_to(pipe, 'a', run, digest);
        good = good && store_gate(store, run, "build", gate);
        json_t *record = make_record(&(struct recipe){.kernel = kernel, .device = "cpu-avx2", .artefact = digest});
        json_put(record, "number", json_integer(run));
        good = good && store_finish(store, run, record);
        if (good)
            report_to(pipe, 'f', run, "");
        json_t *statement = statement_make(record);
        if (good && !statement_append(place->evidence, statement, NULL, store, why, sizeof why)) {
            fprintf(stderr, "# %s\n", why);
            good = false;
        }
        if (!good) {
            fprintf(stderr, "# %s\n", store_error(store));
            _exit(2);
        }
        report_to(pipe, 's', run, "");
        json_decref(statement);
        json_decref(record);
        json_decref(start);
        json_decref(gate);
    }
    store_close(store);
    _exit(0);
}

static pid_t start_writer(const struct place *place, const char *kernel, int most, int *reports)
{
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        signal(SIGALRM, SIG_DFL);
        write_runs(place, kernel, most, ends[1]);
    }
    close(ends[1]);
    *reports = ends[0];
    return child;
}

/* Everything that was reported, and may be looked for. */
struct reported {
    bool finished[1 << 16], stated[1 << 16];
    int finished_count, stated_count, artefact_count;
};

static void collect(const struct place *place, int reports, struct reported *reported)
{
    struct message message;
    while (read(reports, &message, sizeof message) == (ssize_t)sizeof message) {
        if (message.what == 'f') {
            reported->finished[message.number & 0xffff] = true;
            reported->finished_count++;
        } else if (message.what == 's') {
            reported->stated[message.number & 0xffff] = true;
            reported->stated_count++;
        } else {
            char *object = object_path(place->state, message.digest);
            tap_check(access(object, R_OK) == 0, "the artefact of run %lld was reported and is not there",
                      (long long)message.number);
            reported->artefact_count++;
            free(object);
        }
    }
    close(reports);
}

static void check_database(const struct place *place, const struct reported *reported)
{
    char path[512], why[512] = "";
    sqlite3 *database = NULL;
    sqlite3_stmt *query = NULL;
    snprintf(path, sizeof path, "%s/runs.db", place->state);
    tap_check(sqlite3_open(path, &database) == SQLITE_OK &&
                  sqlite3_prepare_v2(database, "PRAGMA integrity_check", -1, &query, NULL) == SQLITE_OK &&
                  sqlite3_step(query) == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(query, 0), "ok") == 0,
              "the database is damaged");
    sqlite3_finalize(query);
    sqlite3_close(database);

    struct store *store = store_open(place->state, why, sizeof why);
    json_t *records = store ? store_records(store, NULL, 0) : NULL, *record;
    size_t index;
    int finished = 0, lost = 0;
    tap_check(records != NULL, "open: %s", why);
    json_array_foreach(records, index, record)
    {
        json_int_t run = json_integer_value(json_object_get(record, "run"));
        bool whole = !text_is(record, "verdict", "INTERRUPTED");
        finished += whole;
        tap_check(!whole || json_integer_value(json_object_get(record, "number")) == run, "run %lld has another's record",
                  (long long)run);
        lost += !whole && reported->finished[run & 0xffff];
    }
    tap_check(lost == 0, "%d finished runs were lost", lost);
    tap_check(finished >= reported->finished_count, "%d runs are finished, and %d were reported", finished,
              reported->finished_count);
    json_decref(records);
    store_close(store);
}

static void check_evidence(const struct place *place, const struct reported *reported)
{
    char why[512] = "";
    static bool seen[1 << 16];
    json_t *statements = statements_load(place->evidence, why, sizeof why), *entry, *digests;
    size_t index;
    const char *digest;
    int lost = 0, count = (int)json_array_size(statements);
    memset(seen, 0, sizeof seen);
    tap_check(statements != NULL, "load: %s", why);
    json_array_foreach(statements, index, entry)
    {
        const json_t *predicate = json_object_get(json_object_get(entry, "statement"), "predicate");
        tap_check(!json_object_get(entry, "problem"), "%s, line %lld: %s", text_at(entry, "file"),
                  (long long)json_integer_value(json_object_get(entry, "line")), text_at(entry, "problem"));
        seen[json_integer_value(json_object_get(predicate, "number")) & 0xffff] = true;
        digests = statement_artefacts(predicate);
        json_object_foreach(digests, digest, entry)
        {
            char *path = object_path(place->evidence, digest), found[DIGEST_TEXT];
            tap_check(digest_of_file(path, found) && strcmp(found, digest) == 0, "the artefact %s is not what it is called",
                      digest);
            free(path);
        }
        json_decref(digests);
    }
    for (int i = 0; i < 1 << 16; i++)
        lost += reported->stated[i] && !seen[i];
    tap_check(lost == 0 && count >= reported->stated_count, "%d statements of %d were lost", lost, reported->stated_count);
    json_decref(statements);
}

/* No file among the artefacts has another name than its digest, but for what a writer that was killed had not named yet. */
static void check_objects(const char *root)
{
    char path[512];
    snprintf(path, sizeof path, "%s/objects", root);
    DIR *folders = opendir(path), *files;
    struct dirent *folder, *file;
    while (folders && (folder = readdir(folders))) {
        if (folder->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/objects/%.2s", root, folder->d_name);
        files = opendir(path);
        while (files && (file = readdir(files))) {
            char name[600], digest[DIGEST_TEXT], expected[DIGEST_TEXT + 8];
            if (file->d_name[0] == '.')
                continue;
            snprintf(name, sizeof name, "%s/%.70s", path, file->d_name);
            snprintf(expected, sizeof expected, "%.2s%.62s", folder->d_name, file->d_name);
            tap_check(digest_of_file(name, digest) && strcmp(digest, expected) == 0, "%s is not what it is called", name);
        }
        if (files)
            closedir(files);
    }
    if (folders)
        closedir(folders);
}

static struct place new_place(void)
{
    struct place place;
    snprintf(place.state, sizeof place.state, "%s", fresh("state"));
    snprintf(place.evidence, sizeof place.evidence, "%s", fresh("evidence"));
    return place;
}

static void test_kills(void)
{
    static struct reported reported;
    struct place place = new_place();
    int kills = tap_amount(5, 40, 400);
    uint64_t draw = (uint64_t)getpid(); /* kills come at moments that nobody can choose anyway */
    uint64_t latest = 250000;           /* later on a machine where writers do not come far in that time */
    for (int i = 0; i < kills; i++) {
        int reports = -1;
        pid_t child = start_writer(&place, "victim", 1 << 14, &reports);
        usleep((useconds_t)(2000 + random_bits(draw, 1, (uint64_t)i) % latest));
        kill(child, SIGKILL);
        int status = 0;
        waitpid(child, &status, 0);
        tap_check(WIFSIGNALED(status), "writer %d ended by itself, with status %d", i, status);
        collect(&place, reports, &reported);
        if (i % 8 == 7 || i == kills - 1) {
            check_database(&place, &reported);
            check_evidence(&place, &reported);
            latest *= reported.stated_count ? 1 : 2;
        }
    }
    check_objects(place.state);
    check_objects(place.evidence);
    tap_check(reported.stated_count > 0, "no writer came to its first statement");
    tap_note("%d kills; %d artefacts, %d finished runs and %d statements were reported before them", kills, reported.artefact_count,
             reported.finished_count, reported.stated_count);
}

static void test_two_writers(void)
{
    enum { WRITERS = 3, RUNS = 12 };
    static struct reported reported;
    struct place place = new_place();
    static const char *const kernels[WRITERS] = {"same", "same", "other"};
    pid_t children[WRITERS];
    int reports[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        children[i] = start_writer(&place, kernels[i], RUNS, &reports[i]);
    for (int i = 0; i < WRITERS; i++) {
        int status = 0;
        collect(&place, reports[i], &reported);
        waitpid(children[i], &status, 0);
        tap_check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "writer %d ended with status %d", i, status);
    }
    tap_check(reported.finished_count == WRITERS * RUNS && reported.stated_count == WRITERS * RUNS, "%d finished, %d stated",
              reported.finished_count, reported.stated_count);
    check_database(&place, &reported);
    check_evidence(&place, &reported);
    char why[512];
    bool numbers[WRITERS * RUNS + 1] = {false};
    json_t *statements = statements_load(place.evidence, why, sizeof why), *entry;
    size_t index;
    json_array_foreach(statements, index, entry)
    {
        json_int_t number =
            json_integer_value(json_object_get(json_object_get(json_object_get(entry, "statement"), "predicate"), "sequence"));
        tap_check(number > 0 && number <= WRITERS * RUNS && !numbers[number],
                  "the sequence number %lld is there twice, or too large", (long long)number);
        numbers[number > 0 && number <= WRITERS * RUNS ? number : 0] = true;
    }
    json_decref(statements);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"runs", test_runs}, {"kills", test_kills}, {"two_writers", test_two_writers}};
    return main_with_folder(argc, argv, tests, sizeof tests / sizeof *tests);
}
