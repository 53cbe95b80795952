/*
 * same_bits.c - comparing outputs to the bit (see same_bits.h).
 */
#include "same_bits.h"

#include <stdio.h>
#include <string.h>

/* One row of O (`width` elements) or of LSE (one). */
static bool same_row(const void *a, const void *b, uint32_t dtype, int64_t width, int64_t *column)
{
    size_t size = element_size(dtype);
    if (memcmp(a, b, (size_t)width * size) == 0)
        return true;
    for (*column = 0; memcmp((const char *)a + *column * (int64_t)size, (const char *)b + *column * (int64_t)size, size) == 0;)
        ++*column;
    return false;
}

static const void *row_of(struct computed x, const struct buffer *buffer, const int64_t stride[3], int64_t b, int64_t h, int64_t i)
{
    int64_t at = layout_row_at(&x.inputs->layout, stride, b, h, i);
    return (const char *)buffer->at + at * (int64_t)element_size(buffer->dtype);
}

bool same_sequence(struct computed a, int64_t a_sequence, struct computed b, int64_t b_sequence, char *what, size_t what_size)
{
    const attest_problem *p = &a.inputs->problem, *q = &b.inputs->problem;
    for (int64_t h = 0; h < p->heads_q; h++) {
        for (int64_t i = 0; i < layout_rows(&a.inputs->layout, a_sequence); i++) {
            int64_t column = 0;
            const void *left = row_of(a, &a.outputs->o, p->stride_o, a_sequence, h, i);
            const void *right = row_of(b, &b.outputs->o, q->stride_o, b_sequence, h, i);
            uint32_t dtype = p->dtype_o;
            bool same = same_row(left, right, dtype, p->dim_v, &column), is_lse = false;
            if (same && p->flags & q->flags & ATTEST_LSE) {
                left = row_of(a, &a.outputs->lse, p->stride_lse, a_sequence, h, i);
                right = row_of(b, &b.outputs->lse, q->stride_lse, b_sequence, h, i);
                dtype = ATTEST_F32;
                is_lse = true;
                same = same_row(left, right, dtype, 1, &column);
            }
            if (same)
                continue;
            snprintf(what, what_size, "%s of sequence %lld, head %lld, row %lld, column %lld is %.9g and %.9g",
                     is_lse ? "LSE" : "O", (long long)a_sequence, (long long)h, (long long)i, (long long)column,
                     (double)element_load(left, dtype, column), (double)element_load(right, dtype, column));
            return false;
        }
    }
    return true;
}

bool same_bits(struct computed a, struct computed b, char *what, size_t what_size)
{
    for (int64_t sequence = 0; sequence < a.inputs->problem.batch; sequence++)
        if (!same_sequence(a, sequence, b, sequence, what, what_size))
            return false;
    return true;
}

/* The first element of a row that has `a_byte` in one and `b_byte` in the other, or `width`. */
static int64_t first_unwritten(const void *a, int a_byte, const void *b, int b_byte, uint32_t dtype, int64_t width)
{
    int64_t size = (int64_t)element_size(dtype), kept = 0;
    const unsigned char *left = a, *right = b;
    for (int64_t at = 0; at < width * size; at++) {
        kept = left[at] == a_byte && right[at] == b_byte ? kept + 1 : 0;
        if (at % size == size - 1) {
            if (kept >= size)
                return at / size;
            kept = 0;
        }
    }
    return width;
}

bool all_written(struct computed a, int a_byte, struct computed b, int b_byte, char *what, size_t what_size)
{
    const attest_problem *p = &a.inputs->problem;
    for (int64_t n = 0; n < p->batch; n++) {
        for (int64_t h = 0; h < p->heads_q; h++) {
            for (int64_t i = 0; i < layout_rows(&a.inputs->layout, n); i++) {
                int64_t column = first_unwritten(row_of(a, &a.outputs->o, p->stride_o, n, h, i), a_byte,
                                                 row_of(b, &b.outputs->o, p->stride_o, n, h, i), b_byte, p->dtype_o, p->dim_v);
                bool o = column == p->dim_v;
                bool lse = !(p->flags & ATTEST_LSE) ||
                           first_unwritten(row_of(a, &a.outputs->lse, p->stride_lse, n, h, i), a_byte,
                                           row_of(b, &b.outputs->lse, p->stride_lse, n, h, i), b_byte, ATTEST_F32, 1) == 1;
                if (o && lse)
                    continue;
                snprintf(what, what_size, "%s of sequence %lld, head %lld, row %lld, column %lld", o ? "LSE" : "O", (long long)n,
                         (long long)h, (long long)i, (long long)(o ? 0 : column));
                return false;
            }
        }
    }
    return true;
}

/* ---- a sequence alone ----------------------------------------------------------------------------------------------- */

static void copy_rows(const struct inputs *from, int64_t sequence, struct inputs *to)
{
    const attest_problem *p = &from->problem, *q = &to->problem;
    size_t size = element_size(p->dtype);
    for (int64_t h = 0; h < p->heads_q; h++)
        for (int64_t i = 0; i < q->seq_q; i++)
            memcpy((char *)to->q.at + layout_row_at(&to->layout, q->stride_q, 0, h, i) * (int64_t)size,
                   (char *)from->q.at + layout_row_at(&from->layout, p->stride_q, sequence, h, i) * (int64_t)size,
                   (size_t)p->dim * size);
}

static void copy_keys(const struct inputs *from, int64_t sequence, struct inputs *to)
{
    const attest_problem *p = &from->problem, *q = &to->problem;
    size_t size = element_size(p->dtype);
    for (int64_t h = 0; h < p->heads_kv; h++)
        for (int64_t j = 0; j < q->seq_kv; j++) {
            memcpy((char *)to->k.at + layout_key_at(&to->layout, q->stride_k, 0, h, j) * (int64_t)size,
                   (char *)from->k.at + layout_key_at(&from->layout, p->stride_k, sequence, h, j) * (int64_t)size,
                   (size_t)p->dim * size);
            memcpy((char *)to->v.at + layout_key_at(&to->layout, q->stride_v, 0, h, j) * (int64_t)size,
                   (char *)from->v.at + layout_key_at(&from->layout, p->stride_v, sequence, h, j) * (int64_t)size,
                   (size_t)p->dim_v * size);
        }
}

/* A bias or a mask, with its strides there and here. */
static void copy_pairs(const struct buffer *from, const int64_t p[4], int64_t sequence, struct inputs *alone, struct buffer *to,
                       const int64_t q[4])
{
    for (int64_t h = 0; h < alone->problem.heads_q; h++)
        for (int64_t i = 0; i < alone->problem.seq_q; i++)
            for (int64_t j = 0; j < alone->problem.seq_kv; j++)
                element_store(to->at, to->dtype, h * q[1] + i * q[2] + j * q[3],
                              element_load(from->at, to->dtype, sequence * p[0] + h * p[1] + i * p[2] + j * p[3]));
}

bool sequence_alone(const struct inputs *inputs, int64_t sequence, struct inputs *alone, char *why, size_t why_size)
{
    attest_problem problem = inputs->problem;
    enum exit_code code;
    problem.flags &= ~(ATTEST_VARLEN_Q | ATTEST_VARLEN_KV | ATTEST_KV_LENGTHS | ATTEST_Q_LENGTHS | ATTEST_PAGED);
    problem.batch = 1;
    problem.seq_q = layout_rows(&inputs->layout, sequence);
    problem.seq_kv = layout_keys(&inputs->layout, sequence);
    problem.total_q = problem.total_kv = problem.page_size = problem.page_count = 0;
    attest_problem_pack(&problem);
    if (!inputs_make(&problem, 1, NULL, alone, &code, why, why_size))
        return false;
    copy_rows(inputs, sequence, alone);
    copy_keys(inputs, sequence, alone);
    if (problem.flags & ATTEST_BIAS)
        copy_pairs(&inputs->bias, inputs->problem.stride_bias, sequence, alone, &alone->bias, problem.stride_bias);
    if (problem.flags & ATTEST_MASK)
        copy_pairs(&inputs->mask, inputs->problem.stride_mask, sequence, alone, &alone->mask, problem.stride_mask);
    if (alone->offsets)
        alone->offsets[0] = inputs->offsets[sequence];
    if (alone->starts)
        alone->starts[0] = inputs->starts[sequence];
    size_t heads = (size_t)problem.heads_q * sizeof(float);
    if (alone->slopes)
        memcpy(alone->slopes, inputs->tensors.alibi_slopes + sequence * inputs->problem.stride_alibi_slopes, heads);
    if (alone->sinks)
        memcpy(alone->sinks, inputs->sinks, heads);
    return true;
}
