/*
 * outputs.c - O and LSE of a run, with guard bands, and a map of the elements that the problem writes: everything else in the
 * extent (gaps between strides, packed rows that no sequence owns) must stay as it was.
 */
#include "inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 4096

static unsigned char *make_map(const struct inputs *inputs, char tensor, const int64_t *stride, int64_t inner, int64_t *first)
{
    const attest_problem *problem = &inputs->problem;
    int64_t count = 0;
    if (attest_problem_extent(problem, tensor, first, &count) != ATTEST_OK)
        return NULL;
    unsigned char *map = calloc((size_t)count + 1, 1);
    if (!map)
        return NULL;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t h = 0; h < problem->heads_q; h++)
            for (int64_t i = 0; i < layout_rows(&inputs->layout, b); i++)
                memset(map + (layout_row_at(&inputs->layout, stride, b, h, i) - *first), 1, (size_t)inner);
    return map;
}

bool outputs_make(struct outputs *outputs, const struct inputs *inputs)
{
    const attest_problem *problem = &inputs->problem;
    *outputs = (struct outputs){0};
    bool made = buffer_make(&outputs->o, problem, 'o', problem->dtype_o, GUARD) &&
                (outputs->o_owned = make_map(inputs, 'o', problem->stride_o, problem->dim_v, &outputs->o_first));
    if (made && problem->flags & ATTEST_LSE)
        made = buffer_make(&outputs->lse, problem, 'l', ATTEST_F32, GUARD) &&
               (outputs->lse_owned = make_map(inputs, 'l', problem->stride_lse, 1, &outputs->lse_first));
    if (!made)
        outputs_free(outputs);
    return made;
}

void outputs_free(struct outputs *outputs)
{
    buffer_free(&outputs->o);
    buffer_free(&outputs->lse);
    free(outputs->o_owned);
    free(outputs->lse_owned);
    *outputs = (struct outputs){0};
}

void outputs_poison(struct outputs *outputs)
{
    memset(outputs->o.base, 0xff, outputs->o.bytes);
    if (outputs->lse.base)
        memset(outputs->lse.base, 0xff, outputs->lse.bytes);
}

/* The first of `count` bytes that is not 0xff, or `count`. */
static size_t first_changed(const unsigned char *bytes, size_t count)
{
    size_t at = 0;
    while (at < count && bytes[at] == 0xff)
        at++;
    return at;
}

static bool intact(const struct buffer *buffer, const unsigned char *owned, int64_t first, const char *name, char *why,
                   size_t why_size)
{
    size_t size = element_size(buffer->dtype), elements = (buffer->bytes - 2 * GUARD) / size;
    size_t at = first_changed(buffer->base, GUARD);
    if (at == GUARD) {
        size_t n = 0;
        while (n < elements && (owned[n] || first_changed(buffer->base + GUARD + n * size, size) == size))
            n++;
        at += n * size;
        at += n < elements ? first_changed(buffer->base + at, size) : first_changed(buffer->base + at, GUARD);
    }
    if (at == buffer->bytes)
        return true;
    bool guard = at < GUARD || at >= buffer->bytes - GUARD;
    int64_t element = (int64_t)((at + size * GUARD - GUARD) / size) - GUARD; /* rounded down, also before the first */
    snprintf(why, why_size, "wrote outside %s: a byte of element %lld changed, in %s", name, (long long)(element + first),
             guard ? "the guard band" : "a gap that belongs to no row");
    return false;
}

bool outputs_intact(const struct outputs *outputs, char *why, size_t why_size)
{
    return intact(&outputs->o, outputs->o_owned, outputs->o_first, "O", why, why_size) &&
           (!outputs->lse.base || intact(&outputs->lse, outputs->lse_owned, outputs->lse_first, "LSE", why, why_size));
}

bool outputs_equal(const struct outputs *a, const struct outputs *b)
{
    return memcmp(a->o.base, b->o.base, a->o.bytes) == 0 && (!a->lse.base || memcmp(a->lse.base, b->lse.base, a->lse.bytes) == 0);
}

attest_tensors outputs_tensors(const struct inputs *inputs, const struct outputs *outputs)
{
    attest_tensors tensors = inputs->tensors;
    tensors.o = outputs->o.at;
    tensors.lse = outputs->lse.at;
    return tensors;
}
