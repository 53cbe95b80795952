/*
 * oracle_body.h - attention as attest.h defines it, row by row, step by step, with nothing clever.
 *
 * The includer defines
 *     REAL            the type all arithmetic is done in
 *     REAL_EXP, REAL_LOG, REAL_TANH
 *     SUMS            in how many sums products of Q and K are added up
 *     ROUND_P(p, dt)  what becomes of a weight before it meets V
 *     ORACLE          the name of the function, which computes row i of head h of sequence b
 * Twice: oracle_exact.c in double is the oracle, and oracle_naive.c in float is the straightforward implementation whose error
 * gives the scale for judging other implementations. Nothing in here is shared with any kernel: masks, offsets, conversions and
 * sequence lengths are written again, so that a mistake there and a mistake here would have to agree to go unseen.
 */
#include <attest.h>

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { MOST_COLUMNS = 512 }; /* of Q, K and V */

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static REAL from_bf16(uint16_t bits)
{
    return (REAL)float_of((uint32_t)bits << 16);
}

/* Ten or eleven digits, and what the last of them is worth: a power of two, with the sign. With the last exponent it is infinity,
 * or NaN. */
static REAL from_f16(uint16_t bits)
{
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023, normal = exponent > 0;
    uint32_t power = (uint32_t)(bits & 0x8000) << 16 | (exponent + 1 - normal + 102) << 23;
    uint32_t special = exponent == 31 ? 0x7f800000 | fraction : 0;
    return (REAL)(int)(normal << 10 | fraction) * (REAL)float_of(power | special);
}

static REAL number_at(const void *data, uint32_t dtype, int64_t at)
{
    if (dtype == ATTEST_F32)
        return (REAL)((const float *)data)[at];
    uint16_t bits = ((const uint16_t *)data)[at];
    return dtype == ATTEST_F16 ? from_f16(bits) : from_bf16(bits);
}

/* A row of Q, K or V. The type is asked for once, so that the compiler can convert several numbers at a time. */
static void numbers_at(const void *data, uint32_t dtype, int64_t at, int64_t count, REAL *out)
{
    if (dtype == ATTEST_F32)
        for (int64_t d = 0; d < count; d++)
            out[d] = number_at(data, ATTEST_F32, at + d);
    else if (dtype == ATTEST_F16)
        for (int64_t d = 0; d < count; d++)
            out[d] = number_at(data, ATTEST_F16, at + d);
    else
        for (int64_t d = 0; d < count; d++)
            out[d] = number_at(data, ATTEST_BF16, at + d);
}

/* The sum of a[d] b[d], in SUMS sums that do not wait for each other. */
static REAL product(const REAL *a, const REAL *b, int64_t count)
{
    REAL sums[SUMS] = {0}, sum = 0;
    int64_t d = 0;
    for (; d + SUMS <= count; d += SUMS)
        for (int n = 0; n < SUMS; n++)
            sums[n] += a[d + n] * b[d + n];
    for (int n = 0; d < count; n++, d++)
        sums[n] += a[d] * b[d];
    for (int n = 0; n < SUMS; n++)
        sum += sums[n];
    return sum;
}

/* Row i of Q: its offset in elements. */
static int64_t query_offset(const attest_problem *p, const attest_tensors *t, int64_t b, int64_t h, int64_t i)
{
    if (p->flags & ATTEST_VARLEN_Q)
        return h * p->stride_q[1] + (t->cu_seqlens_q[b] + i) * p->stride_q[2];
    return b * p->stride_q[0] + h * p->stride_q[1] + i * p->stride_q[2];
}

/* Key j of K or V: its offset in elements. */
static int64_t key_offset(const attest_problem *p, const attest_tensors *t, const int64_t stride[3], int64_t b, int64_t h,
                          int64_t j)
{
    if (p->flags & ATTEST_PAGED) {
        int64_t page = t->page_table[b * p->stride_page_table + j / p->page_size];
        return page * stride[0] + h * stride[1] + (j % p->page_size) * stride[2];
    }
    if (p->flags & ATTEST_VARLEN_KV)
        return h * stride[1] + (t->cu_seqlens_kv[b] + j) * stride[2];
    return b * stride[0] + h * stride[1] + j * stride[2];
}

static int64_t rows_of(const attest_problem *p, const attest_tensors *t, int64_t b)
{
    if (p->flags & ATTEST_Q_LENGTHS)
        return t->q_lengths[b];
    return p->flags & ATTEST_VARLEN_Q ? t->cu_seqlens_q[b + 1] - t->cu_seqlens_q[b] : p->seq_q;
}

static int64_t keys_of(const attest_problem *p, const attest_tensors *t, int64_t b)
{
    if (p->flags & ATTEST_KV_LENGTHS)
        return t->kv_lengths[b];
    return p->flags & ATTEST_VARLEN_KV ? t->cu_seqlens_kv[b + 1] - t->cu_seqlens_kv[b] : p->seq_kv;
}

/* Where row i stands among the keys. */
static int64_t place_of(const attest_problem *p, const attest_tensors *t, int64_t b, int64_t i)
{
    if (p->flags & ATTEST_ROW_OFFSETS)
        return i + t->row_offsets[b];
    return p->flags & ATTEST_BOTTOM_RIGHT ? i + keys_of(p, t, b) - rows_of(p, t, b) : i;
}

/* Element (b, h, i, j) of the bias or the mask. */
static int64_t pair_offset(const int64_t stride[4], int64_t b, int64_t h, int64_t i, int64_t j)
{
    return b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3];
}

/* The score of key j for row i, whose query is given. False if the key is invisible. */
static unsigned char score(const attest_problem *p, const attest_tensors *t, int64_t b, int64_t h, int64_t i, const REAL *query,
                           int64_t j, REAL *out)
{
    int64_t place = place_of(p, t, b, i);
    if ((p->flags & ATTEST_KV_STARTS) && j < t->kv_starts[b])
        return 0;
    if ((p->flags & ATTEST_MASK) && t->mask[pair_offset(p->stride_mask, b, h, i, j)] == 0)
        return 0;
    if ((p->flags & ATTEST_CAUSAL) && j > place)
        return 0;
    if ((p->flags & ATTEST_WINDOW_LEFT) && place - j > p->window_left)
        return 0;
    if ((p->flags & ATTEST_WINDOW_RIGHT) && j - place > p->window_right)
        return 0;

    REAL bias = 0;
    if (p->flags & ATTEST_BIAS) {
        bias = number_at(t->bias, p->dtype_bias, pair_offset(p->stride_bias, b, h, i, j));
        if (bias == -(REAL)INFINITY)
            return 0;
    }

    REAL key[MOST_COLUMNS];
    numbers_at(t->k, p->dtype, key_offset(p, t, p->stride_k, b, h / (p->heads_q / p->heads_kv), j), p->dim, key);
    REAL s = (REAL)p->scale * product(query, key, p->dim);
    if (p->flags & ATTEST_SOFTCAP)
        s = (REAL)p->softcap * REAL_TANH(s / (REAL)p->softcap);
    if (p->flags & ATTEST_ALIBI)
        s -= (REAL)t->alibi_slopes[b * p->stride_alibi_slopes + h] * (REAL)(place > j ? place - j : j - place);
    *out = s + bias;
    return 1;
}

/* The keys that masks by position leave to row i, so that a narrow window costs little; score() decides key by key. */
static void key_range(const attest_problem *p, const attest_tensors *t, int64_t b, int64_t i, int64_t *first, int64_t *end)
{
    int64_t keys = keys_of(p, t, b), place = place_of(p, t, b, i);
    *first = (p->flags & ATTEST_WINDOW_LEFT) && place > p->window_left ? place - p->window_left : 0;
    *end = (p->flags & ATTEST_CAUSAL) && place + 1 < keys ? place + 1 : keys;
}

void ORACLE(const attest_problem *p, const attest_tensors *t, int64_t b, int64_t h, int64_t i, void *scratch, double *out,
            double *lse)
{
    int64_t first, end;
    key_range(p, t, b, i, &first, &end);
    REAL *s = scratch;                                         /* [seq_kv] the scores */
    unsigned char *visible = (unsigned char *)(s + p->seq_kv); /* [seq_kv] */
    REAL query[MOST_COLUMNS], value[MOST_COLUMNS], row[MOST_COLUMNS] = {0};
    numbers_at(t->q, p->dtype, query_offset(p, t, b, h, i), p->dim, query);

    /* The largest score keeps the exponentials in range. A sink is a score without a value. */
    REAL largest = p->flags & ATTEST_SINK ? (REAL)t->sinks[h] : -(REAL)INFINITY;
    for (int64_t j = first; j < end; j++) {
        visible[j] = score(p, t, b, h, i, query, j, &s[j]);
        if (visible[j] && !(s[j] <= largest)) /* a NaN becomes the largest, and then every weight */
            largest = s[j];
    }
    REAL shift = largest == -(REAL)INFINITY ? 0 : largest;

    REAL sum = p->flags & ATTEST_SINK ? REAL_EXP((REAL)t->sinks[h] - shift) : 0;
    for (int64_t j = first; j < end; j++)
        if (visible[j]) {
            REAL weight = REAL_EXP(s[j] - shift);
            sum += weight;
            numbers_at(t->v, p->dtype, key_offset(p, t, p->stride_v, b, h / (p->heads_q / p->heads_kv), j), p->dim_v, value);
            const REAL rounded = (REAL)ROUND_P(weight, p->dtype);
            for (int64_t d = 0; d < p->dim_v; d++)
                row[d] += rounded * value[d];
        }

    /* No weight at all, not even a sink's: an empty row. */
    for (int64_t d = 0; d < p->dim_v; d++)
        out[d] = sum == 0 ? 0 : (double)(row[d] / sum);
    *lse = sum == 0 ? -INFINITY : (double)(shift + REAL_LOG(sum));
}
