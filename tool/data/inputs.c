/*
 * inputs.c - drawing the inputs of a problem (see inputs.h).
 *
 * Q, K and V are independent and nearly normal, never zero. Each row of Q is multiplied by 1/2, 1, 2 or 4, so that every input set
 * has flat rows, in which many keys count, and steep ones, in which few do. Biases are nearly normal with one in sixteen at -inf;
 * slopes are the usual ladder 2^(-8h/H); one sink in eight is -inf. Lengths fill the packed tensor, one in six each of the longest
 * and of the shortest that fits. Pages come in random order, and are shared between sequences only if there are too few of them.
 */
#include "inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npy.h"
#include "tensor_list.h"
#include "base/random.h"

enum stream {
    STREAM_Q = 1,
    STREAM_K,
    STREAM_V,
    STREAM_BIAS,
    STREAM_SINK,
    STREAM_ROWS,
    STREAM_KEYS,
    STREAM_LENGTH,
    STREAM_PAGE,
    STREAM_STEEP,
    STREAM_OFFSET,
    STREAM_START,
    STREAM_COUNT,
    STREAM_MASK
};

/* Elements below which waking other threads takes longer than drawing. */
enum { WORTH_THREADS = 1 << 16 };

struct maker {
    struct inputs *in;
    uint64_t seed;
    const char *const *files;
    const struct contents *contents;
    enum exit_code code;
    char *why;
    size_t why_size;
};

static int content(const struct maker *maker, enum content which)
{
    return maker->contents ? maker->contents->word[which] : 0;
}

static bool refuse(struct maker *maker, enum exit_code code, const char *what)
{
    maker->code = code;
    snprintf(maker->why, maker->why_size, "%s", what);
    return false;
}

static bool given(const struct maker *maker, int file)
{
    return maker->files && maker->files[file];
}

bool buffer_make(struct buffer *buffer, const attest_problem *problem, char tensor, uint32_t dtype, size_t guard)
{
    int64_t first = 0, count = 0;
    if (attest_problem_extent(problem, tensor, &first, &count) != ATTEST_OK)
        return false;
    size_t size = element_size(dtype);
    size_t bytes = (size_t)count * size;
    buffer->dtype = dtype;
    buffer->bytes = bytes + 2 * guard;
    buffer->base = aligned_alloc(64, (buffer->bytes + 64) / 64 * 64);
    if (!buffer->base)
        return false;
    memset(buffer->base, 0xff, buffer->bytes);
    buffer->at = buffer->base + guard + (size_t)(count ? -first : 0) * size;
    return true;
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->base);
    *buffer = (struct buffer){0};
}

/* Lengths of `count` sequences of 0 to `longest`, one after the other in a tensor of `total` rows, as cumulative sums. */
static void draw_lengths(int32_t *cu, uint64_t seed, enum stream stream, int64_t count, int64_t longest, int64_t total)
{
    int64_t fits = total / (longest > 0 ? longest : 1) >= count ? count * longest : total;
    int64_t left = fits;
    cu[0] = (int32_t)random_below(random_bits(seed, stream, 0), total - fits);
    for (int64_t b = 0; b < count; b++) {
        int64_t others = count - b - 1;
        int64_t low = longest > 0 && left / longest >= others ? left - others * longest : 0;
        int64_t high = left < longest ? left : longest;
        uint64_t bits = random_bits(seed, stream, (uint64_t)b + 1);
        int64_t length = bits % 6 == 0 ? low : bits % 6 == 1 ? high : low + random_below(bits >> 3, high - low);
        cu[b + 1] = (int32_t)(cu[b] + length);
        left -= length;
    }
}

/* Words of contents.def, in their order. */
enum { LENGTHS_RANDOM, LENGTHS_FULL, LENGTHS_ZEROS, LENGTHS_ZEROS_FIRST, LENGTHS_ZEROS_LAST, LENGTHS_SHORT };
enum { ENDS_TIGHT, ENDS_BEFORE, ENDS_AFTER, ENDS_BOTH };
enum { PAGES_RANDOM, PAGES_IN_ORDER, PAGES_REVERSED, PAGES_SHARED };

/* The length of sequence b, of at most `longest`, that a word for lengths asks for. */
static int64_t chosen_length(int word, uint64_t bits, int64_t b, int64_t count, int64_t longest)
{
    bool none = word == LENGTHS_ZEROS         ? bits & 1 && count > 1
                : word == LENGTHS_ZEROS_FIRST ? b < (count + 1) / 2 && b < count - 1
                : word == LENGTHS_ZEROS_LAST  ? b > count / 2 && b > 0
                                              : false;
    if (none)
        return 0;
    if (word == LENGTHS_SHORT)
        return longest < 3 ? longest : 1 + random_below(bits >> 3, 2);
    int64_t low = longest < 1 ? 0 : 1;
    return word == LENGTHS_FULL ? longest : low + random_below(bits >> 3, longest - low);
}

/* Cumulative lengths as the contents ask for them: some sequences of no length, and rows at the ends that belong to none. */
static void choose_lengths(const struct maker *maker, int32_t *cu, enum stream stream, int64_t count, int64_t longest,
                           int64_t total)
{
    int word = content(maker, CONTENT_lengths), ends = content(maker, CONTENT_ends);
    if (word == LENGTHS_RANDOM && ends == ENDS_TIGHT) {
        draw_lengths(cu, maker->seed, stream, count, longest, total);
        return;
    }
    int64_t gap = ends == ENDS_TIGHT ? 0 : total / 6 + (total > 1);
    int64_t before = ends == ENDS_BEFORE || ends == ENDS_BOTH ? gap : 0, after = ends == ENDS_AFTER || ends == ENDS_BOTH ? gap : 0;
    int64_t left = total - before - after;
    cu[0] = (int32_t)before;
    for (int64_t b = 0; b < count; b++) {
        int64_t length = chosen_length(word, random_bits(maker->seed, stream, (uint64_t)b + 1), b, count, longest);
        length = length < left ? length : left;
        cu[b + 1] = (int32_t)(cu[b] + length);
        left -= length;
    }
}

/* A random order of the pages, handed out to the sequences in turn. Entries that are not in use are no page at all. */
static bool draw_pages(struct maker *maker)
{
    struct inputs *in = maker->in;
    const attest_problem *problem = &in->problem;
    int64_t pages = problem->page_count;
    int32_t *order = malloc(((size_t)pages + 1) * sizeof *order);
    if (!order)
        return refuse(maker, EXIT_LACKING, "out of memory for the page table");
    int word = content(maker, CONTENT_pages);
    int64_t handed_out = word == PAGES_SHARED && pages > 1 ? (pages + 1) / 2 : pages;
    for (int64_t n = 0; n < pages; n++) {
        bool shuffled = word == PAGES_RANDOM || word == PAGES_SHARED;
        int64_t other = shuffled ? random_below(random_bits(maker->seed, STREAM_PAGE, (uint64_t)n), n) : n;
        order[n] = order[other];
        order[other] = (int32_t)(word == PAGES_REVERSED ? pages - 1 - n : n);
    }
    for (int64_t n = 0; n < in->page_entries; n++)
        in->pages[n] = n % 2 ? INT32_MAX : -1;
    int64_t next = 0;
    for (int64_t b = 0; b < problem->batch && pages > 0; b++) {
        int64_t keys = layout_keys(&in->layout, b);
        for (int64_t n = 0; n * problem->page_size < keys; n++)
            in->pages[b * problem->stride_page_table + n] = order[next++ % handed_out];
    }
    free(order);
    return true;
}

/* One array of lengths, sinks and the like: read, or left for the caller to draw. */
static bool take_array(struct maker *maker, void **array, int file, const char *name, char kind, int rank, const int64_t *shape)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= shape[i];
    *array = calloc((size_t)count + 1, 4);
    if (!*array)
        return refuse(maker, EXIT_LACKING, "out of memory");
    if (!given(maker, file))
        return true;
    if (kind == 'i' ? npy_read_int32(maker->files[file], name, rank, shape, *array, maker->why, maker->why_size)
                    : npy_read_float(maker->files[file], name, rank, shape, *array, maker->why, maker->why_size))
        return true;
    maker->code = EXIT_USAGE;
    return false;
}

/* How many rows each sequence has, which key is its first, and where its rows stand among the keys. */
static bool make_places(struct maker *maker)
{
    struct inputs *in = maker->in;
    const attest_problem *problem = &in->problem;
    const struct {
        uint64_t flag;
        int32_t **array;
        const int32_t **of_layout;
        int file;
        const char *name;
        enum stream stream;
    } numbers[] = {{ATTEST_Q_LENGTHS, &in->rows, &in->layout.rows, FILE_ROWS, "q-lengths", STREAM_COUNT},
                   {ATTEST_KV_STARTS, &in->starts, &in->layout.starts, FILE_STARTS, "kv-starts", STREAM_START},
                   {ATTEST_ROW_OFFSETS, &in->offsets, &in->layout.offsets, FILE_OFFSETS, "row-offsets", STREAM_OFFSET}};
    for (int n = 0; n < COUNT_OF(numbers); n++) {
        if (!(problem->flags & numbers[n].flag))
            continue;
        if (!take_array(maker, (void **)numbers[n].array, numbers[n].file, numbers[n].name, 'i', 1, &problem->batch))
            return false;
        for (int64_t b = 0; b < problem->batch && !given(maker, numbers[n].file); b++) {
            const int64_t most_rows = in->cu_q ? (int64_t)in->cu_q[b + 1] - in->cu_q[b] : problem->seq_q,
                          keys = layout_keys(&in->layout, b);
            const uint64_t bits = random_bits(maker->seed, numbers[n].stream, (uint64_t)b), kind = bits % 8;
            int64_t value;
            if (n == 0)
                value = kind == 0 ? 0 : kind < 4 ? most_rows : random_below(bits >> 3, most_rows);
            else if (n == 1)
                value = kind == 0 ? keys : kind < 3 ? 0 : random_below(bits >> 3, keys / 2);
            else
                value = kind < 2   ? keys - layout_rows(&in->layout, b)
                        : kind < 3 ? 0
                        : kind < 4 ? keys + random_below(bits >> 3, 70)
                        : kind < 5 ? -1 - random_below(bits >> 3, 70)
                                   : random_below(bits >> 3, keys);
            (*numbers[n].array)[b] = (int32_t)value;
        }
        *numbers[n].of_layout = *numbers[n].array;
    }
    return true;
}

/* Lengths, tables, slopes and sinks. They come first: where keys lie, and which of them count, depends on them. */
static bool make_small(struct maker *maker)
{
    struct inputs *in = maker->in;
    const attest_problem *problem = &in->problem;
    int64_t batch[2] = {problem->batch, problem->stride_page_table};
    int64_t bounds[1] = {problem->batch + 1};
    int64_t heads[1] = {problem->heads_q};
    if (problem->flags & ATTEST_VARLEN_Q) {
        if (!take_array(maker, (void **)&in->cu_q, FILE_CU_Q, "cu-seqlens-q", 'i', 1, bounds))
            return false;
        if (!given(maker, FILE_CU_Q))
            choose_lengths(maker, in->cu_q, STREAM_ROWS, problem->batch, problem->seq_q, problem->total_q);
    }
    if (problem->flags & ATTEST_VARLEN_KV) {
        if (!take_array(maker, (void **)&in->cu_kv, FILE_CU_KV, "cu-seqlens-kv", 'i', 1, bounds))
            return false;
        if (!given(maker, FILE_CU_KV))
            choose_lengths(maker, in->cu_kv, STREAM_KEYS, problem->batch, problem->seq_kv, problem->total_kv);
    }
    if (content(maker, CONTENT_shared) == SHARED_CU_SEQLENS && in->cu_q && in->cu_kv) { /* lengths that are right for both */
        int64_t longest = problem->seq_q < problem->seq_kv ? problem->seq_q : problem->seq_kv,
                total = problem->total_q < problem->total_kv ? problem->total_q : problem->total_kv;
        choose_lengths(maker, in->cu_q, STREAM_ROWS, problem->batch, longest, total);
        memcpy(in->cu_kv, in->cu_q, (size_t)bounds[0] * sizeof *in->cu_kv);
    }
    in->layout = (struct layout){.problem = problem, .cu_q = in->cu_q, .cu_kv = in->cu_kv};
    if (problem->flags & ATTEST_KV_LENGTHS) {
        if (!take_array(maker, (void **)&in->lengths, FILE_LENGTHS, "kv-lengths", 'i', 1, batch))
            return false;
        for (int64_t b = 0; b < problem->batch && !given(maker, FILE_LENGTHS); b++) {
            int64_t longest = in->cu_kv ? (int64_t)in->cu_kv[b + 1] - in->cu_kv[b] : problem->seq_kv;
            uint64_t bits = random_bits(maker->seed, STREAM_LENGTH, (uint64_t)b);
            int64_t drawn = bits % 8 == 0 ? 0 : bits % 8 == 1 ? longest : random_below(bits >> 3, longest);
            int word = content(maker, CONTENT_lengths);
            in->lengths[b] = (int32_t)(word == LENGTHS_RANDOM ? drawn : chosen_length(word, bits, b, problem->batch, longest));
        }
        in->layout.lengths = in->lengths;
    }
    if (!make_places(maker))
        return false;
    if (problem->flags & ATTEST_PAGED && problem->batch > 0) {
        int64_t row = (problem->seq_kv + problem->page_size - 1) / problem->page_size;
        bool overlap = problem->stride_page_table < row;
        in->page_entries =
            overlap ? (problem->batch - 1) * problem->stride_page_table + row : problem->batch * problem->stride_page_table;
        if (!take_array(maker, (void **)&in->pages, FILE_PAGES, "page-table", 'i', overlap ? 1 : 2,
                        overlap ? &in->page_entries : batch))
            return false;
        if (!given(maker, FILE_PAGES) && !draw_pages(maker))
            return false;
        in->layout.pages = in->pages;
    }
    if (problem->flags & ATTEST_ALIBI) {
        const int64_t step = problem->stride_alibi_slopes, ladders[2] = {problem->batch, step};
        const bool rows_apart = step >= problem->heads_q;
        in->slope_count =
            rows_apart ? problem->batch * step : problem->heads_q + llabs(step) * (problem->batch > 0 ? problem->batch - 1 : 0);
        if (!take_array(maker, (void **)&in->slopes, FILE_ALIBI, "alibi-slopes", 'f', rows_apart ? 2 : 1,
                        rows_apart ? ladders
                        : step     ? &in->slope_count
                                   : heads))
            return false;
        for (int64_t n = 0; n < in->slope_count && !given(maker, FILE_ALIBI); n++)
            in->slopes[n] =
                exp2f(-8.0f * (float)(n % problem->heads_q + 1) / (float)problem->heads_q) * (n < problem->heads_q ? 1 : 0.75f);
    }
    if (problem->flags & ATTEST_SINK) {
        if (!take_array(maker, (void **)&in->sinks, FILE_SINKS, "sinks", 'f', 1, heads))
            return false;
        for (int64_t h = 0; h < problem->heads_q && !given(maker, FILE_SINKS); h++) {
            uint64_t bits = random_bits(maker->seed, STREAM_SINK, (uint64_t)h);
            in->sinks[h] = bits % 8 == 7 ? -INFINITY : random_normal(random_mix(bits));
        }
    }
    return true;
}

/* Lengths and page tables from files are checked by the library, but the drawing below walks them too, and must stay inside. */
static bool lengths_are_sane(struct maker *maker)
{
    const struct inputs *in = maker->in;
    const attest_problem *problem = &in->problem;
    for (int64_t b = 0; b < problem->batch; b++) {
        if (in->cu_q && (in->cu_q[b] < 0 || in->cu_q[b + 1] > problem->total_q || layout_rows(&in->layout, b) < 0 ||
                         layout_rows(&in->layout, b) > problem->seq_q))
            return refuse(maker, EXIT_USAGE, "cu-seqlens-q must rise from 0 or more to total_q or less, by seq_q at most");
        int64_t longest = problem->seq_kv;
        if (in->cu_kv) {
            longest = (int64_t)in->cu_kv[b + 1] - in->cu_kv[b];
            if (in->cu_kv[b] < 0 || in->cu_kv[b + 1] > problem->total_kv || longest < 0 || longest > problem->seq_kv)
                return refuse(maker, EXIT_USAGE, "cu-seqlens-kv must rise from 0 or more to total_kv or less, by seq_kv at most");
        }
        if (in->lengths && (in->lengths[b] < 0 || in->lengths[b] > longest))
            return refuse(maker, EXIT_USAGE, "kv-lengths must be 0 to seq_kv, or to the length of the packed sequence");
        if (in->rows && (in->rows[b] < 0 || in->rows[b] > (in->cu_q ? in->cu_q[b + 1] - in->cu_q[b] : problem->seq_q)))
            return refuse(maker, EXIT_USAGE, "q-lengths must be 0 to seq_q, or to the length of the packed sequence");
        if (in->starts && (in->starts[b] < 0 || in->starts[b] > layout_keys(&in->layout, b)))
            return refuse(maker, EXIT_USAGE, "kv-starts must be 0 to the number of keys of the sequence");
        for (int64_t n = 0; in->pages && n * problem->page_size < layout_keys(&in->layout, b); n++) {
            int32_t page = in->pages[b * problem->stride_page_table + n];
            if (page < 0 || page >= problem->page_count)
                return refuse(maker, EXIT_USAGE, "the page table has a page that is not 0 to page_count - 1 where there are keys");
        }
    }
    return true;
}

static void draw_queries(struct maker *maker)
{
    struct inputs *in = maker->in;
    const attest_problem *problem = &in->problem;
    int64_t heads = problem->batch * problem->heads_q;
    bool distinct = layout_distinct(problem, 'q'), is_large = heads * problem->seq_q * problem->dim > WORTH_THREADS;
#pragma omp parallel for schedule(dynamic) if (distinct && is_large)
    for (int64_t bh = 0; bh < heads; bh++) {
        int64_t b = bh / problem->heads_q;
        for (int64_t i = 0; i < layout_rows(&in->layout, b); i++) {
            uint64_t row = (uint64_t)(bh * problem->seq_q + i);
            float steep = exp2f((float)(random_bits(maker->seed, STREAM_STEEP, row) % 4) - 1.0f);
            int64_t at = layout_row_at(&in->layout, problem->stride_q, b, bh % problem->heads_q, i);
            for (int64_t d = 0; d < problem->dim; d++) {
                uint64_t bits = random_bits(maker->seed, STREAM_Q, row * (uint64_t)problem->dim + (uint64_t)d);
                element_store(in->q.at, problem->dtype, at + d, steep * random_normal(bits));
            }
        }
    }
}

/*
 * Keys that some row may see, and one more on either side: with that one finite, a mask that is off by one is a plausible wrong
 * answer, which the judge must be able to tell, and not merely a NaN. Sequences may share pages, so only the heads of one sequence
 * are drawn in parallel.
 */
static void draw_keys(struct maker *maker, struct buffer *buffer, char tensor, const int64_t *stride, int64_t dim)
{
    struct inputs *in = maker->in;
    const attest_problem *problem = &in->problem;
    bool distinct = layout_distinct(problem, tensor), is_large = problem->heads_kv * problem->seq_kv * dim > WORTH_THREADS;
    enum stream stream = tensor == 'k' ? STREAM_K : STREAM_V;
    for (int64_t b = 0; b < problem->batch; b++) {
        int64_t begin, end, keys = layout_keys(&in->layout, b);
        layout_live(&in->layout, b, &begin, &end);
        if (begin == end)
            continue;
        begin -= begin > 0;
        end += end < keys;
#pragma omp parallel for schedule(dynamic) if (distinct && is_large)
        for (int64_t h = 0; h < problem->heads_kv; h++) {
            for (int64_t j = begin; j < end; j++) {
                uint64_t row = (uint64_t)((b * problem->heads_kv + h) * problem->seq_kv + j);
                int64_t at = layout_key_at(&in->layout, stride, b, h, j);
                for (int64_t d = 0; d < dim; d++) {
                    uint64_t bits = random_bits(maker->seed, stream, row * (uint64_t)dim + (uint64_t)d);
                    element_store(buffer->at, problem->dtype, at + d, random_normal(bits));
                }
            }
        }
    }
}

/* A bias: one key in sixteen is hidden. */
static float bias_drawn(uint64_t bits)
{
    return bits % 16 == 0 ? -INFINITY : random_normal(random_mix(bits));
}

/* A mask: a quarter of the keys is hidden, and the others have any other byte. */
static float mask_drawn(uint64_t bits)
{
    return bits % 4 == 0 ? 0 : bits % 4 == 1 ? 1 : (float)(uint8_t)(bits >> 8 | 1);
}

/* A number for each row and key that there are. */
static void draw_pairs(struct maker *maker, const struct buffer *to, const int64_t stride[4], enum stream stream,
                       float (*drawn)(uint64_t bits))
{
    const struct inputs *in = maker->in;
    for (int64_t b = 0; b < in->problem.batch; b++)
        for (int64_t h = 0; h < in->problem.heads_q; h++)
            for (int64_t i = 0; i < layout_rows(&in->layout, b); i++)
                for (int64_t j = 0; j < layout_keys(&in->layout, b); j++) {
                    const int64_t at = b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3];
                    element_store(to->at, to->dtype, at, drawn(random_bits(maker->seed, stream, (uint64_t)at)));
                }
}

/* A large tensor: room for it, and its file if there is one. *drawn says whether the caller is to draw it. */
static bool take_tensor(struct maker *maker, struct buffer *buffer, char tensor, int file, uint32_t dtype, bool *drawn)
{
    static const char *const names[] = {[FILE_Q] = "q", [FILE_K] = "k", [FILE_V] = "v", [FILE_BIAS] = "bias", [FILE_MASK] = "mask"};
    struct view view = layout_view(&maker->in->problem, tensor);
    if (!buffer_make(buffer, &maker->in->problem, tensor, dtype, 0))
        return refuse(maker, EXIT_LACKING, "out of memory for the inputs");
    *drawn = !given(maker, file);
    if (*drawn)
        return true;
    maker->code = EXIT_USAGE;
    return npy_read_view(maker->files[file], names[file], &view, dtype, buffer->at, maker->why, maker->why_size);
}

/* Refuses what would not fit into memory here, instead of being killed half way. */
static bool fits_memory(struct maker *maker)
{
    const attest_problem *problem = &maker->in->problem;
    double bytes = 4.0 * (double)problem->batch * ((double)problem->stride_page_table + 3);
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    for (const char *tensor = "qkvolbm"; *tensor; tensor++) {
        int64_t first, count;
        if (attest_problem_extent(problem, *tensor, &first, &count) == ATTEST_OK)
            bytes += (double)count * (double)element_size(*tensor == 'l'   ? ATTEST_F32
                                                          : *tensor == 'm' ? ATTEST_U8
                                                          : *tensor == 'b' ? problem->dtype_bias
                                                                           : problem->dtype);
    }
    if (bytes < 0.8 * memory)
        return true;
    char text[160];
    snprintf(text, sizeof text, "the tensors take %.1f GiB and this machine has %.1f GiB of memory", bytes / 0x1p30,
             memory / 0x1p30);
    return refuse(maker, EXIT_LACKING, text);
}

static bool make_all(struct maker *maker)
{
    struct inputs *in = maker->in;
    const attest_problem *problem = &in->problem;
    bool drawn;
    if (!fits_memory(maker) || !make_small(maker) || !lengths_are_sane(maker))
        return false;
    if (!take_tensor(maker, &in->q, 'q', FILE_Q, problem->dtype, &drawn))
        return false;
    if (drawn)
        draw_queries(maker);
    if (!take_tensor(maker, &in->k, 'k', FILE_K, problem->dtype, &drawn))
        return false;
    if (drawn)
        draw_keys(maker, &in->k, 'k', problem->stride_k, problem->dim);
    if (!take_tensor(maker, &in->v, 'v', FILE_V, problem->dtype, &drawn))
        return false;
    if (drawn)
        draw_keys(maker, &in->v, 'v', problem->stride_v, problem->dim_v);
    if (problem->flags & ATTEST_BIAS) {
        if (!take_tensor(maker, &in->bias, 'b', FILE_BIAS, problem->dtype_bias, &drawn))
            return false;
        if (drawn)
            draw_pairs(maker, &in->bias, problem->stride_bias, STREAM_BIAS, bias_drawn);
    }
    if (problem->flags & ATTEST_MASK) {
        if (!take_tensor(maker, &in->mask, 'm', FILE_MASK, ATTEST_U8, &drawn))
            return false;
        if (drawn)
            draw_pairs(maker, &in->mask, problem->stride_mask, STREAM_MASK, mask_drawn);
    }
    const int64_t step = problem->stride_alibi_slopes;
    float *slopes = in->slopes && step < 0 && problem->batch > 0 ? in->slopes - (problem->batch - 1) * step : in->slopes;
    in->tensors = (attest_tensors){.size = sizeof in->tensors,
                                   .q = in->q.at,
                                   .k = in->k.at,
                                   .v = in->v.at,
                                   .bias = in->bias.at,
                                   .alibi_slopes = slopes,
                                   .mask = in->mask.at,
                                   .row_offsets = in->offsets,
                                   .kv_starts = in->starts,
                                   .q_lengths = in->rows,
                                   .sinks = in->sinks,
                                   .cu_seqlens_q = in->cu_q,
                                   .cu_seqlens_kv = in->cu_kv,
                                   .kv_lengths = in->lengths,
                                   .page_table = in->pages};
    return true;
}

static bool make_inputs(struct maker maker, const attest_problem *problem, enum exit_code *code)
{
    struct inputs *inputs = maker.in;
    *inputs = (struct inputs){.problem = *problem};
    if (make_all(&maker)) {
        if (maker.contents)
            contents_apply(maker.contents, inputs, maker.seed);
        return true;
    }
    *code = maker.code;
    inputs_free(inputs);
    return false;
}

bool inputs_make(const attest_problem *problem, uint64_t seed, const char *const *files, struct inputs *inputs,
                 enum exit_code *code, char *why, size_t why_size)
{
    return make_inputs((struct maker){inputs, seed, files, NULL, EXIT_INTERNAL, why, why_size}, problem, code);
}

bool inputs_make_with(const attest_problem *problem, uint64_t seed, const struct contents *contents, struct inputs *inputs,
                      enum exit_code *code, char *why, size_t why_size)
{
    return make_inputs((struct maker){inputs, seed, NULL, contents, EXIT_INTERNAL, why, why_size}, problem, code);
}

void inputs_replace(struct inputs *inputs, const void *was, void *now)
{
    struct tensor_list list;
    if (!was || !now || !tensor_list_get(&inputs->problem, &list))
        return;
    for (int i = 0; i < list.count; i++)
        if (tensor_pointer(&inputs->tensors, &list.of[i]) == was)
            tensor_set_pointer(&inputs->tensors, &list.of[i], now);
}

void inputs_free(struct inputs *inputs)
{
    buffer_free(&inputs->q);
    buffer_free(&inputs->k);
    buffer_free(&inputs->v);
    buffer_free(&inputs->bias);
    buffer_free(&inputs->mask);
    free(inputs->offsets);
    free(inputs->starts);
    free(inputs->rows);
    free(inputs->slopes);
    free(inputs->sinks);
    free(inputs->cu_q);
    free(inputs->cu_kv);
    free(inputs->lengths);
    free(inputs->pages);
    *inputs = (struct inputs){0};
}

uint64_t digest_bytes(uint64_t digest, const void *data, size_t size)
{
    const unsigned char *at = data;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        digest = (digest ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        digest ^= digest >> 32;
    }
    for (; size > 0; at++, size--)
        digest = random_mix(digest ^ *at) + 1;
    return digest;
}

uint64_t inputs_digest(const struct inputs *inputs)
{
    const attest_problem *problem = &inputs->problem;
    const struct buffer *buffers[] = {&inputs->q, &inputs->k, &inputs->v, &inputs->bias, &inputs->mask};
    const int32_t *numbers[] = {inputs->offsets, inputs->starts, inputs->rows};
    size_t batch = (size_t)problem->batch;
    uint64_t digest = 1;
    for (int i = 0; i < COUNT_OF(numbers); i++)
        if (numbers[i])
            digest = digest_bytes(digest, numbers[i], batch * 4);
    for (int i = 0; i < COUNT_OF(buffers); i++)
        if (buffers[i]->base)
            digest = digest_bytes(digest, buffers[i]->base, buffers[i]->bytes);
    if (inputs->slopes)
        digest = digest_bytes(digest, inputs->slopes, (size_t)inputs->slope_count * 4);
    if (inputs->sinks)
        digest = digest_bytes(digest, inputs->sinks, (size_t)problem->heads_q * 4);
    if (inputs->cu_q)
        digest = digest_bytes(digest, inputs->cu_q, (batch + 1) * 4);
    if (inputs->cu_kv)
        digest = digest_bytes(digest, inputs->cu_kv, (batch + 1) * 4);
    if (inputs->lengths)
        digest = digest_bytes(digest, inputs->lengths, batch * 4);
    if (inputs->pages)
        digest = digest_bytes(digest, inputs->pages, (size_t)inputs->page_entries * 4);
    return digest;
}
