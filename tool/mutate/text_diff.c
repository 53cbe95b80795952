/*
 * text_diff.c - see text_diff.h. One edit touches one run of lines: there is nothing to search for.
 */
#include "text_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 3 };

int text_line(const char *text, size_t at)
{
    int line = 1;
    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return line;
}

/* Prints whole lines begin .. end of a text with a mark before each. */
static int print_lines(FILE *out, char mark, const char *text, size_t begin, size_t end)
{
    int count = 0;
    for (size_t at = begin; at < end; count++) {
        size_t length = 0;
        while (at + length < end && text[at + length] != '\n')
            length++;
        if (out)
            fprintf(out, "%c%.*s\n", mark, (int)length, text + at);
        at += length + 1;
    }
    return count;
}

/* Where the line with byte `at` begins, or ends (behind its newline). */
static size_t line_begin(const char *text, size_t at)
{
    while (at > 0 && text[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(const char *text, size_t size, size_t at)
{
    while (at < size && text[at] != '\n')
        at++;
    return at < size ? at + 1 : size;
}

char *text_diff(const char *path, const char *text, size_t size, const struct edit *edit)
{
    char *changed = edit_apply(edit, text, size), *diff = NULL;
    size_t diff_size;
    FILE *out = changed ? open_memstream(&diff, &diff_size) : NULL;
    if (!out) {
        free(changed);
        return NULL;
    }
    size_t changed_size = size - (edit->end - edit->begin) + strlen(edit->text);
    size_t begin = line_begin(text, edit->begin), end = line_end(text, size, edit->end > edit->begin ? edit->end - 1 : edit->end);
    size_t changed_end = changed_size - (size - end), before = begin, behind = end;
    for (int i = 0; i < CONTEXT && before > 0; i++)
        before = line_begin(text, before - 1);
    for (int i = 0; i < CONTEXT && behind < size; i++)
        behind = line_end(text, size, behind);
    int above = print_lines(NULL, ' ', text, before, begin), below = print_lines(NULL, ' ', text, end, behind);
    int first = text_line(text, before);
    fprintf(out, "--- a/%s\n+++ b/%s\n@@ -%d,%d +%d,%d @@\n", path, path, first,
            above + print_lines(NULL, ' ', text, begin, end) + below, first,
            above + print_lines(NULL, ' ', changed, begin, changed_end) + below);
    print_lines(out, ' ', text, before, begin);
    print_lines(out, '-', text, begin, end);
    print_lines(out, '+', changed, begin, changed_end);
    print_lines(out, ' ', text, end, behind);
    free(changed);
    if (fclose(out) != 0) {
        free(diff);
        return NULL;
    }
    return diff;
}
