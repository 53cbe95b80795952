/*
 * contents.c - what tensors hold (see contents.h).
 *
 * Magnitudes are powers of two, so that what is drawn keeps its digits. Q and K change by opposite powers, but for rows of Q, so that
 * scores stay where rows are neither flat nor one key alone, and a wrong score is a wrong answer. Where magnitudes differ by head, row
 * or column, the first of them are the smallest: a kernel that looks at the beginning of a tensor to know the rest is wrong on it.
 */
#include "contents.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "base/random.h"

enum { MOST_WORDS = 8 };

static const struct {
    const char *name;
    const char *words[MOST_WORDS];
} table[CONTENT_COUNT] = {
#define CONTENT(name, ...) {#name, {__VA_ARGS__}},
#include "contents.def"
#undef CONTENT
};

/* The words of contents.def in their order. */
enum { LENGTHS_RANDOM, LENGTHS_FULL, LENGTHS_ZEROS, LENGTHS_ZEROS_FIRST, LENGTHS_ZEROS_LAST, LENGTHS_SHORT };
enum { SLOPES_LADDER, SLOPES_NEGATIVE, SLOPES_MIXED, SLOPES_SOME_ZERO, SLOPES_LARGE };
enum { BIAS_SOME_HIDDEN, BIAS_FINITE, BIAS_ROWS_HIDDEN, BIAS_TAIL_HIDDEN, BIAS_LARGE, BIAS_LOW, BIAS_TAKING_TURNS };
enum { SINKS_SOME_ABSENT, SINKS_FINITE, SINKS_ALL_ABSENT, SINKS_LARGE, SINKS_LOW };
enum {
    SPECIAL_NONE,
    SPECIAL_NAN_V,
    SPECIAL_INF_V,
    SPECIAL_NAN_K,
    SPECIAL_NAN_Q,
    SPECIAL_INF_BIAS,
    SPECIAL_NAN_BEHIND_BIAS,
    SPECIAL_NAN_BIAS
};

enum { STREAM_SLOPE = 1400, STREAM_SINK, STREAM_BIAS, STREAM_SPECIAL, STREAM_PLACE, STREAM_NAN };

const char *content_name(enum content content)
{
    return table[content].name;
}

int content_words(enum content content)
{
    int count = 0;
    while (count < MOST_WORDS && table[content].words[count])
        count++;
    return count;
}

const char *content_word(enum content content, int word)
{
    return table[content].words[word];
}

void contents_print(const struct contents *contents, char text[CONTENTS_TEXT])
{
    size_t used = 0;
    text[0] = '\0';
    for (int n = 0; n < CONTENT_COUNT; n++)
        if (contents->word[n] && used < CONTENTS_TEXT)
            used += (size_t)snprintf(text + used, CONTENTS_TEXT - used, "%s%s=%s", used ? "," : "", table[n].name,
                                     table[n].words[contents->word[n]]);
}

static bool parse_one(const char *name, size_t name_size, const char *word, size_t word_size, struct contents *contents)
{
    for (int n = 0; n < CONTENT_COUNT; n++)
        for (int w = 0; w < content_words((enum content)n); w++)
            if (strlen(table[n].name) == name_size && memcmp(table[n].name, name, name_size) == 0 &&
                strlen(table[n].words[w]) == word_size && memcmp(table[n].words[w], word, word_size) == 0) {
                contents->word[n] = w;
                return true;
            }
    return false;
}

bool contents_parse(const char *text, struct contents *contents, char *why, size_t why_size)
{
    *contents = (struct contents){0};
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ","), name = strcspn(at, "=");
        if (name >= length || !parse_one(at, name, at + name + 1, length - name - 1, contents)) {
            int used = snprintf(why, why_size, "'%.*s' is no property of the contents; those are", (int)length, at);
            for (int n = 0; n < CONTENT_COUNT; n++)
                for (int w = 0; w < content_words((enum content)n) && used > 0 && (size_t)used < why_size; w++)
                    used += snprintf(why + used, why_size - (size_t)used, "%s%s%s%s",
                                     w   ? "|"
                                     : n ? ", "
                                         : " ",
                                     w ? "" : table[n].name, w ? "" : "=", table[n].words[w]);
            return false;
        }
        at += length + (at[length] == ',');
    }
    return true;
}

bool contents_special(const struct contents *contents)
{
    return contents->word[CONTENT_special] != SPECIAL_NONE && contents->word[CONTENT_special] != SPECIAL_NAN_BEHIND_BIAS;
}

/* ---- one number a head ----------------------------------------------------------------------------------------------- */

static void apply_slopes(int word, struct inputs *inputs, uint64_t seed)
{
    for (int64_t h = 0; h < inputs->slope_count && word != SLOPES_LADDER; h++) {
        uint64_t bits = random_bits(seed, STREAM_SLOPE, (uint64_t)h);
        float size = exp2f(-6.0f + 5.0f * (float)(bits >> 40 & 0xff) / 256);
        float sign = word == SLOPES_NEGATIVE || (word == SLOPES_MIXED && h % 2) ? -1 : 1;
        if (word == SLOPES_SOME_ZERO && (bits & 1))
            size = 0;
        if (word == SLOPES_LARGE)
            size = 2 + (float)(bits >> 8 & 0xff) / 32;
        inputs->slopes[h] = sign * size;
    }
}

static void apply_sinks(int word, struct inputs *inputs, uint64_t seed)
{
    for (int64_t h = 0; h < inputs->problem.heads_q && word != SINKS_SOME_ABSENT; h++) {
        float drawn = random_normal(random_bits(seed, STREAM_SINK, (uint64_t)h));
        inputs->sinks[h] = word == SINKS_FINITE       ? drawn
                           : word == SINKS_ALL_ABSENT ? -INFINITY
                           : word == SINKS_LARGE      ? 6 + 2 * drawn
                                                      : -20 + 4 * drawn;
    }
}

/* ---- biases ----------------------------------------------------------------------------------------------------------- */

/* Rows of heads that share a KV head, of which one sees a key that takes turns. */
static int64_t turns_of(const attest_problem *problem, int64_t rows)
{
    const int64_t most = 8, together = rows * (problem->heads_q / problem->heads_kv);
    return together < 2 ? 2 : together < most ? together : most;
}

/* With `turn` it is this row's turn to see the key. */
static float bias_value(int word, uint64_t bits, int64_t row, int64_t key, int64_t keys, bool turn)
{
    float drawn = random_normal(random_mix(bits));
    switch (word) {
    case BIAS_ROWS_HIDDEN:
        return row % 4 == 2 ? -INFINITY : drawn;
    case BIAS_TAIL_HIDDEN: /* from the last third of the keys on, but for the first */
        return key > 0 && key * 3 >= keys * 2 ? -INFINITY : drawn;
    case BIAS_LARGE:
        return 40 * drawn;
    case BIAS_LOW: /* whole rows, as masks by a number have them, and all but every fifth key of the others: -10000, -30000, -60000 */
        return row % 3 == 0 || key % 5 ? -1e4f * (float)(row % 3 == 0 ? 1 : key % 2 ? 3 : 6) + drawn : drawn;
    case BIAS_TAKING_TURNS:
        return turn ? drawn : -INFINITY;
    default:
        return drawn;
    }
}

static int64_t bias_at(const attest_problem *problem, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t *stride = problem->stride_bias;
    return b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3];
}

static void apply_bias(int word, struct inputs *inputs, uint64_t seed)
{
    const attest_problem *problem = &inputs->problem;
    for (int64_t b = 0; b < problem->batch && word != BIAS_SOME_HIDDEN; b++) {
        int64_t keys = layout_keys(&inputs->layout, b), rows = layout_rows(&inputs->layout, b), turns = turns_of(problem, rows);
        for (int64_t h = 0; h < problem->heads_q; h++)
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < keys; j++) {
                    int64_t at = bias_at(problem, b, h, i, j);
                    bool turn = j % turns == (i * (problem->heads_q / problem->heads_kv) + h) % turns;
                    uint64_t bits = random_bits(seed, STREAM_BIAS, (uint64_t)at);
                    element_store(inputs->bias.at, problem->dtype_bias, at, bias_value(word, bits, i, j, keys, turn));
                }
    }
}

/* ---- magnitudes ------------------------------------------------------------------------------------------------------- */

/* Powers of two that the type has room for, on top of numbers near 1 and of their products. */
static int reach_of(uint32_t dtype)
{
    return dtype == ATTEST_F16 ? 8 : 24;
}

/* The power for the n-th of `count`: the first are the smallest, and they rise to the middle and fall again. */
static int power_of(int64_t n, int64_t count, int reach)
{
    int64_t turn = n % 8;
    return count < 2 ? 0 : (int)((turn < 5 ? turn : 8 - turn) * reach / 4) - reach / 2;
}

static void scale_rows(struct buffer *buffer, int64_t at, int64_t dim, int power, int by_column)
{
    for (int64_t d = 0; d < dim; d++) {
        float value = element_load(buffer->at, buffer->dtype, at + d);
        int own = by_column ? power_of(d, dim, by_column) : power;
        if (value == value && own)
            element_store(buffer->at, buffer->dtype, at + d, ldexpf(value, own));
    }
}

enum { AXES_MOST = 16 }; /* of rows and keys */

/* Values of one sign in the key's own column, and zeros. */
static void leave_one_column(struct buffer *v, int64_t at, int64_t dim_v, int64_t key)
{
    const int64_t column = (key / AXES_MOST + key % AXES_MOST * 5) % dim_v;
    for (int64_t d = 0; d < dim_v; d++) {
        const float value = element_load(v->at, v->dtype, at + d);
        if (value == value)
            element_store(v->at, v->dtype, at + d, d == column ? 0.5f + fabsf(value) : 0);
    }
}

/* A row of Q or K along one axis: on the same one they have a score of about 25, and else 0. */
static void leave_one_axis(struct buffer *buffer, const attest_problem *problem, int64_t at, int64_t axis, float spread)
{
    const float scale = fabsf(problem->scale);
    const float size = scale > 0.002f && scale < 25 ? sqrtf(25 / scale) : 1;
    for (int64_t d = 0; d < problem->dim; d++) {
        const float value = element_load(buffer->at, buffer->dtype, at + d);
        if (value == value)
            element_store(buffer->at, buffer->dtype, at + d, d == axis ? size * (1 + spread * fabsf(value)) : 0);
    }
}

/* Axes that keys take by turns, and rows of a group: no more than there are rows. */
static int64_t axes_of(const struct inputs *inputs, int64_t b)
{
    const attest_problem *problem = &inputs->problem;
    const int64_t rows = layout_rows(&inputs->layout, b) * (problem->heads_q / problem->heads_kv);
    int64_t axes = 1;
    while (2 * axes <= rows && 2 * axes <= problem->dim && axes < AXES_MOST)
        axes *= 2;
    return axes;
}

/* Whether all heads have the same rows of Q or of K. Then powers by head would not cancel, and products would be as large as 2^48. */
static bool heads_share_rows(const attest_problem *problem)
{
    return problem->stride_q[1] == 0 || problem->stride_k[1] == 0;
}

static int q_power(int word, const attest_problem *problem, int64_t h, int64_t i)
{
    int reach = reach_of(problem->dtype);
    switch (word) {
    case QK_Q_TINY:
        return -reach;
    case QK_Q_LARGE:
        return reach;
    case QK_BY_HEAD:
        return heads_share_rows(problem) ? 0 : power_of(h / (problem->heads_q / problem->heads_kv), problem->heads_kv, reach);
    case QK_BY_ROW:
        return (int)(i % 7) - 5;
    default:
        return 0;
    }
}

static int k_power(int word, const attest_problem *problem, int64_t h)
{
    return word == QK_BY_ROW ? 0 : -q_power(word, problem, h * (problem->heads_q / problem->heads_kv), 0);
}

static int v_power(int word, const attest_problem *problem, int64_t h, int64_t j)
{
    int reach = reach_of(problem->dtype);
    switch (word) {
    case V_TINY:
        return -reach;
    case V_LARGE:
        return reach;
    case V_BY_HEAD:
        return power_of(h, problem->heads_kv, reach);
    case V_HUGE: /* weights may be up to 2^20 before they are divided by their sum */
        return problem->dtype == ATTEST_F16 ? reach : 106 - (int)ceil(log2((double)problem->seq_kv + 1));
    case V_BY_ROW:
        return j < 4 ? -4 : (int)(j % 5) - 2;
    default:
        return 0;
    }
}

/* Rows that share their place in memory are changed once: by the first that comes. */
static bool is_first(unsigned char *seen, const struct buffer *buffer, int64_t at)
{
    int64_t element = (int64_t)((size_t)((unsigned char *)buffer->at - buffer->base) / element_size(buffer->dtype)) + at;
    bool first = !seen[element];
    seen[element] = 1;
    return first;
}

static void apply_magnitudes(const struct contents *contents, struct inputs *inputs, unsigned char *seen[3])
{
    const attest_problem *problem = &inputs->problem;
    int qk = contents->word[CONTENT_qk], v = contents->word[CONTENT_v];
    for (int64_t b = 0; b < problem->batch; b++) {
        const int64_t axes = axes_of(inputs, b), group = problem->heads_kv ? problem->heads_q / problem->heads_kv : 1;
        for (int64_t h = 0; h < problem->heads_q && qk != QK_NORMAL; h++)
            for (int64_t i = 0; i < layout_rows(&inputs->layout, b); i++) {
                int64_t at = layout_row_at(&inputs->layout, problem->stride_q, b, h, i);
                if (!is_first(seen[0], &inputs->q, at))
                    continue;
                if (qk == QK_ONE_ROW)
                    leave_one_axis(&inputs->q, problem, at, (i * group + h % group) % axes, 0);
                else
                    scale_rows(&inputs->q, at, problem->dim, q_power(qk, problem, h, i), 0);
            }
        for (int64_t h = 0; h < problem->heads_kv; h++)
            for (int64_t j = 0; j < layout_keys(&inputs->layout, b); j++) {
                int64_t at = layout_key_at(&inputs->layout, problem->stride_k, b, h, j);
                if (qk == QK_ONE_ROW && is_first(seen[1], &inputs->k, at))
                    leave_one_axis(&inputs->k, problem, at, j % axes, 1.0f / 256);
                else if (qk != QK_NORMAL && is_first(seen[1], &inputs->k, at))
                    scale_rows(&inputs->k, at, problem->dim, k_power(qk, problem, h), 0);
                at = layout_key_at(&inputs->layout, problem->stride_v, b, h, j);
                if (v == V_NORMAL || !is_first(seen[2], &inputs->v, at))
                    continue;
                if (v == V_ONE_COLUMN)
                    leave_one_column(&inputs->v, at, problem->dim_v, j);
                else
                    scale_rows(&inputs->v, at, problem->dim_v, v_power(v, problem, h, j),
                               v == V_BY_COLUMN ? reach_of(problem->dtype) : 0);
            }
    }
}

/* ---- values that are not finite --------------------------------------------------------------------------------------- */

/* Any of them: one of arithmetic, one that rounding up carries out of, as memory filled with ones has, or one that signals. */
static void nan_store(void *base, uint32_t dtype, int64_t at, uint64_t seed)
{
    static const uint32_t patterns[][4] = {[ATTEST_F32] = {0x7fc00000, 0xffc00000, 0x7fffffff, 0x7f800001},
                                           [ATTEST_F16] = {0x7e00, 0xfe00, 0x7fff, 0x7c01},
                                           [ATTEST_BF16] = {0x7fc0, 0xffc0, 0x7fff, 0x7f81}};
    const uint64_t bits = random_bits(seed, STREAM_NAN, (uint64_t)at);
    const uint32_t sign = dtype == ATTEST_F32 ? 0x80000000u : 0x8000u, nan = patterns[dtype][bits % 4] | (bits & 4 ? sign : 0);
    if (dtype == ATTEST_F32)
        ((uint32_t *)base)[at] = nan;
    else
        ((uint16_t *)base)[at] = (uint16_t)nan;
}

/* A row of a head that sees a key, and that key. False if no row of this sequence sees one. */
static bool find_pair(const struct inputs *inputs, uint64_t seed, int64_t b, int64_t *h, int64_t *i, int64_t *j)
{
    const attest_problem *problem = &inputs->problem;
    int64_t rows = layout_rows(&inputs->layout, b);
    *h = random_below(random_bits(seed, STREAM_SPECIAL, 1), problem->heads_q - 1);
    for (int64_t n = 0; n < rows; n++) {
        int64_t begin, end;
        *i = (n + random_below(random_bits(seed, STREAM_SPECIAL, 2), rows - 1)) % rows;
        layout_visible(&inputs->layout, b, *i, &begin, &end);
        for (int64_t k = begin; k < end; k++) {
            *j = begin + (k - begin + random_below(random_bits(seed, STREAM_SPECIAL, 3), end - begin - 1)) % (end - begin);
            if (!inputs->bias.at || element_load(inputs->bias.at, problem->dtype_bias, bias_at(problem, b, *h, *i, *j)) > -INFINITY)
                return true;
        }
    }
    return false;
}

/* Hides one key of every row and head of a sequence by its bias, and puts NaN there. */
static void hide_behind_bias(struct inputs *inputs, uint64_t seed, int64_t b, int64_t j)
{
    const attest_problem *problem = &inputs->problem;
    for (int64_t h = 0; h < problem->heads_q; h++)
        for (int64_t i = 0; i < layout_rows(&inputs->layout, b); i++)
            element_store(inputs->bias.at, problem->dtype_bias, bias_at(problem, b, h, i, j), -INFINITY);
    for (int64_t h = 0; h < problem->heads_kv; h++) {
        int64_t k = layout_key_at(&inputs->layout, problem->stride_k, b, h, j);
        int64_t v = layout_key_at(&inputs->layout, problem->stride_v, b, h, j);
        for (int64_t d = 0; d < problem->dim; d++)
            nan_store(inputs->k.at, problem->dtype, k + d, seed);
        for (int64_t d = 0; d < problem->dim_v; d++)
            nan_store(inputs->v.at, problem->dtype, v + d, seed);
    }
}

/* Whether some row of the heads that share a KV head sees a key, by its place and by its bias. */
static bool is_seen(const struct inputs *inputs, int64_t b, int64_t kv_head, int64_t j)
{
    const attest_problem *problem = &inputs->problem;
    int64_t group = problem->heads_q / problem->heads_kv;
    for (int64_t i = 0; i < layout_rows(&inputs->layout, b); i++) {
        int64_t begin, end;
        layout_visible(&inputs->layout, b, i, &begin, &end);
        for (int64_t h = kv_head * group; h < (kv_head + 1) * group && begin <= j && j < end; h++)
            if (element_load(inputs->bias.at, problem->dtype_bias, bias_at(problem, b, h, i, j)) > -INFINITY)
                return true;
    }
    return false;
}

/* NaN for every key of K or V that masks by place and the bias hide together, though neither would alone. Where keys share their
 * memory, one that is seen stays as it is. */
static void poison_unseen(struct inputs *inputs, uint64_t seed, struct buffer *buffer, const int64_t *stride, int64_t dim)
{
    const attest_problem *problem = &inputs->problem;
    const size_t size = element_size(buffer->dtype), before = (size_t)((unsigned char *)buffer->at - buffer->base) / size;
    unsigned char *seen = calloc(buffer->bytes / size + 1, 1);
    for (int pass = 0; pass < 2 && seen; pass++)
        for (int64_t b = 0; b < problem->batch; b++)
            for (int64_t h = 0; h < problem->heads_kv; h++)
                for (int64_t j = 0; j < layout_keys(&inputs->layout, b); j++) {
                    int64_t at = layout_key_at(&inputs->layout, stride, b, h, j);
                    if (pass == 0 && is_seen(inputs, b, h, j))
                        memset(seen + (int64_t)before + at, 1, (size_t)dim);
                    for (int64_t d = 0; d < dim && pass == 1; d++)
                        if (!seen[(int64_t)before + at + d])
                            nan_store(buffer->at, buffer->dtype, at + d, seed);
                }
    free(seen);
}

static void apply_special(int word, struct inputs *inputs, uint64_t seed)
{
    const attest_problem *problem = &inputs->problem;
    int64_t h = 0, i = 0, j = 0, b = 0;
    uint64_t bits = random_bits(seed, STREAM_PLACE, 0);
    bool found = false;
    for (int64_t n = 0; n < problem->batch && !found; n++) {
        b = (n + random_below(bits, problem->batch - 1)) % problem->batch;
        found = find_pair(inputs, seed, b, &h, &i, &j);
    }
    if (!found)
        return;
    int64_t kv_head = h / (problem->heads_q / problem->heads_kv);
    int64_t k = layout_key_at(&inputs->layout, problem->stride_k, b, kv_head, j) + random_below(bits >> 8, problem->dim - 1);
    int64_t v = layout_key_at(&inputs->layout, problem->stride_v, b, kv_head, j) + random_below(bits >> 8, problem->dim_v - 1);
    int64_t q = layout_row_at(&inputs->layout, problem->stride_q, b, h, i) + random_below(bits >> 8, problem->dim - 1);
    switch (word) {
    case SPECIAL_NAN_V:
        nan_store(inputs->v.at, problem->dtype, v, seed);
        break;
    case SPECIAL_INF_V:
        element_store(inputs->v.at, problem->dtype, v, bits & 1 ? INFINITY : -INFINITY);
        break;
    case SPECIAL_NAN_K:
        nan_store(inputs->k.at, problem->dtype, k, seed);
        break;
    case SPECIAL_NAN_Q:
        nan_store(inputs->q.at, problem->dtype, q, seed);
        break;
    case SPECIAL_NAN_BIAS:
        if (inputs->bias.at)
            nan_store(inputs->bias.at, problem->dtype_bias, bias_at(problem, b, h, i, j), seed);
        break;
    case SPECIAL_INF_BIAS:
        if (inputs->bias.at)
            element_store(inputs->bias.at, problem->dtype_bias, bias_at(problem, b, h, i, j), INFINITY);
        break;
    default:
        if (inputs->bias.at) {
            hide_behind_bias(inputs, seed, b, j);
            poison_unseen(inputs, seed, &inputs->k, problem->stride_k, problem->dim);
            poison_unseen(inputs, seed, &inputs->v, problem->stride_v, problem->dim_v);
        }
    }
}

/* ---- arrays that are one ---------------------------------------------------------------------------------------------- */

/* V lies as K does, or is K's first head for all of them: then its array is the beginning of K's. */
static bool v_is_in_k(const struct inputs *inputs)
{
    const attest_problem *problem = &inputs->problem;
    const ptrdiff_t k_at = (unsigned char *)inputs->k.at - inputs->k.base, v_at = (unsigned char *)inputs->v.at - inputs->v.base;
    bool like = problem->dim == problem->dim_v && k_at == v_at && inputs->v.bytes <= inputs->k.bytes;
    for (int n = 0; n < 3; n++)
        like = like &&
               (problem->stride_v[n] == problem->stride_k[n] || (n == 1 && problem->stride_v[n] == 0 && problem->stride_k[n] > 0));
    return like;
}

/* Both keep an array of their own here, with the same contents; the tensors are one. */
static void apply_shared(int word, struct inputs *inputs)
{
    const attest_problem *problem = &inputs->problem;
    if (word == SHARED_K_V && v_is_in_k(inputs)) {
        memcpy(inputs->v.base, inputs->k.base, inputs->v.bytes);
        inputs->tensors.v = inputs->tensors.k;
    }
    if (word == SHARED_CU_SEQLENS && inputs->cu_q && inputs->cu_kv &&
        memcmp(inputs->cu_q, inputs->cu_kv, (size_t)(problem->batch + 1) * sizeof *inputs->cu_q) == 0)
        inputs->tensors.cu_seqlens_kv = inputs->tensors.cu_seqlens_q;
    if (word == SHARED_SLOPES_SINKS && inputs->slopes && inputs->sinks) {
        memcpy(inputs->sinks, inputs->slopes, (size_t)problem->heads_q * sizeof *inputs->sinks);
        inputs->tensors.sinks = inputs->tensors.alibi_slopes;
    }
}

void contents_apply(const struct contents *contents, struct inputs *inputs, uint64_t seed)
{
    const struct buffer *buffers[3] = {&inputs->q, &inputs->k, &inputs->v};
    unsigned char *seen[3] = {NULL, NULL, NULL};
    bool room = true;
    if (inputs->slopes)
        apply_slopes(contents->word[CONTENT_slopes], inputs, seed);
    if (inputs->sinks)
        apply_sinks(contents->word[CONTENT_sinks], inputs, seed);
    if (inputs->bias.at)
        apply_bias(contents->word[CONTENT_bias], inputs, seed);
    if (contents->word[CONTENT_qk] != QK_NORMAL || contents->word[CONTENT_v] != V_NORMAL) {
        for (int n = 0; n < 3; n++)
            room = (seen[n] = calloc(buffers[n]->bytes / element_size(buffers[n]->dtype) + 1, 1)) != NULL && room;
        if (room)
            apply_magnitudes(contents, inputs, seen);
        for (int n = 0; n < 3; n++)
            free(seen[n]);
    }
    if (contents->word[CONTENT_special] != SPECIAL_NONE)
        apply_special(contents->word[CONTENT_special], inputs, seed);
    apply_shared(contents->word[CONTENT_shared], inputs);
}
