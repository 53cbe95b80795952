/*
 * history.c - what the records of a kernel tell one after the other. See history.h.
 */
#include "history.h"

#include <stdio.h>

#include "member.h"

static void append(char *text, size_t size, const char *separator, const char *word)
{
    size_t used = strlen(text);
    if (used + strlen(separator) + strlen(word) + 4 < size)
        snprintf(text + used, size - used, "%s%s", used ? separator : "", word);
    else if (used > 3 && strcmp(text + used - 3, "...") != 0)
        snprintf(text + used, size - used, "...");
}

/* Adds the files of `one` that `other` does not have in the same form; with `only_missing`, those that it does not have at all. */
static int list_differences(json_t *one, const json_t *other, bool only_missing, char *text, size_t size)
{
    const char *path;
    json_t *digest;
    int count = 0;
    json_object_foreach(one, path, digest)
    {
        const json_t *twin = json_object_get(other, path);
        if (only_missing ? twin != NULL : json_equal(twin, digest))
            continue;
        append(text, size, ", ", path);
        count++;
    }
    return count;
}

void history_change(const json_t *record, const json_t *before, char *text, size_t size)
{
    const json_t *now = json_object_get(record, "candidate"), *then = json_object_get(before, "candidate");
    char files[256] = "";
    if (!before) {
        snprintf(text, size, "first attempt");
        return;
    }
    if (!json_object_get(now, "sources") && !*text_at(now, "image")) {
        snprintf(text, size, "it was not built");
        return;
    }
    int count = list_differences(json_object_get(now, "sources"), json_object_get(then, "sources"), false, files, sizeof files);
    count += list_differences(json_object_get(then, "sources"), json_object_get(now, "sources"), true, files, sizeof files);
    if (count > 1)
        snprintf(text, size, "%d files: %s", count, files);
    else if (count == 1)
        snprintf(text, size, "%s", files);
    else if (!text_is(now, "flags", text_at(then, "flags")))
        snprintf(text, size, "compiler flags");
    else if (!text_is(now, "compiler", text_at(then, "compiler")))
        snprintf(text, size, "compiler");
    else if (!text_is(now, "image", text_at(then, "image")))
        snprintf(text, size, "the image");
    else
        snprintf(text, size, "nothing");
}

void history_gates(const json_t *record, char *text, size_t size)
{
    const json_t *gate;
    size_t index;
    text[0] = '\0';
    json_array_foreach(json_object_get(record, "gates"), index, gate)
    {
        char word[96];
        snprintf(word, sizeof word, "%s %s", text_at(gate, "gate"), text_at(gate, "verdict"));
        append(text, size, ", ", word);
    }
}
