/*
 * decode_tile.h - attention for a few rows (Sq = 1 and the heads of one KV head) with the head dimension in vector lanes.
 *
 * Contract: at most DECODE_ROWS rows; everything else as in rows_tile.h. Included behind the vocabulary and DECODE_GROUP, the
 * number of rows whose outputs for a slice of columns fit the registers. A kernel may define DECODE_SLICE, the vectors of a slice, and
 * DECODE_MATRIX, a header with the two products for the problems that it takes.
 *
 * With few rows the work is to read K and V once at the speed of memory, so K and V are never copied: each key is loaded, widened
 * to float32 in registers and multiplied with all rows. Blocks are long, so that memory delivers one long stream of keys and then
 * one of values; the softmax between them is a short pause. For each block of DECODE_KEYS keys:
 *     s[row][key] = sum over lanes of q[row] * k[key]
 *     s = mask(modify(s));  m' = max(m, max s);  p = 2^(s - m');  l = l * 2^(m - m') + sum p
 *     o[row] = o[row] * 2^(m - m') + sum_keys p[row][key] * v[key]
 */
#ifndef ATTEST_DECODE_TILE_H
#define ATTEST_DECODE_TILE_H

#include <math.h>
#include <string.h>

#define DECODE_INLINE static inline __attribute__((always_inline))

#ifndef DECODE_SLICE
#define DECODE_SLICE 8
#endif
/* Keys of a block; keys whose values are summed up at a time; how many keys ahead memory is asked for. */
enum { DECODE_KEYS = SPLIT_KEYS, VALUE_KEYS = 16, AHEAD = 32 };
/* A kernel may define FAR_VALUE_KEYS: VALUE_KEYS for K and V of more bytes than caches hold, which come from memory. Values are read by
 * one group of rows after the other. If the first asks for all that is to come and the next only reads what is there, memory waits by
 * turns; so there the first two groups ask for half each, in the order of memory, and take turns more often. That costs loads and
 * stores of the sums, which would show where nothing is waited for. The bits are the same. */
enum { FAR_BYTES = 24 << 20 };
_Static_assert(DECODE_KEYS % LANES == 0, "scores of a block are whole vectors");
_Static_assert(SPLIT_KEYS % DECODE_KEYS == 0, "pieces of a split are whole blocks");

struct decode {
    const attest_task *task;
    int64_t rows, dim_q, dim_o; /* dimensions filled up to whole vectors */
    bool natural;
    float *q; /* [rows][dim_q], scaled */
    float *o; /* [rows][dim_o] */
    attest_row row[DECODE_ROWS];
    float m[DECODE_ROWS], l[DECODE_ROWS];
    float s[DECODE_ROWS][DECODE_KEYS];
    bool live[DECODE_KEYS];
};

/* Rows of K or V that lie at equal distances in memory. */
struct stream {
    const char *first;
    int64_t step; /* bytes */
};

static struct stream stream_get(const attest_task *task, bool is_v, int64_t key)
{
    struct stream s;
    attest_key_pointers(task, is_v, key, 1, (const void **)&s.first);
    s.step = (is_v ? task->problem->stride_v : task->problem->stride_k)[2] * (int64_t)dtype_size(task->problem->dtype);
    return s;
}

/* The keys from `first` on that lie at equal distances in memory: all, or those of one page. */
static int64_t run_end(const struct decode *x, int64_t first, int64_t end)
{
    const attest_problem *p = x->task->problem;
    int64_t page_end = has(p, ATTEST_PAGED) ? (first / p->page_size + 1) * p->page_size : end;
    return page_end < end ? page_end : end;
}

static int64_t decode_width(int64_t dim)
{
    return (dim + LANES - 1) / LANES * LANES;
}

#ifdef DECODE_MATRIX
#include DECODE_MATRIX
enum { MATRIX_BYTES = sizeof(struct matrix) };
#else
enum { MATRIX_BYTES = 0 };
#define matrix_takes(p)              false
#define matrix_begin(x)              (void)0
#define matrix_dots(x, first, end)   (void)0
#define matrix_values(x, first, end) (void)0
#define matrix_end()                 (void)0
#endif

static size_t decode_scratch_size(const attest_problem *p)
{
    return (sizeof(struct decode) + 63) / 64 * 64 +
           (size_t)(decode_width(p->dim) + decode_width(p->dim_v)) * DECODE_ROWS * sizeof(float) + MATRIX_BYTES;
}

/* Asks for `bytes` of a key, to come as far as the second-level cache: the first is needed for what is being computed. */
DECODE_INLINE void fetch(const char *key, int64_t bytes)
{
    for (int64_t n = 0; n < bytes; n += 64)
        __builtin_prefetch(key + n, 0, 2);
}

/* s[row][key] for `rows` rows (1, 2 or 4) of q, which lie ldq apart. Keys are taken strictly one by one: where they follow each
 * other in memory the hardware sees the stream and runs ahead of it. Asking for each key AHEAD of time keeps it going. */
DECODE_INLINE void decode_dots(float s[][DECODE_KEYS], const float *q, int64_t ldq, struct stream k, int64_t keys, int64_t dim,
                               const int rows, const uint32_t dtype)
{
    for (int64_t key = 0; key < keys; key++) {
        const char *row = k.first + key * k.step;
        vf acc[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
        float sum[4];
        int64_t d = 0;
        fetch(row + AHEAD * k.step, dim * (int64_t)dtype_size(dtype));
        for (; d + DECODE_SLICE * LANES <= dim; d += DECODE_SLICE * LANES)
#pragma GCC unroll 8
            for (int n = 0; n < DECODE_SLICE; n++) {
                vf lane = vf_from(row, d + n * LANES, dtype);
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++)
                    acc[r] = vf_fma(vf_load(q + r * ldq + d + n * LANES), lane, acc[r]);
            }
        for (; d + LANES <= dim; d += LANES) {
            vf lane = vf_from(row, d, dtype);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
                acc[r] = vf_fma(vf_load(q + r * ldq + d), lane, acc[r]);
        }
        if (d < dim) {
            vf lane = vf_from_some(row, d, dtype, dim - d);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
                acc[r] = vf_fma(vf_load(q + r * ldq + d), lane, acc[r]);
        }
        vf_sum4(sum, acc[0], acc[1], acc[2], acc[3]);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            s[r][key] = sum[r];
    }
}

/* Adds to o [rows][ldo], of which it takes `vecs` vectors of columns, the same columns of v weighted by s[row][key]. With `some`
 * below LANES there is one vector, and only so many of its columns exist. With `ahead` it asks for part `part` of `parts` of as many values
 * to come, all parts one after the other in the order of memory. */
DECODE_INLINE void accumulate_slice(float *o, int64_t ldo, float s[][DECODE_KEYS], struct stream v, int64_t keys, int64_t d,
                                    int64_t some, const int rows, const int vecs, const bool ahead, const int part, const int parts,
                                    const uint32_t dtype)
{
    vf acc[DECODE_GROUP][DECODE_SLICE];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int n = 0; n < vecs; n++)
            acc[r][n] = vf_load(o + r * ldo + d + n * LANES);
    for (int64_t key = 0; key < keys; key++) {
        vf lane[DECODE_SLICE];
        const char *row = v.first + key * v.step;
        if (ahead) {
            const int64_t bytes = vecs * LANES * (int64_t)dtype_size(dtype) / parts, turn = part * keys + key;
            const char *to = parts == 1 ? row : v.first + turn / parts * v.step + turn % parts * bytes;
            fetch(to + AHEAD * v.step + d * (int64_t)dtype_size(dtype), bytes);
        }
#pragma GCC unroll 8
        for (int n = 0; n < vecs; n++)
            lane[n] = some < LANES ? vf_from_some(row, d, dtype, some) : vf_from(row, d + n * LANES, dtype);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            vf weight = vf_set1(s[r][key]);
#pragma GCC unroll 8
            for (int n = 0; n < vecs; n++)
                acc[r][n] = vf_fma(weight, lane[n], acc[r][n]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int n = 0; n < vecs; n++)
            vf_store(o + r * ldo + d + n * LANES, acc[r][n]);
}

/* All columns for `rows` rows. */
DECODE_INLINE void decode_accumulate(float *o, int64_t ldo, float s[][DECODE_KEYS], struct stream v, int64_t keys, int64_t dim,
                                     const int rows, const bool ahead, const int part, const int parts, const uint32_t dtype)
{
    int64_t d = 0;
    for (; d + DECODE_SLICE * LANES <= dim; d += DECODE_SLICE * LANES)
        accumulate_slice(o, ldo, s, v, keys, d, LANES, rows, DECODE_SLICE, ahead, part, parts, dtype);
    for (; d + LANES <= dim; d += LANES)
        accumulate_slice(o, ldo, s, v, keys, d, LANES, rows, 1, ahead, part, parts, dtype);
    if (d < dim)
        accumulate_slice(o, ldo, s, v, keys, d, dim - d, rows, 1, ahead, part, parts, dtype);
}

/* What can hide any key from any row. */
#define PICKING (ATTEST_BIAS | ATTEST_MASK)

/* Softcap, ALiBi, bias and masks for one row; `key` is the number of the first key and `padded` a multiple of LANES. */
static void decode_modify(struct decode *x, int64_t r, int64_t key, int64_t keys, int64_t padded)
{
    const attest_problem *p = x->task->problem;
    const attest_row *row = &x->row[r];
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
        if (has(p, PICKING)) {
            float bias[LANES];
            for (int i = 0; i < LANES; i++) {
                const int64_t one_key = key + n + i;
                float one[LANES] = {-INFINITY};
                /* A key that the row cannot see by its place is not live for it, whatever its bias. */
                const bool seen = one_key >= row->lo && one_key < hi && (!row->mask || row->mask[one_key * p->stride_mask[3]]);
                if (seen && row->bias)
                    vf_store(one, vf_from_some(row->bias, one_key * p->stride_bias[3], p->dtype_bias, 1));
                else if (seen)
                    one[0] = 0;
                bias[i] = one[0];
                x->live[n + i] = x->live[n + i] || bias[i] != -INFINITY;
            }
            gone = vm_or(gone, vm_equal(vf_load(bias), invisible));
            score = vf_add(score, vf_load(bias));
        }
        vf_store(&x->s[r][n], vf_select(gone, invisible, score));
    }
}

/* Whether that leaves the scores of keys first .. end as they are: the row sees all of them, and they are whole vectors. */
static bool is_plain(const struct decode *x, int64_t r, int64_t first, int64_t end)
{
    return !(x->task->problem->flags & (ATTEST_SOFTCAP | ATTEST_ALIBI | PICKING)) && (end - first) % LANES == 0 &&
           x->row[r].lo <= first && end <= x->row[r].hi;
}

static void decode_softmax(struct decode *x, int64_t r, int64_t padded)
{
    float *s = x->s[r];
    vf unit = vf_set1(x->natural ? (float)LOG2E : 1.0f), top = vf_load(s), sum = vf_zero();
    for (int64_t n = LANES; n < padded; n += LANES)
        top = vf_max(top, vf_load(s + n));
    float before = x->m[r], block = vf_top(top), now = before > block ? before : block, shift = now == -INFINITY ? 0 : now,
          decay[LANES];
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

/* Scores of keys first .. end, which are key `at` and following of the block, for all rows. */
DECODE_INLINE void dots_of(struct decode *x, int64_t at, int64_t first, int64_t end, const uint32_t dtype)
{
    const attest_problem *p = x->task->problem;
    struct stream k = stream_get(x->task, false, first);
    int64_t r = 0;
    for (; r + 4 <= x->rows; r += 4)
        decode_dots((void *)&x->s[r][at], x->q + r * x->dim_q, x->dim_q, k, end - first, p->dim, 4, dtype);
    for (; r + 2 <= x->rows; r += 2)
        decode_dots((void *)&x->s[r][at], x->q + r * x->dim_q, x->dim_q, k, end - first, p->dim, 2, dtype);
    for (; r < x->rows; r++)
        decode_dots((void *)&x->s[r][at], x->q + r * x->dim_q, x->dim_q, k, end - first, p->dim, 1, dtype);
}

#ifdef FAR_VALUE_KEYS
static bool is_far(const struct decode *x, const uint32_t dtype)
{
    const attest_problem *p = x->task->problem;
    double keys = (double)p->batch * (double)p->heads_kv * (double)p->seq_kv;
    return dtype == ATTEST_F32 && x->rows >= 2 * DECODE_GROUP && p->dim_v >= DECODE_SLICE * LANES &&
           keys * (double)((p->dim + p->dim_v) * (int64_t)dtype_size(dtype)) > FAR_BYTES;
}
#else
enum { FAR_VALUE_KEYS = VALUE_KEYS };
#define is_far(x, dtype) 0
#endif

/* The same for values, a few at a time, so that those read for the first rows are in the first-level cache for the others. The first
 * rows ask for what all rows will read. */
DECODE_INLINE void values_of(struct decode *x, int64_t at, int64_t first, int64_t end, const uint32_t dtype)
{
    const attest_problem *p = x->task->problem;
    struct stream v = stream_get(x->task, true, first);
    const bool far = is_far(x, dtype);
    const int64_t most = far ? FAR_VALUE_KEYS : VALUE_KEYS;
    for (int64_t n = 0, count; n < end - first; n += count) {
        struct stream few = {v.first + n * v.step, v.step};
        count = end - first - n < most ? end - first - n : most;
        int64_t r = 0;
        if (far) {
            decode_accumulate(x->o, x->dim_o, (void *)&x->s[0][at + n], few, count, p->dim_v, DECODE_GROUP, true, 0, 2, dtype);
            r = DECODE_GROUP;
            decode_accumulate(x->o + r * x->dim_o, x->dim_o, (void *)&x->s[r][at + n], few, count, p->dim_v, DECODE_GROUP, true, 1,
                              2, dtype);
            r = 2 * DECODE_GROUP;
        } else if (x->rows >= DECODE_GROUP) {
            decode_accumulate(x->o, x->dim_o, (void *)&x->s[0][at + n], few, count, p->dim_v, DECODE_GROUP, true, 0, 1, dtype);
            r = DECODE_GROUP;
        }
        for (; r + DECODE_GROUP <= x->rows; r += DECODE_GROUP)
            decode_accumulate(x->o + r * x->dim_o, x->dim_o, (void *)&x->s[r][at + n], few, count, p->dim_v, DECODE_GROUP, false, 0,
                              1, dtype);
        for (; DECODE_GROUP > 2 && r + 2 <= x->rows; r += 2)
            decode_accumulate(x->o + r * x->dim_o, x->dim_o, (void *)&x->s[r][at + n], few, count, p->dim_v, 2, r == 0, 0, 1,
                              dtype);
        for (; DECODE_GROUP > 1 && r < x->rows; r++)
            decode_accumulate(x->o + r * x->dim_o, x->dim_o, (void *)&x->s[r][at + n], few, count, p->dim_v, 1, r == 0, 0, 1,
                              dtype);
    }
}

/* Keys first .. end, at most DECODE_KEYS of them. */
DECODE_INLINE void decode_block(struct decode *x, int64_t first, int64_t end, const uint32_t dtype)
{
    const attest_problem *p = x->task->problem;
    int64_t keys = end - first, padded = decode_width(keys);
    const bool matrix = matrix_takes(p);
    if (matrix)
        matrix_dots(x, first, end);
    for (int64_t j = first, to; j < end && !matrix; j = to) {
        to = run_end(x, j, end);
        dots_of(x, j - first, j, to, dtype);
    }
    memset(x->live, !has(p, PICKING), sizeof x->live);
    for (int64_t r = 0; r < x->rows; r++) {
        for (int64_t n = keys; n < padded; n++) /* hidden by the mask */
            x->s[r][n] = 0;
        if (!matrix || !is_plain(x, r, first, end))
            decode_modify(x, r, first, keys, padded);
        decode_softmax(x, r, padded);
    }
    if (matrix)
        matrix_values(x, first, end);
    for (int64_t j = first, to; j < end && !matrix; j = to) {
        to = run_end(x, j, end);
        if (!has(p, PICKING)) {
            values_of(x, j - first, j, to, dtype);
            continue;
        }
        /* A key that is hidden from all rows must not touch the result even if its value is NaN: stretches of the others. */
        for (int64_t n = j, stop; n < to; n = stop) {
            for (stop = n + 1; stop < to && x->live[stop - first] == x->live[n - first]; stop++)
                ;
            if (x->live[n - first])
                values_of(x, n - first, n, stop, dtype);
        }
    }
}

static void decode_begin(struct decode *x)
{
    const attest_task *task = x->task;
    const attest_problem *p = task->problem;
    float scale = score_scale(p);
    memset(x->o, 0, (size_t)(x->rows * x->dim_o) * sizeof *x->o);
    for (int64_t r = 0; r < x->rows; r++) {
        x->row[r] = attest_row_get(task, task->row_begin + r);
        x->m[r] = -INFINITY;
        x->l[r] = 0;
        float *q = x->q + r * x->dim_q;
        row_to_float(q, x->row[r].q, p->dim, p->dtype);
        for (int64_t d = 0; d < x->dim_q; d += LANES)
            vf_store(q + d, vf_mul(vf_load(q + d), vf_set1(scale)));
    }
}

static void decode_end(struct decode *x)
{
    const attest_problem *p = x->task->problem;
    for (int64_t r = 0; r < x->rows; r++) {
        float *o = x->o + r * x->dim_o;
        double m = (double)x->m[r] / (x->natural ? 1 : LOG2E);
        if (x->task->partial) {
            float *out = x->task->partial + r * (p->dim_v + ATTEST_PARTIAL_EXTRA);
            memcpy(out, o, (size_t)p->dim_v * sizeof *out);
            out[p->dim_v] = (float)m;
            out[p->dim_v + 1] = x->l[r];
            continue;
        }
        attest_ending ending = attest_row_ending(p, m, x->l[r], x->row[r].sink);
        for (int64_t d = 0; d < x->dim_o; d++)
            o[d] = x->l[r] == 0 ? 0 : o[d] * ending.factor;
        row_from_float(x->row[r].o, o, p->dim_v, p->dtype_o);
        if (x->row[r].lse)
            *x->row[r].lse = ending.lse;
    }
}

static void decode_tile(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    struct decode *x = scratch;
    x->task = task;
    x->rows = task->row_end - task->row_begin;
    x->dim_q = decode_width(p->dim);
    x->dim_o = decode_width(p->dim_v);
    x->natural = scores_are_natural(p);
    x->q = (float *)((char *)scratch + (sizeof *x + 63) / 64 * 64);
    x->o = x->q + DECODE_ROWS * x->dim_q;
    decode_begin(x);
    if (matrix_takes(p))
        matrix_begin(x);
    int64_t lo = INT64_MAX, hi = 0;
    for (int64_t r = 0; r < x->rows; r++)
        if (x->row[r].lo < x->row[r].hi) {
            lo = x->row[r].lo < lo ? x->row[r].lo : lo;
            hi = x->row[r].hi > hi ? x->row[r].hi : hi;
        }
    for (int64_t first = lo, end; first < hi; first = end) {
        end = (first / DECODE_KEYS + 1) * DECODE_KEYS; /* so that blocks do not depend on where a task begins */
        if (end > hi)
            end = hi;
        if (p->dtype == ATTEST_F32)
            decode_block(x, first, end, ATTEST_F32);
        else if (p->dtype == ATTEST_F16)
            decode_block(x, first, end, ATTEST_F16);
        else
            decode_block(x, first, end, ATTEST_BF16);
    }
    if (matrix_takes(p))
        matrix_end();
    decode_end(x);
}

#endif
