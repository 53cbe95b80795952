/*
 * decode_amx.h - the two products of decode_tile.h on AMX tiles, for dimensions that are multiples of 32.
 *
 * K and V go into tiles as they lie in memory, 16 keys by 16 words, where a word is two bf16 of a key:
 *     S += K Q^T     A = k [16 keys][16 words]           B = q [16 words][16 rows of Q]
 *     O += P V       A = p [16 rows][a word a key]       B = v [16 keys][16 words]
 * The matrix unit multiplies both halves of a word of A with those of a word of B and adds them up. In the second product the halves of B
 * are two columns of the same key. So each weight is there twice: in the lower half of a word with 0 above it, in a row of A whose sums
 * are the even columns, and in the upper half, in a row whose sums are the odd ones. There is room for more rows than that: a weight is
 * what it is rounded to and what that leaves, so that 16 bits of it count.
 *
 * Keys are taken by sixteen, counted from the first of a block; bits do not depend on where they lie.
 */
#ifndef ATTEST_DECODE_AMX_H
#define ATTEST_DECODE_AMX_H

/* Dimensions in a tile; the most tiles of a key; tiles of O that are summed at a time; groups of 16 keys whose weights are made at a
 * time; and how many keys ahead memory is asked for. */
enum { UNIT = 2 * SIDE, MOST_UNITS = DIM_MAX / UNIT, SUM_UNITS = 4, WEIGHT_GROUPS = 4, TILES_AHEAD = 24 };

struct matrix {
    float s[2][TILE_FLOATS];                   /* [16 keys][16 rows] */
    float p[2][WEIGHT_GROUPS][2][TILE_FLOATS]; /* see weights_make */
    float o[SUM_UNITS][TILE_FLOATS];           /* [16 rows as in p][16 words of columns] */
    float q[MOST_UNITS][TILE_FLOATS];          /* [16 words][16 rows] */
    uint16_t copy[SIDE * MOST_UNITS * UNIT];   /* keys that do not lie at equal distances */
};

static bool matrix_takes(const attest_problem *p)
{
    return p->dim % UNIT == 0 && p->dim_v % UNIT == 0 && !has(p, ATTEST_MASK);
}

static struct matrix *matrix_of(const struct decode *x)
{
    return (struct matrix *)(x->o + DECODE_ROWS * x->dim_o);
}

static void matrix_begin(const struct decode *x)
{
    struct matrix *matrix = matrix_of(x);
    matrix_unit_begin();
    for (int64_t u = 0; u * UNIT < x->task->problem->dim; u++) {
        vf block[LANES];
#pragma GCC unroll 16
        for (int r = 0; r < LANES; r++)
            block[r] = r < DECODE_ROWS && r < x->rows ? vf_load((const float *)x->row[r].q + u * SIDE) : vf_zero();
        vf_transpose(block);
#pragma GCC unroll 16
        for (int r = 0; r < LANES; r++)
            vf_store(matrix->q[u] + r * SIDE, block[r]);
    }
}

static void matrix_end(void)
{
    _tile_release();
}

/* Rows at equal distances, from `key` on, and how many times 16 of them there are: where they lie, or a copy of the next 16, with zeros
 * for those behind `end`. */
static struct stream groups_get(const struct decode *x, bool is_v, int64_t key, int64_t end, int64_t *groups)
{
    const int64_t bytes = (is_v ? x->task->problem->dim_v : x->task->problem->dim) * 2, run = run_end(x, key, end) - key;
    *groups = run / SIDE;
    if (*groups)
        return stream_get(x->task, is_v, key);
    *groups = 1;
    const void *row[SIDE];
    char *copy = (char *)matrix_of(x)->copy;
    const int64_t count = end - key < SIDE ? end - key : SIDE;
    attest_key_pointers(x->task, is_v, key, count, row);
    for (int64_t n = 0; n < count; n++)
        memcpy(copy + n * bytes, row[n], (size_t)bytes);
    memset(copy + count * bytes, 0, (size_t)((SIDE - count) * bytes));
    return (struct stream){copy, bytes};
}

/* Asks for rows that come TILES_AHEAD of those of the stream, until `due` have been, counting each `units` times. They come as far as the
 * first-level cache: while memory is asked for as much as it can deliver, what has to come from the second waits behind it. */
DECODE_INLINE void ask(struct stream s, int64_t *asked, int64_t due, const int64_t units)
{
    for (; *asked * units < due; ++*asked)
        for (int64_t u = 0; u < units; u++)
            __builtin_prefetch(s.first + (*asked + TILES_AHEAD) * s.step + u * UNIT * 2, 0, 3);
}

/* Scores of one or two times 16 keys, the first of which is key `at` of the block. */
DECODE_INLINE void group_dots(struct decode *x, int64_t at, struct stream k, vf scale, const int64_t units, const int groups)
{
    struct matrix *matrix = matrix_of(x);
    const size_t step = (size_t)k.step;
    const __m512i index = _mm512_slli_epi32(vi_iota(), 4);
    int64_t asked = 0;
    MEMORY_IS_WRITTEN();
    _tile_zero(0);
    _tile_zero(1);
#pragma GCC unroll 4
    for (int64_t u = 0; u < units; u++) {
        _tile_loadd(4, matrix->q[u], SIDE * 4);
        _tile_loadd(2, k.first + u * UNIT * 2, step);
        _tile_dpbf16ps(0, 2, 4);
        ask(k, &asked, SIDE * (groups * u + 1), units);
        if (groups == 2) {
            _tile_loadd(3, k.first + SIDE * k.step + u * UNIT * 2, step);
            _tile_dpbf16ps(1, 3, 4);
            ask(k, &asked, SIDE * (groups * u + 2), units);
        }
    }
    _tile_stored(0, matrix->s[0], SIDE * 4);
    if (groups == 2)
        _tile_stored(1, matrix->s[1], SIDE * 4);
    MEMORY_IS_WRITTEN();
    for (int64_t r = 0; r < x->rows; r++)
        for (int g = 0; g < groups; g++)
            vf_store(&x->s[r][at + g * SIDE], vf_mul(_mm512_i32gather_ps(index, matrix->s[g] + r, 4), scale));
}

DECODE_INLINE void block_dots(struct decode *x, int64_t first, int64_t end, const int64_t units)
{
    const vf scale = vf_set1(score_scale(x->task->problem));
    for (int64_t key = first, groups; key < end;) {
        struct stream k = groups_get(x, false, key, end, &groups);
        for (; groups >= 2; groups -= 2, key += 2 * SIDE, k.first += 2 * SIDE * k.step)
            group_dots(x, key - first, k, scale, units, 2);
        if (groups) {
            group_dots(x, key - first, k, scale, units, 1);
            key += SIDE;
        }
    }
}

/* Scores of keys first .. end for all rows. */
static void matrix_dots(struct decode *x, int64_t first, int64_t end)
{
    const int64_t units = x->task->problem->dim / UNIT;
    if (units == 4)
        block_dots(x, first, end, 4);
    else if (units == 2)
        block_dots(x, first, end, 2);
    else
        block_dots(x, first, end, units);
}

/* The weights of up to WEIGHT_GROUPS times 16 keys, of which key `at` of the block is the first, as A: p [rounded, left][even, odd][places]
 * [16 keys], where there are 4 or 8 places for rows; so it is one tile or two. Places without a row hold anything, and so do their sums. */
static void weights_make(const struct decode *x, float p[][2][TILE_FLOATS], int64_t at, int64_t groups, int64_t places)
{
    for (int64_t g = 0; g < groups && g < WEIGHT_GROUPS; g++)
        for (int64_t r = 0; r < x->rows; r++) {
            float *out = p[g][0] + r * SIDE;
            vf weight = vf_load(&x->s[r][at + g * SIDE]);
            for (int part = 0; part < 2; part++, out += 2 * places * SIDE) {
                __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(weight));
                vf high = _mm512_castsi512_ps(_mm512_slli_epi32(low, 16));
                _mm512_storeu_si512(out, low);
                vf_store(out + places * SIDE, high);
                weight = vf_sub(weight, high);
            }
        }
}

/* Adds the sums for `units` times 32 columns from d on to O. */
static void sums_add(const struct decode *x, int64_t d, int64_t units, int64_t places)
{
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), high = vi_add(low, vi_set1(8));
    for (int64_t r = 0; r < x->rows; r++)
        for (int64_t u = 0; u < units; u++) {
            const float *sum = matrix_of(x)->o[u] + r * SIDE;
            float *o = x->o + r * x->dim_o + d + u * UNIT;
            vf even = vf_load(sum), odd = vf_load(sum + places * SIDE);
            if (places == 4) { /* what rounding left is in rows of its own */
                even = vf_add(even, vf_load(sum + 8 * SIDE));
                odd = vf_add(odd, vf_load(sum + 12 * SIDE));
            }
            vf_store(o, vf_add(vf_load(o), _mm512_permutex2var_ps(even, low, odd)));
            vf_store(o + LANES, vf_add(vf_load(o + LANES), _mm512_permutex2var_ps(even, high, odd)));
        }
}

/* 32 columns of V, with all weights of 16 keys. */
#define VALUES_UNIT(u)                                                                                                             \
    if (u < units) {                                                                                                               \
        _tile_loadd(5, v.first + u * UNIT * 2, (size_t)v.step);                                                                    \
        _tile_dpbf16ps(u, 4, 5);                                                                                                   \
        if (places == 8)                                                                                                           \
            _tile_dpbf16ps(u, 6, 5);                                                                                               \
        ask(v, &asked, SIDE *(u + 1), units);                                                                                      \
    }

/* Up to SUM_UNITS times 32 columns from d on. */
DECODE_INLINE void block_values(const struct decode *x, int64_t first, int64_t end, int64_t d, const int64_t units,
                                const int64_t places)
{
    struct matrix *matrix = matrix_of(x);
    const int64_t count = (end - first + SIDE - 1) / SIDE; /* groups of 16 keys */
    struct stream v = {0};
    int64_t left = 0;
    weights_make(x, matrix->p[0], 0, count, places);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t g = 0; g < count; g++, left--, v.first += SIDE * v.step) {
        const int64_t made = g / WEIGHT_GROUPS % 2;
        int64_t asked = 0;
        if (g % WEIGHT_GROUPS == 0) /* for later, so that a tile is not loaded while it is being stored */
            weights_make(x, matrix->p[!made], (g + WEIGHT_GROUPS) * SIDE, count - g - WEIGHT_GROUPS, places);
        if (!left) {
            v = groups_get(x, true, first + g * SIDE, end, &left);
            v.first += d * 2;
        }
        MEMORY_IS_WRITTEN();
        _tile_loadd(4, matrix->p[made][g % WEIGHT_GROUPS][0], SIDE * 4);
        if (places == 8)
            _tile_loadd(6, matrix->p[made][g % WEIGHT_GROUPS][1], SIDE * 4);
        VALUES_UNIT(0)
        VALUES_UNIT(1)
        VALUES_UNIT(2)
        VALUES_UNIT(3)
    }
    _tile_stored(0, matrix->o[0], SIDE * 4);
    _tile_stored(1, matrix->o[1], SIDE * 4);
    _tile_stored(2, matrix->o[2], SIDE * 4);
    _tile_stored(3, matrix->o[3], SIDE * 4);
    MEMORY_IS_WRITTEN();
    sums_add(x, d, units, places);
}

/* Adds values first .. end, weighted, to all rows of O. */
static void matrix_values(const struct decode *x, int64_t first, int64_t end)
{
    const int64_t all = x->task->problem->dim_v / UNIT, places = x->rows <= 4 ? 4 : 8;
    for (int64_t u = 0; u < all; u += SUM_UNITS) {
        const int64_t units = all - u < SUM_UNITS ? all - u : SUM_UNITS;
        if (units == SUM_UNITS && places == 4)
            block_values(x, first, end, u * UNIT, SUM_UNITS, 4);
        else if (units == SUM_UNITS)
            block_values(x, first, end, u * UNIT, SUM_UNITS, 8);
        else
            block_values(x, first, end, u * UNIT, units, places);
    }
}

#endif
