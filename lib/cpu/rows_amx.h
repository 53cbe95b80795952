/*
 * rows_amx.h - flash attention on AMX tiles: the prefill path of cpu_fwd_amx.c.
 *
 * Contract: any problem in bf16 without a bias; any row count.
 *
 * A tile register holds 16 rows of 64 bytes. C (16 x 16 float32) += A (16 x 16 words) B (16 words x 16), where a word is a pair of
 * bf16 along the summed dimension:
 *     S += Q K^T     A = q [16 rows][16 words of the dimension]     B = k [16 words of the dimension][16 keys]
 *     O += P V       A = p [16 rows][16 words of the keys]          B = v [16 words of the keys][16 columns]
 * K and V are brought into this form once for all tiles of a KV head (prepare_keys). A micro-tile of 32 rows takes the keys in
 * steps of 32, which are two by two tiles of S, and multiplies the weights of up to eight steps with V at a time. Steps begin at
 * multiples of 32, counted from the first key of the sequence, micro-tiles at multiples of 32 rows of the KV head, and a key that
 * a row does not see adds exactly 0: so bits do not depend on how rows are cut into tiles.
 *
 * Two kinds of softmax:
 *     quick    O in bf16 is all that is seen, and scores are plain and finite: one pass over S, in integers of 16 bits.
 *     exact    everything else: float32, the maximum of a block before its weights, sums of the weights before they are rounded.
 */
#ifndef ATTEST_ROWS_AMX_H
#define ATTEST_ROWS_AMX_H

#include <math.h>
#include <string.h>

enum { SIDE = 16, TILE_FLOATS = SIDE * SIDE, STEP_KEYS = 2 * SIDE, MICRO_ROWS = 2 * SIDE };
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
 * v [step][columns / 16][16 words of keys][16 columns]. Keys that no row of the head sees are zeros. */
static int64_t k_floats(const attest_problem *p)
{
    return round_up(p->dim, 2 * SIDE) / 2 * STEP_KEYS; /* a step */
}

static int64_t v_floats(const attest_problem *p)
{
    return round_up(p->dim_v, SIDE) * SIDE;
}

/* Behind them, for each block, the largest magnitude in K, as the bits of a bf16: those of infinity and NaN are larger than any
 * other. A problem with few rows and keys to a head is not prepared: its tiles have the same made in their scratch, where it stays
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
    return steps_of(p) * (k_floats(p) + v_floats(p)) + round_up(p->seq_kv, BLOCK_KEYS) / BLOCK_KEYS;
}

static size_t prepared_size(const attest_problem *p)
{
    return makes_its_own(p) ? 0 : (size_t)prepared_floats(p) * sizeof(float);
}

struct prepared {
    float *k, *v;
    uint32_t *k_top;
};

static struct prepared prepared_at(const attest_problem *p, void *base)
{
    float *k = base, *v = k + steps_of(p) * k_floats(p);
    return (struct prepared){k, v, (uint32_t *)(v + steps_of(p) * v_floats(p))};
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

/* One step of V. */
static void prepare_values(float *out, const void *const *key, int64_t dim)
{
    for (int64_t d = 0; d < dim; d += SIDE)
        for (int pair = 0; pair < SIDE; pair++, out += SIDE) {
            const uint16_t *even = key[2 * pair], *odd = key[2 * pair + 1];
            __mmask16 some = (__mmask16)first_lanes(dim - d);
            __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(even ? some : 0, even + d));
            __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(odd ? some : 0, odd + d));
            _mm512_storeu_si512(out, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
        }
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
    __m512i top = _mm512_setzero_si512();
    for (int64_t j = task->key_begin; j < task->key_end; j += STEP_KEYS) {
        top = prepare_k(to.k + j / STEP_KEYS * k_floats(p), key + (j - task->key_begin), p->dim, top);
        prepare_values(to.v + j / STEP_KEYS * v_floats(p), value + (j - task->key_begin), p->dim_v);
    }
    to.k_top[task->key_begin / BLOCK_KEYS] = largest(top);
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
    bool modify, rough, quick;    /* scores change between the products; rough weights will do; see above */
    float unit_scale;             /* what a plain dot product is multiplied by to become a score in log2 */
    double m_unit;                /* what m is multiplied by to be in natural units */
    float *q;                     /* [micro-tile][words / 16][32 rows][16] */
    float *o;                     /* [rows / 16][columns / 16 + 1][16 rows][16]: behind the columns the sum of the weights */
    float *m, *l;                 /* quick: m is the offset of quick_weights. exact: l [rows][16], a row is its sum */
    float *s, *p;                 /* s [step][32 rows][32 keys], p [step][32 rows][16 words of keys] */
    float *temp;
    const float *k, *v; /* prepared, all keys */
    attest_row *row;
    int32_t *lo, *hi; /* [rows up to whole micro-tiles] */
    uint32_t *q_top;  /* [micro-tile] the largest magnitude in Q, as the bits of a bf16 */
    uint32_t k_top;   /* and in K */
    void *own;        /* K and V prepared for this tile alone */
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
        {(void **)&tile->o, rows * (tile->columns + SIDE) * 4},
        {(void **)&tile->m, rows * 4},
        {(void **)&tile->l, rows * SIDE * 4},
        {(void **)&tile->s, BLOCK_KEYS * MICRO_ROWS * 4},
        {(void **)&tile->p, BLOCK_KEYS * MICRO_ROWS * 2},
        {(void **)&tile->temp, tile->columns * 4},
        {(void **)&tile->row, rows * (int64_t)sizeof(attest_row)},
        {(void **)&tile->lo, rows * 4},
        {(void **)&tile->hi, rows * 4},
        {(void **)&tile->q_top, rows / MICRO_ROWS * 4},
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

/* One step of the dimension for the scores of one or two times 16 rows with 32 keys. Behind each product, MIXED. */
#define QK_PRODUCTS(q, k, halves, MIXED)                                                                                           \
    do {                                                                                                                           \
        _tile_loadd(4, q, SIDE * 4);                                                                                               \
        _tile_loadd(6, k, SIDE * 4);                                                                                               \
        _tile_dpbf16ps(0, 4, 6);                                                                                                   \
        MIXED;                                                                                                                     \
        _tile_loadd(7, k + TILE_FLOATS, SIDE * 4);                                                                                 \
        _tile_dpbf16ps(1, 4, 7);                                                                                                   \
        MIXED;                                                                                                                     \
        if (halves == 2) {                                                                                                         \
            _tile_loadd(5, q + TILE_FLOATS, SIDE * 4);                                                                             \
            _tile_dpbf16ps(2, 5, 6);                                                                                               \
            MIXED;                                                                                                                 \
            _tile_dpbf16ps(3, 5, 7);                                                                                               \
            MIXED;                                                                                                                 \
        }                                                                                                                          \
    } while (0)

INLINE void qk_products(const float *q, const float *k, const int halves)
{
    QK_PRODUCTS(q, k, halves, (void)0);
}

INLINE void qk_begin(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

INLINE void qk_end(float *s, const int halves)
{
    const size_t row = STEP_KEYS * 4;
    _tile_stored(0, s, row);
    _tile_stored(1, s + SIDE, row);
    if (halves == 2) {
        _tile_stored(2, s + SIDE * STEP_KEYS, row);
        _tile_stored(3, s + SIDE * STEP_KEYS + SIDE, row);
    }
}

/* V for which P V is the sum of the weights. */
static const uint32_t ones[TILE_FLOATS] __attribute__((aligned(64))) = {
#define ONES_4  0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80,
#define ONES_32 ONES_4 ONES_4 ONES_4 ONES_4 ONES_4 ONES_4 ONES_4 ONES_4
    ONES_32 ONES_32 ONES_32 ONES_32 ONES_32 ONES_32 ONES_32 ONES_32};

/* O += P V over some steps of keys for one or two tiles of columns, and one or two times 16 rows. A second tile of columns that is
 * `sums` has the sum of the weights in all its columns. */
INLINE void pv_columns(float *o, int64_t o_half, const float *p, const float *v, int64_t v_step, int64_t steps, const int halves,
                       const int columns, const bool sums)
{
    const size_t row = SIDE * 4;
    _tile_loadd(0, o, row);
    if (columns == 2)
        _tile_loadd(1, o + TILE_FLOATS, row);
    if (halves == 2)
        _tile_loadd(2, o + o_half, row);
    if (halves == 2 && columns == 2)
        _tile_loadd(3, o + o_half + TILE_FLOATS, row);
    if (sums)
        _tile_loadd(7, ones, row);
    for (int64_t n = 0; n < steps; n++, p += 2 * TILE_FLOATS, v += v_step) {
        _tile_loadd(4, p, row);
        _tile_loadd(6, v, row);
        _tile_dpbf16ps(0, 4, 6);
        if (halves == 2) {
            _tile_loadd(5, p + TILE_FLOATS, row);
            _tile_dpbf16ps(2, 5, 6);
        }
        if (columns == 2) {
            if (!sums)
                _tile_loadd(7, v + TILE_FLOATS, row);
            _tile_dpbf16ps(1, 4, 7);
            if (halves == 2)
                _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, o, row);
    if (columns == 2)
        _tile_stored(1, o + TILE_FLOATS, row);
    if (halves == 2)
        _tile_stored(2, o + o_half, row);
    if (halves == 2 && columns == 2)
        _tile_stored(3, o + o_half + TILE_FLOATS, row);
}

/* Which of the 32 keys from `key` on a row sees. */
static inline __mmask32 seen_keys(const struct tile *tile, int64_t row, int64_t key)
{
    return first_lanes(tile->hi[row] - key) & ~first_lanes(tile->lo[row] - key);
}

static float *o_tiles(const struct tile *tile, int64_t row)
{
    return tile->o + row / SIDE * SIDE * (tile->columns + SIDE);
}

/* O += P V for a micro-tile over the first `steps` steps of p, which are step `at` and following of the sequence. */
INLINE void pv_block(const struct tile *tile, int64_t row, int64_t at, int64_t steps, const int halves)
{
    const int64_t v_step = tile->columns * SIDE, o_half = SIDE * (tile->columns + SIDE);
    const float *v = tile->v + at * v_step, *p = tile->p;
    float *o = o_tiles(tile, row);
    int64_t left = tile->columns / SIDE;
    MEMORY_IS_WRITTEN();
    if (!steps)
        return;
    for (; left >= 2; left -= 2, o += 2 * TILE_FLOATS, v += 2 * TILE_FLOATS)
        pv_columns(o, o_half, p, v, v_step, steps, halves, 2, false);
    if (left && tile->quick)
        pv_columns(o, o_half, p, v, v_step, steps, halves, 2, true);
    else if (left)
        pv_columns(o, o_half, p, v, v_step, steps, halves, 1, false);
    else if (tile->quick) /* the sums alone */
        pv_columns(o, o_half, p, (const float *)ones, 0, steps, halves, 1, false);
    MEMORY_IS_WRITTEN();
}

/* ---- quick softmax --------------------------------------------------------------------------------------------------------- */

/* The bits of the bf16 2^(n + f), with an integer n and 0 <= f < 1, are 128 (n + 127 + 2^f - 1), and 2^f - 1 is f less at most
 * 0.087. So a score becomes the integer t = 512 (score - m + QUICK_BIAS), where all that lies below the range saturates at 0; what
 * f is too large by, in the same unit, comes out of a table for its upper seven bits; and what is left are the bits, shifted by
 * two. The table also rounds: the relative error of a weight has a standard deviation of 0.00170, and rounding alone has 0.00166.
 *
 * m is the largest score among the first keys that a row sees, and stays unless a weight would become 1, which is 4096 times that of
 * m: so there is no maximum to be known before weights can be made, and O is hardly ever multiplied. What all weights of a row have
 * in common is of no matter, since O is divided by the sum of the weights as they are. It comes from the matrix unit, as one more
 * column of V that is all ones, and so a row with one dominant key still returns its value. The room above m has a price: products
 * below 2^-126 are 0 in the matrix unit, and the weight of m is 2^-12, so values of V below 2^-114 may count as 0. */
enum { QUICK_BIAS = 115, QUICK_TOP = 512 * 127 - 1 };

static const uint8_t quick_correction[128] __attribute__((aligned(64))) = {
    1,  1,  3,  4,  5,  6,  8,  8,  9,  11, 12, 12, 14, 15, 16, 16, 18, 19, 20, 20, 22, 23, 24, 24, 25, 26, 27, 28, 28, 29, 30, 31,
    32, 32, 32, 33, 34, 35, 35, 36, 36, 37, 37, 38, 39, 39, 40, 40, 40, 40, 41, 41, 42, 42, 42, 43, 43, 43, 43, 44, 44, 44, 44, 44,
    44, 44, 44, 44, 44, 44, 44, 44, 44, 44, 44, 44, 43, 43, 43, 43, 43, 42, 42, 42, 41, 41, 41, 40, 40, 39, 39, 38, 38, 37, 37, 36,
    35, 34, 34, 33, 33, 31, 31, 30, 29, 29, 27, 26, 26, 25, 23, 22, 21, 21, 19, 18, 17, 15, 14, 13, 11, 10, 9,  7,  6,  5,  3,  2};

struct quick {
    vf scale;
    __m512i table[2], top; /* top: the largest t so far */
};

/* Weights of the 32 keys from `key` on for rows first .. end of a micro-tile; those that a row does not see are 0. */
INLINE void quick_weights(const struct tile *tile, struct quick *quick, float *p, const float *s, int64_t row, int64_t first,
                          int64_t end, int64_t key, const bool masked)
{
    const __m512i upper_f = _mm512_set1_epi64(0x0032002200120002); /* in each 16 bits, the bits from 2 on */
#pragma GCC unroll 4
    for (int64_t r = first; r < end; r++) {
        vf offset = vf_set1(tile->m[row + r]);
        __m512i even = _mm512_cvtps_epi32(vf_fma(vf_load(s + r * STEP_KEYS), quick->scale, offset));
        __m512i odd = _mm512_cvtps_epi32(vf_fma(vf_load(s + r * STEP_KEYS + SIDE), quick->scale, offset));
        __m512i t = _mm512_packus_epi32(even, odd);
        if (masked)
            t = _mm512_maskz_mov_epi16(seen_keys(tile, row + r, key), t);
        quick->top = _mm512_max_epu16(quick->top, t);
        __m512i index = _mm512_multishift_epi64_epi8(upper_f, t);
        __m512i excess = _mm512_maskz_permutex2var_epi8(0x5555555555555555, quick->table[0], index, quick->table[1]);
        _mm512_storeu_si512(p + r * SIDE, _mm512_srli_epi16(_mm512_subs_epu16(t, excess), 2));
    }
}

/* A row of O, and the sum behind it, times `factor`. */
static void scale_o(struct tile *tile, int64_t r, vf factor)
{
    float *o = o_tiles(tile, r) + r % SIDE * SIDE;
    for (int64_t t = 0; t <= tile->columns / SIDE; t++)
        vf_store(o + t * TILE_FLOATS, vf_mul(vf_load(o + t * TILE_FLOATS), factor));
}

/* The largest score of each of 16 rows among the 32 keys of a step that it sees; -inf if it sees none. */
static vf quick_tops(const struct tile *tile, const float *s, int64_t row, int64_t key)
{
    vf top[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) {
        __mmask32 seen = seen_keys(tile, row + i, key);
        top[i] = vf_set1(-INFINITY);
        for (int half = 0; half < 2; half++) { /* which lanes: see prepare_k */
            uint32_t lanes = seen >> 4 * half & 0x0f0f0f0f;
            lanes = (lanes | lanes >> 4) & 0x00ff00ff;
            lanes = (lanes | lanes >> 8) & 0xffff;
            top[i] = _mm512_mask_max_ps(top[i], (__mmask16)lanes, top[i], vf_load(s + i * STEP_KEYS + half * SIDE));
        }
    }
    vf_transpose(top);
#pragma GCC unroll 4
    for (int step = LANES / 2; step > 0; step /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < step; i++)
            top[i] = vf_max(top[i], top[i + step]);
    return top[0];
}

/* In rows where the scores of a step are too far above m, m follows them, and what the row has so far follows m; in rows that see
 * their first keys, m is set. Returns whether some row has still seen none. */
static bool quick_raise(struct tile *tile, const float *s, vf scale, int64_t row, int64_t key, int halves)
{
    vm waiting = 0;
    for (int half = 0; half < halves; half++, row += SIDE, s += SIDE * STEP_KEYS) {
        vf top = quick_tops(tile, s, row, key), before = vf_load(tile->m + row);
        vm none = vm_equal(before, vf_set1(-INFINITY)), unseen = vm_equal(top, vf_set1(-INFINITY));
        vm above = vm_less(vf_set1(QUICK_TOP), _mm512_roundscale_ps(vf_fma(top, scale, before), 0));
        vm change = (vm)((none | above) & ~unseen);
        vf now = vf_select(change, vf_sub(vf_set1(512 * QUICK_BIAS), vf_mul(top, scale)), before);
        float decay[LANES];
        vf_store(decay, vf_exp2(vf_mul(vf_sub(now, before), vf_set1(1.0f / 512))));
        for (int i = 0; i < LANES; i++)
            if ((change & ~none) >> i & 1)
                scale_o(tile, row + i, vf_set1(decay[i]));
        vf_store(tile->m + row, now);
        waiting |= none & unseen;
    }
    return waiting != 0;
}

/* The weights of one step and, between them, the scores of the next: after each product `share` rows, so that the matrix unit and
 * the vector units work at the same time. */
INLINE void quick_step(const struct tile *tile, struct quick *quick, float *p, const float *s, int64_t row, int64_t key,
                       float *s_next, const float *k_next, const int halves, const int share, const bool masked)
{
    const int64_t unit = 2 * TILE_FLOATS, units = tile->words / SIDE;
    const float *q = tile->q + row * tile->words;
    int64_t done = 0;
    qk_begin();
    for (int64_t u = 0; u < units; u++)
        QK_PRODUCTS((q + u * unit), (k_next + u * unit), halves, {
            if (done < halves * SIDE)
                quick_weights(tile, quick, p, s, row, done, done + share, key, masked);
            done += share;
        });
    qk_end(s_next, halves);
}

/* Steps first .. end of the sequence for a micro-tile. */
INLINE void quick_rows(struct tile *tile, int64_t row, int64_t first, int64_t end, int64_t all_lo, int64_t all_hi, const int halves)
{
    struct quick quick = {.scale = vf_set1(512 * tile->unit_scale)};
    quick.table[0] = _mm512_load_si512(quick_correction);
    quick.table[1] = _mm512_load_si512(quick_correction + 64);
    const __m512i limit = _mm512_set1_epi16((short)QUICK_TOP);
    const int64_t k_step = tile->words * STEP_KEYS, unit = 2 * TILE_FLOATS, units = tile->words / SIDE, rows = halves * SIDE;
    bool waiting = false; /* rows that have not seen a key yet */
    for (int64_t r = row; r < row + rows; r++)
        waiting |= tile->m[r] == -INFINITY;
    qk_begin();
    for (int64_t u = 0; u < units; u++)
        qk_products(tile->q + row * tile->words + u * unit, tile->k + first * k_step + u * unit, halves);
    qk_end(tile->s + first % 2 * STEP_KEYS * MICRO_ROWS, halves);
    for (int64_t n = first, block = first; n < end; n++) {
        const int64_t key = n * STEP_KEYS;
        const bool masked = key < all_lo || key + STEP_KEYS > all_hi;
        float *s = tile->s + n % 2 * STEP_KEYS * MICRO_ROWS, *s_next = tile->s + (n + 1) % 2 * STEP_KEYS * MICRO_ROWS;
        float *p = tile->p + (n - block) * 2 * TILE_FLOATS;
        const float *k_next = tile->k + (n + 1) * k_step;
        if (waiting)
            waiting = quick_raise(tile, s, quick.scale, row, key, halves);
        quick.top = _mm512_setzero_si512();
        if (masked || n + 1 == end) {
            if (n + 1 < end)
                quick_step(tile, &quick, p, s, row, key, s_next, k_next, halves, 8, true);
            else
                quick_weights(tile, &quick, p, s, row, 0, rows, key, true);
        } else if (units >= 4) {
            quick_step(tile, &quick, p, s, row, key, s_next, k_next, halves, 2, false);
        } else if (units >= 2) {
            quick_step(tile, &quick, p, s, row, key, s_next, k_next, halves, 4, false);
        } else {
            quick_step(tile, &quick, p, s, row, key, s_next, k_next, halves, 8, false);
        }
        if (_mm512_cmpgt_epu16_mask(quick.top, limit)) { /* what has been weighed with the old m goes into O before m changes */
            pv_block(tile, row, block, n - block, halves);
            block = n;
            p = tile->p;
            quick_raise(tile, s, quick.scale, row, key, halves);
            quick_weights(tile, &quick, p, s, row, 0, rows, key, true);
        }
        if (n + 1 == end || n + 1 - block == BLOCK_STEPS) {
            pv_block(tile, row, block, n + 1 - block, halves);
            block = n + 1;
        }
    }
    for (int64_t r = row; r < row + rows; r++)
        tile->l[r * SIDE] = o_tiles(tile, r)[tile->columns * SIDE + r % SIDE * SIDE];
}

/* ---- exact softmax --------------------------------------------------------------------------------------------------------- */

/* The numbers of the keys in the lanes: see key_in_lane. */
INLINE vi lane_keys(int64_t key, int half)
{
    vi lane = vi_iota();
    vi in_step = vi_add(_mm512_slli_epi32(_mm512_srli_epi32(lane, 2), 3), _mm512_and_si512(lane, vi_set1(3)));
    return vi_add(in_step, vi_set1((int32_t)key + half * 4));
}

/* Softcap, ALiBi and masks on the scores of one row with half the keys of a step. */
INLINE vf modified(const struct tile *tile, vf x, int64_t r, vi key)
{
    const attest_problem *p = tile->task->problem;
    const attest_row *row = &tile->row[r < tile->rows ? r : tile->rows - 1];
    if (tile->modify) {
        x = vf_mul(x, vf_set1(tile->unit_scale));
        if (has(p, ATTEST_SOFTCAP))
            x = vf_mul(vf_mul(vf_set1(p->softcap), vf_set1((float)LOG2E)), vf_tanh(x));
        if (has(p, ATTEST_ALIBI))
            x = vf_sub(x, vf_mul(vf_mul(vf_set1(row->slope), vf_set1((float)LOG2E)),
                                 vf_abs(vf_from_int(vi_sub(vi_set1(row->place), key)))));
    }
    vm gone = vm_or(vm_greater(vi_set1(tile->lo[r]), key), vm_greater(vi_add(key, vi_set1(1)), vi_set1(tile->hi[r])));
    return vf_select(gone, vf_set1(-INFINITY), x);
}

/* P from S for row r over some steps, of which `key` is the first key; m, l and O follow. Scores, and m, are in units of `unit` in
 * log2: a score less the maximum, times that, is what 2 is raised to, so that the maximum weighs exactly 1. */
INLINE void exact_row(struct tile *tile, int64_t r, int64_t key, int64_t steps, vf unit, const bool rough)
{
    float *s = tile->s + r % MICRO_ROWS * STEP_KEYS, *p = tile->p + r % MICRO_ROWS * SIDE;
    vf top = vf_set1(-INFINITY), sum = vf_zero(), sum_odd = vf_zero();
    for (int64_t n = 0; n < steps; n++)
        for (int half = 0; half < 2; half++) {
            float *at = s + n * STEP_KEYS * MICRO_ROWS + half * SIDE;
            vf x = modified(tile, vf_load(at), r, lane_keys(key + n * STEP_KEYS, half));
            vf_store(at, x);
            top = vf_max(top, x);
        }
    float before = tile->m[r], block = vf_top(top), now = before > block ? before : block;
    vf shift = vf_set1(now == -INFINITY ? 0 : now); /* a row that has seen nothing yet */
    const __m512i in_order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    for (int64_t n = 0; n < steps; n++) {
        const float *at = s + n * STEP_KEYS * MICRO_ROWS;
        vf even = pair_exp2(vf_mul(vf_sub(vf_load(at), shift), unit), rough);
        vf odd = pair_exp2(vf_mul(vf_sub(vf_load(at + SIDE), shift), unit), rough);
        __m512i packed = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
        _mm512_storeu_si512(p + n * SIDE * MICRO_ROWS, _mm512_permutexvar_epi64(in_order, packed));
        sum = vf_add(sum, even);
        sum_odd = vf_add(sum_odd, odd);
    }
    sum = vf_add(sum, sum_odd);
    if (now != before) {
        vf decay = vf_exp2(vf_mul(vf_sub(vf_set1(before), shift), unit));
        scale_o(tile, r, decay);
        sum = vf_fma(vf_load(tile->l + r * SIDE), decay, sum);
    } else {
        sum = vf_add(vf_load(tile->l + r * SIDE), sum);
    }
    vf_store(tile->l + r * SIDE, sum);
    tile->m[r] = now;
}

static void exact_rows(struct tile *tile, int64_t row, int64_t first, int64_t end, int halves)
{
    const float *q = tile->q + row * tile->words;
    const int64_t k_step = tile->words * STEP_KEYS, unit = 2 * TILE_FLOATS, units = tile->words / SIDE;
    const vf log2_unit = vf_set1((float)(tile->m_unit * LOG2E));
    for (int64_t block = first, to; block < end; block = to) {
        to = (block / BLOCK_STEPS + 1) * BLOCK_STEPS < end ? (block / BLOCK_STEPS + 1) * BLOCK_STEPS : end;
        for (int64_t n = block; n < to; n++) {
            qk_begin();
            for (int64_t u = 0; u < units; u++)
                qk_products(q + u * unit, tile->k + n * k_step + u * unit, 2);
            qk_end(tile->s + (n - block) * STEP_KEYS * MICRO_ROWS, 2);
        }
        for (int64_t r = row; r < row + halves * SIDE && r < tile->rows; r++)
            if (tile->rough)
                exact_row(tile, r, block * STEP_KEYS, to - block, log2_unit, true);
            else
                exact_row(tile, r, block * STEP_KEYS, to - block, log2_unit, false);
        pv_block(tile, row, block, to - block, 2);
    }
}

/* ---- the whole tile -------------------------------------------------------------------------------------------------------- */

/* What attest_row_get says of the row behind `row` in its query head, where places do not matter; without its divisions. */
static attest_row next_row(const attest_problem *p, attest_row row)
{
    row.q = (const char *)row.q + p->stride_q[2] * 2;
    row.o = (char *)row.o + p->stride_o[2] * (p->dtype_o == ATTEST_F32 ? 4 : 2);
    if (row.lse)
        row.lse += p->stride_lse[2];
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
    memset(tile->o, 0, (size_t)(round_up(tile->rows, MICRO_ROWS) * (tile->columns + SIDE)) * 4);
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

/* Whether no score of a micro-tile can be so large, or NaN, that quick_weights would not know what to do with it. */
static bool is_tame(const struct tile *tile, int64_t row)
{
    double largest_dot = (double)attest_from_bf16((uint16_t)tile->q_top[row / MICRO_ROWS]) *
                         (double)attest_from_bf16((uint16_t)tile->k_top) * (double)tile->task->problem->dim;
    return largest_dot * 512 * (double)tile->unit_scale < 0x1p30;
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
    tile->quick = tile->rough && !tile->modify && !has(tile->task->problem, ATTEST_SINK) && is_tame(tile, row);
    if (!tile->quick)
        exact_rows(tile, row, first, end, rows > SIDE ? 2 : 1);
    else if (rows > SIDE)
        quick_rows(tile, row, first, end, all_lo, all_hi, 2);
    else
        quick_rows(tile, row, first, end, all_lo, all_hi, 1);
}

/* K and V, and the largest magnitude in K. */
static void keys_begin(struct tile *tile)
{
    attest_task block = *tile->task;
    struct prepared made = prepared_at(block.problem, makes_its_own(block.problem) ? tile->own : block.shared);
    tile->k = made.k;
    tile->v = made.v;
    for (block.key_begin = 0; block.key_begin < block.kv_count; block.key_begin += BLOCK_KEYS) {
        block.key_end = block.key_begin + BLOCK_KEYS < block.kv_count ? block.key_begin + BLOCK_KEYS : block.kv_count;
        if (makes_its_own(block.problem))
            prepare_block(&block, made);
        uint32_t top = made.k_top[block.key_begin / BLOCK_KEYS];
        tile->k_top = top > tile->k_top ? top : tile->k_top;
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
    /* So many keys at a time that all micro-tiles find them in the second-level cache. */
    for (int64_t step = 0; step * STEP_KEYS < task->key_end; step += CACHE_STEPS)
        for (int64_t row = 0; row < tile.rows; row += MICRO_ROWS)
            micro_tile(&tile, row, step, step + CACHE_STEPS);
    _tile_release();
    rows_end(&tile);
}

#endif
