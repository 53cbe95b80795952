/*
 * explained.c - see explained.h. Entries are checked: the key must be that of the diff below it, so that an explanation cannot be put to
 * another edit.
 */
#include "explained.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/report.h"

static const char *const classes[] = {"equivalent", "within-the-bound", "gap"};

/* Appends the line at `at` without its newline; returns what follows it. */
static const char *take_line(const char *at, FILE *out)
{
    size_t length = strcspn(at, "\n");
    if (out)
        fprintf(out, "%.*s\n", (int)length, at);
    return at + length + (at[length] == '\n');
}

void explained_key(const char *diff, char key[EXPLAINED_KEY])
{
    char digest[DIGEST_TEXT] = "", *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    while (out && *diff) {
        bool old_path = strncmp(diff, "--- ", 4) == 0; /* the other line with the path is enough */
        diff = take_line(diff, (diff[0] == '-' || diff[0] == '+') && !old_path ? out : NULL);
    }
    if (out && fclose(out) == 0)
        digest_of_bytes(text, size, digest);
    free(text);
    snprintf(key, EXPLAINED_KEY, "%.12s", digest);
}

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t size = 0;
    FILE *out = file ? open_memstream(&text, &size) : NULL;
    for (int c; out && (c = fgetc(file)) != EOF;)
        fputc(c, out);
    if (out)
        fclose(out);
    if (file)
        fclose(file);
    return text;
}

/* One entry, of which `at` is the heading. */
static bool add_entry(json_t *found, const char *at, char *why, size_t why_size)
{
    char key[EXPLAINED_KEY] = "", class[32] = "", right[EXPLAINED_KEY];
    const char *end = strstr(at + 4, "\n### "), *diff = strstr(at, "\n```diff\n"), *last = diff ? strstr(diff + 9, "\n```") : NULL;
    bool known = false;
    if (sscanf(at, "### %12s %31s", key, class) == 2)
        for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
            known = known || strcmp(class, classes[i]) == 0;
    if (!known || !last || (end && last > end)) {
        snprintf(why, why_size, "the entry '%.40s' has no key, no class (equivalent, within-the-bound, gap) or no diff", at);
        return false;
    }
    char *text = strndup(diff + 9, (size_t)(last + 1 - (diff + 9)));
    explained_key(text ? text : "", right);
    free(text);
    if (strcmp(key, right) != 0) {
        snprintf(why, why_size, "the key of entry %s is not that of its diff, which is %s", key, right);
        return false;
    }
    json_put(found, key, json_string(class));
    return true;
}

json_t *explained_load(const char *path, char *why, size_t why_size)
{
    char *text = read_all(path);
    json_t *found = json_object();
    bool good = true;
    for (const char *at = text; at && good && (at = strstr(at, "\n### ")); at++)
        good = add_entry(found, at + 1, why, why_size);
    free(text);
    if (!good) {
        json_decref(found);
        return NULL;
    }
    return found;
}
