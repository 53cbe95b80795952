/*
 * tensors.c - checks the data of a run against its problem, before anything is written.
 */
#include "internal.h"

#include <math.h>

struct sequence sequence_get(const attest_problem *p, const attest_tensors *t, int64_t b)
{
    struct sequence s = {.q_len = p->seq_q, .kv_len = p->seq_kv};
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
    if (has(p, ATTEST_Q_LENGTHS))
        s.q_len = t->q_lengths[b];
    if (has(p, ATTEST_KV_STARTS))
        s.kv_first = t->kv_starts[b];
    s.place = has(p, ATTEST_ROW_OFFSETS) ? t->row_offsets[b] : has(p, ATTEST_BOTTOM_RIGHT) ? s.kv_len - s.q_len : 0;
    return s;
}

void buffers_get(struct buffer *out, const attest_problem *p)
{
    for (int i = 0; i < TENSORS; i++) {
        struct shape s = shape_get(p, i);
        int64_t first, count, align = (int64_t)element_size(s.dtype);
        shape_extent(&s, &first, &count); /* the problem has been read: they fit */
        out[i] = (struct buffer){.wanted = s.present,
                                 .output = (tensor_rows[i].role[p->op] & ATTEST_ROLE_OUTPUT) != 0,
                                 .align = (size_t)align,
                                 .first = first * align,
                                 .bytes = count * align};
    }
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
    for (int i = 0; i < TENSORS; i++) {
        const struct buffer *buffer = &buffers[i];
        const char *name = tensor_rows[i].name;
        const void *data = tensor_data(t, i);
        if (buffer->output && !outputs)
            continue;
        if (!buffer->wanted && data)
            return fail(why, ATTEST_ERROR_ARGUMENT, "tensors.%s is given, but the problem's flags do not ask for it", name);
        if (buffer->wanted && buffer->bytes && !data)
            return fail(why, ATTEST_ERROR_ARGUMENT, "tensors.%s is NULL", name);
        if ((uintptr_t)data & (buffer->align - 1))
            return fail(why, ATTEST_ERROR_ARGUMENT, "tensors.%s is not aligned to its element size, %zu bytes", name,
                        buffer->align);
    }
    for (int i = 0; i < TENSORS && outputs; i++)
        for (int j = 0; j < TENSORS && buffers[i].output; j++)
            if (i != j && buffers[j].wanted && overlap(&buffers[i], tensor_data(t, i), &buffers[j], tensor_data(t, j)))
                return fail(why, ATTEST_ERROR_ARGUMENT, "tensors.%s overlaps tensors.%s in memory", tensor_rows[i].name,
                            tensor_rows[j].name);
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

/* One number for each sequence, which is between `least` and the sequence's `most`; NULL if there is none. */
static attest_status check_number(const char *name, const int32_t *numbers, int64_t b, int64_t least, int64_t most, struct text why)
{
    if (numbers && (numbers[b] < least || numbers[b] > most))
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s[%lld] is %d; it must be %lld to %lld", name, (long long)b, numbers[b],
                    (long long)least, (long long)most);
    return ATTEST_OK;
}

static attest_status check_lengths(const attest_tensors *t, const attest_problem *p, struct text why)
{
    const int64_t farthest = INT64_C(1) << 30;
    if (has(p, ATTEST_VARLEN_Q))
        TRY(check_cumulative("cu_seqlens_q", t->cu_seqlens_q, p->batch, p->total_q, p->seq_q, why));
    if (has(p, ATTEST_VARLEN_KV))
        TRY(check_cumulative("cu_seqlens_kv", t->cu_seqlens_kv, p->batch, p->total_kv, p->seq_kv, why));
    attest_problem whole = *p;
    whole.flags &= ~(ATTEST_KV_LENGTHS | ATTEST_Q_LENGTHS | ATTEST_KV_STARTS | ATTEST_ROW_OFFSETS);
    for (int64_t b = 0; b < p->batch; b++) {
        struct sequence all = sequence_get(&whole, t, b);
        TRY(check_number("kv_lengths", t->kv_lengths, b, 0, all.kv_len, why));
        TRY(check_number("q_lengths", t->q_lengths, b, 0, all.q_len, why));
        TRY(check_number("kv_starts", t->kv_starts, b, 0, t->kv_lengths ? t->kv_lengths[b] : all.kv_len, why));
        TRY(check_number("row_offsets", t->row_offsets, b, -farthest, farthest, why));
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
    const int64_t ladders = p->stride_alibi_slopes ? p->batch : 1; /* rows of slopes; none are looked at if there is no sequence */
    for (int64_t n = 0; n < ladders * p->heads_q && p->batch && has(p, ATTEST_ALIBI); n++) {
        const int64_t at = n / p->heads_q * p->stride_alibi_slopes + n % p->heads_q;
        if (!isfinite(t->alibi_slopes[at]))
            return fail(why, ATTEST_ERROR_ARGUMENT, "alibi_slopes[%lld] is %g; it must be finite", (long long)at,
                        (double)t->alibi_slopes[at]);
    }
    for (int64_t h = 0; h < p->heads_q; h++) {
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
    for (int i = 0; i < TENSORS && align; i++)
        if (tensor_has_columns(i) && (uintptr_t)tensor_data(own, i) % align)
            return fail(why, ATTEST_ERROR_ARGUMENT, "tensors.%s is not aligned to %u bytes, as %s needs it", tensor_rows[i].name,
                        align, kernel);
    return ATTEST_OK;
}
