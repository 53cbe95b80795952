/*
 * tiles_amx.h - attention on AMX tiles: what is in them, and the two products. rows_amx.h says what for.
 *
 * A tile register holds 16 rows of 64 bytes. C (16 x 16 float32) += A (16 x 16 words) B (16 words x 16), where a word is a pair of
 * bf16 along the summed dimension:
 *     S += Q K^T     A = q [16 rows][16 words of the dimension]     B = k [16 words of the dimension][16 keys]
 *     O += P V       A = p [16 rows][16 words of the keys]          B = v [16 words of the keys][16 columns]
 * K and V are brought into this form once for all tiles of a KV head (prepare_keys). A micro-tile of 32 rows takes the keys in
 * steps of 32, which are two by two tiles of S.
 *
 * Only five of the eight tiles are in use: 0 and 1 for sums, 2 and 3 for A, 4 for B. A core has few tiles more than that for the program
 * on its other hardware thread, and with eight in use a product takes up to four times as long as soon as there is one. The loads that
 * more tiles would save are hidden behind the products.
 */
#ifndef ATTEST_TILES_AMX_H
#define ATTEST_TILES_AMX_H

#include <math.h>
#include <string.h>

enum { SIDE = 16, TILE_FLOATS = SIDE * SIDE, STEP_KEYS = 2 * SIDE, MICRO_ROWS = 2 * SIDE };
/* K and V are prepared in blocks. For CACHE_STEPS steps all micro-tiles take their turn, so that they find K and V in the second-level
 * cache; the weights of all of them are there before they are multiplied with V, so that O is rarely loaded and stored. */
enum { BLOCK_KEYS = 256, BLOCK_STEPS = BLOCK_KEYS / STEP_KEYS, CACHE_STEPS = 4 * BLOCK_STEPS };
_Static_assert((int)ATTEST_PREPARE_KEYS == (int)BLOCK_KEYS, "K and V are prepared in the blocks they are used in");

#define INLINE static inline __attribute__((always_inline))
/* The compiler does not know that tile instructions read memory. */
#define MEMORY_IS_WRITTEN() __asm__ volatile("" ::: "memory")

static inline int64_t round_up(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

/* ---- K and V, once for a KV head ------------------------------------------------------------------------------------------- */

/* k [step][words / 16][2][16 words][16 keys]: the first of the two tiles has the keys 0-3, 8-11, 16-19, 24-27 of the step, the
 * second those between. Packing their weights to 16 bits, which goes by 128-bit lanes, then leaves them in their order.
 * v [columns / 16][step][16 words of keys][16 columns], so that some columns of many keys lie together. Keys that no row of the head
 * sees are zeros. */
static int64_t k_floats(const attest_problem *p)
{
    return round_up(p->dim, 2 * SIDE) / 2 * STEP_KEYS; /* a step */
}

static int64_t v_floats(const attest_problem *p)
{
    return round_up(p->dim_v, SIDE) * SIDE;
}

/* Behind them, for each block, the largest magnitude in K and the smallest in V but 0, as the bits of a bf16: those of infinity and
 * NaN are larger than any other. A problem with few rows and keys to a head is not prepared: its tiles have the same made in their scratch, where it stays
 * in the second-level cache. */
enum { OWN_ROWS = 768, OWN_KEYS = 512 };

static bool makes_its_own(const attest_problem *p)
{
    return p->seq_q * (p->heads_q / p->heads_kv) <= OWN_ROWS && p->seq_kv <= OWN_KEYS;
}

static int64_t steps_of(const attest_problem *p)
{
    return (p->seq_kv + STEP_KEYS - 1) / STEP_KEYS;
}

static int64_t prepared_floats(const attest_problem *p)
{
    return steps_of(p) * (k_floats(p) + v_floats(p)) + 2 * (round_up(p->seq_kv, BLOCK_KEYS) / BLOCK_KEYS);
}

static size_t prepared_size(const attest_problem *p)
{
    return makes_its_own(p) ? 0 : (size_t)prepared_floats(p) * sizeof(float);
}

static float *v_tile(const attest_problem *p, float *v, int64_t step, int64_t column)
{
    return v + steps_of(p) * column * SIDE + step * TILE_FLOATS;
}

struct extremes {
    uint32_t k_top, v_bottom;
};

struct prepared {
    float *k, *v;
    struct extremes *block;
};

static struct prepared prepared_at(const attest_problem *p, void *base)
{
    float *k = base, *v = k + steps_of(p) * k_floats(p);
    return (struct prepared){k, v, (struct extremes *)(v + steps_of(p) * v_floats(p))};
}

/* The larger of `top` and the magnitude in each of 32 lanes of bf16, as bits; and the largest of all lanes. */
static inline __m512i larger_magnitude(__m512i top, __m512i x)
{
    return _mm512_max_epu16(top, _mm512_and_si512(x, _mm512_set1_epi16(0x7fff)));
}

static inline uint32_t largest(__m512i top)
{
    return _mm512_reduce_max_epu32(_mm512_max_epu32(_mm512_srli_epi32(top, 16), _mm512_and_si512(top, _mm512_set1_epi32(0xffff))));
}

/* The smaller of `bottom` and the magnitude in each of 32 lanes, where 0 counts as the largest; and the smallest of all lanes. Here a
 * magnitude is less by one than its bits. */
static inline __m512i smaller_magnitude(__m512i bottom, __m512i x)
{
    const __m512i magnitude = _mm512_set1_epi16(0x7fff), one = _mm512_set1_epi16(1);
    return _mm512_min_epu16(bottom, _mm512_sub_epi16(_mm512_and_si512(x, magnitude), one));
}

static inline uint32_t smallest(__m512i bottom)
{
    const __m512i low_half = _mm512_set1_epi32(0xffff);
    return _mm512_reduce_min_epu32(_mm512_min_epu32(_mm512_srli_epi32(bottom, 16), _mm512_and_si512(bottom, low_half)));
}

/* The first n of 32 lanes. */
static inline __mmask32 first_lanes(int64_t n)
{
    return n >= 32 ? 0xffffffffu : n <= 0 ? 0 : (__mmask32)((1u << n) - 1);
}

/* Which key of a step is in a lane of its first or second tile of scores. */
static inline int key_in_lane(int half, int lane)
{
    return lane / 4 * 8 + half * 4 + lane % 4;
}

/* One step of K; `key` has NULL for a key that is to be zeros. Returns the larger of `top` and the magnitudes. */
static __m512i prepare_k(float *out, const void *const *key, int64_t dim, __m512i top)
{
    for (int64_t d = 0; d < dim; d += 2 * SIDE)
        for (int half = 0; half < 2; half++, out += TILE_FLOATS) {
            vf block[LANES];
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++) {
                const uint16_t *row = key[key_in_lane(half, i)];
                __m512i words = _mm512_maskz_loadu_epi16(row ? first_lanes(dim - d) : 0, row + d);
                top = larger_magnitude(top, words);
                block[i] = _mm512_castsi512_ps(words);
            }
            vf_transpose(block);
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                vf_store(out + i * SIDE, block[i]);
        }
    return top;
}

/* One step of V. Returns the smaller of `bottom` and the magnitudes. */
static __m512i prepare_v(const attest_problem *p, float *v, int64_t step, const void *const *key, __m512i bottom)
{
    for (int64_t d = 0; d < p->dim_v; d += SIDE) {
        float *out = v_tile(p, v, step, d);
        for (int pair = 0; pair < SIDE; pair++, out += SIDE) {
            const uint16_t *even = key[2 * pair], *odd = key[2 * pair + 1];
            __mmask16 some = (__mmask16)first_lanes(p->dim_v - d);
            __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(even ? some : 0, even + d));
            __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(odd ? some : 0, odd + d));
            __m512i words = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
            bottom = smaller_magnitude(bottom, words);
            _mm512_storeu_si512(out, words);
        }
    }
    return bottom;
}

/* Keys of the block that the mask hides from all rows of the head. */
static void leave_hidden_out(const attest_task *task, const void **key, const void **value)
{
    const attest_problem *p = task->problem;
    const int64_t group = p->heads_q / p->heads_kv;
    uint8_t live[BLOCK_KEYS] = {0};
    for (int64_t r = 0; r < task->q_count * group; r++) {
        int64_t lo, hi;
        attest_row_visible(task, r / group, &lo, &hi);
        attest_mask_live(p, attest_row_get(task, r).mask, lo, hi, task->key_begin, task->key_end - task->key_begin, live);
    }
    for (int64_t j = 0; j < BLOCK_KEYS; j++)
        if (!live[j])
            key[j] = value[j] = NULL;
}

/* Keys key_begin .. key_end of a task, at most a block. */
static void prepare_block(const attest_task *task, struct prepared to)
{
    const attest_problem *p = task->problem;
    const void *key[BLOCK_KEYS], *value[BLOCK_KEYS];
    int64_t first, end, unused;
    attest_row_visible(task, 0, &first, &unused); /* what rows see moves with the row */
    attest_row_visible(task, task->q_count - 1, &unused, &end);
    attest_key_pointers(task, false, task->key_begin, task->key_end - task->key_begin, key);
    attest_key_pointers(task, true, task->key_begin, task->key_end - task->key_begin, value);
    for (int64_t j = 0; j < BLOCK_KEYS; j++) {
        int64_t at = task->key_begin + j;
        if (at < first || at >= end || at >= task->key_end)
            key[j] = value[j] = NULL;
    }
    if (has(p, ATTEST_MASK))
        leave_hidden_out(task, key, value);
    __m512i top = _mm512_setzero_si512(), bottom = _mm512_set1_epi16(-1);
    for (int64_t j = task->key_begin; j < task->key_end; j += STEP_KEYS) {
        top = prepare_k(to.k + j / STEP_KEYS * k_floats(p), key + (j - task->key_begin), p->dim, top);
        bottom = prepare_v(p, to.v, j / STEP_KEYS, value + (j - task->key_begin), bottom);
    }
    to.block[task->key_begin / BLOCK_KEYS] = (struct extremes){largest(top), smallest(bottom)};
}

static void prepare_keys(const attest_task *task, void *scratch)
{
    (void)scratch;
    prepare_block(task, prepared_at(task->problem, task->shared));
}

/* ---- the tile of rows ------------------------------------------------------------------------------------------------------ */

struct tile {
    const attest_task *task;
    int64_t rows, words, columns; /* words of a row of Q and K, and columns of V, filled up to whole tiles */
    bool modify, rough;           /* scores change between the products; rough weights will do */
    float unit_scale;             /* what a plain dot product is multiplied by to become a score in log2 */
    double m_unit;                /* what m is multiplied by to be in natural units */
    float *q;                     /* [micro-tile][words / 16][32 rows][16] */
    float *o;                     /* [rows / 16][columns / 16][16 rows][16] */
    float *m, *l;                 /* m: the maximum, or the offset of quick_weights. l [rows][16]: a row is its sum */
    float *s, *p;                 /* s [step][32 rows][32 keys], p [step][32 rows][16 words of keys] */
    float *temp;
    float *k, *v; /* prepared, all keys */
    attest_row *row;
    int32_t *lo, *hi;   /* [rows up to whole micro-tiles] */
    uint32_t *q_top;    /* [micro-tile] the largest magnitude in Q, as the bits of a bf16 */
    bool *begun;        /* [micro-tile] whether O holds something yet: before that its tiles are not read */
    struct extremes kv; /* of all keys */
    void *own;          /* K and V prepared for this tile alone */
};

/* Carves the scratch, or, with base NULL, only says how much there must be. */
static size_t tile_carve(struct tile *tile, const attest_problem *p, int64_t tile_rows, char *base)
{
    int64_t rows = round_up(tile_rows, MICRO_ROWS);
    tile->words = round_up(p->dim, 2 * SIDE) / 2;
    tile->columns = round_up(p->dim_v, SIDE);
    const struct {
        void **at;
        int64_t bytes;
    } parts[] = {
        {(void **)&tile->q, rows * tile->words * 4},
        {(void **)&tile->o, rows * tile->columns * 4},
        {(void **)&tile->m, rows * 4},
        {(void **)&tile->l, rows * SIDE * 4},
        {(void **)&tile->s, BLOCK_KEYS * MICRO_ROWS * 4},
        {(void **)&tile->p, CACHE_STEPS * STEP_KEYS * MICRO_ROWS * 2},
        {(void **)&tile->temp, tile->columns * 4},
        {(void **)&tile->row, rows * (int64_t)sizeof(attest_row)},
        {(void **)&tile->lo, rows * 4},
        {(void **)&tile->hi, rows * 4},
        {(void **)&tile->q_top, rows / MICRO_ROWS * 4},
        {(void **)&tile->begun, rows / MICRO_ROWS},
        {(void **)&tile->own, makes_its_own(p) ? prepared_floats(p) * 4 : 0},
    };
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (base)
            *parts[i].at = base + used;
        used += (size_t)round_up(parts[i].bytes, 64);
    }
    return used;
}

/* ---- the matrix unit ------------------------------------------------------------------------------------------------------- */

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
        config.rows[i] = SIDE;
    }
    _tile_loadconfig(&config);
}

/* The scores of one or two times 16 rows with 16 keys, which are half of a step. Behind each product, MIXED. */
#define QK_16_KEYS(s, q, k, units, halves, MIXED)                                                                                  \
    do {                                                                                                                           \
        _tile_zero(0);                                                                                                             \
        _tile_zero(1);                                                                                                             \
        for (int64_t u = 0; u < units; u++) {                                                                                      \
            _tile_loadd(2, q + u * 2 * TILE_FLOATS, SIDE * 4);                                                                     \
            _tile_loadd(4, k + u * 2 * TILE_FLOATS, SIDE * 4);                                                                     \
            _tile_dpbf16ps(0, 2, 4);                                                                                               \
            MIXED;                                                                                                                 \
            if (halves == 2) {                                                                                                     \
                _tile_loadd(3, q + u * 2 * TILE_FLOATS + TILE_FLOATS, SIDE * 4);                                                   \
                _tile_dpbf16ps(1, 3, 4);                                                                                           \
                MIXED;                                                                                                             \
            }                                                                                                                      \
        }                                                                                                                          \
        _tile_stored(0, s, STEP_KEYS * 4);                                                                                         \
        if (halves == 2)                                                                                                           \
            _tile_stored(1, s + SIDE * STEP_KEYS, STEP_KEYS * 4);                                                                  \
    } while (0)

/* The same for all 32 keys of a step. */
#define QK_STEP(s, q, k, units, halves, MIXED)                                                                                     \
    do {                                                                                                                           \
        QK_16_KEYS(s, q, k, units, halves, MIXED);                                                                                 \
        QK_16_KEYS((s + SIDE), q, (k + TILE_FLOATS), units, halves, MIXED);                                                        \
    } while (0)

INLINE void qk_step(float *s, const float *q, const float *k, int64_t units, const int halves)
{
    QK_STEP(s, q, k, units, halves, (void)0);
}

/* Adds the weights of 16 rows, which are pairs of bf16, to 16 sums for each. */
INLINE void add_weights(vf *sum, const float *p, const int first, const int rows)
{
    const __m512bh one = (__m512bh)_mm512_set1_epi16(0x3f80);
#pragma GCC unroll 16
    for (int r = first; r < first + rows; r++)
        sum[r] = _mm512_dpbf16_ps(sum[r], (__m512bh)_mm512_loadu_si512(p + r * SIDE), one);
}

/* O += P V over some steps of keys for 16 columns and one or two times 16 rows; or, unless O has begun, O = P V. With `sums`, the
 * weights of the 16 rows `sum_p` are added to l [row][16] between the products. */
INLINE void pv_columns(float *o, int64_t o_half, const float *p, const float *v, int64_t steps, const int halves, bool begun,
                       const bool sums, const float *sum_p, float *l)
{
    const size_t row = SIDE * 4;
    const int share = SIDE / halves;
    vf sum[SIDE];
    _tile_zero(0);
    _tile_zero(1);
    if (begun)
        _tile_loadd(0, o, row);
    if (begun && halves == 2)
        _tile_loadd(1, o + o_half, row);
    if (sums)
#pragma GCC unroll 16
        for (int r = 0; r < SIDE; r++)
            sum[r] = vf_load(l + r * SIDE);
    for (int64_t n = 0; n < steps; n++, p += 2 * TILE_FLOATS, v += TILE_FLOATS) {
        _tile_loadd(2, p, row);
        _tile_loadd(4, v, row);
        _tile_dpbf16ps(0, 2, 4);
        if (sums)
            add_weights(sum, sum_p + n * 2 * TILE_FLOATS, 0, share);
        if (halves == 2) {
            _tile_loadd(3, p + TILE_FLOATS, row);
            _tile_dpbf16ps(1, 3, 4);
            if (sums)
                add_weights(sum, sum_p + n * 2 * TILE_FLOATS, share, share);
        }
    }
    if (sums)
#pragma GCC unroll 16
        for (int r = 0; r < SIDE; r++)
            vf_store(l + r * SIDE, sum[r]);
    _tile_stored(0, o, row);
    if (halves == 2)
        _tile_stored(1, o + o_half, row);
}

/* Which of the 32 keys from `key` on a row sees. */
static inline __mmask32 seen_keys(const struct tile *tile, int64_t row, int64_t key)
{
    return first_lanes(tile->hi[row] - key) & ~first_lanes(tile->lo[row] - key);
}

/* Of keys of a step, the lanes of its first or second tile of scores: see prepare_k. */
static inline __mmask16 lanes_of_half(__mmask32 keys, int half)
{
    uint32_t lanes = keys >> 4 * half & 0x0f0f0f0f;
    lanes = (lanes | lanes >> 4) & 0x00ff00ff;
    return (__mmask16)((lanes | lanes >> 8) & 0xffff);
}

static float *o_tiles(const struct tile *tile, int64_t row)
{
    return tile->o + row / SIDE * SIDE * tile->columns;
}

/* O += P V for a micro-tile over the first `steps` steps of p, which are step `at` and following of the sequence; with `sums`,
 * also l += P: 16 rows in each pass over the columns, since the vector units have nothing else to do there. */
INLINE void pv_block(const struct tile *tile, int64_t row, int64_t at, int64_t steps, const int halves, const bool sums)
{
    const attest_problem *problem = tile->task->problem;
    const int64_t o_half = SIDE * tile->columns;
    const float *p = tile->p;
    float *l = tile->l + row * SIDE;
    bool *begun = &tile->begun[row / MICRO_ROWS];
    int summed = 0; /* halves of the micro-tile */
    MEMORY_IS_WRITTEN();
    if (!steps)
        return;
    for (int64_t d = 0; d < tile->columns; d += SIDE) {
        const float *v = v_tile(problem, tile->v, at, d);
        float *o = o_tiles(tile, row) + d * SIDE;
        if (sums && summed < halves) {
            pv_columns(o, o_half, p, v, steps, halves, *begun, true, p + summed * TILE_FLOATS, l + summed * TILE_FLOATS);
            summed++;
        } else {
            pv_columns(o, o_half, p, v, steps, halves, *begun, false, NULL, NULL);
        }
    }
    for (int64_t r = summed * SIDE; sums && r < halves * SIDE; r++) {
        vf sum = vf_load(l + r * SIDE);
        for (int64_t n = 0; n < steps; n++)
            add_weights(&sum, p + n * 2 * TILE_FLOATS + r * SIDE, 0, 1);
        vf_store(l + r * SIDE, sum);
    }
    *begun = true;
    MEMORY_IS_WRITTEN();
}

/* What there is of a row of O, times `factor`. */
static void scale_o(struct tile *tile, int64_t r, vf factor)
{
    float *o = o_tiles(tile, r) + r % SIDE * SIDE;
    int64_t tiles = tile->begun[r / MICRO_ROWS] ? tile->columns / SIDE : 0;
    for (int64_t t = 0; t < tiles; t++)
        vf_store(o + t * TILE_FLOATS, vf_mul(vf_load(o + t * TILE_FLOATS), factor));
}

#endif
