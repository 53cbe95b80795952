/*
 * tensors.c - checks the data of a run against its problem, before anything is written.
 */
#include "internal.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

struct sequence sequence_get(const attest_problem *p, const attest_tensors *t, int64_t b)
{
    struct sequence s = {0, p->seq_q, 0, p->seq_kv};
    if (has(p, ATTEST_VARLEN_Q)) {
        s.q_row = t->cu_seqlens_q[b];
        s.q_len = (int64_t)t->cu_seqlens_q[b + 1] - t->cu_seqlens_q[b];
    }
    if (has(p, ATTEST_VARLEN_KV)) {
        s.kv_row = t->cu_seqlens_kv[b];
        s.kv_len = (int64_t)t->cu_seqlens_kv[b + 1] - t->cu_seqlens_kv[b];
    }
    if (has(p, ATTEST_KV_LENGTHS))
        s.kv_len = t->kv_lengths[b];
    return s;
}

void buffers_get(struct buffer *out, const attest_problem *p)
{
    bool varlen_q = has(p, ATTEST_VARLEN_Q), varlen_kv = has(p, ATTEST_VARLEN_KV), paged = has(p, ATTEST_PAGED);
    int64_t pages = paged ? p->seq_kv / p->page_size + (p->seq_kv % p->page_size != 0) : 0;
    int64_t table = paged && p->batch && pages ? (p->batch - 1) * p->stride_page_table + pages : 0;
    const struct buffer all[BUFFERS] = {
        {"q", true, false, dtype_size(p->dtype), 'q', 0},
        {"k", true, false, dtype_size(p->dtype), 'k', 0},
        {"v", true, false, dtype_size(p->dtype), 'v', 0},
        {"o", true, true, dtype_size(p->dtype_o), 'o', 0},
        {"lse", has(p, ATTEST_LSE), true, 4, 'l', 0},
        {"bias", has(p, ATTEST_BIAS), false, has(p, ATTEST_BIAS) ? dtype_size(p->dtype_bias) : 1, 'b', 0},
        {"alibi_slopes", has(p, ATTEST_ALIBI), false, 4, 0, p->heads_q * 4},
        {"sinks", has(p, ATTEST_SINK), false, 4, 0, p->heads_q * 4},
        {"cu_seqlens_q", varlen_q, false, 4, 0, (p->batch + 1) * 4},
        {"cu_seqlens_kv", varlen_kv, false, 4, 0, (p->batch + 1) * 4},
        {"kv_lengths", has(p, ATTEST_KV_LENGTHS), false, 4, 0, p->batch * 4},
        {"page_table", paged, false, 4, 0, table * 4},
    };
    memcpy(out, all, sizeof all);
    for (int i = 0; i < BUFFERS; i++)
        if (out[i].first) { /* a tensor: its letter stands for its extent */
            int64_t first, count;
            problem_extent(p, (char)out[i].first, &first, &count); /* the problem has been read: they fit */
            out[i].first = first * (int64_t)out[i].align;
            out[i].bytes = count * (int64_t)out[i].align;
        }
}

_Static_assert(sizeof(attest_tensors) == offsetof(attest_tensors, q) + BUFFERS * sizeof(void *), "size, then pointers alone");

void pointers_get(const void **data, const attest_tensors *t)
{
    memcpy(data, (const char *)t + offsetof(attest_tensors, q), BUFFERS * sizeof *data);
}

void pointers_set(attest_tensors *t, void *const *data)
{
    memcpy((char *)t + offsetof(attest_tensors, q), data, BUFFERS * sizeof *data);
}

static bool overlap(const struct buffer *a, const void *a_data, const struct buffer *b, const void *b_data)
{
    if (!a->bytes || !b->bytes || !a_data || !b_data)
        return false;
    uintptr_t a0 = (uintptr_t)a_data + (uintptr_t)a->first, b0 = (uintptr_t)b_data + (uintptr_t)b->first;
    return a0 < b0 + (uintptr_t)b->bytes && b0 < a0 + (uintptr_t)a->bytes;
}

static attest_status check_pointers(const attest_tensors *t, const struct buffer *buffers, bool outputs, struct text why)
{
    const void *data[BUFFERS];
    pointers_get(data, t);
    for (int i = 0; i < BUFFERS; i++) {
        const struct buffer *buffer = &buffers[i];
        if (buffer->output && !outputs)
            continue;
        if (!buffer->wanted && data[i])
            return fail(why, ATTEST_ERROR_ARGUMENT, "tensors.%s is given, but the problem's flags do not ask for it", buffer->name);
        if (buffer->wanted && buffer->bytes && !data[i])
            return fail(why, ATTEST_ERROR_ARGUMENT, "tensors.%s is NULL", buffer->name);
        if ((uintptr_t)data[i] & (buffer->align - 1))
            return fail(why, ATTEST_ERROR_ARGUMENT, "tensors.%s is not aligned to its element size, %zu bytes", buffer->name,
                        buffer->align);
    }
    for (int i = 0; i < BUFFERS && outputs; i++)
        for (int j = 0; j < BUFFERS && buffers[i].output; j++)
            if (i != j && buffers[j].wanted && overlap(&buffers[i], data[i], &buffers[j], data[j]))
                return fail(why, ATTEST_ERROR_ARGUMENT, "tensors.%s overlaps tensors.%s in memory", buffers[i].name,
                            buffers[j].name);
    return ATTEST_OK;
}

/* Cumulative lengths rise from 0 or more to `total` or less, and no sequence is longer than `longest`. */
static attest_status check_cumulative(const char *name, const int32_t *at, int64_t batch, int64_t total, int64_t longest,
                                      struct text why)
{
    for (int64_t b = 0; b <= batch; b++) {
        if (at[b] < 0 || at[b] > total)
            return fail(why, ATTEST_ERROR_ARGUMENT, "%s[%lld] is %d; it must be 0 to %lld", name, (long long)b, at[b],
                        (long long)total);
        if (b && at[b] < at[b - 1])
            return fail(why, ATTEST_ERROR_ARGUMENT, "%s[%lld] is %d, less than the entry before it, %d", name, (long long)b, at[b],
                        at[b - 1]);
        if (b && at[b] - at[b - 1] > longest)
            return fail(why, ATTEST_ERROR_ARGUMENT, "%s makes sequence %lld %d long; the longest allowed is %lld", name,
                        (long long)(b - 1), at[b] - at[b - 1], (long long)longest);
    }
    return ATTEST_OK;
}

static attest_status check_lengths(const attest_tensors *t, const attest_problem *p, struct text why)
{
    if (has(p, ATTEST_VARLEN_Q))
        TRY(check_cumulative("cu_seqlens_q", t->cu_seqlens_q, p->batch, p->total_q, p->seq_q, why));
    if (has(p, ATTEST_VARLEN_KV))
        TRY(check_cumulative("cu_seqlens_kv", t->cu_seqlens_kv, p->batch, p->total_kv, p->seq_kv, why));
    for (int64_t b = 0; b < p->batch && has(p, ATTEST_KV_LENGTHS); b++) {
        int64_t most = has(p, ATTEST_VARLEN_KV) ? (int64_t)t->cu_seqlens_kv[b + 1] - t->cu_seqlens_kv[b] : p->seq_kv;
        if (t->kv_lengths[b] < 0 || t->kv_lengths[b] > most)
            return fail(why, ATTEST_ERROR_ARGUMENT, "kv_lengths[%lld] is %d; it must be 0 to %lld", (long long)b, t->kv_lengths[b],
                        (long long)most);
    }
    for (int64_t b = 0; b < p->batch && has(p, ATTEST_PAGED); b++) {
        int64_t keys = sequence_get(p, t, b).kv_len, pages = keys / p->page_size + (keys % p->page_size != 0);
        for (int64_t i = 0; i < pages; i++) {
            int32_t page = t->page_table[b * p->stride_page_table + i];
            if (page < 0 || page >= p->page_count)
                return fail(why, ATTEST_ERROR_ARGUMENT, "page_table[%lld][%lld] is %d; it must be 0 to %lld", (long long)b,
                            (long long)i, page, (long long)p->page_count - 1);
        }
    }
    return ATTEST_OK;
}

static attest_status check_values(const attest_tensors *t, const attest_problem *p, struct text why)
{
    for (int64_t h = 0; h < p->heads_q; h++) {
        if (has(p, ATTEST_ALIBI) && !isfinite(t->alibi_slopes[h]))
            return fail(why, ATTEST_ERROR_ARGUMENT, "alibi_slopes[%lld] is %g; it must be finite", (long long)h,
                        (double)t->alibi_slopes[h]);
        if (has(p, ATTEST_SINK) && !(t->sinks[h] < INFINITY))
            return fail(why, ATTEST_ERROR_ARGUMENT, "sinks[%lld] is %g; it must not be +inf or NaN", (long long)h,
                        (double)t->sinks[h]);
    }
    return ATTEST_OK;
}

attest_status tensors_read(attest_tensors *own, const attest_tensors *theirs, const attest_problem *p, const struct buffer *buffers,
                           bool outputs, struct text why)
{
    TRY(struct_read(own, sizeof *own, TENSORS_SIZE_0_1, theirs, "tensors", why));
    TRY(check_pointers(own, buffers, outputs, why));
    TRY(check_lengths(own, p, why));
    return check_values(own, p, why);
}

attest_status tensors_read_device(attest_tensors *own, const attest_tensors *theirs, const struct buffer *buffers, uint32_t align,
                                  const char *kernel, struct text why)
{
    TRY(struct_read(own, sizeof *own, TENSORS_SIZE_0_1, theirs, "tensors", why));
    TRY(check_pointers(own, buffers, true, why));
    const struct {
        const char *name;
        const void *data;
    } aligned[] = {{"q", own->q}, {"k", own->k}, {"v", own->v}, {"o", own->o}};
    for (int i = 0; i < 4 && align; i++)
        if ((uintptr_t)aligned[i].data % align)
            return fail(why, ATTEST_ERROR_ARGUMENT, "tensors.%s is not aligned to %u bytes, as %s needs it", aligned[i].name, align,
                        kernel);
    return ATTEST_OK;
}
