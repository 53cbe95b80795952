/*
 * search_ledger.c - searches and their trials in the run database. See search_ledger.h; the tables are made by evidence/store.c.
 */
#include "search_ledger.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "base/digest.h"
#include "evidence/store.h"
#include "base/report.h"

/* A statement with values for its question marks: text, or JSON as its canonical text. */
static sqlite3_stmt *prepare(struct store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    return sqlite3_prepare_v2(store_database(store), sql, -1, &statement, NULL) == SQLITE_OK ? statement : NULL;
}

static void bind_json(sqlite3_stmt *statement, int place, const json_t *value)
{
    char *text = canonical_text(value);
    sqlite3_bind_text(statement, place, text, -1, SQLITE_TRANSIENT); /* NULL without memory, which no column allows */
    free(text);
}

/* Runs a statement that returns nothing. */
static bool execute(sqlite3_stmt *statement)
{
    bool done = statement && sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_finalize(statement);
    return done;
}

int64_t ledger_unfinished(struct store *store, const char *key)
{
    sqlite3_stmt *query = prepare(store, "SELECT id FROM searches WHERE key = ? AND result IS NULL ORDER BY id DESC LIMIT 1");
    int64_t search = -1;
    if (query && sqlite3_bind_text(query, 1, key, -1, SQLITE_STATIC) == SQLITE_OK) {
        int status = sqlite3_step(query);
        search = status == SQLITE_ROW ? sqlite3_column_int64(query, 0) : status == SQLITE_DONE ? 0 : -1;
    }
    sqlite3_finalize(query);
    return search;
}

int64_t ledger_begin(struct store *store, const char *key, const json_t *start)
{
    sqlite3_stmt *statement = prepare(store, "INSERT INTO searches (key, start, process, scratch, used) VALUES (?, ?, 0, '', 0)");
    if (statement) {
        sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
        bind_json(statement, 2, start);
    }
    return execute(statement) ? sqlite3_last_insert_rowid(store_database(store)) : -1;
}

bool ledger_take(struct store *store, int64_t search, int64_t process, const char *scratch)
{
    sqlite3_stmt *statement = prepare(store, "UPDATE searches SET process = ?, scratch = ? WHERE id = ?");
    if (statement) {
        sqlite3_bind_int64(statement, 1, process);
        sqlite3_bind_text(statement, 2, scratch, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 3, search);
    }
    return execute(statement);
}

bool ledger_beat(struct store *store, int64_t search, double used)
{
    sqlite3_stmt *statement = prepare(store, "UPDATE searches SET used = ? WHERE id = ?");
    if (statement) {
        sqlite3_bind_double(statement, 1, used);
        sqlite3_bind_int64(statement, 2, search);
    }
    return execute(statement);
}

bool ledger_trial(struct store *store, int64_t search, const json_t *trial)
{
    sqlite3_stmt *statement = prepare(store, "INSERT OR REPLACE INTO trials (search, number, body) VALUES (?, ?, ?)");
    if (statement) {
        sqlite3_bind_int64(statement, 1, search);
        sqlite3_bind_int64(statement, 2, json_integer_value(json_object_get(trial, "number")));
        bind_json(statement, 3, trial);
    }
    return execute(statement);
}

bool ledger_finish(struct store *store, int64_t search, const json_t *result)
{
    sqlite3_stmt *statement = prepare(store, "UPDATE searches SET process = 0, scratch = '', result = ? WHERE id = ?");
    if (statement) {
        bind_json(statement, 1, result);
        sqlite3_bind_int64(statement, 2, search);
    }
    return execute(statement);
}

static json_t *column_json(sqlite3_stmt *query, int column)
{
    const char *text = (const char *)sqlite3_column_text(query, column);
    json_t *value = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    return value ? value : json_null();
}

static json_t *trials_of(struct store *store, int64_t search)
{
    sqlite3_stmt *query = prepare(store, "SELECT body FROM trials WHERE search = ? ORDER BY number");
    json_t *trials = json_array();
    int status = query && sqlite3_bind_int64(query, 1, search) == SQLITE_OK ? SQLITE_ROW : SQLITE_ERROR;
    while (status == SQLITE_ROW && (status = sqlite3_step(query)) == SQLITE_ROW)
        json_add(trials, column_json(query, 0));
    sqlite3_finalize(query);
    if (status == SQLITE_DONE)
        return trials;
    json_decref(trials);
    return NULL;
}

json_t *ledger_searches(struct store *store, int64_t search)
{
    sqlite3_stmt *query = prepare(store, "SELECT id, key, start, process, scratch, used, result FROM searches WHERE ?1 = 0 OR id = "
                                         "?1 ORDER BY id DESC");
    json_t *searches = json_array();
    int status = query && sqlite3_bind_int64(query, 1, search) == SQLITE_OK ? SQLITE_ROW : SQLITE_ERROR;
    while (status == SQLITE_ROW && (status = sqlite3_step(query)) == SQLITE_ROW) {
        json_t *trials = trials_of(store, sqlite3_column_int64(query, 0));
        if (!trials) {
            status = SQLITE_ERROR;
            break;
        }
        json_add(searches,
                 json_pack("{s:I, s:s, s:o, s:I, s:s, s:f, s:o, s:o}", "search", (json_int_t)sqlite3_column_int64(query, 0), "key",
                           (const char *)sqlite3_column_text(query, 1), "start", column_json(query, 2), "process",
                           (json_int_t)sqlite3_column_int64(query, 3), "scratch", (const char *)sqlite3_column_text(query, 4),
                           "used", sqlite3_column_double(query, 5), "result", column_json(query, 6), "trials", trials));
    }
    sqlite3_finalize(query);
    if (status == SQLITE_DONE)
        return searches;
    json_decref(searches);
    return NULL;
}
