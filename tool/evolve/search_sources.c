/*
 * search_sources.c - the sources of the candidates: where the compiler finds them, and what of them is kept. See search.h.
 */
#include "search.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evidence/member.h"
#include "evidence/objects.h"
#include "evidence/store.h"

/* The file that the compiler gets: sources/NAME.c in the scratch folder. */
static char *path_of(const struct search *search, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/sources/%s.%s", search->scratch, name, search->start.cuda ? "cu" : "c") < 0 ? NULL : path;
}

char *search_path(const struct search *search, const json_t *trial)
{
    char *path = path_of(search, text_at(trial, "name")), *text = search_source(search, trial);
    bool there = path && text && file_replace(path, text, strlen(text));
    free(text);
    if (there)
        return path;
    free(path);
    return NULL;
}

/* The folder of the start. A C kernel that includes files beside it finds them there, with a line in its first comment. */
static char *with_folder(const struct search *search, const char *text)
{
    char *copy = strdup(search->start.source), *made = NULL, line[4200];
    const char *folder = copy ? dirname(copy) : ".", *begin = text + strspn(text, " \t\r\n");
    size_t first = strcspn(begin, "\n");
    const char *closed = strstr(begin, "*/");
    snprintf(line, sizeof line, " * attest-flags: -I%.4000s\n", folder);
    bool comment = strncmp(begin, "/*", 2) == 0 && closed && (size_t)(closed - begin) > first;
    if (!strstr(text, "#include \"") || strstr(text, line))
        made = strdup(text);
    else if (asprintf(&made, comment ? "%.*s\n%s%s" : "%.*s/*\n%s */\n%s", comment ? (int)first : 0, begin, line,
                      comment ? begin + first + 1 : text) < 0)
        made = NULL;
    free(copy);
    return made;
}

char *search_renamed(const char *text, const char *name)
{
    static const char mark[] = "attest-cuda:";
    char *made = NULL;
    for (const char *at = text; (at = strstr(at, mark)); at++) {
        const char *key = at + sizeof mark - 1 + strspn(at + sizeof mark - 1, " \t"), *value = key + strspn(key, "name");
        value += strspn(value, " \t");
        if (strncmp(key, "name", 4) != 0 || *value != '=')
            continue;
        if (asprintf(&made, "%.*s= %s%s", (int)(value - text), text, name, value + strcspn(value, "\r\n")) < 0)
            made = NULL;
        return made;
    }
    return strdup(text);
}

void search_link_headers(const struct search *search)
{
    char *copy = strdup(search->start.source), from[8300], to[8300], *real = NULL;
    DIR *folder = copy && search->start.cuda ? opendir(dirname(copy)) : NULL;
    struct dirent *entry;
    real = folder ? realpath(copy, NULL) : NULL;
    while (real && (entry = readdir(folder))) {
        const char *ending = strrchr(entry->d_name, '.');
        if (!ending || (strcmp(ending, ".h") != 0 && strcmp(ending, ".cuh") != 0))
            continue;
        snprintf(from, sizeof from, "%.4000s/%s", real, entry->d_name);
        snprintf(to, sizeof to, "%.4000s/sources/%s", search->scratch, entry->d_name);
        if (symlink(from, to) != 0 && errno != EEXIST)
            break; /* the build will say what is missing */
    }
    if (folder)
        closedir(folder);
    free(real);
    free(copy);
}

json_t *search_new_trial(struct search *search, const char *text, const char *origin, const int *parents)
{
    int number = (int)json_array_size(search->trials);
    char name[160], digest[65] = "";
    snprintf(name, sizeof name, "%.100s_s%lld_%d", search->start.name, (long long)search->id, number);
    json_t *trial = json_pack("{s:i, s:s, s:i, s:s, s:[], s:s}", "number", number, "name", name, "generation",
                              number ? (number - 1) / search->population + 1 : 0, "origin", origin, "parents", "state", "PROPOSED");
    for (int i = 0; parents && i < 2; i++)
        if (parents[i] >= 0)
            json_add(json_object_get(trial, "parents"), json_integer(parents[i]));
    if (!text)
        return trial;
    char *whole = search->start.cuda ? search_renamed(text, name) : with_folder(search, text), *path = path_of(search, name);
    bool kept =
        search->store && whole && path && file_replace(path, whole, strlen(whole)) && store_keep(search->store, path, digest);
    free(whole);
    free(path);
    json_put(trial, "source", json_string(digest));
    if (kept)
        return trial;
    json_decref(trial);
    return NULL;
}

void search_put_settings(const struct search *search, json_t *trial, const char *text)
{
    struct space here;
    char ignored[512];
    if (!search->space.count ||
        !space_read(text, "", search->start.cuda, &search->session->problems, &here, ignored, sizeof ignored))
        return;
    json_t *settings = space_settings(&here, &here.start), *before = space_settings(&search->space, &search->space.start),
           *changed = json_object(), *value;
    struct point point;
    const char *name;
    json_object_foreach(settings, name, value)
    {
        if (!json_equal(value, json_object_get(before, name)))
            json_put(changed, name, json_incref(value));
    }
    if (space_find(&search->space, settings, &point)) {
        json_put(trial, "settings", json_incref(settings));
        json_put(trial, "changed", json_incref(changed));
    }
    json_decref(changed);
    json_decref(before);
    json_decref(settings);
    space_free(&here);
}
