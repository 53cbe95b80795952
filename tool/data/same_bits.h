/*
 * same_bits.h - are two outputs the same to the bit, and if not, where; and what a sequence gives alone.
 */
#ifndef ATTEST_SAME_BITS_H
#define ATTEST_SAME_BITS_H

#include "inputs.h"

/* What was computed from what. */
struct computed {
    const struct inputs *inputs;
    const struct outputs *outputs;
};

/* Compares sequence `a_sequence` of one with sequence `b_sequence` of the other: rows and heads must be as many. If they differ,
 * `what` is the first place and both values. Elements that belong to no row are not looked at. */
bool same_sequence(struct computed a, int64_t a_sequence, struct computed b, int64_t b_sequence, char *what, size_t what_size);

/* All sequences of one problem. */
bool same_bits(struct computed a, struct computed b, char *what, size_t what_size);

/* Two runs into outputs that were full of a_byte and of b_byte: false if an element kept its byte in both, and was not written. */
bool all_written(struct computed a, int a_byte, struct computed b, int b_byte, char *what, size_t what_size);

/* The inputs of one sequence as a dense problem of its own: no packing, no pages, no lengths, no gaps. The library promises the
 * same bits for it. */
bool sequence_alone(const struct inputs *inputs, int64_t sequence, struct inputs *alone, char *why, size_t why_size);

#endif
