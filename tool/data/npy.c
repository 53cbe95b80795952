/*
 * npy.c - parsing, reading and writing .npy files (see npy.h). The format: the magic "\x93NUMPY", two bytes of version, the length
 * of the header (2 bytes in version 1, else 4, little-endian), the header, which is a Python dictionary as text,
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 * and the elements.
 */
#include "npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/regular_file.h"

struct cursor {
    const char *at;
    const char *end;
    char *why;
    size_t why_size;
};

static bool refuse(char *why, size_t why_size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool refuse(char *why, size_t why_size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, why_size, format, arguments);
    va_end(arguments);
    return false;
}

static void skip_blanks(struct cursor *cursor)
{
    while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) && *cursor->at)
        cursor->at++;
}

static bool accept(struct cursor *cursor, char wanted)
{
    skip_blanks(cursor);
    if (cursor->at == cursor->end || *cursor->at != wanted)
        return false;
    cursor->at++;
    return true;
}

static bool expect(struct cursor *cursor, char wanted)
{
    return accept(cursor, wanted) || refuse(cursor->why, cursor->why_size, "its header lacks a '%c'", wanted);
}

/* A quoted word of at most size - 1 plain characters. */
static bool read_string(struct cursor *cursor, char *text, size_t size)
{
    skip_blanks(cursor);
    if (cursor->at == cursor->end || (*cursor->at != '\'' && *cursor->at != '"'))
        return refuse(cursor->why, cursor->why_size, "its header is no dictionary of plain words");
    char quote = *cursor->at++;
    size_t length = 0;
    while (cursor->at < cursor->end && *cursor->at != quote) {
        if (*cursor->at == '\\' || !*cursor->at || length + 1 >= size)
            return refuse(cursor->why, cursor->why_size, "its header has a word that is too long or has an escape");
        text[length++] = *cursor->at++;
    }
    text[length] = '\0';
    return expect(cursor, quote);
}

static bool read_word(struct cursor *cursor, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(cursor);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

/* Byte order, kind and size, such as <f4. */
static bool read_descr(struct cursor *cursor, struct npy *npy)
{
    char text[32];
    char *end;
    skip_blanks(cursor);
    if (cursor->at < cursor->end && *cursor->at == '[')
        return refuse(cursor->why, cursor->why_size, "it has a structured type; save a plain array of numbers");
    if (!read_string(cursor, text, sizeof text))
        return false;
    if (text[0] == '>')
        return refuse(cursor->why, cursor->why_size, "it is big-endian (%s); save it with .astype('<%s')", text, text + 1);
    if (!text[0] || !strchr("<|=", text[0]) || !text[1] || !strchr("fiuVbc", text[1]) || text[2] < '1' || text[2] > '9')
        return refuse(cursor->why, cursor->why_size, "its type '%s' is not one of plain numbers, such as <f4", text);
    long size = strtol(text + 2, &end, 10);
    if (*end || size > 16)
        return refuse(cursor->why, cursor->why_size, "its type '%s' is not one of plain numbers, such as <f4", text);
    npy->kind = text[1];
    npy->item_size = (int)size;
    return true;
}

static bool read_shape(struct cursor *cursor, struct npy *npy)
{
    if (!expect(cursor, '('))
        return false;
    npy->rank = 0;
    while (!accept(cursor, ')')) {
        int64_t size = 0;
        const char *start = cursor->at;
        while (cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9') {
            if (size > (INT64_MAX - 9) / 10)
                return refuse(cursor->why, cursor->why_size, "a dimension of its shape is too large");
            size = size * 10 + (*cursor->at++ - '0');
        }
        if (cursor->at == start)
            return refuse(cursor->why, cursor->why_size, "its shape is no list of sizes");
        if (npy->rank == NPY_MAX_RANK)
            return refuse(cursor->why, cursor->why_size, "it has more than %d dimensions", NPY_MAX_RANK);
        npy->shape[npy->rank++] = size;
        if (!accept(cursor, ',')) {
            if (!expect(cursor, ')'))
                return false;
            /* (3) is a number in Python, and no tuple. */
            return npy->rank != 1 || refuse(cursor->why, cursor->why_size, "its shape is a number and no tuple");
        }
        skip_blanks(cursor);
    }
    return true;
}

static bool read_header(struct cursor *cursor, struct npy *npy)
{
    bool descr = false, order = false, shape = false;
    if (!expect(cursor, '{'))
        return false;
    while (!accept(cursor, '}')) {
        char key[32];
        if (!read_string(cursor, key, sizeof key) || !expect(cursor, ':'))
            return false;
        if (strcmp(key, "descr") == 0 && !descr) {
            if (!read_descr(cursor, npy))
                return false;
            descr = true;
        } else if (strcmp(key, "fortran_order") == 0 && !order) {
            npy->fortran = read_word(cursor, "True");
            if (!npy->fortran && !read_word(cursor, "False"))
                return refuse(cursor->why, cursor->why_size, "fortran_order is neither True nor False");
            order = true;
        } else if (strcmp(key, "shape") == 0 && !shape) {
            if (!read_shape(cursor, npy))
                return false;
            shape = true;
        } else {
            return refuse(cursor->why, cursor->why_size, "its header has '%s' where it should not be", key);
        }
        if (!accept(cursor, ',')) {
            if (!expect(cursor, '}'))
                return false;
            break;
        }
    }
    skip_blanks(cursor);
    if (cursor->at != cursor->end)
        return refuse(cursor->why, cursor->why_size, "there is something after the dictionary in its header");
    return (descr && order && shape) || refuse(cursor->why, cursor->why_size, "its header lacks descr, fortran_order or shape");
}

bool npy_parse(const void *bytes, size_t size, struct npy *npy, char *why, size_t why_size)
{
    const unsigned char *at = bytes;
    *npy = (struct npy){0};
    if (size < 10 || memcmp(at, "\x93NUMPY", 6) != 0)
        return refuse(why, why_size, "it is no .npy file");
    if (at[6] < 1 || at[6] > 3 || at[7] != 0)
        return refuse(why, why_size, "its format version %d.%d is not known; 1.0, 2.0 and 3.0 are", at[6], at[7]);
    size_t start = at[6] == 1 ? 10 : 12;
    if (size < start)
        return refuse(why, why_size, "it is cut short in its header");
    size_t length = (size_t)at[8] | (size_t)at[9] << 8;
    if (start == 12)
        length |= (size_t)at[10] << 16 | (size_t)at[11] << 24;
    if (length > size - start)
        return refuse(why, why_size, "it is cut short in its header");
    struct cursor cursor = {(const char *)at + start, (const char *)at + start + length, why, why_size};
    if (!read_header(&cursor, npy))
        return false;
    size_t left = size - start - length;
    npy->count = 1;
    bool empty = false;
    for (int i = 0; i < npy->rank; i++)
        empty = empty || npy->shape[i] == 0;
    for (int i = 0; i < npy->rank && !empty; i++)
        if (__builtin_mul_overflow(npy->count, npy->shape[i], &npy->count) || npy->count > INT64_MAX / npy->item_size)
            return refuse(why, why_size, "its shape is too large");
    if (empty)
        npy->count = 0;
    size_t wanted = (size_t)npy->count * (size_t)npy->item_size;
    if (left != wanted)
        return refuse(why, why_size, "its shape and type ask for %zu bytes of elements and it has %zu", wanted, left);
    npy->data = at + start + length;
    return true;
}

bool npy_read(const char *path, struct npy *npy, unsigned char **bytes, char *why, size_t why_size)
{
    unsigned char *all = NULL;
    size_t size = 0, room = 0;
    struct stat status;
    FILE *stream = regular_file_open(path, why, why_size);
    *bytes = NULL;
    if (!stream)
        return false;
    if (fstat(fileno(stream), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
        room = (size_t)status.st_size;
    /* One byte more than the size, so that the end of the file is seen without growing. */
    for (room = room + 1;; room = room * 2) {
        unsigned char *grown = realloc(all, room);
        if (!grown) {
            refuse(why, why_size, "%s is too large for memory", path);
            break;
        }
        all = grown;
        size += fread(all + size, 1, room - size, stream);
        if (size == room)
            continue;
        char reason[256] = "";
        bool read = !ferror(stream);
        if (!read)
            refuse(why, why_size, "%s cannot be read: %s", path, strerror(errno));
        else if (!(read = npy_parse(all, size, npy, reason, sizeof reason)))
            refuse(why, why_size, "%s: %s", path, reason);
        fclose(stream);
        if (read)
            *bytes = all;
        else
            free(all);
        return read;
    }
    fclose(stream);
    free(all);
    return false;
}

static bool write_all(int file, const void *data, size_t size)
{
    const unsigned char *at = data;
    while (size > 0) {
        ssize_t written = write(file, at, size < (1u << 30) ? size : (1u << 30));
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        size -= (size_t)written;
    }
    return true;
}

/* The whole header in version 1.0, padded so that the elements begin at a multiple of 64 bytes. Returns its length. */
static size_t make_header(char *header, size_t size, const char *descr, int rank, const int64_t *shape)
{
    int length = snprintf(header + 10, size - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < rank; i++)
        length += snprintf(header + 10 + length, size - 10 - (size_t)length, "%lld%s", (long long)shape[i],
                           i + 1 < rank ? ", "
                           : rank == 1  ? ","
                                        : "");
    length += snprintf(header + 10 + length, size - 10 - (size_t)length, "), }");
    size_t total = ((size_t)length + 10 + 1 + 63) / 64 * 64;
    memset(header + 10 + length, ' ', total - 10 - (size_t)length);
    header[total - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((total - 10) & 0xff);
    header[9] = (char)((total - 10) >> 8);
    return total;
}

bool npy_write(const char *path, const char *descr, size_t item_size, int rank, const int64_t *shape, const void *data, bool *usage,
               char *why, size_t why_size)
{
    char header[512];
    struct stat status;
    bool exists = stat(path, &status) == 0;
    bool direct = exists && !S_ISREG(status.st_mode);
    char *place = exists && !direct ? realpath(path, NULL) : strdup(path);
    char *temporary = NULL;
    bool done = false;
    size_t count = 1;
    int file = -1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)shape[i];
    if (usage)
        *usage = true;
    if (!place || asprintf(&temporary, "%s.XXXXXX", place) < 0) {
        temporary = NULL;
        refuse(why, why_size, "%s cannot be written: %s", path, strerror(errno));
        goto out;
    }
    file = direct ? open(path, O_WRONLY) : mkstemp(temporary);
    if (file < 0) {
        refuse(why, why_size, "%s cannot be written: %s", path, strerror(errno));
        goto out;
    }
    if (usage)
        *usage = false;
    size_t length = make_header(header, sizeof header, descr, rank, shape);
    done = write_all(file, header, length) && write_all(file, data, count * item_size);
    if (done && !direct) {
        mode_t mask = umask(0);
        umask(mask);
        done = fchmod(file, exists ? status.st_mode & 07777 : 0666 & ~mask) == 0 && fsync(file) == 0;
    }
    if (close(file) != 0)
        done = false;
    if (done && !direct)
        done = rename(temporary, place) == 0;
    if (!done) {
        int error = errno;
        if (!direct)
            unlink(temporary);
        refuse(why, why_size, "%s could not be written: %s", path, strerror(error));
    }
out:
    free(place);
    free(temporary);
    return done;
}
