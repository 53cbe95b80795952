/*
 * matrix_amx.h - the products of rows_tile.h on AMX tiles; see cpu_fwd_amx.c for the layouts.
 */
#ifndef ATTEST_MATRIX_AMX_H
#define ATTEST_MATRIX_AMX_H

enum { AMX_SIDE = 16, V_WORDS = BLOCK_KEYS / PAIR }; /* V_WORDS: words from column to column of V^T */

/* Eight tiles of 16 rows of 64 bytes. */
static void matrix_unit_begin(void)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t bytes_per_row[16];
        uint8_t rows[16];
    } config __attribute__((aligned(64))) = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.bytes_per_row[i] = 64;
        config.rows[i] = AMX_SIDE;
    }
    _tile_loadconfig(&config);
}

static void matrix_unit_end(void)
{
    _tile_release();
}

/* V^T as words: v [dim_o][V_WORDS], word w of column d being the pair (V[2w][d], V[2w+1][d]). */
static void pack_v(struct tile *tile, struct span span)
{
    const attest_problem *p = tile->task->p;
    key_pointers(tile->task, true, span.first, span.end - span.first, tile->key);
    for (int64_t j = span.from; j < span.to; j += 2 * AMX_SIDE) {
        for (int pair = 0; pair < AMX_SIDE; pair++) {
            const void *row[2];
            for (int half = 0; half < 2; half++) {
                int64_t key = j + 2 * pair + half;
                row[half] = key >= span.first && key < span.end ? tile->key[key - span.first] : NULL;
            }
            interleave_rows(tile->temp + pair * tile->dim_o, row[0], row[1], p->dim_v);
        }
        float *out = tile->v + (j - span.from) / PAIR;
        for (int64_t d = 0; d < tile->dim_o; d += LANES) {
            vf block[LANES];
            for (int i = 0; i < LANES; i++)
                block[i] = vf_load(tile->temp + i * tile->dim_o + d);
            vf_transpose(block);
            for (int i = 0; i < LANES; i++)
                vf_store(out + (d + i) * V_WORDS, block[i]);
        }
    }
}

static void qk_block(const struct tile *tile, const float *q, const float *k, int64_t first, int64_t end, vf *top, const int vecs)
{
    size_t k_step = (size_t)tile->ldk * 4;
    for (int64_t j = first; j < end; j += 2 * AMX_SIDE) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (int64_t u = 0; u < tile->ldk; u += AMX_SIDE) {
            _tile_loadd(4, k + j * tile->ldk + u, k_step);
            _tile_loadd(6, q + u * MICRO_ROWS, MICRO_ROWS * 4);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(5, k + (j + AMX_SIDE) * tile->ldk + u, k_step);
            _tile_dpbf16ps(2, 5, 6);
            if (vecs == 2) {
                _tile_loadd(7, q + u * MICRO_ROWS + AMX_SIDE, MICRO_ROWS * 4);
                _tile_dpbf16ps(1, 4, 7);
                _tile_dpbf16ps(3, 5, 7);
            }
        }
        float *s = tile->s + j * MICRO_ROWS;
        _tile_stored(0, s, MICRO_ROWS * 4);
        _tile_stored(2, s + AMX_SIDE * MICRO_ROWS, MICRO_ROWS * 4);
        if (vecs == 2) {
            _tile_stored(1, s + AMX_SIDE, MICRO_ROWS * 4);
            _tile_stored(3, s + AMX_SIDE * MICRO_ROWS + AMX_SIDE, MICRO_ROWS * 4);
        }
    }
    for (int64_t j = first; j < end; j++)
        for (int v = 0; v < vecs; v++)
            top[v] = vf_max(top[v], vf_load(tile->s + j * MICRO_ROWS + v * LANES));
}

/* O^T * decay, which is 1 in every lane once the maximum has settled. */
static void decay_o(float *o, int64_t columns, const vf *decay, const int vecs)
{
    for (int v = 0; v < vecs; v++) {
        if (vm_all(vm_equal(decay[v], vf_set1(1.0f))))
            continue;
        for (int64_t d = 0; d < columns; d++)
            vf_store(o + d * MICRO_ROWS + v * LANES, vf_mul(vf_load(o + d * MICRO_ROWS + v * LANES), decay[v]));
    }
}

static void pv_block(const struct tile *tile, float *o, int64_t v_from, int64_t first, int64_t end, const vf *decay, const int vecs)
{
    const size_t row = MICRO_ROWS * 4, column = V_WORDS * 4;
    decay_o(o, tile->dim_o, decay, vecs);
    for (int64_t d = 0; d < tile->dim_o; d += 2 * AMX_SIDE) {
        float *upper = o + d * MICRO_ROWS, *lower = upper + AMX_SIDE * MICRO_ROWS;
        const float *v = tile->v + d * V_WORDS + v_from;
        bool two = d + AMX_SIDE < tile->dim_o;
        _tile_loadd(0, upper, row);
        if (two)
            _tile_loadd(2, lower, row);
        if (vecs == 2) {
            _tile_loadd(1, upper + AMX_SIDE, row);
            if (two)
                _tile_loadd(3, lower + AMX_SIDE, row);
        }
        for (int64_t w = first; w < end; w += AMX_SIDE) {
            _tile_loadd(4, v + w, column);
            _tile_loadd(6, tile->s + w * MICRO_ROWS, row);
            _tile_dpbf16ps(0, 4, 6);
            if (two) {
                _tile_loadd(5, v + AMX_SIDE * V_WORDS + w, column);
                _tile_dpbf16ps(2, 5, 6);
            }
            if (vecs == 2) {
                _tile_loadd(7, tile->s + w * MICRO_ROWS + AMX_SIDE, row);
                _tile_dpbf16ps(1, 4, 7);
                if (two)
                    _tile_dpbf16ps(3, 5, 7);
            }
        }
        _tile_stored(0, upper, row);
        if (two)
            _tile_stored(2, lower, row);
        if (vecs == 2) {
            _tile_stored(1, upper + AMX_SIDE, row);
            if (two)
                _tile_stored(3, lower + AMX_SIDE, row);
        }
    }
}

#endif
