/*
 * evidence_folder.c - the files of an evidence folder. See evidence_folder.h.
 */
#include "evidence_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "objects.h"
#include "base/report.h"

#define WAITING  ".next-"
#define NO_BYTES "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" /* digest of an empty file */

bool evidence_fail(char *why, size_t why_size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, why_size, format, arguments);
    va_end(arguments);
    return false;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- names ----------------------------------------------------------------------------------------------------------------- */

bool is_plain_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    return name && *name && *name != '.' && strlen(name) < 128 && !name[strspn(name, letters)];
}

/* Whether it is "kernel.intoto.jsonl". */
static bool is_evidence_name(const char *name)
{
    size_t length = strlen(name), ending = strlen(EVIDENCE_ENDING);
    return is_plain_name(name) && length > ending && strcmp(name + length - ending, EVIDENCE_ENDING) == 0;
}

/* Whether it is "class/kernel.intoto.jsonl". */
static bool is_evidence_path(const char *file)
{
    const char *slash = strchr(file, '/');
    char class[128];
    if (!slash || slash - file >= (long)sizeof class || !is_evidence_name(slash + 1))
        return false;
    memcpy(class, file, (size_t)(slash - file));
    class[slash - file] = '\0';
    return is_plain_name(class) && strcmp(class, "objects") != 0;
}

void evidence_next(const char *evidence, const char *file, char *path, size_t size)
{
    const char *slash = strchr(file, '/');
    int folder = slash ? (int)(slash - file) + 1 : 0;
    snprintf(path, size, "%s/%.*s" WAITING "%s", evidence, folder, file, file + folder);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------------- */

const char *evidence_irregular(const char *evidence, const char *file)
{
    char path[4096];
    struct stat status;
    size_t root = strlen(evidence);
    snprintf(path, sizeof path, "%s/%s", evidence, file);
    for (char *slash = strchr(path + root + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode))
            return "its folder is a symbolic link: evidence has to be in the folder itself";
        *slash = '/';
    }
    if (lstat(path, &status) != 0)
        return NULL;
    return S_ISLNK(status.st_mode)    ? "it is a symbolic link: evidence has to be in the folder itself"
           : !S_ISREG(status.st_mode) ? "it is no ordinary file"
           : status.st_nlink > 1      ? "it has a second name (a hard link), by which it can be changed: replace it by a copy"
           : status.st_size > LARGEST_EVIDENCE_FILE ? "it is too large to be evidence"
                                                    : NULL;
}

/* Calls `look` with the path, from the evidence folder on, of everything in one of its folders ("" is itself). */
static void each_in(const char *evidence, const char *folder, void (*look)(const char *evidence, const char *file, void *data),
                    void *data)
{
    char path[4096], file[1024];
    struct dirent *item;
    snprintf(path, sizeof path, "%s/%s", evidence, folder);
    DIR *stream = opendir(path);
    while (stream && (item = readdir(stream))) {
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        snprintf(file, sizeof file, "%s%s%s", folder, *folder ? "/" : "", item->d_name);
        look(evidence, file, data);
    }
    if (stream)
        closedir(stream);
}

/* 'l' a link, 'd' a folder, 'f' an ordinary file, 'x' anything else. */
static char kind_of(const char *evidence, const char *file)
{
    char path[4096];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", evidence, file);
    if (lstat(path, &status) != 0)
        return 'x';
    return S_ISLNK(status.st_mode) ? 'l' : S_ISDIR(status.st_mode) ? 'd' : S_ISREG(status.st_mode) ? 'f' : 'x';
}

static void list_file(const char *evidence, const char *file, void *files)
{
    (void)evidence;
    if (is_evidence_path(file))
        json_put(files, file, json_true());
}

static void list_folder(const char *evidence, const char *folder, void *files)
{
    if (is_plain_name(folder) && strcmp(folder, "objects") != 0 && kind_of(evidence, folder) == 'd')
        each_in(evidence, folder, list_file, files);
}

json_t *evidence_files(const char *evidence)
{
    json_t *files = json_object();
    each_in(evidence, "", list_folder, files);
    return files;
}

static void refuse(json_t *entries, const char *file, const char *problem)
{
    json_add(entries,
             json_pack("{s:s, s:i, s:s, s:b, s:s}", "file", file, "line", 0, "digest", "", "signed", 0, "problem", problem));
}

/* An ordinary file that a killed writer left; the next one removes it. */
static bool is_leaving(const char *evidence, const char *file)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    return (begins(name, ".new-") || (begins(name, WAITING) && is_evidence_name(name + strlen(WAITING)))) &&
           kind_of(evidence, file) == 'f';
}

static void check_object(const char *evidence, const char *file, void *entries)
{
    char name[DIGEST_TEXT + 1] = "", found[DIGEST_TEXT], path[4096];
    const char *irregular = evidence_irregular(evidence, file);
    /* objects/ab/cdef... */
    if (strlen(file) == strlen("objects/ab/") + DIGEST_TEXT - 3)
        snprintf(name, sizeof name, "%.2s%s", file + strlen("objects/"), file + strlen("objects/ab/"));
    snprintf(path, sizeof path, "%s/%s", evidence, file);
    if (irregular)
        refuse(entries, file, irregular);
    else if (!digest_is_one(name))
        refuse(entries, file, "it does not belong here: an object is named by its digest");
    else if (!digest_of_file(path, found) || strcmp(found, name) != 0)
        refuse(entries, file, "the object was changed: its name is not its digest");
}

static void check_objects_folder(const char *evidence, const char *file, void *entries)
{
    const char *name = file + strlen("objects/");
    bool plain = strlen(name) == 2 && !name[strspn(name, "0123456789abcdef")];
    if (is_leaving(evidence, file))
        return;
    if (plain && kind_of(evidence, file) == 'd')
        each_in(evidence, file, check_object, entries);
    else
        refuse(entries, file,
               kind_of(evidence, file) == 'l' ? "it is a symbolic link: evidence has to be in the folder itself"
                                              : "it does not belong here: objects are in folders of two digits");
}

static void check_in_class(const char *evidence, const char *file, void *entries)
{
    if (!is_evidence_path(file) && !is_leaving(evidence, file))
        refuse(entries, file, "it does not belong here: evidence files end in " EVIDENCE_ENDING);
}

static void check_at_top(const char *evidence, const char *file, void *entries)
{
    char kind = kind_of(evidence, file);
    if ((kind == 'f' && strcmp(file, SUMS_FILE) == 0) || is_leaving(evidence, file))
        return;
    if (kind == 'd' && strcmp(file, "objects") == 0)
        each_in(evidence, file, check_objects_folder, entries);
    else if (kind == 'd' && is_plain_name(file))
        each_in(evidence, file, check_in_class, entries);
    else
        refuse(entries, file,
               kind == 'l' ? "it is a symbolic link: evidence has to be in the folder itself"
                           : "it does not belong here: nothing of the evidence has this name");
}

void evidence_check(const char *evidence, json_t *entries)
{
    each_in(evidence, "", check_at_top, entries);
}

/* ---- SHA256SUMS ------------------------------------------------------------------------------------------------------------ */

/* Adds a line, which is cut in two, to the sums; a sentence if it is not in order. */
static const char *read_line(char *line, json_t *sums)
{
    char *file = line + DIGEST_TEXT + 1;
    if (strlen(line) <= DIGEST_TEXT + 1 || memcmp(line + DIGEST_TEXT - 1, "  ", 2) != 0)
        return "has a line that is no digest, two blanks and a file";
    line[DIGEST_TEXT - 1] = '\0';
    if (!digest_is_one(line))
        return "has a line that is no digest, two blanks and a file";
    if (!is_evidence_path(file))
        return "names a file that cannot be evidence: CLASS/KERNEL" EVIDENCE_ENDING;
    if (!json_object_get(sums, file))
        json_put(sums, file, json_array());
    json_add(json_object_get(sums, file), json_string(line));
    return json_array_size(json_object_get(sums, file)) > 2 ? "has more than two lines for a file" : NULL;
}

json_t *sums_read(const char *evidence, char *why, size_t why_size)
{
    char path[4096];
    size_t size = 0;
    json_t *sums = json_object();
    snprintf(path, sizeof path, "%s/" SUMS_FILE, evidence);
    const char *wrong = evidence_irregular(evidence, SUMS_FILE);
    if (wrong) {
        evidence_fail(why, why_size, "%s: %s", path, wrong);
        json_decref(sums);
        return NULL;
    }
    char *text = file_read(path, &size);
    if (!text && errno != ENOENT) {
        evidence_fail(why, why_size, "%s cannot be read: %s", path, strerror(errno));
        json_decref(sums);
        return NULL;
    }
    for (size_t at = 0; !wrong && at < size;) {
        char *end = memchr(text + at, '\n', size - at);
        if (end)
            *end = '\0';
        wrong = !end || strlen(text + at) != (size_t)(end - text) - at ? "has a line without an end, or bytes that are no text"
                                                                       : read_line(text + at, sums);
        at = end ? (size_t)(end - text) + 1 : size;
    }
    free(text);
    if (wrong) {
        evidence_fail(why, why_size, "%s %s", path, wrong);
        json_decref(sums);
        return NULL;
    }
    return sums;
}

bool sums_write(const char *evidence, const json_t *sums, char *why, size_t why_size)
{
    char path[4096], *text = NULL, *sorted = canonical_text(sums);
    size_t size = 0, index;
    const char *file;
    json_t *ordered = sorted ? json_loads(sorted, 0, NULL) : NULL, *digests, *digest;
    FILE *stream = ordered ? open_memstream(&text, &size) : NULL;
    json_object_foreach(ordered, file, digests)
    {
        json_array_foreach(digests, index, digest)
        {
            if (stream)
                fprintf(stream, "%s  %s\n", json_string_value(digest), file);
        }
    }
    json_decref(ordered);
    free(sorted);
    snprintf(path, sizeof path, "%s/" SUMS_FILE, evidence);
    bool written = stream && fclose(stream) == 0 && file_replace(path, text, size);
    if (!written)
        evidence_fail(why, why_size, "%s cannot be written: %s", path, strerror(errno));
    free(text);
    return written;
}

/* Whether `text` without its last line has this digest. */
static bool is_one_line_more(const char *text, size_t size, const char *before)
{
    char digest[DIGEST_TEXT];
    if (size == 0 || text[size - 1] != '\n')
        return false;
    for (size--; size > 0 && text[size - 1] != '\n'; size--)
        ;
    digest_of_bytes(text, size, digest);
    return strcmp(digest, before) == 0;
}

const char *sums_difference(const char *evidence, const json_t *sums, const char *file, const char *text, size_t size)
{
    static const char edited[] = "the file is not what " SUMS_FILE " says: it was edited, or lines were removed";
    const json_t *lines = json_object_get(sums, file);
    const char *first = json_string_value(json_array_get(lines, 0)), *second = json_string_value(json_array_get(lines, 1));
    char digest[DIGEST_TEXT], path[4096];
    digest_of_bytes(text ? text : "", size, digest);
    if (!first)
        return edited;
    if (!second)
        return strcmp(digest, first) == 0 ? NULL : edited;
    if (strcmp(digest, second) == 0) /* the last step is left to do */
        return is_one_line_more(text ? text : "", size, first) ? NULL
                                                               : "the first of its two lines in " SUMS_FILE
                                                                 " is not that of the file before";
    if (strcmp(digest, first) != 0)
        return edited;
    size_t next_size = 0;
    evidence_next(evidence, file, path, sizeof path);
    struct stat status;
    char *next = lstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= LARGEST_EVIDENCE_FILE
                     ? file_read(path, &next_size)
                     : NULL;
    digest_of_bytes(next ? next : "", next_size, digest);
    bool waits = next && strcmp(digest, second) == 0 && is_one_line_more(next, next_size, first);
    free(next);
    return waits ? NULL : "the second of its two lines in " SUMS_FILE " is that of no file";
}

/* Removes a file that waited and whose turn never came. */
static void remove_waiting(const char *evidence, const char *file, void *unused)
{
    char path[4096];
    const char *slash = strrchr(file, '/');
    (void)unused;
    snprintf(path, sizeof path, "%s/%s", evidence, file);
    if (slash && begins(slash + 1, WAITING) && is_leaving(evidence, file))
        unlink(path);
}

static void remove_waiting_in(const char *evidence, const char *folder, void *unused)
{
    if (is_plain_name(folder) && strcmp(folder, "objects") != 0 && kind_of(evidence, folder) == 'd')
        each_in(evidence, folder, remove_waiting, unused);
}

bool sums_settle(const char *evidence, json_t *sums, char *why, size_t why_size)
{
    json_t *copy = json_deep_copy(sums), *digests;
    const char *file;
    bool changed = false;
    json_object_foreach(copy, file, digests)
    {
        char path[4096], digest[DIGEST_TEXT];
        const json_t *first = json_array_get(digests, 0), *second = json_array_get(digests, 1);
        snprintf(path, sizeof path, "%s/%s", evidence, file);
        if (!second)
            continue;
        bool there = !evidence_irregular(evidence, file) && digest_of_file(path, digest);
        if (there && (strcmp(json_string_value(first), digest) == 0 || strcmp(json_string_value(second), digest) == 0)) {
            json_put(sums, file, json_pack("[s]", digest));
            changed = true;
        } else if (access(path, F_OK) != 0 && strcmp(json_string_value(first), NO_BYTES) == 0) {
            json_object_del(sums, file);
            changed = true;
        }
    }
    json_decref(copy);
    if (changed && !sums_write(evidence, sums, why, why_size))
        return false;
    each_in(evidence, "", remove_waiting_in, NULL);
    return true;
}
