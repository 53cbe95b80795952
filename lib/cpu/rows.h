/*
 * rows.h - where the rows and keys of a task lie, and which keys each row may see. Shared by all CPU kernels; no vectors here.
 */
#ifndef ATTEST_ROWS_H
#define ATTEST_ROWS_H

#include "cpu.h"

#include <math.h>

/* One row of a task. */
struct row {
    const void *q;
    const void *bias; /* element of key 0, or NULL */
    void *o;
    float *lse;     /* or NULL */
    int32_t lo, hi; /* visible keys: lo <= j < hi, by position; lo == hi == 0 if none */
    int32_t place;  /* SEMANTICS 3 */
    float slope, sink;
};

static inline const void *element(const void *base, int64_t at, uint32_t dtype)
{
    return (const char *)base + at * (int64_t)dtype_size(dtype);
}

static inline int32_t clamp_to(int64_t x, int64_t low, int64_t high)
{
    return (int32_t)(x < low ? low : x > high ? high : x);
}

/* SEMANTICS 3: the place of query row i among the keys. */
static inline int64_t place_of(const struct cpu_task *task, int64_t i)
{
    return has(task->p, ATTEST_BOTTOM_RIGHT) ? i + task->seq.kv_len - task->seq.q_len : i;
}

/* Keys lo <= j < hi of the sequence are those that masks by position leave to query row i; none if lo >= hi. */
static inline void visible_keys(const struct cpu_task *task, int64_t i, int64_t *lo, int64_t *hi)
{
    const attest_problem *p = task->p;
    int64_t place = place_of(task, i);
    *lo = 0;
    *hi = task->seq.kv_len;
    if (has(p, ATTEST_CAUSAL) && place + 1 < *hi)
        *hi = place + 1;
    if (has(p, ATTEST_WINDOW_RIGHT) && p->window_right < INT32_MAX && place + p->window_right + 1 < *hi)
        *hi = place + p->window_right + 1;
    if (has(p, ATTEST_WINDOW_LEFT) && p->window_left < INT64_MAX / 2 && place - p->window_left > *lo)
        *lo = place - p->window_left;
}

/* Row r of KV head hkv, see struct cpu_task. */
static inline struct row row_get(const struct cpu_task *task, int64_t r)
{
    const attest_problem *p = task->p;
    const attest_tensors *t = task->t;
    int64_t group = p->heads_q / p->heads_kv, i = r / group, h = task->hkv * group + r % group;
    int64_t b = has(p, ATTEST_VARLEN_Q) ? 0 : task->b, packed = task->seq.q_row + i;
    struct row row = {
        .q = element(t->q, b * p->stride_q[0] + h * p->stride_q[1] + packed * p->stride_q[2], p->dtype),
        .o = (char *)t->o + (b * p->stride_o[0] + h * p->stride_o[1] + packed * p->stride_o[2]) * (int64_t)dtype_size(p->dtype_o),
    };
    if (has(p, ATTEST_LSE))
        row.lse = t->lse + b * p->stride_lse[0] + h * p->stride_lse[1] + packed * p->stride_lse[2];
    if (has(p, ATTEST_BIAS))
        row.bias = element(t->bias, task->b * p->stride_bias[0] + h * p->stride_bias[1] + i * p->stride_bias[2], p->dtype_bias);
    if (has(p, ATTEST_ALIBI))
        row.slope = t->alibi_slopes[h];
    if (has(p, ATTEST_SINK))
        row.sink = t->sinks[h];

    int64_t lo, hi;
    visible_keys(task, i, &lo, &hi);
    row.place = clamp_to(place_of(task, i), INT32_MIN, INT32_MAX);
    row.lo = clamp_to(lo, task->key_begin, task->key_end);
    row.hi = clamp_to(hi, task->key_begin, task->key_end);
    if (row.lo >= row.hi)
        row.lo = row.hi = 0;
    return row;
}

/* How a row ends: O is its unnormalised sum times `factor`. */
struct ending {
    float factor, lse;
};

/* `m` is the largest score in natural units and `l` the sum of exp(score - m). The sink joins here, in double, where it is just one
 * more term of the sum. */
static inline struct ending row_ending(const attest_problem *p, double m, float l, float sink)
{
    if (!has(p, ATTEST_SINK))
        return l == 0 ? (struct ending){0, -INFINITY} : (struct ending){(float)(1 / (double)l), (float)(m + log((double)l))};
    if (l == 0)
        return (struct ending){0, sink};
    double top = m > (double)sink ? m : (double)sink, share = exp(m - top), sum = l * share + exp((double)sink - top);
    return (struct ending){(float)(share / sum), (float)(top + log(sum))};
}

/* Pointers to keys first .. first + count of K or V. */
static inline void key_pointers(const struct cpu_task *task, bool is_v, int64_t first, int64_t count, const void **out)
{
    const attest_problem *p = task->p;
    const int64_t *stride = is_v ? p->stride_v : p->stride_k;
    const void *base = element(is_v ? task->t->v : task->t->k, task->hkv * stride[1], p->dtype);
    int64_t step = stride[2];
    if (!has(p, ATTEST_PAGED)) {
        int64_t at = (has(p, ATTEST_VARLEN_KV) ? 0 : task->b * stride[0]) + (task->seq.kv_row + first) * step;
        for (int64_t n = 0; n < count; n++, at += step)
            out[n] = element(base, at, p->dtype);
        return;
    }
    const int32_t *table = task->t->page_table + task->b * p->stride_page_table;
    int64_t page = first / p->page_size, slot = first % p->page_size;
    for (int64_t n = 0; n < count; n++) {
        out[n] = element(base, table[page] * stride[0] + slot * step, p->dtype);
        if (++slot == p->page_size) {
            slot = 0;
            page++;
        }
    }
}

#endif
