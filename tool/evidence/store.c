/*
 * store.c - the run database and the artefacts. See store.h.
 *
 * Proofs have two tables: a run is inserted when it begins, with what is known then; a gate is inserted when it ends; the record
 * is put into the run when all is over. Searches have two more (evolve/search_ledger.c). Each of these steps is one transaction, flushed to
 * the disk before the call returns (write-ahead log, synchronous=FULL), so that after a kill or a crash a result is either there
 * whole or not at all, and one that was reported is there. Several processes may write at once: each waits for the other's
 * transaction, which takes milliseconds.
 */
#include "store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "objects.h"
#include "base/report.h"

enum { SCHEMA_VERSION = 2, WAIT_MS = 60000, LEAVINGS_S = 3600 };

struct store {
    sqlite3 *database;
    char *folder;
    char error[512];
};

static const char schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY AUTOINCREMENT, kernel TEXT NOT NULL, start TEXT NOT NULL, record "
    "TEXT);"
    "CREATE TABLE IF NOT EXISTS gates (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs(id), gate TEXT NOT NULL, "
    "result TEXT NOT NULL, UNIQUE (run, gate));"
    "CREATE INDEX IF NOT EXISTS runs_of_kernel ON runs (kernel, id);"
    "CREATE TABLE IF NOT EXISTS searches (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, start TEXT NOT NULL, process "
    "INTEGER NOT NULL, scratch TEXT NOT NULL, used REAL NOT NULL, result TEXT);"
    "CREATE TABLE IF NOT EXISTS trials (search INTEGER NOT NULL REFERENCES searches(id), number INTEGER NOT NULL, body TEXT NOT "
    "NULL, PRIMARY KEY (search, number));"
    "PRAGMA user_version = 2;"
    "COMMIT;";
_Static_assert(SCHEMA_VERSION == 2, "the version is also in the schema");

static bool fail(struct store *store, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct store *store, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(store->error, sizeof store->error, format, arguments);
    va_end(arguments);
    return false;
}

static bool fail_sql(struct store *store, const char *doing)
{
    return fail(store, "%s/runs.db: %s: %s", store->folder, doing, sqlite3_errmsg(store->database));
}

struct sqlite3 *store_database(struct store *store)
{
    return store->database;
}

const char *store_error(const struct store *store)
{
    return store->error;
}

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

static int read_version(struct store *store)
{
    sqlite3_stmt *query = NULL;
    int version = -1;
    if (sqlite3_prepare_v2(store->database, "PRAGMA user_version", -1, &query, NULL) == SQLITE_OK &&
        sqlite3_step(query) == SQLITE_ROW)
        version = sqlite3_column_int(query, 0);
    sqlite3_finalize(query);
    return version;
}

static bool open_database(struct store *store)
{
    char *path = NULL;
    if (asprintf(&path, "%s/runs.db", store->folder) < 0)
        return fail(store, "out of memory");
    int status = sqlite3_open_v2(path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    free(path);
    if (status != SQLITE_OK)
        return fail_sql(store, "it cannot be opened");
    sqlite3_busy_timeout(store->database, WAIT_MS);
    /* Two processes that open a new database at once both want to switch it to the log; the one that comes second is refused
     * without waiting, and asks again. */
    for (int tries = 0; tries < 200; tries++) {
        status = sqlite3_exec(store->database, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;", NULL, NULL, NULL);
        if (status != SQLITE_BUSY)
            break;
        usleep(10000);
    }
    if (status != SQLITE_OK)
        return fail_sql(store, "it cannot be used");
    int version = read_version(store);
    if (version > SCHEMA_VERSION)
        return fail(store, "%s/runs.db was made by a newer attest (its version is %d, and this one knows %d)", store->folder,
                    version, SCHEMA_VERSION);
    if (version == SCHEMA_VERSION)
        return true;
    if (sqlite3_exec(store->database, schema, NULL, NULL, NULL) != SQLITE_OK)
        return fail_sql(store, "its tables cannot be made");
    return true;
}

struct store *store_open(const char *folder, char *why, size_t why_size)
{
    struct store *store = calloc(1, sizeof *store);
    char *objects = NULL;
    if (!store || !(store->folder = strdup(folder)) || asprintf(&objects, "%s/objects", folder) < 0) {
        snprintf(why, why_size, "out of memory");
        store_close(store);
        return NULL;
    }
    bool opened = folder_make(objects) || fail(store, "%s: the folder cannot be made: %s", folder, strerror(errno));
    if (opened)
        leavings_remove(objects, LEAVINGS_S);
    opened = opened && open_database(store);
    free(objects);
    if (opened)
        return store;
    snprintf(why, why_size, "%s", store->error);
    store_close(store);
    return NULL;
}

bool store_exists(const char *folder)
{
    char *path = NULL;
    bool exists = asprintf(&path, "%s/runs.db", folder) >= 0 && access(path, F_OK) == 0;
    free(path);
    return exists;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    sqlite3_close(store->database);
    free(store->folder);
    free(store);
}

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

/* Runs a statement with up to three parameters, a number and two texts, in the order of its question marks. */
static bool execute(struct store *store, const char *sql, const char *doing, const int64_t *number, const char *first,
                    const char *second)
{
    sqlite3_stmt *statement = NULL;
    int at = 1;
    int status = sqlite3_prepare_v2(store->database, sql, -1, &statement, NULL);
    if (status == SQLITE_OK && number)
        status = sqlite3_bind_int64(statement, at++, *number);
    if (status == SQLITE_OK && first)
        status = sqlite3_bind_text(statement, at++, first, -1, SQLITE_STATIC);
    if (status == SQLITE_OK && second)
        status = sqlite3_bind_text(statement, at++, second, -1, SQLITE_STATIC);
    if (status == SQLITE_OK)
        status = sqlite3_step(statement);
    bool done = status == SQLITE_DONE || fail_sql(store, doing);
    sqlite3_finalize(statement);
    return done;
}

int64_t store_begin(struct store *store, const json_t *start)
{
    const char *kernel = json_string_value(json_object_get(start, "kernel"));
    char *text = canonical_text(start);
    bool begun = kernel && text
                     ? execute(store, "INSERT INTO runs (kernel, start) VALUES (?, ?)", "a run cannot begin", NULL, kernel, text)
                     : fail(store, "a run cannot begin: %s", kernel ? "out of memory" : "it names no kernel");
    free(text);
    return begun ? sqlite3_last_insert_rowid(store->database) : -1;
}

bool store_gate(struct store *store, int64_t run, const char *gate, const json_t *result)
{
    char *text = canonical_text(result);
    bool done = text ? execute(store, "INSERT OR REPLACE INTO gates (run, gate, result) VALUES (?, ?, ?)", "a gate cannot be kept",
                               &run, gate, text)
                     : fail(store, "out of memory");
    free(text);
    return done;
}

bool store_finish(struct store *store, int64_t run, const json_t *record)
{
    char *text = canonical_text(record);
    bool done = text ? execute(store, "UPDATE runs SET record = ?2 WHERE id = ?1", "a record cannot be kept", &run, text, NULL)
                     : fail(store, "out of memory");
    free(text);
    if (done && sqlite3_changes(store->database) != 1)
        done = fail(store, "there is no run %lld", (long long)run);
    return done;
}

bool store_keep(struct store *store, const char *path, char *digest)
{
    if (object_keep(store->folder, path, digest))
        return true;
    return fail(store, "%s cannot be kept in %s/objects: %s", path, store->folder, strerror(errno));
}

char *store_artefact(const struct store *store, const char *digest)
{
    char *path = object_path(store->folder, digest);
    if (path && access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

static json_t *column_json(sqlite3_stmt *query, int column)
{
    const char *text = (const char *)sqlite3_column_text(query, column);
    return text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
}

/* What is known of a run that has no record: how it began, and the gates that ended. */
static json_t *unfinished(struct store *store, int64_t run, json_t *start)
{
    sqlite3_stmt *query = NULL;
    json_t *gates = json_array();
    bool read = start && gates &&
                sqlite3_prepare_v2(store->database, "SELECT gate, result FROM gates WHERE run = ? ORDER BY id", -1, &query, NULL) ==
                    SQLITE_OK &&
                sqlite3_bind_int64(query, 1, run) == SQLITE_OK;
    while (read && sqlite3_step(query) == SQLITE_ROW) {
        json_t *result = column_json(query, 1);
        if (result && !json_object_get(result, "gate"))
            json_put(result, "gate", json_string((const char *)sqlite3_column_text(query, 0)));
        if (result)
            json_add(gates, result);
    }
    sqlite3_finalize(query);
    if (!read) {
        json_decref(gates);
        json_decref(start);
        return NULL;
    }
    json_put(start, "gates", gates);
    json_put(start, "verdict", json_string("INTERRUPTED"));
    json_put(start, "champion", json_string("NOT PROVEN"));
    json_put(start, "decision", json_string("no verdict: the run was interrupted, or is still going on"));
    return start;
}

json_t *store_records(struct store *store, const char *kernel, int most)
{
    static const char sql[] = "SELECT id, start, record FROM runs WHERE ?1 IS NULL OR kernel = ?1 ORDER BY id DESC LIMIT ?2";
    sqlite3_stmt *query = NULL;
    json_t *records = json_array();
    int status = sqlite3_prepare_v2(store->database, sql, -1, &query, NULL);
    if (status == SQLITE_OK && kernel)
        status = sqlite3_bind_text(query, 1, kernel, -1, SQLITE_STATIC);
    if (status == SQLITE_OK)
        status = sqlite3_bind_int(query, 2, most > 0 ? most : -1);
    while (status == SQLITE_OK && (status = sqlite3_step(query)) == SQLITE_ROW) {
        int64_t run = sqlite3_column_int64(query, 0);
        json_t *record = column_json(query, 2);
        if (!record)
            record = unfinished(store, run, column_json(query, 1));
        if (record) {
            json_put(record, "run", json_integer(run));
            json_add(records, record);
        }
        status = SQLITE_OK;
    }
    if (status != SQLITE_DONE) {
        fail_sql(store, "the runs cannot be read");
        json_decref(records);
        records = NULL;
    }
    sqlite3_finalize(query);
    return records;
}
