/*
 * planted.h - attention written plainly, in float32, tile by tile, with a switch for every mistake that the oracle is to find.
 */
#ifndef PLANTED_H
#define PLANTED_H

#include "run/executor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum mistake {
    NO_MISTAKE,
    /* scores */
    SCALE_DROPPED,
    SCALE_TWICE,
    SIGN_WRONG,
    PART_OF_Q,       /* rows 8 to 15 of every 16 lack the second half of their elements */
    TAIL_OF_D,       /* elements beyond a multiple of 16 are left out */
    K_AND_V_SWAPPED, /* everywhere */
    K_OF_OTHER_HEAD, /* h % heads_kv */
    Q_LAYOUT,        /* Q read as [batch, row, head, dim] */
    KEYS_PAIRED,     /* scores of keys 1 and 2 of every 4 are swapped */
    SCORES_BF16,
    SCORES_F16,
    QUERIES_BF16,
    SOFTCAP_MISSING,
    SOFTCAP_LAST,
    ALIBI_MISSING,
    ALIBI_SIGN,
    BIAS_MISSING,
    /* mask */
    CAUSAL_MORE,
    CAUSAL_LESS,
    CAUSAL_MISSING,
    ALIGNMENT,
    WINDOW_MORE,
    WINDOW_SHIFTED,
    TAIL_UNMASKED,
    MASK_FINITE,
    LENGTHS_IGNORED,
    EMPTY_ROWS,
    HIDDEN_KEYS, /* a bias of -inf is taken for -10 */
    PADDING_TOUCHED,
    /* P */
    BASE_TWO,
    TILE_MAXIMUM,
    NO_MAXIMUM,
    MAXIMUM_FROM_ZERO,
    SUM_LACKS_KEY,
    SMALL_DROPPED, /* weights below e^-8 */
    EXP_TAYLOR,
    NEAR_IS_EQUAL, /* scores within 0.1 of the maximum are taken for it */
    /* normalisation */
    NOT_DIVIDED,
    RECIPROCAL_ROUGH,
    NEIGHBOURS_SUM,
    SINK_MISSING,
    SINK_NOT_IN_O,
    /* rescale */
    O_NOT_RESCALED,
    SUM_NOT_RESCALED,
    NEITHER_RESCALED,
    NEIGHBOURS_FACTOR,
    RESCALED_TWICE,
    PIECES_DIVIDED, /* each tile by its own sum, and all by the whole sum */
    /* PV */
    VALUES_PAIRED,
    TILE_LOST,
    WEIGHTS_BF16,
    SUMS_BF16,
    SUMS_F16_BY_TILE,
    V_SWIZZLED, /* halves of 8 columns are swapped for keys 4 to 7 of every 8 */
    V_OF_OTHER_HEAD,
    K_FOR_V,
    COLUMNS_ZERO,
    /* epilogue */
    ROWS_UNWRITTEN,
    COLUMNS_UNWRITTEN,
    LSE_UNWRITTEN,
    LSE_LOG2,
    LSE_WITHOUT_MAXIMUM,
    HEADS_SWAPPED,
    ROWS_SWAPPED, /* of O alone */
    O_LAYOUT,
    CUT_OFF,
    STALE,
    MISTAKE_COUNT
};

struct planted {
    enum mistake mistake;
    int64_t tile;
    bool without_lse; /* refuses problems with LSE */
    unsigned char *memory;
    size_t memory_bytes;
};

struct kernel {
    const struct planted *planted;
    const struct inputs *in;
    const attest_problem *p;
    int64_t b, h, i; /* the row */
};

static float bf16(float x)
{
    return attest_bf16_to_float(attest_bf16_from_float(x));
}

static float f16(float x)
{
    return attest_f16_to_float(attest_f16_from_float(x));
}

static bool is(const struct kernel *k, enum mistake mistake)
{
    return k->planted->mistake == mistake;
}

static int64_t keys_of(const struct kernel *k)
{
    return is(k, LENGTHS_IGNORED) ? k->p->seq_kv : layout_keys(&k->in->layout, k->b);
}

static int64_t place_of(const struct kernel *k)
{
    bool right = (k->p->flags & ATTEST_BOTTOM_RIGHT) != 0;
    if (is(k, ALIGNMENT))
        right = !right;
    return k->i + (right ? layout_keys(&k->in->layout, k->b) - layout_rows(&k->in->layout, k->b) : 0);
}

static bool sees(const struct kernel *k, int64_t j)
{
    const attest_problem *p = k->p;
    int64_t place = place_of(k), shift = is(k, WINDOW_SHIFTED);
    int64_t causal = place + is(k, CAUSAL_MORE) - is(k, CAUSAL_LESS);
    if (p->flags & ATTEST_CAUSAL && j > causal && !is(k, CAUSAL_MISSING))
        return false;
    if (p->flags & ATTEST_WINDOW_LEFT && j < place - p->window_left - is(k, WINDOW_MORE) - shift)
        return false;
    return !(p->flags & ATTEST_WINDOW_RIGHT && j > place + p->window_right - shift);
}

/* KV head of a query head. */
static int64_t head_of(const struct kernel *k, bool wrong)
{
    return wrong ? k->h % k->p->heads_kv : k->h / (k->p->heads_q / k->p->heads_kv);
}

static int64_t row_at(const struct kernel *k, bool wrong)
{
    const attest_problem *p = k->p;
    int64_t packed[3] = {p->seq_q * p->heads_q * p->dim, p->dim, p->heads_q * p->dim};
    return layout_row_at(&k->in->layout, wrong ? packed : p->stride_q, k->b, k->h, k->i);
}

/* Key j as the mistakes of the layout of scores see it. */
static int64_t key_taken(int64_t j, int64_t keys, bool paired)
{
    int64_t other = j % 4 == 1 ? j + 1 : j % 4 == 2 ? j - 1 : j;
    return paired && other < keys ? other : j;
}

static float dot(const struct kernel *k, int64_t j)
{
    const attest_problem *p = k->p;
    bool swapped = is(k, K_AND_V_SWAPPED);
    const struct buffer *buffer = swapped ? &k->in->v : &k->in->k;
    int64_t q = row_at(k, is(k, Q_LAYOUT));
    int64_t at = layout_key_at(&k->in->layout, swapped ? p->stride_v : p->stride_k, k->b, head_of(k, is(k, K_OF_OTHER_HEAD)),
                               key_taken(j, keys_of(k), is(k, KEYS_PAIRED)));
    int64_t dim = is(k, TAIL_OF_D) && p->dim > 16 ? p->dim / 16 * 16 : is(k, PART_OF_Q) && k->i % 16 >= 8 ? p->dim / 2 : p->dim;
    float sum = 0;
    for (int64_t d = 0; d < dim; d++) {
        float x = element_load(k->in->q.at, p->dtype, q + d);
        sum += (is(k, QUERIES_BF16) ? bf16(x) : x) * element_load(buffer->at, p->dtype, at + d);
    }
    return sum;
}

static float score(const struct kernel *k, int64_t j)
{
    const attest_problem *p = k->p;
    float s = dot(k, j) * (is(k, SCALE_DROPPED) ? 1 : p->scale);
    bool capped = p->flags & ATTEST_SOFTCAP && !is(k, SOFTCAP_MISSING);
    if (is(k, SCALE_TWICE))
        s *= p->scale;
    if (is(k, SIGN_WRONG))
        s = -s;
    if (capped && !is(k, SOFTCAP_LAST))
        s = p->softcap * tanhf(s / p->softcap);
    if (p->flags & ATTEST_ALIBI && !is(k, ALIBI_MISSING))
        s -= k->in->slopes[k->h] * (float)llabs((long long)(place_of(k) - j)) * (is(k, ALIBI_SIGN) ? -1.0f : 1.0f);
    if (p->flags & ATTEST_BIAS && !is(k, BIAS_MISSING)) {
        int64_t at = k->b * p->stride_bias[0] + k->h * p->stride_bias[1] + k->i * p->stride_bias[2] + j * p->stride_bias[3];
        float bias = element_load(k->in->bias.at, p->dtype_bias, at);
        s += is(k, HIDDEN_KEYS) && isinf(bias) ? -10.0f : bias;
    }
    if (capped && is(k, SOFTCAP_LAST))
        s = p->softcap * tanhf(s / p->softcap);
    if (is(k, SCORES_BF16))
        s = bf16(s);
    if (is(k, SCORES_F16))
        s = f16(s);
    return s;
}

/* Scores of a tile with its mask, and their maximum. */
static float tile_scores(const struct kernel *k, int64_t first, float *s)
{
    int64_t keys = keys_of(k);
    float top = -INFINITY;
    for (int64_t n = 0; n < k->planted->tile; n++) {
        int64_t j = first + n;
        if (j >= keys)
            s[n] = is(k, TAIL_UNMASKED) ? 0 : -INFINITY;
        else if (!sees(k, j))
            s[n] = is(k, MASK_FINITE) ? -10000.0f : -INFINITY;
        else
            s[n] = score(k, j);
        top = fmaxf(top, s[n]);
    }
    return top;
}

static float weight(const struct kernel *k, float x)
{
    if (is(k, NEAR_IS_EQUAL) && x > -0.1f)
        return 1;
    if (is(k, SMALL_DROPPED) && x < -8)
        return 0;
    if (is(k, EXP_TAYLOR) && x > -30)
        return 1 / (1 - x + x * x / 2);
    return is(k, BASE_TWO) ? exp2f(x) : expf(x);
}

static float value(const struct kernel *k, int64_t j, int64_t d)
{
    const attest_problem *p = k->p;
    int64_t keys = keys_of(k);
    bool other = is(k, K_AND_V_SWAPPED) || is(k, K_FOR_V);
    if (j >= (is(k, PADDING_TOUCHED) ? p->seq_kv : keys))
        return 0;
    int64_t at = layout_key_at(&k->in->layout, other ? p->stride_k : p->stride_v, k->b, head_of(k, is(k, V_OF_OTHER_HEAD)),
                               key_taken(j, keys, is(k, VALUES_PAIRED)));
    int64_t column = is(k, V_SWIZZLED) && j % 8 >= 4 && (d ^ 8) < p->dim_v ? d ^ 8 : d;
    return element_load(other ? k->in->k.at : k->in->v.at, p->dtype, at + column);
}

/* What a row carries from tile to tile. */
struct carried {
    float m, l, last_factor;
    float o[512];
};

static void add_tile(const struct kernel *k, struct carried *row, int64_t first, float *s)
{
    const attest_problem *p = k->p;
    float top = tile_scores(k, first, s), now = fmaxf(row->m, top);
    if (is(k, NO_MAXIMUM))
        now = 0;
    float shift = isinf(now) ? 0 : now, factor = row->m == now ? 1 : expf(row->m - shift);
    float base = is(k, TILE_MAXIMUM) && isfinite(top) ? top : shift, sum = 0;
    row->last_factor = factor;
    if (is(k, NEIGHBOURS_FACTOR) && (k->i ^ 1) < layout_rows(&k->in->layout, k->b)) {
        struct kernel neighbour = *k;
        float before = -INFINITY, unused[1024];
        neighbour.i ^= 1;
        for (int64_t t = 0; t < first; t += k->planted->tile)
            before = fmaxf(before, tile_scores(&neighbour, t, unused));
        float after = fmaxf(before, tile_scores(&neighbour, first, unused));
        factor = before == after ? 1 : expf(before - after);
    }
    if (is(k, RESCALED_TWICE))
        factor *= factor;
    for (int64_t n = 0; n < k->planted->tile; n++) {
        s[n] = weight(k, s[n] - base);
        if (!(is(k, SUM_LACKS_KEY) && n == k->planted->tile - 1))
            sum += s[n];
    }
    bool keep_l = is(k, SUM_NOT_RESCALED) || is(k, NEITHER_RESCALED), keep_o = is(k, O_NOT_RESCALED) || is(k, NEITHER_RESCALED);
    row->l = row->l * (keep_l ? 1 : factor) + sum;
    for (int64_t n = 0; n < k->planted->tile && is(k, PIECES_DIVIDED) && sum > 0; n++)
        s[n] /= sum;
    row->m = now;
    for (int64_t d = 0; d < p->dim_v; d++) {
        float o = row->o[d] * (keep_o ? 1 : factor);
        for (int64_t n = 0; n < k->planted->tile && !(is(k, TILE_LOST) && first == k->planted->tile); n++) {
            float x = is(k, WEIGHTS_BF16) ? bf16(s[n]) : s[n];
            if (x != 0 || is(k, PADDING_TOUCHED))
                o += x * value(k, first + n, d);
            if (is(k, SUMS_BF16))
                o = bf16(o);
        }
        row->o[d] = is(k, SUMS_F16_BY_TILE) ? f16(o) : o;
    }
}

static struct carried compute(const struct kernel *k)
{
    struct carried row = {.m = is(k, MAXIMUM_FROM_ZERO) ? 0 : -INFINITY};
    float s[1024];
    for (int64_t first = 0; first < keys_of(k); first += k->planted->tile)
        add_tile(k, &row, first, s);
    return row;
}

/* The place in O: where a mistake of the epilogue puts the row. */
static int64_t o_at(const struct kernel *k)
{
    const attest_problem *p = k->p;
    int64_t h = k->h, i = k->i, rows = layout_rows(&k->in->layout, k->b);
    int64_t packed[3] = {p->seq_q * p->heads_q * p->dim_v, p->dim_v, p->heads_q * p->dim_v};
    if (is(k, HEADS_SWAPPED) && (h ^ 1) < p->heads_q)
        h ^= 1;
    if (is(k, ROWS_SWAPPED) && (i ^ 1) < rows)
        i ^= 1;
    return layout_row_at(&k->in->layout, is(k, O_LAYOUT) ? packed : p->stride_o, k->b, h, i);
}

static void put(const struct kernel *k, struct outputs *outputs, int64_t at, float x)
{
    uint32_t dtype = k->p->dtype_o;
    if (is(k, CUT_OFF) && dtype != ATTEST_F32) {
        float near = dtype == ATTEST_F16 ? f16(x) : bf16(x);
        uint16_t bits = dtype == ATTEST_F16 ? attest_f16_from_float(near) : attest_bf16_from_float(near);
        if (fabsf(near) > fabsf(x))
            bits--;
        ((uint16_t *)outputs->o.at)[at] = bits;
        return;
    }
    element_store(outputs->o.at, dtype, at, x);
}

static void finish(const struct kernel *k, struct carried *row, struct outputs *outputs)
{
    const attest_problem *p = k->p;
    float l = row->l, m = row->m, divisor;
    if (is(k, NEIGHBOURS_SUM) && (k->i ^ 1) < layout_rows(&k->in->layout, k->b)) {
        struct kernel neighbour = *k;
        neighbour.i ^= 1;
        divisor = compute(&neighbour).l;
    } else {
        divisor = l;
    }
    if (p->flags & ATTEST_SINK && !is(k, SINK_MISSING)) {
        float top = fmaxf(m, k->in->sinks[k->h]);
        float share = isinf(m) ? 0 : expf(m - top);
        l = l * share + expf(k->in->sinks[k->h] - top);
        if (!is(k, SINK_NOT_IN_O)) {
            divisor = l;
            for (int64_t d = 0; d < p->dim_v; d++)
                row->o[d] *= share;
        }
        m = top;
    }
    float factor = divisor == 0 && !is(k, EMPTY_ROWS) ? 0 : 1 / divisor;
    if (is(k, NOT_DIVIDED))
        factor = 1;
    if (is(k, RECIPROCAL_ROUGH))
        factor *= 1.0003f;
    for (int64_t d = 0; d < p->dim_v; d++) {
        bool zero = is(k, COLUMNS_ZERO) && d >= 8 && d < 16;
        if (!(is(k, ROWS_UNWRITTEN) && k->i >= 64) && !(is(k, COLUMNS_UNWRITTEN) && d >= p->dim_v - 3))
            put(k, outputs, o_at(k) + d, zero ? 0 : row->o[d] * factor);
    }
    if (!(p->flags & ATTEST_LSE) || is(k, LSE_UNWRITTEN))
        return;
    float lse = is(k, LSE_WITHOUT_MAXIMUM) ? logf(l) : l == 0 && !is(k, EMPTY_ROWS) ? -INFINITY : m + logf(l);
    ((float *)outputs->lse.at)[layout_row_at(&k->in->layout, p->stride_lse, k->b, k->h, k->i)] =
        is(k, LSE_LOG2) ? lse * (float)M_LOG2E : lse;
}

/* Remembers its first result, and gives it for ever. */
static bool recall(struct planted *planted, struct outputs *outputs)
{
    if (planted->mistake != STALE || !planted->memory)
        return false;
    if (planted->memory_bytes == outputs->o.bytes)
        memcpy(outputs->o.base, planted->memory, outputs->o.bytes);
    return true;
}

static struct execution planted_run(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    struct planted *planted = data;
    const attest_problem *p = &inputs->problem;
    struct execution execution = {.end = EXECUTION_DONE};
    if (planted->without_lse && p->flags & ATTEST_LSE) {
        execution.end = EXECUTION_REFUSED;
        snprintf(execution.sentence, sizeof execution.sentence, "it does not write LSE");
        return execution;
    }
    for (int64_t bh = 0; bh < p->batch * p->heads_q; bh++)
        for (int64_t i = 0; i < layout_rows(&inputs->layout, bh / p->heads_q); i++) {
            struct kernel k = {planted, inputs, p, bh / p->heads_q, bh % p->heads_q, i};
            struct carried row = compute(&k);
            finish(&k, &row, outputs);
        }
    if (!recall(planted, outputs) && planted->mistake == STALE) {
        planted->memory_bytes = outputs->o.bytes;
        planted->memory = malloc(outputs->o.bytes + 1);
        if (planted->memory)
            memcpy(planted->memory, outputs->o.base, outputs->o.bytes);
    }
    return execution;
}

#endif
