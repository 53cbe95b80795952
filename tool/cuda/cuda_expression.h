/*
 * cuda_expression.h - the small arithmetic of manifests: 4 * (tile_q * dim + up(tile_kv * dim, 128)).
 */
#ifndef ATTEST_CUDA_EXPRESSION_H
#define ATTEST_CUDA_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names an expression may use, with their values. */
struct cuda_name {
    const char *name;
    int64_t value;
};

/* Integers, + - * / % ( ), min(a, b), max(a, b), up(a, b), and names. False, with what is wrong, if it is no expression, if a name
 * is unknown, or if a result overflows. Any text will do: it recurses no deeper than it must and reads no further than the end. */
bool cuda_expression_value(const char *text, const struct cuda_name *names, int count, int64_t *value, char *why, size_t why_size);

#endif
