/*
 * matrix_amx.h - the products of rows_tile.h on AMX tiles; see cpu_fwd_amx.c for the layouts.
 */
#ifndef ATTEST_MATRIX_AMX_H
#define ATTEST_MATRIX_AMX_H

enum { AMX_SIDE = 16 }; /* rows of a tile, and words of a row */

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

/* V^T as words, made once for all tiles of a KV head: [block of keys][dim_o / 16][block words / 16][16 columns][16 words], where
 * word w of column d is the pair (V[2w][d], V[2w+1][d]). A matrix tile is one piece of memory: rows of a tile that lie far apart
 * would compete for the same cache sets. Keys that no row of the head sees are zeros. */
_Static_assert((int)ATTEST_PREPARE_KEYS == (int)BLOCK_KEYS, "V is prepared in the blocks it is used in");

static size_t v_size(const attest_problem *p)
{
    return (size_t)(round_up(p->seq_kv, BLOCK_KEYS) * round_up(p->dim_v, AMX_SIDE)) * sizeof(uint16_t);
}

static float *v_tile(float *block, int64_t d, int64_t word)
{
    return block + d * (BLOCK_KEYS / PAIR) + word * AMX_SIDE;
}

static float *v_block(const attest_task *task, int64_t key)
{
    return (float *)task->shared + key / BLOCK_KEYS * (BLOCK_KEYS / PAIR) * round_up(task->problem->dim_v, AMX_SIDE);
}

static void prepare_v(const attest_task *task, void *scratch)
{
    const void *key[BLOCK_KEYS];
    int64_t dim = round_up(task->problem->dim_v, AMX_SIDE), first, end, unused;
    float *words = scratch, *block_v = v_block(task, task->key_begin); /* words [16 pairs][dim] */
    attest_row_visible(task, 0, &first, &unused);                      /* what rows see moves with the row */
    attest_row_visible(task, task->q_count - 1, &unused, &end);
    attest_key_pointers(task, true, task->key_begin, task->key_end - task->key_begin, key);
    for (int64_t j = task->key_begin; j < task->key_end; j += 2 * AMX_SIDE) {
        for (int pair = 0; pair < AMX_SIDE; pair++) {
            const void *row[2];
            for (int half = 0; half < 2; half++) {
                int64_t at = j + 2 * pair + half;
                row[half] = at >= first && at < end && at < task->key_end ? key[at - task->key_begin] : NULL;
            }
            interleave_rows(words + pair * dim, row[0], row[1], task->problem->dim_v);
        }
        for (int64_t d = 0; d < dim; d += LANES) {
            float *out = v_tile(block_v, d, (j - task->key_begin) / PAIR);
            vf block[LANES];
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                block[i] = vf_load(words + i * dim + d);
            vf_transpose(block);
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                vf_store(out + i * AMX_SIDE, block[i]);
        }
    }
}

/* The block is there; v points to the word of its first key. */
static void pack_v(struct tile *tile, struct span span)
{
    tile->v = v_tile(v_block(tile->task, span.from), 0, span.from % BLOCK_KEYS / PAIR);
}

/* The maximum over keys first .. end, of which there are at least two. Two chains, because each waits for its last comparison. */
INLINE void top_of(const struct tile *tile, int64_t first, int64_t end, vf *top, const int vecs)
{
    for (int v = 0; v < vecs; v++) {
        const float *s = tile->s + v * LANES;
        vf even = top[v], odd = vf_load(s + (first + 1) * MICRO_ROWS);
#pragma GCC unroll 4
        for (int64_t j = first; j < end; j += 2) {
            even = vf_max(even, vf_load(s + j * MICRO_ROWS));
            odd = vf_max(odd, vf_load(s + (j + 1) * MICRO_ROWS));
        }
        top[v] = vf_max(even, odd);
    }
}

INLINE void qk_block(const struct tile *tile, const float *q, const float *k, int64_t first, int64_t end, vf *top, const int vecs)
{
    size_t k_step = (size_t)tile->k_step * 4;
    for (int64_t j = first; j < end; j += 2 * AMX_SIDE) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (int64_t u = 0; u < tile->ldk; u += AMX_SIDE) {
            _tile_loadd(4, k + j * tile->k_step + u, k_step);
            _tile_loadd(6, q + u * MICRO_ROWS, MICRO_ROWS * 4);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(5, k + (j + AMX_SIDE) * tile->k_step + u, k_step);
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
        if (j > first) /* the scores before these: they have reached the cache while the matrix unit worked on these */
            top_of(tile, j - 2 * AMX_SIDE, j, top, vecs);
    }
    if (first < end)
        top_of(tile, end - 2 * AMX_SIDE, end, top, vecs);
}

/* Some columns of O^T = O^T * decay + what the matrix unit has left in `sum`. */
INLINE void add_to_o(float *o, const float *sum, const vf *decay, const int vecs, int64_t columns)
{
    for (int64_t d = 0; d < columns; d++)
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++) {
            int64_t at = d * MICRO_ROWS + v * LANES;
            vf_store(o + at, vf_fma(vf_load(o + at), decay[v], vf_load(sum + at)));
        }
}

/* The sums of a block are made in tiles that begin at 0 and join O on the vector unit, a step behind the matrix unit: O would have
 * to be multiplied by the decay there anyway. */
INLINE void pv_block(const struct tile *tile, float *o, int64_t v_from, int64_t first, int64_t end, const vf *decay, const int vecs)
{
    const size_t row = MICRO_ROWS * 4, column = AMX_SIDE * 4;
    float sums[2][2 * AMX_SIDE * MICRO_ROWS] __attribute__((aligned(64)));
    int64_t columns = 0;
    for (int64_t d = 0; d < tile->dim_o; d += 2 * AMX_SIDE) {
        float *upper = sums[d / (2 * AMX_SIDE) % 2], *lower = upper + AMX_SIDE * MICRO_ROWS;
        bool two = d + AMX_SIDE < tile->dim_o;
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (int64_t w = first; w < end; w += AMX_SIDE) {
            _tile_loadd(4, v_tile(tile->v, d, v_from + w), column);
            _tile_loadd(6, tile->s + w * MICRO_ROWS, row);
            _tile_dpbf16ps(0, 4, 6);
            if (two) {
                _tile_loadd(5, v_tile(tile->v, d + AMX_SIDE, v_from + w), column);
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
        if (d > 0)
            add_to_o(o + (d - 2 * AMX_SIDE) * MICRO_ROWS, sums[1 - d / (2 * AMX_SIDE) % 2], decay, vecs, 2 * AMX_SIDE);
        columns = two ? 2 * AMX_SIDE : AMX_SIDE;
    }
    int64_t last = (tile->dim_o - 1) / (2 * AMX_SIDE);
    add_to_o(o + last * 2 * AMX_SIDE * MICRO_ROWS, sums[last % 2], decay, vecs, columns);
}

#endif
