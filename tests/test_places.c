/*
 * Tests of row offsets, first keys, row counts, byte masks and slopes of each sequence, on every kernel that takes them: each is the same
 * as a problem that says it in another way, most of them bit for bit.
 */
#include "tap.h"

#include <attest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, HEADS = 4, HEADS_KV = 2, DIM = 24, MOST_ROWS = 40, MOST_KEYS = 130 };
enum {
    COUNT_Q = BATCH * HEADS * MOST_ROWS * DIM,
    COUNT_KV = BATCH * HEADS_KV * MOST_KEYS * DIM,
    PAIRS = BATCH * HEADS * MOST_ROWS * MOST_KEYS
};

/* Values as bits of the dtype under test. */
static unsigned char q[COUNT_Q * 4], k[COUNT_KV * 4], v[COUNT_KV * 4], o[2][COUNT_Q * 4];
static float lse[2][BATCH * HEADS * MOST_ROWS], bias[PAIRS], slopes[BATCH * HEADS];
static uint8_t mask[2 * PAIRS];
static int32_t numbers[4][BATCH];

static void put(void *at, uint32_t dtype, size_t n, float value)
{
    if (dtype == ATTEST_F32)
        ((float *)at)[n] = value;
    else
        ((uint16_t *)at)[n] = dtype == ATTEST_F16 ? attest_f16_from_float(value) : attest_bf16_from_float(value);
}

static float get(const void *at, uint32_t dtype, size_t n)
{
    if (dtype == ATTEST_F32)
        return ((const float *)at)[n];
    return dtype == ATTEST_F16 ? attest_f16_to_float(((const uint16_t *)at)[n]) : attest_bf16_to_float(((const uint16_t *)at)[n]);
}

static float draw(uint64_t n)
{
    n = (n + tap.seed) * UINT64_C(0x9e3779b97f4a7c15);
    n = (n ^ n >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    return (float)(n >> 40) / (1 << 23) - 1;
}

static attest_problem make(uint32_t dtype, int64_t rows, uint64_t flags)
{
    attest_problem p;
    attest_problem_init(&p, dtype, BATCH, HEADS, HEADS_KV, rows, MOST_KEYS, DIM);
    p.flags = flags | ATTEST_LSE;
    p.dtype_bias = flags & ATTEST_BIAS ? (uint32_t)ATTEST_F32 : 0;
    p.window_left = flags & ATTEST_WINDOW_LEFT ? 37 : 0;
    attest_problem_pack(&p);
    for (size_t n = 0; n < COUNT_Q; n++)
        put(q, dtype, n, 2 * draw(n));
    for (size_t n = 0; n < COUNT_KV; n++) {
        put(k, dtype, n, 2 * draw(n + (1 << 20)));
        put(v, dtype, n, draw(n + (1 << 21)));
    }
    return p;
}

static attest_tensors tensors_of(const attest_problem *p, int side)
{
    return (attest_tensors){.size = sizeof(attest_tensors),
                            .q = q,
                            .k = k,
                            .v = v,
                            .o = o[side],
                            .lse = lse[side],
                            .bias = p->flags & ATTEST_BIAS ? bias : NULL,
                            .alibi_slopes = p->flags & ATTEST_ALIBI ? slopes : NULL,
                            .mask = p->flags & ATTEST_MASK ? mask : NULL,
                            .row_offsets = p->flags & ATTEST_ROW_OFFSETS ? numbers[0] : NULL,
                            .kv_starts = p->flags & ATTEST_KV_STARTS ? numbers[1] : NULL,
                            .q_lengths = p->flags & ATTEST_Q_LENGTHS ? numbers[2] : NULL,
                            .kv_lengths = p->flags & ATTEST_KV_LENGTHS ? numbers[3] : NULL};
}

static bool compute(attest_context *context, const char *kernel, const attest_problem *p, const attest_tensors *t)
{
    attest_plan *plan = NULL;
    void *workspace = NULL;
    bool good = attest_plan_create(context, p, kernel, &plan) == ATTEST_OK &&
                attest_memory_alloc(context, attest_plan_workspace_size(plan), &workspace) == ATTEST_OK &&
                attest_run(context, plan, t, workspace, attest_plan_workspace_size(plan), NULL) == ATTEST_OK;
    tap_check(good, "%s: %s", kernel, attest_context_detail(context));
    attest_memory_free(context, workspace);
    attest_plan_destroy(plan);
    return good;
}

static void poison(void)
{
    memset(o, 0xff, sizeof o);
    memset(lse, 0xff, sizeof lse);
}

/* Calls `test` for each CPU kernel and the reference, with a kernel's name and its dtype, for few rows and for many. */
static void each_kernel(void (*test)(attest_context *, const char *, uint32_t, int64_t))
{
    static const int64_t rows[] = {1, 3, MOST_ROWS};
    static const uint32_t dtypes[] = {ATTEST_F32, ATTEST_F16, ATTEST_BF16};
    attest_context *context = NULL;
    tap_check(attest_context_create_on("cpu", &context) == ATTEST_OK, "no context");
    for (size_t index = 0; index < attest_kernel_count(); index++) {
        attest_kernel_info info = {.size = sizeof info};
        attest_kernel_get(index, &info);
        for (int n = 0; n < 9 && strcmp(info.backend, "cuda") != 0; n++) {
            attest_problem p = make(dtypes[n / 3], rows[n % 3], 0);
            if (attest_kernel_refusal(context, index, &p, NULL, 0) == ATTEST_OK)
                test(context, info.name, dtypes[n / 3], rows[n % 3]);
        }
    }
    attest_context_destroy(context);
}

static void check_same(const char *kernel, const attest_problem *p, const char *what)
{
    const size_t rows = (size_t)(BATCH * HEADS * p->seq_q), size = p->dtype_o == ATTEST_F32 ? 4 : 2;
    tap_check(memcmp(o[0], o[1], rows * DIM * size) == 0 && memcmp(lse[0], lse[1], rows * sizeof(float)) == 0,
              "%s, %d rows: other bits %s", kernel, (int)p->seq_q, what);
}

/* Offsets of n_kv - n_q are ATTEST_BOTTOM_RIGHT, with any mask by position and ALiBi. */
static void offsets_of_kernel(attest_context *context, const char *kernel, uint32_t dtype, int64_t rows)
{
    static const uint64_t flags[] = {ATTEST_CAUSAL, ATTEST_WINDOW_LEFT, ATTEST_CAUSAL | ATTEST_ALIBI | ATTEST_KV_LENGTHS};
    for (int n = 0; n < 3; n++) {
        attest_problem p = make(dtype, rows, flags[n] | ATTEST_ROW_OFFSETS),
                       same = make(dtype, rows, flags[n] | ATTEST_BOTTOM_RIGHT);
        for (int b = 0; b < BATCH; b++) {
            numbers[3][b] = 20 + 50 * b;
            numbers[0][b] = (int32_t)((flags[n] & ATTEST_KV_LENGTHS ? numbers[3][b] : MOST_KEYS) - rows);
        }
        attest_tensors t = tensors_of(&p, 0), u = tensors_of(&same, 1);
        poison();
        if (compute(context, kernel, &p, &t) && compute(context, kernel, &same, &u))
            check_same(kernel, &p, "with offsets than with bottom-right");
    }
}

static void row_offsets(void)
{
    each_kernel(offsets_of_kernel);
}

/* A first key: as with a mask of bytes that hides the keys before it, which may be NaN. */
static void starts_of_kernel(attest_context *context, const char *kernel, uint32_t dtype, int64_t rows)
{
    attest_problem p = make(dtype, rows, ATTEST_KV_STARTS), same = make(dtype, rows, ATTEST_MASK);
    same.stride_mask[1] = same.stride_mask[2] = 0;
    same.stride_mask[0] = MOST_KEYS;
    for (int b = 0; b < BATCH; b++) {
        numbers[1][b] = 65 * b;
        for (int j = 0; j < MOST_KEYS; j++)
            mask[b * MOST_KEYS + j] = j >= 65 * b ? 0x80 : 0;
        for (int h = 0; h < HEADS_KV; h++)
            for (int n = 0; n < 65 * b * DIM; n++) {
                put(k, dtype, (size_t)((b * HEADS_KV + h) * MOST_KEYS * DIM + n), NAN);
                put(v, dtype, (size_t)((b * HEADS_KV + h) * MOST_KEYS * DIM + n), NAN);
            }
    }
    attest_tensors t = tensors_of(&p, 0), u = tensors_of(&same, 1);
    poison();
    if (!compute(context, kernel, &p, &t) || !compute(context, kernel, &same, &u))
        return;
    for (size_t n = 0; n < (size_t)(BATCH * HEADS * rows * DIM); n++) {
        const float a = get(o[0], dtype, n), b = get(o[1], dtype, n);
        if (!tap_check(n / (size_t)(HEADS * rows * DIM) == 2 ? a == 0 && b == 0 : fabsf(a - b) <= 0.02f,
                       "%s, %d rows: O[%zu] is %g with first keys, and %g with a mask", kernel, (int)rows, n, (double)a, (double)b))
            return;
    }
    for (size_t n = (size_t)(2 * HEADS * rows); n < (size_t)(3 * HEADS * rows); n++) /* all keys are before the first one */
        if (!tap_check(lse[0][n] == -INFINITY && lse[1][n] == -INFINITY, "%s: LSE[%zu] of a row without keys is %g", kernel, n,
                       (double)lse[0][n]))
            return;
}

static void first_keys(void)
{
    each_kernel(starts_of_kernel);
}

/* Tensors of sequence b alone, whose rows are `rows` apart; outputs on the other side. */
static attest_tensors tensors_alone(const attest_problem *alone, int b, int64_t rows)
{
    const size_t size = alone->dtype == ATTEST_F32 ? 4 : 2, bytes = (size_t)(HEADS * rows * DIM) * size;
    attest_tensors t = tensors_of(alone, 1);
    t.q = q + (size_t)b * bytes;
    t.k = k + (size_t)(b * HEADS_KV * MOST_KEYS * DIM) * size;
    t.v = v + (size_t)(b * HEADS_KV * MOST_KEYS * DIM) * size;
    t.o = o[1] + (size_t)b * bytes;
    t.lse = lse[1] + b * HEADS * rows;
    return t;
}

/* Rows that exist are those of a shorter problem, bit for bit, and the others are not written. */
static void counts_of_kernel(attest_context *context, const char *kernel, uint32_t dtype, int64_t rows)
{
    attest_problem p = make(dtype, rows, ATTEST_Q_LENGTHS | ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT);
    for (int b = 0; b < BATCH; b++)
        numbers[2][b] = (int32_t)(b == 0 ? 0 : b == 1 ? rows : rows / 2);
    attest_tensors t = tensors_of(&p, 0);
    poison();
    if (!compute(context, kernel, &p, &t))
        return;
    for (int b = 0; b < BATCH; b++) {
        attest_problem alone = make(dtype, numbers[2][b], ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT);
        alone.batch = 1;
        alone.stride_q[1] = alone.stride_o[1] = rows * DIM;
        alone.stride_lse[1] = rows;
        attest_tensors u = tensors_alone(&alone, b, rows);
        if (numbers[2][b] > 0)
            compute(context, kernel, &alone, &u);
    }
    check_same(kernel, &p, "with row counts than with shorter problems");
}

static void row_counts(void)
{
    each_kernel(counts_of_kernel);
}

/* A mask hides what a bias of -inf hides, whatever its layout; a key that it hides from all rows may be NaN. */
static void mask_of_kernel(attest_context *context, const char *kernel, uint32_t dtype, int64_t rows)
{
    static const int64_t layouts[][4] = {{1, 1, 1, 1}, {0, 0, 1, 1}, {1, 0, 0, 1}, {1, 1, 1, -1}, {1, 1, 1, 2}};
    for (size_t n = 0; n < sizeof layouts / sizeof *layouts; n++) {
        attest_problem p = make(dtype, rows, ATTEST_MASK | ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT),
                       same = make(dtype, rows, ATTEST_BIAS | ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT);
        const int64_t step = layouts[n][3] < 0 ? -layouts[n][3] : layouts[n][3];
        const int64_t whole[4] = {HEADS * rows * MOST_KEYS * step, rows * MOST_KEYS * step, MOST_KEYS * step, 1};
        const int64_t first = layouts[n][3] < 0 ? MOST_KEYS - 1 : 0;
        for (int axis = 0; axis < 4; axis++)
            p.stride_mask[axis] = layouts[n][axis] * whole[axis];
        memset(mask, 0, sizeof mask);
        for (int b = 0; b < BATCH; b++)
            for (int h = 0; h < HEADS; h++)
                for (int64_t i = 0; i < rows; i++)
                    for (int64_t j = 0; j < MOST_KEYS; j++) {
                        const int64_t at =
                                          b * p.stride_mask[0] + h * p.stride_mask[1] + i * p.stride_mask[2] + j * p.stride_mask[3],
                                      there = ((b * HEADS + h) * rows + i) * MOST_KEYS + j;
                        const bool hides = draw((uint64_t)at + (1 << 22)) < -0.3f || j == 5 || j == 64;
                        mask[first + at] = hides ? 0 : (uint8_t)(1 + at % 255);
                        bias[there] = hides ? -INFINITY : 0;
                    }
        for (int head = 0; head < BATCH * HEADS_KV; head++)
            for (int d = 0; d < DIM; d++) {
                put(v, dtype, (size_t)((head * MOST_KEYS + 5) * DIM + d), NAN);
                put(k, dtype, (size_t)((head * MOST_KEYS + 64) * DIM + d), NAN);
            }
        attest_tensors t = tensors_of(&p, 0), u = tensors_of(&same, 1);
        t.mask = mask + first;
        poison();
        if (!compute(context, kernel, &p, &t) || !compute(context, "ref_fwd", &same, &u))
            return;
        for (size_t at = 0; at < (size_t)(BATCH * HEADS * rows * DIM); at++)
            if (!tap_check(fabsf(get(o[0], dtype, at) - get(o[1], dtype, at)) <= (dtype == ATTEST_BF16 ? 0.03f : 0.004f),
                           "%s, %d rows, layout %zu: O[%zu] is %g with a mask, and %g with a bias", kernel, (int)rows, n, at,
                           (double)get(o[0], dtype, at), (double)get(o[1], dtype, at)))
                return;
    }
}

static void byte_masks(void)
{
    each_kernel(mask_of_kernel);
}

/* Slopes of each sequence are those of the sequence alone. */
static void slopes_of_kernel(attest_context *context, const char *kernel, uint32_t dtype, int64_t rows)
{
    attest_problem p = make(dtype, rows, ATTEST_ALIBI | ATTEST_BOTTOM_RIGHT);
    p.stride_alibi_slopes = HEADS;
    for (int n = 0; n < BATCH * HEADS; n++)
        slopes[n] = 0.3f * draw((uint64_t)n + 77);
    attest_tensors t = tensors_of(&p, 0);
    poison();
    if (!compute(context, kernel, &p, &t))
        return;
    for (int b = 0; b < BATCH; b++) {
        attest_problem one = make(dtype, rows, ATTEST_ALIBI | ATTEST_BOTTOM_RIGHT);
        one.batch = 1;
        attest_tensors u = tensors_alone(&one, b, rows);
        u.alibi_slopes = slopes + b * HEADS;
        compute(context, kernel, &one, &u);
    }
    check_same(kernel, &p, "with slopes of each sequence than alone");
}

static void slopes_by_sequence(void)
{
    each_kernel(slopes_of_kernel);
}

/* Numbers out of range have a sentence with their name, and nothing is written. */
static void bad_numbers(void)
{
    static const struct {
        uint64_t flag;
        int array;
        int32_t value;
        const char *name;
    } bad[] = {
        {ATTEST_ROW_OFFSETS, 0, INT32_MAX, "row_offsets[2]"},
        {ATTEST_ROW_OFFSETS, 0, INT32_MIN, "row_offsets[2]"},
        {ATTEST_KV_STARTS, 1, -1, "kv_starts[2]"},
        {ATTEST_KV_STARTS, 1, MOST_KEYS + 1, "kv_starts[2]"},
        {ATTEST_Q_LENGTHS, 2, -1, "q_lengths[2]"},
        {ATTEST_Q_LENGTHS, 2, 4, "q_lengths[2]"},
        {ATTEST_KV_LENGTHS | ATTEST_KV_STARTS, 3, 8, "kv_starts"},
    };
    for (size_t n = 0; n < sizeof bad / sizeof *bad; n++) {
        attest_problem p = make(ATTEST_F32, 3, bad[n].flag);
        char why[256] = "";
        memset(numbers, 0, sizeof numbers);
        for (int b = 0; b < BATCH; b++)
            numbers[1][b] = bad[n].array == 3 ? 9 : 0;
        numbers[bad[n].array][2] = bad[n].value;
        if (bad[n].array == 3)
            numbers[3][0] = numbers[3][1] = 9;
        attest_tensors t = tensors_of(&p, 0);
        poison();
        tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, bad[n].name), "%s: '%s'",
                  bad[n].name, why);
        for (size_t i = 0; i < 64; i++)
            tap_check(o[0][i] == 0xff, "%s: an output was written", bad[n].name);
    }
    attest_problem both = make(ATTEST_F32, 3, ATTEST_ROW_OFFSETS | ATTEST_BOTTOM_RIGHT);
    char why[256] = "";
    tap_check(attest_problem_check(&both, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, "ATTEST_ROW_OFFSETS"), "'%s'",
              why);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"row offsets", row_offsets},   {"first keys", first_keys},
                                            {"row counts", row_counts},     {"byte masks", byte_masks},
                                            {"slopes", slopes_by_sequence}, {"bad numbers", bad_numbers}};
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
