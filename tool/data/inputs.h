/*
 * inputs.h - the tensors of a problem: drawn from a seed or read from .npy files, and the outputs with guard bands round them.
 */
#ifndef ATTEST_INPUTS_H
#define ATTEST_INPUTS_H

#include "contents.h"
#include "layout.h"
#include "base/session.h"

/* One tensor: `at` is what the library gets; the extent of the problem lies round it, `bytes` from `base` on. */
struct buffer {
    unsigned char *base;
    size_t bytes;
    void *at;
    uint32_t dtype;
};

struct inputs {
    attest_problem problem;
    struct buffer q, k, v, bias, mask;
    float *slopes, *sinks;
    int64_t slope_count; /* numbers in slopes */
    int32_t *cu_q, *cu_kv, *lengths, *pages;
    int32_t *offsets, *starts, *rows; /* for each sequence: of its rows, its first key, how many rows it has */
    int64_t page_entries;
    attest_tensors tensors; /* all inputs; o and lse are NULL */
    struct layout layout;
};

/*
 * Draws all inputs, except those for which `files` has a name (may be NULL, else an array of FILE_COUNT names; see base/session.h).
 * Values depend on the seed and on (tensor, sequence, head, row, column) only, so the same seed gives the same numbers under any
 * strides, packing and paging. Every place that must not matter is NaN: gaps between strides, keys beyond a sequence's length,
 * keys that no row may see, unused slots and pages. On failure *code is an exit code and `why` a sentence.
 */
bool inputs_make(const attest_problem *problem, uint64_t seed, const char *const *files, struct inputs *inputs,
                 enum exit_code *code, char *why, size_t why_size);

/* The same with contents other than the usual (contents.h; NULL: the usual). */
bool inputs_make_with(const attest_problem *problem, uint64_t seed, const struct contents *contents, struct inputs *inputs,
                      enum exit_code *code, char *why, size_t why_size);
void inputs_free(struct inputs *inputs);

/* Every tensor that is the array `was` is `now` from here on. Whoever gives a copy of inputs another array says so by this: what runs has
 * the pointers of `tensors`. Nothing happens if one of them is NULL. */
void inputs_replace(struct inputs *inputs, const void *was, void *now);

/* A digest of all inputs, to see that a kernel left them alone. */
uint64_t inputs_digest(const struct inputs *inputs);
uint64_t digest_bytes(uint64_t digest, const void *data, size_t size);

/* Room for one tensor of the problem ('q' ...), filled with bytes 0xff, which are NaN in every type, and with `guard` bytes on
 * either side. False if there is no memory. */
bool buffer_make(struct buffer *buffer, const attest_problem *problem, char tensor, uint32_t dtype, size_t guard);
void buffer_free(struct buffer *buffer);

/* O and LSE of one run. */
struct outputs {
    struct buffer o, lse;
    unsigned char *o_owned, *lse_owned; /* one byte an element of the extent: 1 if the problem writes it */
    int64_t o_first, lse_first;
};

bool outputs_make(struct outputs *outputs, const struct inputs *inputs);
void outputs_free(struct outputs *outputs);
void outputs_poison(struct outputs *outputs);

/* False, with a sentence, if a byte outside the elements of O and LSE has changed since outputs_poison. */
bool outputs_intact(const struct outputs *outputs, char *why, size_t why_size);
bool outputs_equal(const struct outputs *a, const struct outputs *b);

/* The tensors of a run: the inputs, and these outputs. */
attest_tensors outputs_tensors(const struct inputs *inputs, const struct outputs *outputs);

#endif
