/*
 * objects.c - whole files and files named by their digest. See objects.h.
 *
 * A file is written under a passing name in the folder where it belongs, flushed to the disk, and then renamed, which the system
 * does as one step; the folder is flushed too, so that the new name survives a loss of power.
 */
#include "objects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LEAVING ".new-"

bool folder_make(const char *path)
{
    char *copy = strdup(path);
    bool made = copy != NULL;
    for (char *at = copy; made && at && *at;) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        char end = *at;
        *at = '\0';
        made = mkdir(copy, 0777) == 0 || errno == EEXIST;
        *at = end;
    }
    free(copy);
    struct stat status;
    if (made && stat(path, &status) == 0 && !S_ISDIR(status.st_mode)) {
        errno = ENOTDIR;
        made = false;
    }
    return made;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    remove(path);
    return 0;
}

void folder_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool file_copy(const char *from, const char *to)
{
    char buffer[1 << 16];
    size_t got;
    FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
    bool copied = out != NULL;
    while (copied && (got = fread(buffer, 1, sizeof buffer, in)) > 0)
        copied = fwrite(buffer, 1, got, out) == got;
    copied = copied && !ferror(in);
    if (in)
        fclose(in);
    return out && fclose(out) == 0 && copied;
}

char *file_read(const char *path, size_t *size)
{
    char *data = NULL;
    size_t used = 0, room = 0;
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    for (;;) {
        if (used + 1 >= room) {
            room = room ? 2 * room : 1 << 14;
            char *grown = realloc(data, room);
            if (!grown)
                break;
            data = grown;
        }
        size_t got = fread(data + used, 1, room - used - 1, file);
        used += got;
        if (got == 0) {
            if (ferror(file))
                break;
            fclose(file);
            data[used] = '\0';
            *size = used;
            return data;
        }
    }
    int reason = errno;
    fclose(file);
    free(data);
    errno = reason;
    return NULL;
}

static bool write_all(int file, const unsigned char *data, size_t size)
{
    while (size > 0) {
        ssize_t done = write(file, data, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        data += done;
        size -= (size_t)done;
    }
    return true;
}

static bool flush_folder(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool flushed = folder >= 0 && fsync(folder) == 0;
    if (folder >= 0)
        close(folder);
    return flushed;
}

/* The folder part of a path; to be freed. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Opens a file under a passing name; the name is to be freed. */
static int open_passing(const char *folder, char **name)
{
    if (asprintf(name, "%s/" LEAVING "XXXXXX", folder) < 0) {
        *name = NULL;
        return -1;
    }
    int file = mkostemp(*name, O_CLOEXEC);
    if (file >= 0)
        fchmod(file, 0644);
    return file;
}

/* Flushes and closes the file and gives it its name, in the folder `folder`; on failure it is removed. */
static bool give_name(int file, bool written, const char *passing, const char *path, const char *folder)
{
    bool flushed = written && fsync(file) == 0;
    int reason = errno;
    if (close(file) != 0 && flushed) {
        flushed = false;
        reason = errno;
    }
    if (flushed && rename(passing, path) == 0)
        return flush_folder(folder);
    reason = flushed ? errno : reason;
    unlink(passing);
    errno = reason;
    return false;
}

bool file_replace(const char *path, const void *data, size_t size)
{
    char *folder = folder_of(path), *passing = NULL;
    bool done = false;
    int file = folder ? open_passing(folder, &passing) : -1;
    if (file >= 0)
        done = give_name(file, write_all(file, data, size), passing, path, folder);
    int reason = errno;
    free(passing);
    free(folder);
    errno = reason;
    return done;
}

bool file_rename(const char *from, const char *to)
{
    char *folder = folder_of(to);
    bool done = folder && rename(from, to) == 0 && flush_folder(folder);
    int reason = errno;
    free(folder);
    errno = reason;
    return done;
}

char *object_path(const char *root, const char *digest)
{
    char *path;
    if (!digest_is_one(digest) || asprintf(&path, "%s/objects/%.2s/%s", root, digest, digest + 2) < 0)
        return NULL;
    return path;
}

/* Copies and hashes in one pass, so that the digest is that of the bytes that were written. */
static bool copy_hashed(int from, int to, char digest[DIGEST_TEXT])
{
    unsigned char hash[crypto_hash_sha256_BYTES], buffer[1 << 14];
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    for (;;) {
        ssize_t got = read(from, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        crypto_hash_sha256_update(&state, buffer, (size_t)got);
        if (!write_all(to, buffer, (size_t)got))
            return false;
    }
    crypto_hash_sha256_final(&state, hash);
    sodium_bin2hex(digest, DIGEST_TEXT, hash, sizeof hash);
    return true;
}

bool object_keep(const char *root, const char *path, char digest[DIGEST_TEXT])
{
    char *objects = NULL, *passing = NULL, *name = NULL, *folder = NULL;
    bool kept = false;
    int from = open(path, O_RDONLY | O_CLOEXEC), to = -1;
    digest[0] = '\0';
    if (from >= 0 && asprintf(&objects, "%s/objects", root) >= 0 && folder_make(objects))
        to = open_passing(objects, &passing);
    if (to >= 0) {
        bool copied = copy_hashed(from, to, digest);
        name = copied ? object_path(root, digest) : NULL;
        folder = name ? folder_of(name) : NULL;
        kept = give_name(to, folder && folder_make(folder), passing, name, folder) && flush_folder(objects);
    }
    int reason = errno;
    if (from >= 0)
        close(from);
    free(objects);
    free(passing);
    free(name);
    free(folder);
    errno = reason;
    return kept;
}

void leavings_remove(const char *folder, int seconds)
{
    DIR *stream = opendir(folder);
    struct dirent *entry;
    struct stat status;
    time_t now = time(NULL);
    while (stream && (entry = readdir(stream))) {
        int at = dirfd(stream);
        if (strncmp(entry->d_name, LEAVING, strlen(LEAVING)) == 0 && fstatat(at, entry->d_name, &status, 0) == 0 &&
            now - status.st_mtime >= seconds)
            unlinkat(at, entry->d_name, 0);
    }
    if (stream)
        closedir(stream);
}
