/*
 * rows_amx.h - flash attention on AMX tiles: the prefill path of cpu_fwd_amx.c.
 *
 * Contract: any problem in bf16 without a bias; any row count.
 *
 * A micro-tile of 32 rows takes the keys in steps of 32 (tiles_amx.h), and there are two kinds of softmax between the products:
 *     quick_amx.h    O in bf16 is all that is seen, and scores are plain and finite.
 *     exact_amx.h    everything else.
 * Steps begin at multiples of 32, counted from the first key of the sequence, micro-tiles at multiples of 32 rows of the KV head;
 * which softmax it is depends on these rows and on all keys of the sequence; and a key that a row does not see adds exactly 0. So
 * bits do not depend on how rows are cut into tiles.
 */
#ifndef ATTEST_ROWS_AMX_H
#define ATTEST_ROWS_AMX_H

#include "tiles_amx.h"
#include "quick_amx.h"
#include "exact_amx.h"

/* What attest_row_get says of the row behind `row` in its query head, where places do not matter; without its divisions. */
static attest_row next_row(const attest_problem *p, attest_row row)
{
    row.q = (const char *)row.q + p->stride_q[2] * 2;
    row.o = (char *)row.o + p->stride_o[2] * (p->dtype_o == ATTEST_F32 ? 4 : 2);
    if (row.lse)
        row.lse += p->stride_lse[2];
    if (row.mask)
        row.mask += p->stride_mask[2];
    return row;
}

static void rows_begin(struct tile *tile)
{
    const attest_task *task = tile->task;
    const attest_problem *p = task->problem;
    const int64_t group = p->heads_q / p->heads_kv;
    const bool alike = !(p->flags & (ATTEST_CAUSAL | ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT | ATTEST_ALIBI));
    __m512i top_q = _mm512_setzero_si512();
    for (int64_t r = 0; r < round_up(tile->rows, MICRO_ROWS); r++) {
        /* What is behind the last row sees what that sees, so that it never asks for a mask of its own. */
        if (r < tile->rows)
            tile->row[r] = r >= group && alike ? next_row(p, tile->row[r - group]) : attest_row_get(task, task->row_begin + r);
        const attest_row *row = &tile->row[r < tile->rows ? r : tile->rows - 1];
        tile->lo[r] = row->lo;
        tile->hi[r] = row->hi;
        tile->m[r] = r < tile->rows ? -INFINITY : 0;
        vf_store(tile->l + r * SIDE, vf_zero());
        float *q = tile->q + r / MICRO_ROWS * MICRO_ROWS * tile->words + r % MICRO_ROWS * SIDE;
        __m512i top = r % MICRO_ROWS ? top_q : _mm512_setzero_si512();
        for (int64_t d = 0; d < p->dim; d += 2 * SIDE) {
            __mmask32 some = r < tile->rows ? first_lanes(p->dim - d) : 0;
            __m512i words = _mm512_maskz_loadu_epi16(some, (const uint16_t *)row->q + d);
            _mm512_storeu_si512(q + d / (2 * SIDE) * SIDE * MICRO_ROWS, words);
            top = larger_magnitude(top, words);
        }
        top_q = top;
        if (r % MICRO_ROWS == MICRO_ROWS - 1)
            tile->q_top[r / MICRO_ROWS] = largest(top);
    }
    memset(tile->begun, 0, (size_t)(round_up(tile->rows, MICRO_ROWS) / MICRO_ROWS));
}

/* Some columns of a row of O times `factor`, as bf16; subnormal numbers become 0. */
INLINE void store_bf16(uint16_t *out, const float *o, int64_t columns, vf factor)
{
    for (int64_t d = 0; d < columns; d += 2 * LANES, o += 2 * TILE_FLOATS) {
        vf low = vf_mul(vf_load(o), factor), high = vf_mul(vf_load(o + TILE_FLOATS), factor);
        _mm512_mask_storeu_epi16(out + d, first_lanes(columns - d), (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

static void rows_end(struct tile *tile)
{
    const attest_task *task = tile->task;
    const attest_problem *p = task->problem;
    for (int64_t r = 0; r < tile->rows; r++) {
        const float *o = o_tiles(tile, r) + r % SIDE * SIDE;
        float l = vf_sum(vf_load(tile->l + r * SIDE));
        attest_ending ending = {.factor = 1};
        if (!task->partial && (has(p, ATTEST_SINK) || has(p, ATTEST_LSE)))
            ending = attest_row_ending(p, (double)tile->m[r] * tile->m_unit, l, tile->row[r].sink);
        else if (!task->partial) /* the same, without a logarithm */
            ending.factor = 1 / l;
        if (l != 0 && p->dtype_o == ATTEST_BF16 && !task->partial) {
            store_bf16(tile->row[r].o, o, p->dim_v, vf_set1(ending.factor));
        } else {
            for (int64_t d = 0; d < tile->columns; d += LANES)
                vf_store(tile->temp + d, l == 0 ? vf_zero() : vf_mul(vf_load(o + d * SIDE), vf_set1(ending.factor)));
            if (task->partial) {
                float *out = task->partial + r * (p->dim_v + ATTEST_PARTIAL_EXTRA);
                memcpy(out, tile->temp, (size_t)p->dim_v * 4);
                out[p->dim_v] = (float)((double)tile->m[r] * tile->m_unit);
                out[p->dim_v + 1] = l;
                continue;
            }
            row_from_float(tile->row[r].o, tile->temp, p->dim_v, p->dtype_o);
        }
        if (tile->row[r].lse)
            *tile->row[r].lse = ending.lse;
    }
}

static void micro_tile(struct tile *tile, int64_t row, int64_t from, int64_t to)
{
    int32_t lo = INT32_MAX, hi = 0, all_lo = 0, all_hi = INT32_MAX;
    int64_t rows = tile->rows - row < MICRO_ROWS ? tile->rows - row : MICRO_ROWS;
    for (int64_t r = row; r < row + rows; r++) {
        if (tile->lo[r] < tile->hi[r] && tile->lo[r] < lo)
            lo = tile->lo[r];
        hi = tile->hi[r] > hi ? tile->hi[r] : hi;
        all_lo = tile->lo[r] > all_lo ? tile->lo[r] : all_lo;
        all_hi = tile->hi[r] < all_hi ? tile->hi[r] : all_hi;
    }
    int64_t first = lo / STEP_KEYS > from ? lo / STEP_KEYS : from;
    int64_t end = (hi + STEP_KEYS - 1) / STEP_KEYS < to ? (hi + STEP_KEYS - 1) / STEP_KEYS : to;
    if (first >= end)
        return;
    MEMORY_IS_WRITTEN();
    if (!tile->rough || tile->modify || has(tile->task->problem, ATTEST_SINK | ATTEST_MASK) || !is_tame(tile, row))
        exact_rows(tile, row, first, end, rows > SIDE ? 2 : 1);
    else if (rows > SIDE)
        quick_rows(tile, row, first, end, all_lo, all_hi, 2);
    else
        quick_rows(tile, row, first, end, all_lo, all_hi, 1);
}

/* K and V, and how large and small they are. */
static void keys_begin(struct tile *tile)
{
    attest_task block = *tile->task;
    struct prepared made = prepared_at(block.problem, makes_its_own(block.problem) ? tile->own : block.shared);
    tile->k = made.k;
    tile->v = made.v;
    tile->kv = (struct extremes){0, UINT32_MAX};
    for (block.key_begin = 0; block.key_begin < block.kv_count; block.key_begin += BLOCK_KEYS) {
        block.key_end = block.key_begin + BLOCK_KEYS < block.kv_count ? block.key_begin + BLOCK_KEYS : block.kv_count;
        if (makes_its_own(block.problem))
            prepare_block(&block, made);
        struct extremes some = made.block[block.key_begin / BLOCK_KEYS];
        tile->kv.k_top = some.k_top > tile->kv.k_top ? some.k_top : tile->kv.k_top;
        tile->kv.v_bottom = some.v_bottom < tile->kv.v_bottom ? some.v_bottom : tile->kv.v_bottom;
    }
}

static void rows_tile(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    struct tile tile = {.task = task, .rows = task->row_end - task->row_begin};
    tile_carve(&tile, p, tile.rows, scratch);
    tile.unit_scale = score_scale(p);
    /* With a scale that is not positive the maximum of plain products is not that of the scores. */
    tile.modify = has(p, ATTEST_SOFTCAP) || has(p, ATTEST_ALIBI) || !(tile.unit_scale > 0);
    tile.rough = p->dtype_o == ATTEST_BF16 && !has(p, ATTEST_LSE) && !task->partial;
    tile.m_unit = tile.modify ? 1 / LOG2E : tile.unit_scale / LOG2E;
    keys_begin(&tile);
    rows_begin(&tile);
    matrix_unit_begin();
    for (int64_t step = 0; step * STEP_KEYS < task->key_end; step += CACHE_STEPS)
        for (int64_t row = 0; row < tile.rows; row += MICRO_ROWS)
            micro_tile(&tile, row, step, step + CACHE_STEPS);
    _tile_release();
    rows_end(&tile);
}

#endif
