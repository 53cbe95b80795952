/*
 * objects.h - files that are either there, whole and on the disk, or not there: a kill or a crash never leaves half of one. And
 * files whose name is the digest of their contents, <root>/objects/ab/cdef...
 *
 * What fails leaves its reason in errno.
 */
#ifndef ATTEST_OBJECTS_H
#define ATTEST_OBJECTS_H

#include "base/digest.h"

bool folder_make(const char *path);   /* with its parents; one that exists is fine */
void folder_remove(const char *path); /* with everything in it */

/* The whole file, with a zero byte after it; to be freed. NULL if it cannot be read. */
char *file_read(const char *path, size_t *size);

/* Copies its bytes into a file that is made, or emptied before. */
bool file_copy(const char *from, const char *to);

/* Replaces the file, or makes it. */
bool file_replace(const char *path, const void *data, size_t size);

/* Gives a file that is whole and on the disk another name, in the same folder, in one step. */
bool file_rename(const char *from, const char *to);

/* Copies the file at `path` into the objects of `root`, and writes its digest. */
bool object_keep(const char *root, const char *path, char digest[DIGEST_TEXT]);

/* Where an object is, or would be; to be freed. NULL if `digest` is none. */
char *object_path(const char *root, const char *digest);

/* A writer that is killed leaves a file .new-XXXXXX behind. Removes those of `folder` that are at least so old. */
void leavings_remove(const char *folder, int seconds);

#endif
