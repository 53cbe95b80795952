/*
 * rows_tile.h - flash attention with the query rows in vector lanes: the prefill path of every CPU kernel but AMX.
 *
 * Contract: any problem (with PAIR 2: without a bias); any row count. Included once by each
 * kernel file, behind its vocabulary (vec_*.h, vec_math.h) and these:
 *     TILE_VECS, TILE_KEYS    vectors of rows and keys whose accumulators fit the registers together
 *     PAIR                    1: an operand is a float32. 2: it is a pair of bf16 that vf_step multiplies and adds in one instruction
 *     BLOCK_KEYS              keys of a block
 *     KEY_ALIGN               blocks of keys start and end at multiples of this; what is not a key is zero and masked
 *     K_UNITS                 words that qk_block takes from a key at a time
 *     ROWS_WANTED             rows of a tile, if there are enough of them
 *     K_IN_PLACE              if defined as 0: keys are always packed, and never used where they lie
 *     vf_step(a, b, c)        c + a * b, over the pair if PAIR is 2
 *     copy_row, interleave_rows, pair_exp2, pair_weights
 *                             if PAIR is 2: make pairs of two rows of V, and of the weights of two keys
 *
 * Algorithm, for a tile of rows and each block of BLOCK_KEYS keys:
 *     S^T = K Q^T         [keys][rows]     K as it lies in memory, Q transposed once per tile
 *     S^T = mask(modify(S^T))
 *     m'  = max(m, max_keys S^T)           vertical: a lane is a row, so nothing is ever reduced across lanes
 *     P^T = 2^(S^T - m'),  l = l * 2^(m - m') + sum_keys P^T
 *     O^T = O^T * 2^(m - m') + V^T P^T     [dim_v][rows]
 * and at the end O = transpose(O^T / l). Both products have the same inner loop: TILE_KEYS scalars of K (or V), each broadcast and
 * multiplied with TILE_VECS vectors of Q^T (or P^T); all accumulators stay in registers.
 *
 * A lane does the same operations in the same order whatever tile it is in: keys outside a row's mask only ever add an exact 0.
 * So results do not depend on how rows are cut into tiles, on the thread count, or on the rest of the batch.
 *
 * Scratch, one per thread (floats; R = tile rows in micro-tiles of MICRO_ROWS, U = words of a row, Dv padded):
 *     q [R / MICRO_ROWS][U][MICRO_ROWS]     o [R / MICRO_ROWS][Dv][MICRO_ROWS]    m, l [R]
 *     k [BLOCK_KEYS][U]                     v [Dv / TILE_KEYS][BLOCK_KEYS / PAIR][TILE_KEYS]
 *     s [BLOCK_KEYS][MICRO_ROWS]            rows: what attest_row_get says of each row
 */
#ifndef ATTEST_ROWS_TILE_H
#define ATTEST_ROWS_TILE_H

#include <math.h>
#include <string.h>

#ifndef K_IN_PLACE
#define K_IN_PLACE 1
#endif

enum { MICRO_ROWS = LANES * TILE_VECS, QK_STEP = TILE_KEYS > KEY_ALIGN ? TILE_KEYS : KEY_ALIGN };
_Static_assert(BLOCK_KEYS % KEY_ALIGN == 0 && BLOCK_KEYS % TILE_KEYS == 0 && LANES % TILE_KEYS == 0, "blocks are cut evenly");
_Static_assert(SPLIT_KEYS % BLOCK_KEYS == 0, "pieces of a split are whole blocks");

#define INLINE static inline __attribute__((always_inline))

static inline int64_t round_up(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

struct tile {
    const attest_task *task;
    int64_t rows, units, ldk, dim_o; /* units: words of a row that are multiplied; ldk: words from key to key */
    bool natural, modify;            /* scores in natural units; scores change between the products */
    bool quick;                      /* PAIR 1: unit is 1. PAIR 2: weights may be rough, because O is all that is seen of them */
    float unit_scale;                /* what a plain dot product is multiplied by to become a score */
    double m_unit;                   /* what m is multiplied by to be in natural units */
    float *q, *o, *m, *l, *k, *v, *s, *temp;
    const float *k_rows; /* the keys of the block, k_step words apart: packed in k, or where they lie */
    int64_t k_step;
    attest_row *row;
    int32_t *lo, *hi, *place; /* [rows up to whole micro-tiles] */
    float *slope;
    const void *key[BLOCK_KEYS];
};

/* Carves the scratch, or, with base NULL, only says how much there must be. */
static size_t tile_carve(struct tile *tile, const attest_problem *p, int64_t tile_rows, char *base)
{
    int64_t rows = round_up(tile_rows, MICRO_ROWS);
    tile->units = (p->dim + PAIR - 1) / PAIR;
    tile->ldk = round_up(tile->units, LANES);
    tile->dim_o = round_up(p->dim_v, LANES);
    const struct {
        void **at;
        int64_t bytes;
    } parts[] = {
        {(void **)&tile->q, rows * tile->ldk * 4},
        {(void **)&tile->o, rows * tile->dim_o * 4},
        {(void **)&tile->m, rows * 4},
        {(void **)&tile->l, rows * 4},
        {(void **)&tile->k, (BLOCK_KEYS + TILE_KEYS) * tile->ldk * 4},
        {(void **)&tile->v, BLOCK_KEYS * tile->dim_o * 4},
        {(void **)&tile->s, (BLOCK_KEYS + TILE_KEYS) * MICRO_ROWS * 4},
        {(void **)&tile->temp, LANES * (tile->ldk > tile->dim_o ? tile->ldk : tile->dim_o) * 4},
        {(void **)&tile->row, rows * (int64_t)sizeof(attest_row)},
        {(void **)&tile->lo, rows * 4},
        {(void **)&tile->hi, rows * 4},
        {(void **)&tile->place, rows * 4},
        {(void **)&tile->slope, rows * 4},
    };
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (base)
            *parts[i].at = base + used;
        used += (size_t)round_up(parts[i].bytes, 64);
    }
    return used;
}

/* ---- packing --------------------------------------------------------------------------------------------------------------- */

/* A row of Q, K or V as words, with zeros up to a whole vector. */
INLINE void row_words(float *out, const void *row, int64_t dim, uint32_t dtype)
{
#if PAIR == 2
    (void)dtype;
    copy_row(out, row, dim);
#else
    row_to_float(out, row, dim, dtype);
#endif
}

/* in [LANES][width] to out [width][MICRO_ROWS], one vector of columns. */
static void transpose_words(float *out, const float *in, int64_t width)
{
    for (int64_t u = 0; u < width; u += LANES) {
        vf block[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            block[i] = vf_load(in + i * width + u);
        vf_transpose(block);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            vf_store(out + (u + i) * MICRO_ROWS, block[i]);
    }
}

/* Q^T for all rows, with the scale folded in where the words are floats. Lanes that are no row get zeros and see no key. */
static void pack_q(struct tile *tile)
{
    const attest_problem *p = tile->task->problem;
    float fold = PAIR == 1 ? tile->unit_scale : 1;
    for (int64_t r = 0; r < round_up(tile->rows, LANES); r += LANES) {
        for (int i = 0; i < LANES; i++) {
            float *row = tile->temp + i * tile->ldk;
            if (r + i < tile->rows)
                row_words(row, tile->row[r + i].q, p->dim, p->dtype);
            else
                memset(row, 0, (size_t)tile->ldk * 4);
            for (int64_t u = 0; PAIR == 1 && u < tile->ldk; u += LANES)
                vf_store(row + u, vf_mul(vf_load(row + u), vf_set1(fold)));
        }
        transpose_words(tile->q + r / MICRO_ROWS * MICRO_ROWS * tile->ldk + r % MICRO_ROWS, tile->temp, tile->ldk);
    }
}

/* Keys first .. end are read; from .. to, which may be wider for alignment, are written, with zeros outside. */
struct span {
    int64_t from, to, first, end;
};

/* Keys can be used where they lie if they are words already, not much further apart than packed, and none of the rows that a
 * last, ragged step of qk_block reads is beyond the sequence. */
static bool k_in_place(const struct tile *tile, struct span span)
{
    const attest_problem *p = tile->task->problem;
    int64_t step = p->stride_k[2];
    return K_IN_PLACE && p->dtype == (PAIR == 1 ? ATTEST_F32 : ATTEST_BF16) && p->dim % (PAIR * K_UNITS) == 0 &&
           !has(p, ATTEST_PAGED) && step % PAIR == 0 && step >= p->dim && step <= 2 * p->dim + 64 && span.from >= span.first &&
           span.to + TILE_KEYS <= tile->task->kv_count && (uintptr_t)tile->key[0] % 4 == 0;
}

static void pack_k(struct tile *tile, struct span span)
{
    const attest_problem *p = tile->task->problem;
    attest_key_pointers(tile->task, false, span.first, span.end - span.first, tile->key);
    if (k_in_place(tile, span)) {
        tile->k_rows = tile->key[0];
        tile->k_step = p->stride_k[2] / PAIR;
        return;
    }
    tile->k_rows = tile->k;
    tile->k_step = tile->ldk;
    for (int64_t j = span.from; j < span.to; j++) {
        float *row = tile->k + (j - span.from) * tile->ldk;
        if (j >= span.first && j < span.end)
            row_words(row, tile->key[j - span.first], p->dim, p->dtype);
        else
            memset(row, 0, (size_t)tile->ldk * 4);
    }
}

#if PAIR == 2
/* V of a key that the mask hides from all rows is zeros: one key of a pair cannot be left out of the product, and it may be NaN. */
static void leave_hidden_out(struct tile *tile, struct span span)
{
    uint8_t live[BLOCK_KEYS] = {0};
    for (int64_t r = 0; r < tile->rows; r++)
        attest_mask_live(tile->task->problem, tile->row[r].mask, tile->lo[r], tile->hi[r], span.first, span.end - span.first, live);
    for (int64_t n = 0; n < span.end - span.first; n++)
        if (!live[n])
            tile->key[n] = NULL;
}
#endif

/* V in panels of TILE_KEYS columns, so that the product with P reads it front to back. */
static void pack_v(struct tile *tile, struct span span)
{
    const attest_problem *p = tile->task->problem;
    attest_key_pointers(tile->task, true, span.first, span.end - span.first, tile->key);
#if PAIR == 2
    if (has(p, ATTEST_MASK))
        leave_hidden_out(tile, span);
#endif
    for (int64_t j = span.from; j < span.to; j += PAIR) {
        float *row = tile->temp;
#if PAIR == 2
        interleave_rows(row, j >= span.first ? tile->key[j - span.first] : NULL,
                        j + 1 < span.end ? tile->key[j + 1 - span.first] : NULL, p->dim_v);
#else
        row_words(row, tile->key[j - span.first], p->dim_v, p->dtype);
#endif
        float *panel = tile->v + (j - span.from) / PAIR * TILE_KEYS;
        for (int64_t d = 0; d < tile->dim_o; d += TILE_KEYS)
            memcpy(panel + d * (BLOCK_KEYS / PAIR), row + d, TILE_KEYS * 4);
    }
}

/* ---- the two products ------------------------------------------------------------------------------------------------------ */

/* out [TILE_KEYS][MICRO_ROWS] = k [TILE_KEYS][ldk] times q [units][MICRO_ROWS]; top takes the maximum over these keys. */
INLINE void qk_micro(const float *q, const float *k, int64_t ldk, int64_t units, float *out, vf *top, const int vecs)
{
    vf acc[TILE_KEYS][TILE_VECS];
#pragma GCC unroll 16
    for (int key = 0; key < TILE_KEYS; key++)
#pragma GCC unroll 4
        for (int v = 0; v < vecs; v++)
            acc[key][v] = vf_zero();
    for (int64_t u = 0; u < units; u++) {
        vf lane[TILE_VECS];
#pragma GCC unroll 4
        for (int v = 0; v < vecs; v++)
            lane[v] = vf_load(q + u * MICRO_ROWS + v * LANES);
#pragma GCC unroll 16
        for (int key = 0; key < TILE_KEYS; key++) {
            vf scalar = vf_set1(k[key * ldk + u]);
#pragma GCC unroll 4
            for (int v = 0; v < vecs; v++)
                acc[key][v] = vf_step(scalar, lane[v], acc[key][v]);
        }
    }
#pragma GCC unroll 16
    for (int key = 0; key < TILE_KEYS; key++)
#pragma GCC unroll 4
        for (int v = 0; v < vecs; v++) {
            vf_store(out + key * MICRO_ROWS + v * LANES, acc[key][v]);
            top[v] = vf_max(top[v], acc[key][v]);
        }
}

/* S^T for keys first .. end of a block, and the maximum of each row over them. The last TILE_KEYS may run over the end: those are
 * not looked at. */
INLINE void qk_block(const struct tile *tile, const float *q, const float *k, int64_t first, int64_t end, vf *top, const int vecs)
{
    int64_t j = first;
    for (; j + TILE_KEYS <= end; j += TILE_KEYS)
        qk_micro(q, k + j * tile->k_step, tile->k_step, tile->units, tile->s + j * MICRO_ROWS, top, vecs);
    if (j < end) {
        vf ignored[TILE_VECS < 3 ? 3 : TILE_VECS] = {vf_zero(), vf_zero(), vf_zero()};
        qk_micro(q, k + j * tile->k_step, tile->k_step, tile->units, tile->s + j * MICRO_ROWS, ignored, vecs);
        for (; j < end; j++)
            for (int v = 0; v < vecs; v++)
                top[v] = vf_max(top[v], vf_load(tile->s + j * MICRO_ROWS + v * LANES));
    }
}

/* o [dim_o][MICRO_ROWS] = o * decay + V^T P^T over rows first .. end of P^T, the first of which belongs to row v_from of V. */
INLINE void pv_block(const struct tile *tile, float *o, int64_t v_from, int64_t first, int64_t end, const vf *decay, const int vecs)
{
    for (int64_t d = 0; d < tile->task->problem->dim_v; d += TILE_KEYS) {
        const float *panel = tile->v + d * (BLOCK_KEYS / PAIR) + v_from * TILE_KEYS;
        float *out = o + d * MICRO_ROWS;
        vf acc[TILE_KEYS][TILE_VECS];
#pragma GCC unroll 16
        for (int i = 0; i < TILE_KEYS; i++)
#pragma GCC unroll 4
            for (int v = 0; v < vecs; v++)
                acc[i][v] = vf_mul(vf_load(out + i * MICRO_ROWS + v * LANES), decay[v]);
        for (int64_t j = first; j < end; j++) {
            vf lane[TILE_VECS];
#pragma GCC unroll 4
            for (int v = 0; v < vecs; v++)
                lane[v] = vf_load(tile->s + j * MICRO_ROWS + v * LANES);
#pragma GCC unroll 16
            for (int i = 0; i < TILE_KEYS; i++) {
                vf scalar = vf_set1(panel[j * TILE_KEYS + i]);
#pragma GCC unroll 4
                for (int v = 0; v < vecs; v++)
                    acc[i][v] = vf_step(scalar, lane[v], acc[i][v]);
            }
        }
#pragma GCC unroll 16
        for (int i = 0; i < TILE_KEYS; i++)
#pragma GCC unroll 4
            for (int v = 0; v < vecs; v++)
                vf_store(out + i * MICRO_ROWS + v * LANES, acc[i][v]);
    }
}

/* ---- modifiers and masks --------------------------------------------------------------------------------------------------- */

/* LANES keys of the bias for LANES rows, transposed to the layout of S^T: out[key] is a vector of rows. */
static void bias_block(const struct tile *tile, int64_t row, int64_t key, int64_t keys, vf out[LANES])
{
    const attest_problem *p = tile->task->problem;
    int64_t stride = p->stride_bias[3];
    for (int i = 0; i < LANES; i++) {
        out[i] = vf_set1(-INFINITY); /* a lane that is no row sees nothing */
        if (row + i >= tile->rows)
            continue;
        const void *at = attest_element(tile->row[row + i].bias, key * stride, p->dtype_bias);
        if (stride == 1 && keys == LANES) {
            out[i] = vf_from(at, 0, p->dtype_bias);
        } else if (stride == 1) {
            out[i] = vf_from_some(at, 0, p->dtype_bias, keys);
        } else {
            float gathered[LANES] = {0};
            for (int64_t n = 0; n < keys; n++) {
                float one[LANES];
                vf_store(one, vf_from_some(at, n * stride, p->dtype_bias, 1));
                gathered[n] = one[0];
            }
            out[i] = vf_load(gathered);
        }
    }
    vf_transpose(out);
}

/* The same of the mask: -inf where it hides a key, else 0. Behind the last key, where blocks are filled up, it has nothing. */
static void mask_block(const struct tile *tile, int64_t row, int64_t key, int64_t keys, vf out[LANES])
{
    const int64_t stride = tile->task->problem->stride_mask[3], there = tile->task->kv_count - key;
    if (keys > there)
        keys = there;
    for (int i = 0; i < LANES; i++) {
        float hidden[LANES] = {0};
        out[i] = vf_set1(-INFINITY); /* a lane that is no row sees nothing */
        if (row + i >= tile->rows)
            continue;
        const uint8_t *at = tile->row[row + i].mask + key * stride;
        if (stride == 1 && keys == LANES)
            for (int n = 0; n < LANES; n++)
                hidden[n] = at[n] ? 0 : -INFINITY;
        else
            for (int64_t n = 0; n < keys; n++)
                hidden[n] = at[n * stride] ? 0 : -INFINITY;
        out[i] = vf_load(hidden);
    }
    vf_transpose(out);
}

/* Lanes of a vector of rows that do not see key j. */
INLINE vm unseen(const struct tile *tile, int64_t row, int64_t j)
{
    return vm_or(vm_greater(vi_load(tile->lo + row), vi_set1((int32_t)j)),
                 vm_greater(vi_set1((int32_t)j + 1), vi_load(tile->hi + row)));
}

/* The mask alone, on keys first .. end of s for all rows; top takes the maximum. `key` is the number of the block's first key. */
INLINE void mask(const struct tile *tile, int64_t row, int64_t key, int64_t first, int64_t end, vf *top, const int vecs)
{
    for (int64_t j = first; j < end; j++)
        for (int v = 0; v < vecs; v++) {
            float *at = tile->s + j * MICRO_ROWS + v * LANES;
            vf x = vf_select(unseen(tile, row + v * LANES, key + j), vf_set1(-INFINITY), vf_load(at));
            vf_store(at, x);
            top[v] = vf_max(top[v], x);
        }
}

/* Softcap, ALiBi, bias and masks on s [keys][MICRO_ROWS] for one vector of rows; returns the maximum over the keys. `key` is the
 * number of the first key; live[j] becomes true where some lane sees key j, and that only matters with a bias or a mask of bytes. */
static vf modify(const struct tile *tile, int64_t row, float *s, int64_t key, int64_t keys, bool *live)
{
    vf top = vf_set1(-INFINITY);
    const attest_problem *p = tile->task->problem;
    const vf unit = vf_set1(tile->natural ? 1.0f : (float)LOG2E), cap = vf_mul(vf_set1(p->softcap), unit);
    const vf invisible = vf_set1(-INFINITY), scale = vf_set1(tile->unit_scale);
    const vf slope = vf_mul(vf_load(tile->slope + row), unit);
    const vi place = vi_load(tile->place + row);
    for (int64_t chunk = 0; chunk < keys; chunk += LANES) {
        int64_t count = keys - chunk < LANES ? keys - chunk : LANES;
        vf bias[LANES], hidden[LANES];
        if (has(p, ATTEST_BIAS))
            bias_block(tile, row, key + chunk, count, bias);
        if (has(p, ATTEST_MASK))
            mask_block(tile, row, key + chunk, count, hidden);
        for (int64_t n = 0; n < count; n++) {
            int32_t j = (int32_t)(key + chunk + n);
            float *at = s + (chunk + n) * MICRO_ROWS;
            vf x = PAIR == 1 ? vf_load(at) : vf_mul(vf_load(at), scale);
            if (has(p, ATTEST_SOFTCAP))
                x = vf_mul(cap, vf_tanh(x));
            if (has(p, ATTEST_ALIBI))
                x = vf_sub(x, vf_mul(slope, vf_abs(vf_from_int(vi_sub(place, vi_set1(j))))));
            vm gone = unseen(tile, row, j);
            if (has(p, ATTEST_BIAS)) {
                gone = vm_or(gone, vm_equal(bias[n], invisible));
                x = vf_add(x, bias[n]);
            }
            if (has(p, ATTEST_MASK))
                gone = vm_or(gone, vm_equal(hidden[n], invisible));
            x = vf_select(gone, invisible, x);
            live[chunk + n] = live[chunk + n] || !vm_all(gone);
            vf_store(at, x);
            top = vf_max(top, x);
        }
    }
    return top;
}

/* ---- softmax --------------------------------------------------------------------------------------------------------------- */

/* P^T from S^T in place for one vector of rows; updates m and l, returns the factor for what O has so far. Scores, and m, are in
 * units of `unit` in log2: a score less the maximum, times that, is what 2 is raised to, so that the maximum weighs exactly 1. With
 * pairs, s leaves as words, two keys in the space of one. `quick` is struct tile's. */
INLINE vf softmax(float *s, int64_t keys, float *m, float *l, vf top, vf unit, const bool quick)
{
    vf before = vf_load(m), now = vf_max(before, top);
    vf shift = vf_select(vm_equal(now, vf_set1(-INFINITY)), vf_zero(), now); /* a row that has seen nothing yet */
    vf decay = vf_exp2(vf_mul(vf_sub(before, shift), unit)), sum = vf_zero();
#if PAIR == 2
    vf sum_odd = vf_zero(); /* two sums, because each waits for its last addition */
#pragma GCC unroll 2
    for (int64_t j = 0; j < keys; j += 2) {
        vf even = pair_exp2(vf_mul(vf_sub(vf_load(s + j * MICRO_ROWS), shift), unit), quick);
        vf odd = pair_exp2(vf_mul(vf_sub(vf_load(s + (j + 1) * MICRO_ROWS), shift), unit), quick);
        vf_store(s + j / 2 * MICRO_ROWS, pair_weights(even, odd));
        sum = vf_add(sum, even);
        sum_odd = vf_add(sum_odd, odd);
    }
    sum = vf_add(sum, sum_odd);
#else
#pragma GCC unroll 4
    for (int64_t j = 0; j < keys; j++) {
        vf x = vf_sub(vf_load(s + j * MICRO_ROWS), shift);
        x = vf_exp2(quick ? x : vf_mul(x, unit));
        vf_store(s + j * MICRO_ROWS, x);
        sum = vf_add(sum, x);
    }
#endif
    vf_store(m, now);
    vf_store(l, vf_fma(vf_load(l), decay, sum));
    return decay;
}

/* ---- one block of keys for one micro-tile ---------------------------------------------------------------------------------- */

struct block {
    int64_t key;              /* number of the first key of the packed block */
    int64_t from;             /* this micro-tile's first key in the block, and */
    int64_t keys;             /* how many: both multiples of KEY_ALIGN */
    int64_t all_from, all_to; /* of these keys, the ones that every row sees */
};

INLINE void micro_tile(const struct tile *tile, int64_t row, struct block block, const int vecs)
{
    vf top[TILE_VECS], decay[TILE_VECS], ignored[TILE_VECS];
    bool live[BLOCK_KEYS];
    for (int v = 0; v < TILE_VECS; v++)
        top[v] = ignored[v] = vf_set1(-INFINITY);
    const float *q = tile->q + row * tile->ldk, *k = tile->k_rows + block.from * tile->k_step;
    int64_t key = block.key + block.from;
    if (tile->modify) {
        qk_block(tile, q, k, 0, block.keys, ignored, vecs);
        memset(live, 0, sizeof live);
        for (int v = 0; v < vecs; v++)
            top[v] = modify(tile, row + v * LANES, tile->s + v * LANES, key, block.keys, live);
    } else {
        qk_block(tile, q, k, 0, block.all_from, ignored, vecs);
        qk_block(tile, q, k, block.all_from, block.all_to, top, vecs);
        qk_block(tile, q, k, block.all_to, block.keys, ignored, vecs);
        mask(tile, row, key, 0, block.all_from, top, vecs);
        mask(tile, row, key, block.all_to, block.keys, top, vecs);
        memset(live, 1, sizeof live);
    }
    vf unit = vf_set1((float)(tile->m_unit * LOG2E));
    for (int v = 0; v < vecs; v++) {
        float *s = tile->s + v * LANES, *m = tile->m + row + v * LANES, *l = tile->l + row + v * LANES;
        decay[v] =
            tile->quick ? softmax(s, block.keys, m, l, top[v], unit, true) : softmax(s, block.keys, m, l, top[v], unit, false);
    }

    /* A key that no lane sees must not touch the result even if its value is NaN. Masks by position cut such keys off at the
     * ends of the block; a bias or a mask of bytes can hide any key, so the product runs over the stretches between those. */
    float *o = tile->o + row * tile->dim_o;
    for (int64_t first = 0, end; first < block.keys; first = end) {
        for (end = first + KEY_ALIGN; end < block.keys && (live[end] == live[first] || KEY_ALIGN > 1); end += KEY_ALIGN)
            ;
        if (!live[first] && KEY_ALIGN == 1)
            continue;
        pv_block(tile, o, block.from / PAIR, first / PAIR, end / PAIR, decay, vecs);
        for (int v = 0; v < vecs; v++)
            decay[v] = vf_set1(1.0f);
    }
}

/* ---- the whole tile -------------------------------------------------------------------------------------------------------- */

/* The keys that the rows of a micro-tile see: some row from `lo` to `hi`, every row from `all_lo` to `all_hi`. */
struct reach {
    int32_t lo, hi, all_lo, all_hi;
};

static struct reach reach_of(const struct tile *tile, int64_t first, int64_t end)
{
    struct reach reach = {INT32_MAX, 0, 0, INT32_MAX};
    for (int64_t r = first; r < end; r++) {
        int32_t lo = tile->lo[r], hi = tile->hi[r];
        if (lo < hi && lo < reach.lo)
            reach.lo = lo;
        if (hi > reach.hi)
            reach.hi = hi;
        if (lo > reach.all_lo)
            reach.all_lo = lo;
        if (hi < reach.all_hi)
            reach.all_hi = hi;
    }
    return reach;
}

static int64_t within(int64_t n, int64_t most)
{
    return n < 0 ? 0 : n > most ? most : n;
}

static void rows_begin(struct tile *tile)
{
    const attest_task *task = tile->task;
    for (int64_t r = 0; r < round_up(tile->rows, MICRO_ROWS); r++) {
        /* Lanes behind the last row do what it does, so that they never ask for a mask of their own. */
        if (r < tile->rows)
            tile->row[r] = attest_row_get(task, task->row_begin + r);
        const attest_row *row = &tile->row[r < tile->rows ? r : tile->rows - 1];
        tile->lo[r] = row->lo;
        tile->hi[r] = row->hi;
        tile->place[r] = row->place;
        tile->slope[r] = row->slope;
        tile->m[r] = -INFINITY;
        tile->l[r] = 0;
    }
    memset(tile->o, 0, (size_t)(round_up(tile->rows, MICRO_ROWS) * tile->dim_o) * 4);
    pack_q(tile);
}

static void rows_end(struct tile *tile)
{
    const attest_task *task = tile->task;
    const attest_problem *p = task->problem;
    for (int64_t r = 0; r < tile->rows; r += LANES) {
        const float *o = tile->o + r / MICRO_ROWS * MICRO_ROWS * tile->dim_o + r % MICRO_ROWS;
        vm empty = vm_equal(vf_load(tile->l + r), vf_zero());
        attest_ending ending[LANES];
        vf factor = vf_set1(1.0f);
        if (!task->partial && (has(p, ATTEST_SINK) || has(p, ATTEST_LSE))) {
            float factors[LANES];
            for (int64_t i = 0; i < LANES; i++) {
                int64_t row = r + i < tile->rows ? r + i : tile->rows - 1;
                ending[i] = attest_row_ending(p, (double)tile->m[row] * tile->m_unit, tile->l[row], tile->row[row].sink);
                factors[i] = ending[i].factor;
            }
            factor = vf_load(factors);
        } else if (!task->partial) { /* the same, without a logarithm for each row */
            factor = vf_div(factor, vf_load(tile->l + r));
        }
        for (int64_t d = 0; d < tile->dim_o; d += LANES) {
            vf block[LANES];
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                block[i] = vf_select(empty, vf_zero(), vf_mul(vf_load(o + (d + i) * MICRO_ROWS), factor));
            vf_transpose(block);
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                vf_store(tile->temp + i * tile->dim_o + d, block[i]);
        }
        for (int64_t i = 0; i < LANES && r + i < tile->rows; i++) {
            const float *row = tile->temp + i * tile->dim_o;
            if (task->partial) {
                float *out = task->partial + (r + i) * (p->dim_v + ATTEST_PARTIAL_EXTRA);
                memcpy(out, row, (size_t)p->dim_v * 4);
                out[p->dim_v] = (float)((double)tile->m[r + i] * tile->m_unit);
                out[p->dim_v + 1] = tile->l[r + i];
                continue;
            }
            row_from_float(tile->row[r + i].o, row, p->dim_v, p->dtype_o);
            if (tile->row[r + i].lse)
                *tile->row[r + i].lse = ending[i].lse;
        }
    }
}

static void rows_tile(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    struct tile tile = {.task = task, .rows = task->row_end - task->row_begin, .natural = scores_are_natural(p)};
    tile_carve(&tile, p, tile.rows, scratch);
    tile.unit_scale = score_scale(p);
    tile.modify = has(p, ATTEST_SOFTCAP | ATTEST_ALIBI | ATTEST_BIAS | ATTEST_MASK);
    if (PAIR == 2 && tile.unit_scale <= 0) /* the maximum of unscaled scores is then not that of the scores */
        tile.modify = true;
    tile.quick = PAIR == 1 ? !tile.natural : p->dtype_o == ATTEST_BF16 && !has(p, ATTEST_LSE) && !task->partial;
    tile.m_unit = tile.natural ? 1 : PAIR == 1 || tile.modify ? 1 / LOG2E : tile.unit_scale / LOG2E;
    rows_begin(&tile);

    struct reach whole = reach_of(&tile, 0, tile.rows);
    for (int64_t block = whole.lo / BLOCK_KEYS * BLOCK_KEYS; block < whole.hi; block += BLOCK_KEYS) {
        struct span span = {.first = block > whole.lo ? block : whole.lo,
                            .end = block + BLOCK_KEYS < whole.hi ? block + BLOCK_KEYS : whole.hi};
        span.from = span.first / KEY_ALIGN * KEY_ALIGN;
        span.to = round_up(span.end, KEY_ALIGN);
        pack_k(&tile, span);
        pack_v(&tile, span);
        for (int64_t row = 0; row < tile.rows; row += MICRO_ROWS) {
            int64_t end = row + MICRO_ROWS < tile.rows ? row + MICRO_ROWS : tile.rows;
            struct reach reach = reach_of(&tile, row, end);
            int64_t from = (reach.lo > span.from ? reach.lo : span.from) / KEY_ALIGN * KEY_ALIGN;
            int64_t to = round_up(reach.hi < span.to ? reach.hi : span.to, KEY_ALIGN);
            if (from >= to)
                continue;
            struct block part = {.key = span.from, .from = from - span.from, .keys = to - from};
            part.all_from = round_up(within(reach.all_lo - from, part.keys), QK_STEP);
            part.all_to = within(reach.all_hi - from, part.keys);
            if (part.all_to < part.keys)
                part.all_to = part.all_to / QK_STEP * QK_STEP;
            if (part.all_from >= part.all_to) /* no key is seen by all */
                part.all_from = part.all_to = 0;
            switch ((end - row + LANES - 1) / LANES) {
            case 1:
                micro_tile(&tile, row, part, 1);
                break;
            case 2:
                micro_tile(&tile, row, part, TILE_VECS < 2 ? TILE_VECS : 2);
                break;
            default:
                micro_tile(&tile, row, part, TILE_VECS);
            }
        }
    }
    rows_end(&tile);
}

#endif
