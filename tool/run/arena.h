/*
 * arena.h - the tensors of one slot of an executor, in memory that is shared with the worker.
 */
#ifndef ATTEST_ARENA_H
#define ATTEST_ARENA_H

#include "protocol.h"

struct arena {
    attest_problem problem;
    struct tensor_list list; /* of the problem */
    struct piece pieces[TENSORS_MOST];
    unsigned char *memory[2]; /* of the inputs, of the outputs */
    size_t size[2];
    int alike;                          /* bytes from the beginning of a page to every tensor; -1: each has a place of its own */
    int file[2];                        /* for the worker; -1 once they have been sent */
    unsigned char *owned[TENSORS_MOST]; /* of outputs: one byte an element of the extent, 1 if the problem writes it */
    int poison;                         /* byte that the outputs were filled with, between elements too */
    unsigned char band;                 /* byte that is round outputs */
    bool sealed;                        /* nobody but this process can ever write to the inputs */
    uint64_t digest;                    /* of the inputs, if they are not sealed */
};

/* Makes room for the tensors of a problem, with poisoned outputs (EXECUTOR_DRAWN) and inputs not filled in. With `aligned` they begin at
 * multiples of 64 bytes between bands. On failure, false and a sentence. */
bool arena_make(struct arena *arena, const struct inputs *inputs, enum guard guard, bool aligned, char *why, size_t why_size);
void arena_free(struct arena *arena);
bool arena_is_made(const struct arena *arena);

/* Whether it can be filled with these inputs: they are of its problem, and the same arrays are one (contents.def, shared). */
bool arena_suits(const struct arena *arena, const struct inputs *inputs);

/* Copies the inputs of the problem that the arena was made for. */
void arena_fill(struct arena *arena, const struct inputs *inputs);
void arena_poison(struct arena *arena, int byte); /* as executor_poison */

/* False, with a sentence, if anything but the elements of the outputs is not as it was. */
bool arena_intact(const struct arena *arena, char *why, size_t why_size);

/* The outputs. */
attest_tensors arena_outputs(const struct arena *arena);

/* Says in words where an address of the worker lies, if it is near one of these tensors: "byte 1 behind the end of K".
 * Returns the distance in bytes to the nearest tensor, 0 inside of one, or -1 if none is near. `input` says whether the tensor is
 * an input. */
int64_t arena_locate(const struct arena *arena, const uint64_t bases[TENSORS_MOST], uint64_t address, char *text, size_t size,
                     bool *input);

/* A file in memory of this size that cannot shrink or grow, mapped for reading and writing. If *read_only, the file is open for
 * reading only, and *read_only says whether nobody else can ever open or map it for writing. */
void *arena_share(size_t size, bool *read_only, int *file);

#endif
