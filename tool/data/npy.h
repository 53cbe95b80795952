/*
 * npy.h - NumPy's array file format, versions 1.0, 2.0 and 3.0: what `attest run` reads and writes.
 *
 * npy_parse works on bytes in memory and uses nothing else of the program, so that a fuzzer can call it. It trusts nothing: sizes
 * are checked for overflow and against the bytes that are there. Python objects (which would have to be unpickled), structured
 * types and big-endian numbers are refused.
 */
#ifndef ATTEST_NPY_H
#define ATTEST_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPY_MAX_RANK 32

struct npy {
    char kind;     /* 'f' float, 'i' integer, 'u' unsigned, 'V' raw bytes, 'b' boolean, 'c' complex */
    int item_size; /* bytes of an element */
    bool fortran;  /* the first index runs fastest */
    int rank;
    int64_t shape[NPY_MAX_RANK];
    int64_t count;
    const unsigned char *data; /* count * item_size bytes inside the parsed bytes */
};

/* False with a sentence in `why` if the bytes are no array that can be read here. */
bool npy_parse(const void *bytes, size_t size, struct npy *npy, char *why, size_t why_size);

/* Reads a whole file and parses it. The caller frees *bytes, which npy->data points into. */
bool npy_read(const char *path, struct npy *npy, unsigned char **bytes, char *why, size_t why_size);

/* Writes an array in C order, `descr` such as "<f4". The file appears complete or not at all: it is written beside its place and
 * renamed. A path that exists and is no regular file, such as a pipe, is written directly. *usage (may be NULL) says whether the
 * path is to blame, rather than the disk. */
bool npy_write(const char *path, const char *descr, size_t item_size, int rank, const int64_t *shape, const void *data, bool *usage,
               char *why, size_t why_size);

/* Reading for inputs.c: an array of exactly this shape, converted. `name` is the tensor's name in errors. */
struct view;
bool npy_read_view(const char *path, const char *name, const struct view *view, uint32_t dtype, void *at, char *why,
                   size_t why_size);
bool npy_read_int32(const char *path, const char *name, int rank, const int64_t *shape, int32_t *to, char *why, size_t why_size);
bool npy_read_float(const char *path, const char *name, int rank, const int64_t *shape, float *to, char *why, size_t why_size);

#endif
