/*
 * exact_amx.h - the exact softmax of rows_amx.h: float32, the maximum of a block of keys before its weights, which are summed before
 * they are rounded; with softcap, ALiBi and any mask.
 */
#ifndef ATTEST_EXACT_AMX_H
#define ATTEST_EXACT_AMX_H

/* The numbers of the keys in the lanes: see key_in_lane. */
INLINE vi lane_keys(int64_t key, int half)
{
    vi lane = vi_iota();
    vi in_step = vi_add(_mm512_slli_epi32(_mm512_srli_epi32(lane, 2), 3), _mm512_and_si512(lane, vi_set1(3)));
    return vi_add(in_step, vi_set1((int32_t)key + half * 4));
}

/* Keys of a step, from `key` on, that the mask of bytes leaves to row r. */
INLINE __mmask32 unmasked_keys(const struct tile *tile, int64_t r, int64_t key)
{
    const int64_t stride = tile->task->problem->stride_mask[3];
    const uint8_t *mask = tile->row[r].mask + key * stride;
    __mmask32 some = seen_keys(tile, r, key), left = 0;
    if (stride == 1) {
        __m256i bytes = _mm256_maskz_loadu_epi8(some, mask);
        return _mm256_test_epi8_mask(bytes, bytes);
    }
    for (int n = 0; n < STEP_KEYS; n++)
        if (some >> n & 1 && mask[n * stride])
            left |= (__mmask32)1 << n;
    return left;
}

/* Softcap, ALiBi and masks on the scores of one row with half the keys of a step; `left` is what a mask of bytes leaves of the step. */
INLINE vf modified(const struct tile *tile, vf x, int64_t r, vi key, int half, __mmask32 left)
{
    const attest_problem *p = tile->task->problem;
    const attest_row *row = &tile->row[r];
    if (tile->modify) {
        x = vf_mul(x, vf_set1(tile->unit_scale));
        if (has(p, ATTEST_SOFTCAP))
            x = vf_mul(vf_mul(vf_set1(p->softcap), vf_set1((float)LOG2E)), vf_tanh(x));
        if (has(p, ATTEST_ALIBI))
            x = vf_sub(x, vf_mul(vf_mul(vf_set1(row->slope), vf_set1((float)LOG2E)),
                                 vf_abs(vf_from_int(vi_sub(vi_set1(row->place), key)))));
    }
    vm gone = vm_or(vm_greater(vi_set1(tile->lo[r]), key), vm_greater(vi_add(key, vi_set1(1)), vi_set1(tile->hi[r])));
    gone = vm_or(gone, (vm)~lanes_of_half(left, half));
    return vf_select(gone, vf_set1(-INFINITY), x);
}

/* P from S for row r over some steps, of which `key` is the first key; m, l and O follow. Scores, and m, are in units of `unit` in
 * log2: a score less the maximum, times that, is what 2 is raised to, so that the maximum weighs exactly 1. */
INLINE void exact_row(struct tile *tile, int64_t r, int64_t key, int64_t steps, vf unit, const bool rough)
{
    float *s = tile->s + r % MICRO_ROWS * STEP_KEYS, *p = tile->p + r % MICRO_ROWS * SIDE;
    vf top = vf_set1(-INFINITY), sum = vf_zero(), sum_odd = vf_zero();
    for (int64_t n = 0; n < steps; n++) {
        const __mmask32 left = tile->row[r].mask ? unmasked_keys(tile, r, key + n * STEP_KEYS) : 0xffffffffu;
        for (int half = 0; half < 2; half++) {
            float *at = s + n * STEP_KEYS * MICRO_ROWS + half * SIDE;
            vf x = modified(tile, vf_load(at), r, lane_keys(key + n * STEP_KEYS, half), half, left);
            vf_store(at, x);
            top = vf_max(top, x);
        }
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
    const int64_t k_step = tile->words * STEP_KEYS, units = tile->words / SIDE;
    const vf log2_unit = vf_set1((float)(tile->m_unit * LOG2E));
    for (int64_t block = first, to; block < end; block = to) {
        to = (block / BLOCK_STEPS + 1) * BLOCK_STEPS < end ? (block / BLOCK_STEPS + 1) * BLOCK_STEPS : end;
        for (int64_t n = block; n < to; n++) {
            qk_step(tile->s + (n - block) * STEP_KEYS * MICRO_ROWS, q, tile->k + n * k_step, units, 2);
        }
        for (int64_t r = row; r < row + halves * SIDE && r < tile->rows; r++)
            if (tile->rough)
                exact_row(tile, r, block * STEP_KEYS, to - block, log2_unit, true);
            else
                exact_row(tile, r, block * STEP_KEYS, to - block, log2_unit, false);
        pv_block(tile, row, block, to - block, 2, false);
    }
}

#endif
