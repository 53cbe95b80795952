/* Problems with data: see instance.h. */
#include "instance.h"
#include "tap.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FRINGE = 192, FRINGE_BYTE = 0xE7 };

/* ------------------------------------------------------------------------------------------------------------ random -- */

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

struct rng rng_from(uint64_t seed, const char *name)
{
    struct rng rng = {mix(seed)};
    for (; *name; name++)
        rng.state = mix(rng.state ^ (unsigned char)*name);
    return rng;
}

uint64_t rng_next(struct rng *rng)
{
    rng->state += UINT64_C(0x9E3779B97F4A7C15);
    return mix(rng->state);
}

int64_t rng_below(struct rng *rng, int64_t n)
{
    return (int64_t)(rng_next(rng) % (uint64_t)n);
}
double rng_uniform(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}
bool rng_chance(struct rng *rng, int one_in)
{
    return rng_below(rng, one_in) == 0;
}

/* The sum of four uniform numbers, centred and scaled to variance 1: bell-shaped enough, and quick. */
double rng_normal(struct rng *rng)
{
    uint64_t x = rng_next(rng);
    double sum = (double)((x & 0xFFFF) + (x >> 16 & 0xFFFF) + (x >> 32 & 0xFFFF) + (x >> 48));
    return (sum * 0x1p-16 - 2) * 1.7320508075688772;
}

/* ------------------------------------------------------------------------------------------------------------ dtypes -- */

size_t type_bytes(uint32_t dtype)
{
    return dtype == ATTEST_F32 ? 4 : 2;
}
const char *type_name(uint32_t dtype)
{
    return dtype == ATTEST_F32 ? "f32" : dtype == ATTEST_F16 ? "f16" : "bf16";
}
double type_unit(uint32_t dtype)
{
    return dtype == ATTEST_F32 ? 0x1p-24 : dtype == ATTEST_F16 ? 0x1p-11 : 0x1p-8;
}
double type_smallest(uint32_t dtype)
{
    return dtype == ATTEST_F32 ? 0x1p-149 : dtype == ATTEST_F16 ? 0x1p-24 : 0x1p-133;
}
double type_largest(uint32_t dtype)
{
    return dtype == ATTEST_F32 ? (double)FLT_MAX : dtype == ATTEST_F16 ? 65504 : 0x1.FEp127;
}

double load(uint32_t dtype, const void *data, int64_t offset)
{
    const unsigned char *at = (const unsigned char *)data + offset * (int64_t)type_bytes(dtype);
    if (dtype == ATTEST_F32) {
        float value;
        memcpy(&value, at, sizeof value);
        return (double)value;
    }
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return (double)(dtype == ATTEST_F16 ? attest_f16_to_float(bits) : attest_bf16_to_float(bits));
}

void store(uint32_t dtype, void *data, int64_t offset, double value)
{
    unsigned char *at = (unsigned char *)data + offset * (int64_t)type_bytes(dtype);
    float rounded = (float)value;
    if (dtype == ATTEST_F32) {
        memcpy(at, &rounded, sizeof rounded);
        return;
    }
    uint16_t bits = dtype == ATTEST_F16 ? attest_f16_from_float(rounded) : attest_bf16_from_float(rounded);
    memcpy(at, &bits, sizeof bits);
}

double type_round(uint32_t dtype, double value)
{
    uint32_t place;
    store(dtype, &place, 0, value);
    return load(dtype, &place, 0);
}

/* ----------------------------------------------------------------------------------------------------------- buffers -- */

bool buffer_create(struct buffer *buffer, enum placement placement, int64_t first, int64_t count, size_t element)
{
    memset(buffer, 0, sizeof *buffer);
    size_t size = (size_t)count * element;
    if (placement == PLACE_PLAIN) {
        buffer->map = malloc(size + 2 * FRINGE + element);
        if (!buffer->map)
            return false;
        buffer->whole = buffer->map;
        buffer->whole_size = size + 2 * FRINGE + element;
        /* One element off the alignment that malloc gives: pointers are aligned to their element type and to nothing else. */
        buffer->bytes = buffer->whole + FRINGE + element;
    } else {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t inner = (size + page - 1) / page * page;
        buffer->map_size = inner + page;
        buffer->map = mmap(NULL, buffer->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (buffer->map == MAP_FAILED) {
            buffer->map = NULL;
            return false;
        }
        bool after = placement == PLACE_GUARD_AFTER;
        buffer->whole = (unsigned char *)buffer->map + (after ? 0 : page);
        buffer->whole_size = inner;
        buffer->bytes = after ? buffer->whole + inner - size : buffer->whole;
        if (mprotect((unsigned char *)buffer->map + (after ? inner : 0), page, PROT_NONE) != 0)
            return false;
    }
    memset(buffer->whole, FRINGE_BYTE, buffer->whole_size);
    buffer->size = size;
    buffer->data = (void *)((uintptr_t)buffer->bytes - (uintptr_t)(first * (int64_t)element));
    return true;
}

void buffer_destroy(struct buffer *buffer)
{
    if (buffer->map_size)
        munmap(buffer->map, buffer->map_size);
    else
        free(buffer->map);
    memset(buffer, 0, sizeof *buffer);
}

void buffer_fill_nan(struct buffer *buffer, uint32_t dtype)
{
    static const uint16_t f16_nan = 0x7E55, bf16_nan = 0x7FD5;
    static const uint32_t f32_nan = 0x7FD5A5C3;
    const void *pattern = dtype == ATTEST_F32 ? (const void *)&f32_nan : dtype == ATTEST_F16 ? &f16_nan : &bf16_nan;
    size_t step = type_bytes(dtype);
    for (size_t at = 0; at < buffer->size; at += step)
        memcpy(buffer->bytes + at, pattern, step);
}

uint64_t buffer_hash(const struct buffer *buffer)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325), word;
    size_t at = 0;
    for (; at + 8 <= buffer->whole_size; at += 8) {
        memcpy(&word, buffer->whole + at, 8);
        hash = (hash ^ word) * UINT64_C(0x100000001B3);
        hash ^= hash >> 29;
    }
    for (; at < buffer->whole_size; at++)
        hash = (hash ^ buffer->whole[at]) * UINT64_C(0x100000001B3);
    return hash;
}

/* ---------------------------------------------------------------------------------------------------------- geometry -- */

static bool has(const struct instance *in, uint64_t flag)
{
    return (in->problem.flags & flag) != 0;
}

int64_t instance_rows(const struct instance *in, int64_t b)
{
    const int32_t *cu = in->tensors.cu_seqlens_q;
    return has(in, ATTEST_VARLEN_Q) ? (int64_t)cu[b + 1] - cu[b] : in->problem.seq_q;
}

int64_t instance_keys(const struct instance *in, int64_t b)
{
    if (has(in, ATTEST_KV_LENGTHS))
        return in->tensors.kv_lengths[b];
    const int32_t *cu = in->tensors.cu_seqlens_kv;
    return has(in, ATTEST_VARLEN_KV) ? (int64_t)cu[b + 1] - cu[b] : in->problem.seq_kv;
}

/* Differences, never sums: a window may be as wide as int64 allows. */
bool instance_visible(const struct instance *in, int64_t b, int64_t i, int64_t j)
{
    const attest_problem *p = &in->problem;
    int64_t n_kv = instance_keys(in, b);
    int64_t place = has(in, ATTEST_BOTTOM_RIGHT) ? i + n_kv - instance_rows(in, b) : i;
    if (j >= n_kv)
        return false;
    if (has(in, ATTEST_CAUSAL) && j > place)
        return false;
    if (has(in, ATTEST_WINDOW_LEFT) && place - j > p->window_left)
        return false;
    return !(has(in, ATTEST_WINDOW_RIGHT) && j - place > p->window_right);
}

bool instance_seen(const struct instance *in, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (!instance_visible(in, b, i, j))
        return false;
    return !has(in, ATTEST_BIAS) ||
           load(in->problem.dtype_bias, in->tensors.bias, offset_bias(in, b, h, i, j)) != (double)-INFINITY;
}

bool instance_key_in_use(const struct instance *in, int64_t b, int64_t kv_head, int64_t j)
{
    int64_t group = in->problem.heads_q / in->problem.heads_kv, rows = instance_rows(in, b);
    bool by_bias = in->nan_behind_bias && has(in, ATTEST_BIAS);
    for (int64_t h = kv_head * group; h < kv_head * group + (by_bias ? group : 1); h++)
        for (int64_t i = 0; i < rows; i++)
            if (by_bias ? instance_seen(in, b, h, i, j) : instance_visible(in, b, i, j))
                return true;
    return false;
}

static int64_t offset_row(const struct instance *in, const int64_t stride[3], int64_t b, int64_t h, int64_t i)
{
    if (has(in, ATTEST_VARLEN_Q))
        return h * stride[1] + (in->tensors.cu_seqlens_q[b] + i) * stride[2];
    return b * stride[0] + h * stride[1] + i * stride[2];
}

static int64_t offset_key(const struct instance *in, const int64_t stride[3], int64_t b, int64_t h, int64_t j)
{
    const attest_problem *p = &in->problem;
    if (has(in, ATTEST_PAGED)) {
        int64_t page = in->tensors.page_table[b * p->stride_page_table + j / p->page_size];
        return page * stride[0] + h * stride[1] + j % p->page_size * stride[2];
    }
    if (has(in, ATTEST_VARLEN_KV))
        return h * stride[1] + (in->tensors.cu_seqlens_kv[b] + j) * stride[2];
    return b * stride[0] + h * stride[1] + j * stride[2];
}

int64_t offset_q(const struct instance *in, int64_t b, int64_t h, int64_t i)
{
    return offset_row(in, in->problem.stride_q, b, h, i);
}
int64_t offset_o(const struct instance *in, int64_t b, int64_t h, int64_t i)
{
    return offset_row(in, in->problem.stride_o, b, h, i);
}
int64_t offset_lse(const struct instance *in, int64_t b, int64_t h, int64_t i)
{
    return offset_row(in, in->problem.stride_lse, b, h, i);
}
int64_t offset_k(const struct instance *in, int64_t b, int64_t h, int64_t j)
{
    return offset_key(in, in->problem.stride_k, b, h, j);
}
int64_t offset_v(const struct instance *in, int64_t b, int64_t h, int64_t j)
{
    return offset_key(in, in->problem.stride_v, b, h, j);
}

int64_t offset_bias(const struct instance *in, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t *stride = in->problem.stride_bias;
    return b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3];
}

/* ------------------------------------------------------------------------------------------------------------ values -- */

double values_normal(const struct instance *in, struct rng *rng, char tensor, int64_t b, int64_t h, int64_t row, int64_t d)
{
    (void)in, (void)b, (void)row, (void)d;
    if (tensor == 'a')
        return exp2(-(double)(h % 8) - 1) * (rng_chance(rng, 6) ? -0.25 : 1);
    if (tensor == 's')
        return rng_chance(rng, 8) ? (double)-INFINITY : 1 + rng_normal(rng);
    if (tensor == 'b')
        return rng_chance(rng, 9) ? (double)-INFINITY : rng_normal(rng);
    return rng_normal(rng);
}

struct rng instance_rng(const struct instance *in, char tensor, int64_t b, int64_t h, int64_t row, int64_t d)
{
    uint64_t key = mix(in->seed) ^ (uint64_t)tensor;
    key = mix(key + (uint64_t)(in->first_batch + b) * 0x10001);
    key = mix(key + (uint64_t)h * 0x3000005);
    key = mix(key + (uint64_t)row * 0x700000011 + (uint64_t)d);
    return (struct rng){key};
}

static double value(const struct instance *in, value_function *values, char tensor, int64_t b, int64_t h, int64_t row, int64_t d)
{
    struct rng rng = instance_rng(in, tensor, b, h, row, d);
    return values(in, &rng, tensor, b, h, row, d);
}

void instance_refill(struct instance *in, value_function *values)
{
    const attest_problem *p = &in->problem;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            for (int64_t i = 0; i < instance_rows(in, b); i++) {
                for (int64_t d = 0; d < p->dim; d++)
                    store(p->dtype, in->q.data, offset_q(in, b, h, i) + d, value(in, values, 'q', b, h, i, d));
                /* The bias comes before K and V, because it decides with the mask which of them are seen. */
                for (int64_t j = 0; has(in, ATTEST_BIAS) && j < instance_keys(in, b); j++)
                    if (instance_visible(in, b, i, j))
                        store(p->dtype_bias, in->bias.data, offset_bias(in, b, h, i, j), value(in, values, 'b', b, h, i, j));
            }
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t g = 0; g < p->heads_kv; g++)
            for (int64_t j = 0; j < instance_keys(in, b); j++) {
                if (!instance_key_in_use(in, b, g, j))
                    continue;
                for (int64_t d = 0; d < p->dim; d++)
                    store(p->dtype, in->k.data, offset_k(in, b, g, j) + d, value(in, values, 'k', b, g, j, d));
                for (int64_t d = 0; d < p->dim_v; d++)
                    store(p->dtype, in->v.data, offset_v(in, b, g, j) + d, value(in, values, 'v', b, g, j, d));
            }
    for (int64_t h = 0; h < p->heads_q; h++) {
        if (has(in, ATTEST_ALIBI))
            store(ATTEST_F32, in->alibi.data, h, value(in, values, 'a', -in->first_batch, h, 0, 0));
        if (has(in, ATTEST_SINK))
            store(ATTEST_F32, in->sinks.data, h, value(in, values, 's', -in->first_batch, h, 0, 0));
    }
}

/* ---------------------------------------------------------------------------------------------------------- instance -- */

/* Cumulative lengths with gaps before the first and after the last sequence; `given` are the lengths wanted, or NULL. */
static void draw_cumulative(int32_t *cu, struct rng *rng, int64_t batch, int64_t longest, int64_t total, const int32_t *given)
{
    int64_t at = 0, wanted = 0;
    for (int64_t b = 0; given && b < batch; b++)
        wanted += given[b];
    if (total > wanted && rng_chance(rng, 3))
        at = rng_below(rng, given ? total - wanted + 1 : total / 2 + 1);
    cu[0] = (int32_t)at;
    for (int64_t b = 0; b < batch; b++) {
        int64_t most = total - at < longest ? total - at : longest;
        int64_t length = given ? given[b] : rng_chance(rng, 6) ? 0 : rng_chance(rng, 3) ? most : rng_below(rng, most + 1);
        at += length;
        cu[b + 1] = (int32_t)at;
    }
}

static bool make_lengths(struct instance *in, enum placement placement, struct rng *rng, const struct instance_options *options)
{
    const attest_problem *p = &in->problem;
    if (has(in, ATTEST_VARLEN_Q)) {
        if (!buffer_create(&in->cu_q, placement, 0, p->batch + 1, sizeof(int32_t)))
            return false;
        draw_cumulative(in->cu_q.data, rng, p->batch, p->seq_q, p->total_q, options->rows);
        in->tensors.cu_seqlens_q = in->cu_q.data;
    }
    const int32_t *keys = options->keys;
    if (has(in, ATTEST_VARLEN_KV)) {
        if (!buffer_create(&in->cu_kv, placement, 0, p->batch + 1, sizeof(int32_t)))
            return false;
        draw_cumulative(in->cu_kv.data, rng, p->batch, p->seq_kv, p->total_kv, keys);
        in->tensors.cu_seqlens_kv = in->cu_kv.data;
    }
    if (has(in, ATTEST_KV_LENGTHS)) {
        if (!buffer_create(&in->lengths, placement, 0, p->batch, sizeof(int32_t)))
            return false;
        int32_t *lengths = in->lengths.data;
        for (int64_t b = 0; b < p->batch; b++) {
            const int32_t *cu = in->tensors.cu_seqlens_kv;
            int64_t most = cu ? cu[b + 1] - cu[b] : p->seq_kv;
            lengths[b] = keys ? keys[b] : rng_chance(rng, 8) ? 0 : (int32_t)(rng_chance(rng, 4) ? most : rng_below(rng, most + 1));
        }
        in->tensors.kv_lengths = lengths;
    }
    return true;
}

/* Pages in a random order, none used twice while they last; entries that are not in use are numbers that must not be followed. */
static bool make_pages(struct instance *in, enum placement placement, struct rng *rng)
{
    const attest_problem *p = &in->problem;
    int64_t per_sequence = p->page_size ? (p->seq_kv + p->page_size - 1) / p->page_size : 0;
    int64_t entries = p->batch ? (p->batch - 1) * p->stride_page_table + per_sequence : 0;
    if (!buffer_create(&in->pages, placement, 0, entries, sizeof(int32_t)))
        return false;
    int32_t *table = in->pages.data;
    in->tensors.page_table = table;
    for (int64_t e = 0; e < entries; e++)
        table[e] = rng_chance(rng, 2) ? INT32_MAX : -1;
    int32_t *order = malloc(sizeof(int32_t) * (size_t)(p->page_count + 1));
    if (!order)
        return false;
    for (int64_t n = 0; n < p->page_count; n++) {
        int64_t place = rng_below(rng, n + 1);
        order[n] = order[place];
        order[place] = (int32_t)n;
    }
    int64_t next = 0;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t e = 0; e * p->page_size < instance_keys(in, b); e++)
            table[b * p->stride_page_table + e] = order[next++ % p->page_count];
    free(order);
    return true;
}

static bool make_tensor(const attest_problem *p, char letter, enum placement placement, uint32_t dtype, struct buffer *buffer)
{
    int64_t first = 0, count = 0;
    if (attest_problem_extent(p, letter, &first, &count) != ATTEST_OK || count < 0)
        return false;
    if (!buffer_create(buffer, placement, first, count, type_bytes(dtype)))
        return false;
    buffer_fill_nan(buffer, dtype);
    return true;
}

bool instance_create(struct instance *in, const attest_problem *problem, uint64_t seed, const struct instance_options *options)
{
    static const struct instance_options defaults = {.placement = PLACE_PLAIN};
    if (!options)
        options = &defaults;
    memset(in, 0, sizeof *in);
    in->problem = *problem;
    in->seed = seed;
    in->first_batch = options->first_batch;
    in->nan_behind_bias = options->nan_behind_bias;
    in->tensors.size = sizeof in->tensors;
    char text[512] = "";
    if (!tap_check(attest_problem_check(problem, text, sizeof text) == ATTEST_OK, "problem refused: %s", text))
        return false;

    struct rng rng = rng_from(seed, "lengths");
    enum placement at = options->placement;
    bool good = make_lengths(in, at, &rng, options);
    good = good && (!has(in, ATTEST_PAGED) || make_pages(in, at, &rng));
    good = good && make_tensor(problem, 'q', at, problem->dtype, &in->q) && make_tensor(problem, 'k', at, problem->dtype, &in->k);
    good = good && make_tensor(problem, 'v', at, problem->dtype, &in->v) && make_tensor(problem, 'o', at, problem->dtype_o, &in->o);
    good = good && (!has(in, ATTEST_LSE) || make_tensor(problem, 'l', at, ATTEST_F32, &in->lse));
    good = good && (!has(in, ATTEST_BIAS) || make_tensor(problem, 'b', at, problem->dtype_bias, &in->bias));
    good = good && (!has(in, ATTEST_ALIBI) || buffer_create(&in->alibi, at, 0, problem->heads_q, sizeof(float)));
    good = good && (!has(in, ATTEST_SINK) || buffer_create(&in->sinks, at, 0, problem->heads_q, sizeof(float)));
    if (!tap_check(good, "no memory for the tensors, or no extent")) {
        instance_destroy(in);
        return false;
    }
    in->tensors.q = in->q.data;
    in->tensors.k = in->k.data;
    in->tensors.v = in->v.data;
    in->tensors.o = in->o.data;
    in->tensors.lse = in->lse.data;
    in->tensors.bias = in->bias.data;
    in->tensors.alibi_slopes = in->alibi.data;
    in->tensors.sinks = in->sinks.data;
    instance_refill(in, options->values ? options->values : values_normal);
    instance_poison(in);
    return true;
}

static const size_t input_places[] = {
    offsetof(struct instance, q),     offsetof(struct instance, k),     offsetof(struct instance, v),
    offsetof(struct instance, bias),  offsetof(struct instance, alibi), offsetof(struct instance, sinks),
    offsetof(struct instance, cu_q),  offsetof(struct instance, cu_kv), offsetof(struct instance, lengths),
    offsetof(struct instance, pages),
};

static uint64_t hash_inputs(const struct instance *in)
{
    uint64_t hash = 0;
    for (size_t n = 0; n < sizeof input_places / sizeof *input_places; n++)
        hash = mix(hash ^ buffer_hash((const struct buffer *)(const void *)((const char *)in + input_places[n])));
    return hash;
}

void instance_destroy(struct instance *in)
{
    for (size_t n = 0; n < sizeof input_places / sizeof *input_places; n++)
        buffer_destroy((struct buffer *)(void *)((char *)in + input_places[n]));
    buffer_destroy(&in->o);
    buffer_destroy(&in->lse);
}

void instance_poison(struct instance *in)
{
    buffer_fill_nan(&in->o, in->problem.dtype_o);
    buffer_fill_nan(&in->lse, ATTEST_F32);
    in->input_hash = hash_inputs(in);
}

/* Puts NaN back into a copy at every addressed element; what then differs from a poisoned buffer was written out of bounds. */
static bool gaps_untouched(const struct instance *in, const struct buffer *buffer, uint32_t dtype, bool is_lse)
{
    struct buffer scratch = {.bytes = malloc(buffer->size + 1), .size = buffer->size};
    unsigned char *written = malloc(buffer->size + 1);
    if (!scratch.bytes || !written) {
        free(scratch.bytes);
        free(written);
        return false;
    }
    buffer_fill_nan(&scratch, dtype);
    memcpy(written, buffer->bytes, buffer->size);
    const attest_problem *p = &in->problem;
    size_t element = type_bytes(dtype), run = element * (is_lse ? 1 : (size_t)p->dim_v);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            for (int64_t i = 0; i < instance_rows(in, b); i++) {
                int64_t offset = is_lse ? offset_lse(in, b, h, i) : offset_o(in, b, h, i);
                size_t at = (size_t)((unsigned char *)buffer->data + offset * (int64_t)element - buffer->bytes);
                memcpy(written + at, scratch.bytes + at, run);
            }
    bool same = memcmp(written, scratch.bytes, buffer->size) == 0;
    for (unsigned char *at = buffer->whole; same && at && at < buffer->whole + buffer->whole_size; at++) {
        if (at == buffer->bytes)
            at += buffer->size;
        if (at < buffer->whole + buffer->whole_size && *at != FRINGE_BYTE)
            same = false;
    }
    free(scratch.bytes);
    free(written);
    return same;
}

bool instance_untouched(const struct instance *in, char *why, size_t why_size)
{
    const char *what = NULL;
    if (hash_inputs(in) != in->input_hash)
        what = "an input was written";
    else if (!gaps_untouched(in, &in->o, in->problem.dtype_o, false))
        what = "bytes of O outside the addressed elements were written";
    else if (has(in, ATTEST_LSE) && !gaps_untouched(in, &in->lse, ATTEST_F32, true))
        what = "bytes of LSE outside the addressed elements were written";
    if (what)
        snprintf(why, why_size, "%s", what);
    return !what;
}

static bool still_poisoned(const struct buffer *buffer, uint32_t dtype)
{
    struct buffer scratch = {.bytes = malloc(buffer->size + 1), .size = buffer->size};
    if (!scratch.bytes)
        return false;
    buffer_fill_nan(&scratch, dtype);
    bool same = memcmp(scratch.bytes, buffer->bytes, buffer->size) == 0;
    free(scratch.bytes);
    return same;
}

bool instance_no_write(const struct instance *in)
{
    return hash_inputs(in) == in->input_hash && still_poisoned(&in->o, in->problem.dtype_o) &&
           (!in->lse.bytes || still_poisoned(&in->lse, ATTEST_F32));
}
