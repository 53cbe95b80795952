/*
 * report.h - one writer for text and JSON. A command puts named values and rows of a table; as text they are printed at once, as
 * JSON they are collected and printed as one object at the end.
 */
#ifndef ATTEST_REPORT_H
#define ATTEST_REPORT_H

#include <jansson.h>
#include <stdbool.h>

struct column {
    const char *key;   /* of the row object */
    const char *title; /* text above the column */
    int width;         /* least width; negative aligns to the left */
};

struct report {
    bool json;
    bool failed;  /* memory ran out, or a value could not be stored */
    json_t *root; /* --json only */
    json_t *rows; /* the table in progress, borrowed from root */
    const struct column *columns;
    int column_count;
    int *widths;
};

void report_open(struct report *report, bool json);

/* `name: value`; an underscore in the name is a space in the text. Takes over the reference to the value. */
void report_put(struct report *report, const char *name, json_t *value);

/* Starts a table, the array `name` of the JSON object. Widths grow to the widths given here (may be NULL) and to the titles. */
void report_table(struct report *report, const char *name, const struct column *columns, int count, const int *widths);

/* One row: an object. Keys that are no column appear in JSON only, but the strings of an array "notes" are printed below the row.
 * Takes over the reference. */
void report_row(struct report *report, json_t *row);

/* Prints the JSON object, frees everything, flushes stdout. False if anything could not be written. */
bool report_close(struct report *report);

/* A number, or the strings "nan", "inf" and "-inf", which JSON has no numbers for. */
json_t *json_number(double value);
json_t *json_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Adds a member or an element and takes over its reference. What could not be added for lack of memory makes report_close fail. */
void json_put(json_t *object, const char *key, json_t *value);
void json_add(json_t *array, json_t *value);

/* A line on stderr that is overwritten in place; nothing at all unless stderr is a terminal. */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_clear(void);

#endif
