/*
 * decode_tile.h - attention for a few rows (Sq = 1 and the heads of one KV head) with the head dimension in vector lanes.
 *
 * Contract: at most DECODE_ROWS rows; everything else as in rows_tile.h. Included behind the vocabulary and DECODE_GROUP, the
 * number of rows that are multiplied with four keys at once.
 *
 * With few rows the work is to read K and V once at the speed of memory, so K and V are never copied: four keys at a time are
 * loaded, widened to float32 in registers and multiplied with all rows.
 *     for each block of DECODE_KEYS keys:
 *         s[row][key] = sum over lanes of q[row] * k[key]
 *         s = mask(modify(s));  m' = max(m, max s);  p = 2^(s - m');  l = l * 2^(m - m') + sum p
 *         o[row] = o[row] * 2^(m - m') + sum_keys p[row][key] * v[key]
 */
#ifndef ATTEST_DECODE_TILE_H
#define ATTEST_DECODE_TILE_H

#include "rows.h"

#include <math.h>
#include <string.h>

#define DECODE_INLINE static inline __attribute__((always_inline))

enum { DECODE_KEYS = 64 };
_Static_assert(SPLIT_KEYS % DECODE_KEYS == 0, "pieces of a split are whole blocks");

struct decode {
    const struct cpu_task *task;
    int64_t rows, dim_q, dim_o; /* dimensions filled up to whole vectors */
    bool natural;
    float *q;                   /* [rows][dim_q], scaled */
    float *o;                   /* [rows][dim_o] */
    struct row row[DECODE_ROWS];
    float m[DECODE_ROWS], l[DECODE_ROWS], decay[DECODE_ROWS];
    float s[DECODE_ROWS][DECODE_KEYS];
    bool live[DECODE_KEYS];
    const void *k[2][DECODE_KEYS], *v[DECODE_KEYS]; /* keys of this block and of the next, in turns; values of this block */
    int turn;
    float zero[DIM_MAX]; /* a row of V for keys that nobody sees: zeros in every dtype */
};

static int64_t decode_width(int64_t dim)
{
    return (dim + LANES - 1) / LANES * LANES;
}

static size_t decode_scratch_size(const attest_problem *p)
{
    return (sizeof(struct decode) + 63) / 64 * 64 + (size_t)(decode_width(p->dim) + decode_width(p->dim_v)) * DECODE_ROWS * sizeof(float);
}

/* LANES columns of four keys or values; the last ones of a row may be fewer. */
DECODE_INLINE void load4(vf lane[4], const void *const row[4], int64_t d, const uint32_t dtype)
{
#pragma GCC unroll 4
    for (int n = 0; n < 4; n++)
        lane[n] = vf_from(row[n], d, dtype);
}

DECODE_INLINE void load4_some(vf lane[4], const void *const row[4], int64_t d, const uint32_t dtype, int64_t count)
{
    for (int n = 0; n < 4; n++)
        lane[n] = vf_from_some(row[n], d, dtype, count);
}

DECODE_INLINE void dot_step(vf acc[DECODE_GROUP][4], const vf lane[4], const float *q, int64_t stride, const int rows)
{
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        vf row = vf_load(q + r * stride);
#pragma GCC unroll 4
        for (int n = 0; n < 4; n++)
            acc[r][n] = vf_fma(row, lane[n], acc[r][n]);
    }
}

/* Asks for the rows of four keys that will be needed a block later, so that memory works while the cores compute. */
DECODE_INLINE void prefetch4(const void *const row[4], size_t bytes)
{
    for (int n = 0; n < 4; n++)
        for (size_t at = 0; at < bytes; at += 64)
            __builtin_prefetch((const char *)row[n] + at, 0, 2);
}

/* Scores of four keys for `rows` rows from `first` on. */
DECODE_INLINE void decode_dot(struct decode *x, int64_t key, int64_t first, const int rows, const uint32_t dtype)
{
    int64_t dim = x->task->p->dim, d = 0;
    const float *q = x->q + first * x->dim_q;
    const void *const *k = x->k[x->turn] + key;
    vf acc[DECODE_GROUP][4], lane[4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int n = 0; n < 4; n++)
            acc[r][n] = vf_zero();
    for (; d + LANES <= dim; d += LANES) {
        load4(lane, k, d, dtype);
        dot_step(acc, lane, q + d, x->dim_q, rows);
    }
    if (d < dim) {
        load4_some(lane, k, d, dtype, dim - d);
        dot_step(acc, lane, q + d, x->dim_q, rows);
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
        vf_sum4(&x->s[first + r][key], acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
}

DECODE_INLINE void accumulate_step(float *o, int64_t stride, const vf lane[4], vf weight[DECODE_GROUP][4], const int rows)
{
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        vf sum = vf_load(o + r * stride);
#pragma GCC unroll 4
        for (int n = 0; n < 4; n++)
            sum = vf_fma(weight[r][n], lane[n], sum);
        vf_store(o + r * stride, sum);
    }
}

/* Values of four keys into the outputs of `rows` rows from `first` on. */
DECODE_INLINE void decode_accumulate(struct decode *x, int64_t key, int64_t first, const int rows, const uint32_t dtype)
{
    int64_t dim = x->task->p->dim_v, d = 0;
    float *o = x->o + first * x->dim_o;
    const void *const *v = x->v + key;
    vf weight[DECODE_GROUP][4], lane[4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int n = 0; n < 4; n++)
            weight[r][n] = vf_set1(x->s[first + r][key + n]);
    for (; d + LANES <= dim; d += LANES) {
        load4(lane, v, d, dtype);
        accumulate_step(o + d, x->dim_o, lane, weight, rows);
    }
    if (d < dim) {
        load4_some(lane, v, d, dtype, dim - d);
        accumulate_step(o + d, x->dim_o, lane, weight, rows);
    }
}

/* Softcap, ALiBi, bias and mask for one row; `key` is the number of the first key and `padded` a multiple of LANES. */
static void decode_modify(struct decode *x, int64_t r, int64_t key, int64_t keys, int64_t padded)
{
    const attest_problem *p = x->task->p;
    const struct row *row = &x->row[r];
    float unit = x->natural ? 1.0f : (float)LOG2E;
    const vf invisible = vf_set1(-INFINITY);
    int32_t hi = key + keys < row->hi ? (int32_t)(key + keys) : row->hi;
    for (int64_t n = 0; n < padded; n += LANES) {
        vi j = vi_add(vi_iota(), vi_set1((int32_t)(key + n)));
        vf score = vf_load(&x->s[r][n]);
        vm gone = vm_or(vm_greater(vi_set1(row->lo), j), vm_greater(vi_add(j, vi_set1(1)), vi_set1(hi)));
        if (has(p, ATTEST_SOFTCAP))
            score = vf_mul(vf_set1(p->softcap * unit), vf_tanh(score));
        if (has(p, ATTEST_ALIBI))
            score = vf_sub(score, vf_mul(vf_set1(row->slope * unit), vf_abs(vf_from_int(vi_sub(vi_set1(row->place), j)))));
        if (has(p, ATTEST_BIAS)) {
            float bias[LANES];
            for (int i = 0; i < LANES; i++) {
                float one[LANES] = {-INFINITY};
                if (n + i < keys)
                    vf_store(one, vf_from_some(row->bias, (key + n + i) * p->stride_bias[3], p->dtype_bias, 1));
                bias[i] = one[0];
                x->live[n + i] = x->live[n + i] || bias[i] != -INFINITY;
            }
            gone = vm_or(gone, vm_equal(vf_load(bias), invisible));
            score = vf_add(score, vf_load(bias));
        }
        vf_store(&x->s[r][n], vf_select(gone, invisible, score));
    }
}

static void decode_softmax(struct decode *x, int64_t r, int64_t padded)
{
    float *s = x->s[r];
    vf unit = vf_set1(x->natural ? (float)LOG2E : 1.0f), top = vf_load(s), sum = vf_zero();
    for (int64_t n = LANES; n < padded; n += LANES)
        top = vf_max(top, vf_load(s + n));
    float before = x->m[r], block = vf_top(top), now = before > block ? before : block, shift = now == -INFINITY ? 0 : now, decay[LANES];
    vf_store(decay, vf_exp2(vf_mul(vf_set1(before - shift), unit)));
    for (int64_t n = 0; n < padded; n += LANES) {
        vf weight = vf_exp2(vf_mul(vf_sub(vf_load(s + n), vf_set1(shift)), unit));
        vf_store(s + n, weight);
        sum = vf_add(sum, weight);
    }
    x->m[r] = now;
    x->l[r] = x->l[r] * decay[0] + vf_sum(sum);
    for (int64_t d = 0; d < x->dim_o && decay[0] != 1; d += LANES)
        vf_store(x->o + r * x->dim_o + d, vf_mul(vf_load(x->o + r * x->dim_o + d), vf_set1(decay[0])));
}

/* Pointers to keys first .. end, filled up to a multiple of four with the last one, which the mask then hides. */
static void decode_pointers(const struct decode *x, bool is_v, int64_t first, int64_t end, const void **out)
{
    int64_t keys = end - first;
    key_pointers(x->task, is_v, first, keys, out);
    for (int64_t n = keys; n % 4; n++)
        out[n] = out[keys - 1];
}

/* Keys first .. end, at most DECODE_KEYS of them; the block behind them ends at next_end. */
DECODE_INLINE void decode_block(struct decode *x, int64_t first, int64_t end, int64_t next_end, const uint32_t dtype)
{
    const attest_problem *p = x->task->p;
    int64_t keys = end - first, whole = (keys + 3) / 4 * 4, padded = decode_width(whole), next = next_end - end;
    decode_pointers(x, true, first, end, x->v);
    decode_pointers(x, false, end, next_end, x->k[!x->turn]);
    for (int64_t key = 0; key < whole; key += 4) {
        int64_t r = 0;
        prefetch4(x->v + key, (size_t)p->dim_v * dtype_size(dtype));
        for (; r + DECODE_GROUP <= x->rows; r += DECODE_GROUP)
            decode_dot(x, key, r, DECODE_GROUP, dtype);
        for (; r < x->rows; r++)
            decode_dot(x, key, r, 1, dtype);
    }
    memset(x->live, !has(p, ATTEST_BIAS), sizeof x->live);
    for (int64_t r = 0; r < x->rows; r++) {
        for (int64_t n = whole; n < padded; n++)
            x->s[r][n] = 0;
        decode_modify(x, r, first, keys, padded);
        decode_softmax(x, r, padded);
    }
    for (int64_t n = 0; n < whole; n++)
        if (!x->live[n])
            x->v[n] = x->zero;
    for (int64_t key = 0; key < whole; key += 4) {
        int64_t r = 0;
        if (key < next)
            prefetch4(x->k[!x->turn] + key, (size_t)p->dim * dtype_size(dtype));
        for (; r + DECODE_GROUP <= x->rows; r += DECODE_GROUP)
            decode_accumulate(x, key, r, DECODE_GROUP, dtype);
        for (; r < x->rows; r++)
            decode_accumulate(x, key, r, 1, dtype);
    }
    x->turn = !x->turn;
}

static void decode_begin(struct decode *x)
{
    const struct cpu_task *task = x->task;
    const attest_problem *p = task->p;
    bool sink = has(p, ATTEST_SINK) && task->key_begin == 0;
    float unit = x->natural ? 1.0f : (float)LOG2E;
    float scale = has(p, ATTEST_SOFTCAP) ? p->scale / p->softcap : x->natural ? p->scale : (float)(p->scale * LOG2E);
    memset(x->zero, 0, sizeof x->zero);
    memset(x->o, 0, (size_t)(x->rows * x->dim_o) * sizeof *x->o);
    for (int64_t r = 0; r < x->rows; r++) {
        x->row[r] = row_get(task, task->row_begin + r);
        x->m[r] = sink ? x->row[r].sink * unit : -INFINITY;
        x->l[r] = sink && x->row[r].sink != -INFINITY ? 1.0f : 0.0f;
        float *q = x->q + r * x->dim_q;
        row_to_float(q, x->row[r].q, p->dim, p->dtype);
        for (int64_t d = 0; d < x->dim_q; d += LANES)
            vf_store(q + d, vf_mul(vf_load(q + d), vf_set1(scale)));
    }
}

static void decode_end(struct decode *x)
{
    const attest_problem *p = x->task->p;
    for (int64_t r = 0; r < x->rows; r++) {
        float *o = x->o + r * x->dim_o, l = x->l[r];
        if (x->task->partial) {
            float *out = x->task->partial + r * (p->dim_v + PARTIAL_EXTRA);
            memcpy(out, o, (size_t)p->dim_v * sizeof *out);
            out[p->dim_v] = x->m[r];
            out[p->dim_v + 1] = l;
            continue;
        }
        for (int64_t d = 0; d < x->dim_o; d++)
            o[d] = l == 0 ? 0 : o[d] / l;
        row_from_float(x->row[r].o, o, p->dim_v, p->dtype_o);
        if (x->row[r].lse)
            *x->row[r].lse = lse_of(x->m[r], l, x->natural);
    }
}

/* Blocks end at multiples of DECODE_KEYS, so that the blocks of a sequence do not depend on where a task begins. */
static int64_t block_end(int64_t first, int64_t hi)
{
    int64_t end = (first / DECODE_KEYS + 1) * DECODE_KEYS;
    return end < hi ? end : hi;
}

static void decode_tile(const struct cpu_task *task, void *scratch)
{
    const attest_problem *p = task->p;
    struct decode *x = scratch;
    x->task = task;
    x->rows = task->row_end - task->row_begin;
    x->dim_q = decode_width(p->dim);
    x->dim_o = decode_width(p->dim_v);
    x->natural = scores_are_natural(p);
    x->q = (float *)((char *)scratch + (sizeof *x + 63) / 64 * 64);
    x->o = x->q + DECODE_ROWS * x->dim_q;
    decode_begin(x);
    int64_t lo = INT64_MAX, hi = 0;
    for (int64_t r = 0; r < x->rows; r++)
        if (x->row[r].lo < x->row[r].hi) {
            lo = x->row[r].lo < lo ? x->row[r].lo : lo;
            hi = x->row[r].hi > hi ? x->row[r].hi : hi;
        }
    x->turn = 0;
    int64_t end = lo < hi ? block_end(lo, hi) : hi;
    if (lo < hi)
        decode_pointers(x, false, lo, end, x->k[0]);
    for (int64_t first = lo; first < hi; first = end, end = block_end(end, hi)) {
        int64_t next_end = block_end(end, hi);
        if (p->dtype == ATTEST_F32)
            decode_block(x, first, end, next_end, ATTEST_F32);
        else if (p->dtype == ATTEST_F16)
            decode_block(x, first, end, next_end, ATTEST_F16);
        else
            decode_block(x, first, end, next_end, ATTEST_BF16);
    }
    decode_end(x);
}

#endif
