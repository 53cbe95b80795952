/*
 * report.c - one writer for text and JSON (see report.h), and the progress line.
 */
#include "report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool progress_shown;
static bool value_lost;

void progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    va_list arguments;
    va_start(arguments, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, arguments);
    fflush(stderr);
    va_end(arguments);
    progress_shown = true;
}

void progress_clear(void)
{
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = false;
}

json_t *json_number(double value)
{
    if (isnan(value))
        return json_string("nan");
    if (isinf(value))
        return json_string(value > 0 ? "inf" : "-inf");
    return json_real(value);
}

json_t *json_text(const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return json_string(text);
}

void json_put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        value_lost = true;
}

void json_add(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        value_lost = true;
}

/* A value as people read it. Lists and objects become one line. */
static void print_value(FILE *stream, json_t *value)
{
    const char *key;
    json_t *item;
    size_t index;
    const char *separator = "";
    switch (json_typeof(value)) {
    case JSON_STRING:
        fputs(json_string_length(value) ? json_string_value(value) : "-", stream);
        break;
    case JSON_INTEGER:
        fprintf(stream, "%lld", (long long)json_integer_value(value));
        break;
    case JSON_REAL:
        fprintf(stream, "%.4g", json_real_value(value));
        break;
    case JSON_TRUE:
        fputs("yes", stream);
        break;
    case JSON_FALSE:
        fputs("no", stream);
        break;
    case JSON_NULL:
        fputs("-", stream);
        break;
    case JSON_ARRAY:
        if (json_array_size(value) == 0)
            fputs("-", stream);
        json_array_foreach(value, index, item)
        {
            fputs(separator, stream);
            print_value(stream, item);
            separator = ", ";
        }
        break;
    case JSON_OBJECT:
        json_object_foreach(value, key, item)
        {
            fprintf(stream, "%s%s %s", separator, key, json_is_array(item) ? "[" : "");
            print_value(stream, item);
            separator = json_is_array(item) ? "], " : ", ";
        }
        break;
    }
}

void report_open(struct report *report, bool json)
{
    *report = (struct report){.json = json};
    if (json && !(report->root = json_object()))
        report->failed = true;
}

void report_put(struct report *report, const char *name, json_t *value)
{
    if (!value) {
        report->failed = true;
    } else if (report->json) {
        if (json_object_set_new(report->root, name, value) != 0)
            report->failed = true;
    } else {
        progress_clear();
        int length = (int)strlen(name);
        for (const char *letter = name; *letter; letter++)
            putchar(*letter == '_' ? ' ' : *letter);
        printf(":%*s", length < 14 ? 15 - length : 1, "");
        print_value(stdout, value);
        putchar('\n');
        json_decref(value);
    }
}

void report_table(struct report *report, const char *name, const struct column *columns, int count, const int *widths)
{
    report->columns = columns;
    report->column_count = count;
    if (report->json) {
        report->rows = json_array();
        if (json_object_set_new(report->root, name, report->rows) != 0) {
            report->rows = NULL;
            report->failed = true;
        }
        return;
    }
    free(report->widths);
    report->widths = calloc((size_t)count + 1, sizeof *report->widths);
    if (!report->widths) {
        report->failed = true;
        report->column_count = 0;
        return;
    }
    progress_clear();
    for (int i = 0; i < count; i++) {
        int width = abs(columns[i].width);
        int given = widths ? widths[i] : 0;
        int title = (int)strlen(columns[i].title);
        width = width > given ? width : given;
        width = width > title ? width : title;
        report->widths[i] = columns[i].width < 0 ? -width : width;
        bool last = i == count - 1 && columns[i].width < 0;
        printf("%*s%s", last ? 0 : report->widths[i], columns[i].title, last ? "\n" : i == count - 1 ? "\n" : "  ");
    }
}

static void print_row(struct report *report, const json_t *row)
{
    progress_clear();
    for (int i = 0; i < report->column_count; i++) {
        json_t *value = json_object_get(row, report->columns[i].key);
        char *text = NULL;
        size_t size = 0;
        FILE *stream = open_memstream(&text, &size);
        if (!stream) {
            report->failed = true;
            return;
        }
        if (value)
            print_value(stream, value);
        else
            fputc('-', stream);
        if (fclose(stream) != 0 || !text) {
            report->failed = true;
            free(text);
            return;
        }
        bool last = i == report->column_count - 1;
        printf("%*s%s", last && report->widths[i] < 0 ? 0 : report->widths[i], text, last ? "\n" : "  ");
        free(text);
    }
    size_t index;
    json_t *note;
    json_array_foreach(json_object_get(row, "notes"), index, note) printf("    %s\n", json_string_value(note));
    fflush(stdout);
}

void report_row(struct report *report, json_t *row)
{
    if (!row) {
        report->failed = true;
    } else if (report->json) {
        if (json_array_append_new(report->rows, row) != 0)
            report->failed = true;
    } else {
        print_row(report, row);
        json_decref(row);
    }
}

bool report_close(struct report *report)
{
    progress_clear();
    if (report->json && report->root) {
        if (json_dumpf(report->root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) != 0)
            report->failed = true;
        putchar('\n');
    }
    json_decref(report->root);
    report->root = NULL;
    free(report->widths);
    report->widths = NULL;
    if (fflush(stdout) != 0 || ferror(stdout) || value_lost)
        report->failed = true;
    return !report->failed;
}
