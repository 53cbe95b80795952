/*
 * regular_file.c - see regular_file.h.
 */
#include "regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_of(mode_t mode)
{
    return S_ISFIFO(mode)   ? "a pipe"
           : S_ISDIR(mode)  ? "a folder"
           : S_ISCHR(mode)  ? "a device"
           : S_ISBLK(mode)  ? "a device"
           : S_ISSOCK(mode) ? "a socket"
                            : "something else";
}

/* Looked at by name first: opening a device may have effects. O_NONBLOCK, so that a pipe which takes its place does not wait. */
int regular_file_descriptor(const char *path, char *why, size_t why_size)
{
    struct stat status = {0};
    int file = -1;
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
        file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    else if (status.st_mode) {
        snprintf(why, why_size, "%s is not a regular file: it is %s", path, kind_of(status.st_mode));
        errno = EINVAL;
        return -1;
    }
    if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode))
        return file;
    snprintf(why, why_size, "%s cannot be read: %s", path, strerror(file >= 0 ? EINVAL : errno));
    if (file >= 0)
        close(file);
    return -1;
}

FILE *regular_file_open(const char *path, char *why, size_t why_size)
{
    int file = regular_file_descriptor(path, why, why_size);
    FILE *stream = file >= 0 ? fdopen(file, "rb") : NULL;
    if (file >= 0 && !stream) {
        snprintf(why, why_size, "%s cannot be read: %s", path, strerror(errno));
        close(file);
    }
    return stream;
}

char *regular_file_read(const char *path, size_t most, size_t *size, char *why, size_t why_size)
{
    FILE *file = regular_file_open(path, why, why_size);
    struct stat status;
    char *bytes = NULL;
    if (!file)
        return NULL;
    if (fstat(fileno(file), &status) != 0 || (unsigned long long)status.st_size > most) {
        snprintf(why, why_size, "%s is larger than %zu bytes", path, most);
    } else if (!(bytes = malloc((size_t)status.st_size + 1))) {
        snprintf(why, why_size, "%s: out of memory", path);
    } else {
        *size = fread(bytes, 1, (size_t)status.st_size, file);
        bytes[*size] = '\0';
        if (ferror(file)) {
            snprintf(why, why_size, "%s cannot be read: %s", path, strerror(errno));
            free(bytes);
            bytes = NULL;
        }
    }
    fclose(file);
    return bytes;
}
