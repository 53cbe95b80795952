/*
 * regular_file.h - opens files that a user named. A pipe, a device or a folder is refused at once: reading one may never end.
 */
#ifndef ATTEST_REGULAR_FILE_H
#define ATTEST_REGULAR_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A descriptor of the file for reading, or -1 with the reason: "pipe.c is not a regular file (it is a pipe)". Never waits. */
int regular_file_descriptor(const char *path, char *why, size_t why_size);

/* The same as a stream; NULL with the reason. */
FILE *regular_file_open(const char *path, char *why, size_t why_size);

/* All bytes of the file, and a 0 behind them; NULL with the reason, also if there are more than `most`. To be freed. */
char *regular_file_read(const char *path, size_t most, size_t *size, char *why, size_t why_size);

#endif
