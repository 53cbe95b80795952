/*
 * quick_amx.h - the quick softmax of rows_amx.h: one pass over the scores, in integers of 16 bits.
 */
#ifndef ATTEST_QUICK_AMX_H
#define ATTEST_QUICK_AMX_H

/* The bits of the bf16 2^(n + f), with an integer n and 0 <= f < 1, are 128 (n + 127 + 2^f - 1), and 2^f - 1 is f less at most
 * 0.087. So a score becomes the integer t = 512 (score - m + QUICK_BIAS), where all that lies below the range saturates at 0; what
 * f is too large by, in the same unit, comes out of a table for its upper seven bits; and what is left are the bits, shifted by
 * two. The table also rounds: the relative error of a weight has a standard deviation of 0.00170, and rounding alone has 0.00166.
 *
 * m is the largest score among the first keys that a row sees, and stays unless a weight would become 1, which is 4096 times that of
 * m: so there is no maximum to be known before weights can be made, and O is hardly ever multiplied. What all weights of a row have
 * in common is of no matter, since O is divided by the sum of the weights as they are: so a row with one dominant key still returns
 * its value. The room above m has a price: products below 2^-126 are 0 in the matrix unit, and the weight of m is 2^-12. So V has to
 * be 0 or at least 2^-80 (SMALLEST_V, see smaller_magnitude): then only weights below 2^-34 of that of m can be lost. */
enum { QUICK_BIAS = 115, QUICK_TOP = 512 * 127 - 1, SMALLEST_V = ((127 - 80) << 7) - 1 };

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

/* The largest score of each of 16 rows among the 32 keys of a step that it sees; -inf if it sees none. Unless `masked`, all rows see
 * all of them. */
INLINE vf quick_tops(const struct tile *tile, const float *s, int64_t row, int64_t key, const bool masked)
{
    vf top[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) {
        __mmask32 seen = masked ? seen_keys(tile, row + i, key) : 0xffffffffu;
        top[i] = vf_set1(-INFINITY);
        for (int half = 0; half < 2; half++)
            top[i] = _mm512_mask_max_ps(top[i], lanes_of_half(seen, half), top[i], vf_load(s + i * STEP_KEYS + half * SIDE));
    }
    vf_transpose(top);
#pragma GCC unroll 4
    for (int step = LANES / 2; step > 0; step /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < step; i++)
            top[i] = vf_max(top[i], top[i + step]);
    return top[0];
}

/* In rows that see their first keys, m is set. With `raise`, which needs all weights made so far to be in O, m follows the scores of
 * a step where they are too far above it, and what the row has so far follows m. Returns whether some row has still seen none. */
static bool quick_follow(struct tile *tile, const float *s, vf scale, int64_t row, int64_t key, int halves, bool masked, bool raise)
{
    vm waiting = 0;
    for (int half = 0; half < halves; half++, row += SIDE, s += SIDE * STEP_KEYS) {
        vf top = masked ? quick_tops(tile, s, row, key, true) : quick_tops(tile, s, row, key, false);
        vf before = vf_load(tile->m + row);
        vm none = vm_equal(before, vf_set1(-INFINITY)), unseen = vm_equal(top, vf_set1(-INFINITY));
        vm above = vm_less(vf_set1(QUICK_TOP), _mm512_roundscale_ps(vf_fma(top, scale, before), 0));
        vm change = (vm)((raise ? none | above : none) & ~unseen);
        vf now = vf_select(change, vf_sub(vf_set1(512 * QUICK_BIAS), vf_mul(top, scale)), before);
        float decay[LANES];
        vf_store(decay, vf_exp2(vf_mul(vf_sub(now, before), vf_set1(1.0f / 512))));
        for (int i = 0; i < LANES; i++)
            if ((change & ~none) >> i & 1) {
                float *l = tile->l + (row + i) * SIDE;
                scale_o(tile, row + i, vf_set1(decay[i]));
                vf_store(l, vf_mul(vf_load(l), vf_set1(decay[i])));
            }
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
    const float *q = tile->q + row * tile->words;
    int64_t done = 0;
    QK_STEP(s_next, q, k_next, tile->words / SIDE, halves, {
        if (done < halves * SIDE)
            quick_weights(tile, quick, p, s, row, done, done + share, key, masked);
        done += share;
    });
}

/* Steps first .. end of the sequence, at most CACHE_STEPS, for a micro-tile. */
INLINE void quick_rows(struct tile *tile, int64_t row, int64_t first, int64_t end, int64_t all_lo, int64_t all_hi, const int halves)
{
    struct quick quick = {.scale = vf_set1(512 * tile->unit_scale)};
    quick.table[0] = _mm512_load_si512(quick_correction);
    quick.table[1] = _mm512_load_si512(quick_correction + 64);
    const __m512i limit = _mm512_set1_epi16((short)QUICK_TOP);
    const int64_t k_step = tile->words * STEP_KEYS, units = tile->words / SIDE, rows = halves * SIDE;
    const float *q = tile->q + row * tile->words;
    bool waiting = false; /* rows that have not seen a key yet */
    for (int64_t r = row; r < row + rows; r++)
        waiting |= tile->m[r] == -INFINITY;
    qk_step(tile->s + first % 2 * STEP_KEYS * MICRO_ROWS, q, tile->k + first * k_step, units, halves);
    int64_t block = first; /* the first step whose weights are in p */
    for (int64_t n = first; n < end; n++) {
        const int64_t key = n * STEP_KEYS;
        const bool masked = key < all_lo || key + STEP_KEYS > all_hi;
        float *s = tile->s + n % 2 * STEP_KEYS * MICRO_ROWS, *s_next = tile->s + (n + 1) % 2 * STEP_KEYS * MICRO_ROWS;
        float *p = tile->p + (n - block) * 2 * TILE_FLOATS;
        const float *k_next = tile->k + (n + 1) * k_step;
        if (waiting)
            waiting = quick_follow(tile, s, quick.scale, row, key, halves, masked, false);
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
            pv_block(tile, row, block, n - block, halves, true);
            block = n;
            p = tile->p;
            quick_follow(tile, s, quick.scale, row, key, halves, masked, true);
            quick_weights(tile, &quick, p, s, row, 0, rows, key, true);
        }
    }
    pv_block(tile, row, block, end - block, halves, true);
}

/* Whether no score of a micro-tile can be so large, or NaN, that quick_weights would not know what to do with it, and no value so small
 * that it would be lost. */
static bool is_tame(const struct tile *tile, int64_t row)
{
    double largest_dot = (double)attest_from_bf16((uint16_t)tile->q_top[row / MICRO_ROWS]) *
                         (double)attest_from_bf16((uint16_t)tile->kv.k_top) * (double)tile->task->problem->dim;
    return largest_dot * 512 * (double)tile->unit_scale < 0x1p30 && tile->kv.v_bottom >= SMALLEST_V;
}

#endif
