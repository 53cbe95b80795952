/* Random problems: see gen.h. */
#include "gen.h"

#include <math.h>
#include <string.h>

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof *(array)))

/* The tile sizes of any kernel we know, with their neighbours and the primes nearby. */
static const int64_t lengths[] = {1,   2,   3,   5,   7,   8,   9,   13,  15,  16,  17,  19,  23,  24,  25,  29,  31,   32,
                                  33,  47,  48,  49,  53,  61,  63,  64,  65,  67,  95,  96,  97,  101, 127, 128, 129,  131,
                                  191, 192, 193, 197, 255, 256, 257, 263, 383, 384, 385, 509, 511, 512, 513, 521, 1023, 1025};
static const int64_t dims[] = {1,  2,  3,  7,  8,   15,  16,  17,  31,  32,  33,  40,  48,  63,  64,
                               65, 72, 80, 96, 112, 128, 129, 160, 192, 255, 256, 257, 384, 511, 512};
static const int64_t ratios[] = {1, 1, 1, 2, 2, 3, 4, 5, 7, 8, 12};
static const int64_t page_sizes[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 32, 64, 100, 128, 256};

static int64_t pick(struct rng *rng, const int64_t *list, int64_t count)
{
    return list[rng_below(rng, count)];
}

uint64_t gen_flags(struct rng *rng)
{
    static const uint64_t all[] = {ATTEST_CAUSAL,    ATTEST_BOTTOM_RIGHT, ATTEST_WINDOW_LEFT, ATTEST_WINDOW_RIGHT, ATTEST_SOFTCAP,
                                   ATTEST_ALIBI,     ATTEST_BIAS,         ATTEST_SINK,        ATTEST_LSE,          ATTEST_VARLEN_Q,
                                   ATTEST_VARLEN_KV, ATTEST_KV_LENGTHS,   ATTEST_PAGED,       ATTEST_INVARIANT};
    uint64_t flags = 0;
    int one_in = rng_chance(rng, 2) ? 2 : 4;
    for (int64_t n = 0; n < COUNT(all); n++)
        if (rng_chance(rng, one_in))
            flags |= all[n];
    if ((flags & ATTEST_PAGED) && (flags & ATTEST_VARLEN_KV))
        flags &= ~(rng_chance(rng, 2) ? ATTEST_PAGED : ATTEST_VARLEN_KV);
    return flags;
}

/*
 * Strides over `n` dimensions around an inner run of `inner` elements: a random order of the dimensions, padding between them,
 * some reversed. Distinct elements stay distinct, unless `shared` lets a dimension be broadcast.
 */
static void draw_strides(struct rng *rng, int64_t *stride, const int64_t *extent, int n, int64_t inner, bool shared)
{
    int order[4] = {0, 1, 2, 3};
    for (int i = n - 1; i > 0; i--) {
        int other = (int)rng_below(rng, i + 1), keep = order[i];
        order[i] = order[other];
        order[other] = keep;
    }
    int64_t reach = inner;
    for (int i = 0; i < n; i++) {
        int64_t pad = rng_chance(rng, 2) ? rng_below(rng, 9) : 0;
        stride[order[i]] = reach + pad;
        reach = (reach + pad) * (extent[order[i]] > 0 ? extent[order[i]] : 1);
        if (rng_chance(rng, 4))
            stride[order[i]] = -stride[order[i]];
        if (shared && rng_chance(rng, 5))
            stride[order[i]] = 0;
    }
}

static void draw_tensor(struct rng *rng, int64_t stride[3], int64_t outer, int64_t heads, int64_t rows, int64_t dim, bool packed,
                        bool input)
{
    const int64_t extent[3] = {outer, heads, rows};
    stride[0] = 0;
    if (packed)
        draw_strides(rng, stride + 1, extent + 1, 2, dim, input);
    else
        draw_strides(rng, stride, extent, 3, dim, input);
}

void gen_strides(struct rng *rng, attest_problem *p)
{
    bool packed_q = p->flags & ATTEST_VARLEN_Q, packed_kv = p->flags & ATTEST_VARLEN_KV, paged = p->flags & ATTEST_PAGED;
    int64_t rows = packed_q ? p->total_q : p->seq_q;
    int64_t keys = packed_kv ? p->total_kv : paged ? p->page_size : p->seq_kv, outer = paged ? p->page_count : p->batch;
    draw_tensor(rng, p->stride_q, p->batch, p->heads_q, rows, p->dim, packed_q, true);
    draw_tensor(rng, p->stride_o, p->batch, p->heads_q, rows, p->dim_v, packed_q, false);
    draw_tensor(rng, p->stride_k, outer, p->heads_kv, keys, p->dim, packed_kv, true);
    draw_tensor(rng, p->stride_v, outer, p->heads_kv, keys, p->dim_v, packed_kv, true);
    if (p->flags & ATTEST_LSE)
        draw_tensor(rng, p->stride_lse, p->batch, p->heads_q, rows, 1, packed_q, false);
    if (p->flags & ATTEST_BIAS) {
        const int64_t extent[4] = {p->batch, p->heads_q, p->seq_q, p->seq_kv};
        draw_strides(rng, p->stride_bias, extent, 4, 1, true);
        if (rng_chance(rng, 2))
            p->stride_bias[0] = 0;
        if (rng_chance(rng, 3))
            p->stride_bias[1] = 0;
    }
    if (paged && rng_chance(rng, 2))
        p->stride_page_table += rng_below(rng, 5);
}

/* [batch, row, head, dim]: what most frameworks hand over. */
static void set_bshd(int64_t stride[3], int64_t heads, int64_t rows, int64_t dim)
{
    stride[0] = rows * heads * dim;
    stride[1] = dim;
    stride[2] = heads * dim;
}

static void draw_layout(struct rng *rng, attest_problem *p)
{
    attest_problem_pack(p);
    if (rng_chance(rng, 3))
        return;
    if (rng_chance(rng, 3) && !(p->flags & (ATTEST_VARLEN_Q | ATTEST_VARLEN_KV | ATTEST_PAGED))) {
        set_bshd(p->stride_q, p->heads_q, p->seq_q, p->dim);
        set_bshd(p->stride_o, p->heads_q, p->seq_q, p->dim_v);
        set_bshd(p->stride_k, p->heads_kv, p->seq_kv, p->dim);
        set_bshd(p->stride_v, p->heads_kv, p->seq_kv, p->dim_v);
        return;
    }
    gen_strides(rng, p);
}

static int64_t draw_window(struct rng *rng, int64_t n)
{
    return rng_chance(rng, 12) ? INT64_MAX - rng_below(rng, 3) : rng_chance(rng, 4) ? 0 : rng_below(rng, n + 3);
}

void gen_problem(struct rng *rng, attest_problem *p, uint64_t flags, double work, bool strides)
{
    int64_t batch, heads_kv, ratio, rows, keys, dim, dim_v;
    do {
        batch = rng_chance(rng, 40) ? 0 : 1 + rng_below(rng, 3);
        heads_kv = 1 + rng_below(rng, 3);
        ratio = pick(rng, ratios, COUNT(ratios));
        rows = rng_chance(rng, 40) ? 0 : rng_chance(rng, 3) ? 1 + rng_below(rng, 4) : pick(rng, lengths, COUNT(lengths));
        keys = rng_chance(rng, 40) ? 0 : rng_chance(rng, 5) ? rows : pick(rng, lengths, COUNT(lengths));
        dim = pick(rng, dims, COUNT(dims));
        dim_v = rng_chance(rng, 2) ? dim : pick(rng, dims, COUNT(dims));
    } while ((double)batch * (double)(heads_kv * ratio) * (double)rows * (double)keys * (double)(dim + dim_v) > work);

    attest_problem_init(p, (attest_dtype)(1 + rng_below(rng, 3)), batch, heads_kv * ratio, heads_kv, rows, keys, dim);
    p->dim_v = dim_v;
    p->flags = flags;
    if (rng_chance(rng, 3))
        p->dtype_o = ATTEST_F32;
    if (flags & ATTEST_BIAS)
        p->dtype_bias = rng_chance(rng, 2) ? ATTEST_F32 : p->dtype;
    if (flags & ATTEST_WINDOW_LEFT)
        p->window_left = draw_window(rng, keys);
    if (flags & ATTEST_WINDOW_RIGHT)
        p->window_right = draw_window(rng, keys);
    if (flags & ATTEST_SOFTCAP)
        p->softcap = (float)(0.5 + 20 * rng_uniform(rng));
    if (flags & ATTEST_VARLEN_Q)
        p->total_q = rng_below(rng, batch * rows + 3) + rows;
    if (flags & ATTEST_VARLEN_KV)
        p->total_kv = rng_below(rng, batch * keys + 3) + keys;
    if (flags & ATTEST_PAGED) {
        p->page_size = pick(rng, page_sizes, COUNT(page_sizes));
        p->page_count = batch * ((keys + p->page_size - 1) / p->page_size) + rng_below(rng, 3);
    }
    if (rng_chance(rng, 6))
        p->scale = (float)rng_normal(rng);
    if (strides)
        draw_layout(rng, p);
    else
        attest_problem_pack(p);
}
