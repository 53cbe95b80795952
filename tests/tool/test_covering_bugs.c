/*
 * Kernels that are wrong under one condition, on one field or two, are found by some problem that the correctness gate draws by itself.
 */
#include "theory/cover_problems.h"
#include "judge/examine.h"
#include "build/kernel_constants.h"
#include "base/random.h"
#include "tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool takes_all(const void *data, const attest_problem *problem)
{
    (void)data, (void)problem;
    return true;
}

/* ---- planted bugs --------------------------------------------------------------------------------------------------------- */

/* A kernel that is wrong where a condition holds: on which problems, and on which of their rows. */
struct bug {
    const char *name;
    bool (*when)(const struct inputs *in);
    bool (*where)(const struct inputs *in, int64_t b, int64_t h, int64_t i); /* NULL: everywhere */
};

#define P            (&in->problem)
#define HAS(flag)    ((P->flags & ATTEST_##flag) != 0)
#define GROUP        (P->heads_q / P->heads_kv)
#define WHEN(name)   static bool name(const struct inputs *in)
#define WHERE(name)  static bool name(const struct inputs *in, int64_t b, int64_t h, int64_t i)
#define UNUSED_PLACE ((void)in, (void)b, (void)h, (void)i)

WHERE(row_past_8k)
{
    UNUSED_PLACE;
    return i > 8192;
}
WHERE(row_past_64k)
{
    UNUSED_PLACE;
    return i >= 65536 && i < 65550;
}
WHERE(row_past_1m)
{
    UNUSED_PLACE;
    return i > 1048576;
}
WHERE(batch_past_256)
{
    UNUSED_PLACE;
    return b >= 256 && b < 260;
}
WHERE(batch_past_64k)
{
    UNUSED_PLACE;
    return b > 65535;
}
WHERE(head_past_256)
{
    UNUSED_PLACE;
    return h > 255;
}
WHERE(head_past_64k)
{
    UNUSED_PLACE;
    return h > 65535;
}
WHERE(batch_and_head_past_64)
{
    UNUSED_PLACE;
    return b > 64 && h > 64;
}
WHEN(keys_past_64k)
{
    return P->seq_kv > 65536;
}
WHEN(keys_past_1m)
{
    return P->seq_kv > 1048576;
}
WHERE(sees_past_64k)
{
    int64_t begin, end;
    (void)h;
    layout_visible(&in->layout, b, i, &begin, &end);
    return end - begin > 65536;
}
/* Where a mask ends in the upper half of what 16 bits count, for more rows than decoding has. */
WHERE(masked_past_32k)
{
    int64_t begin, end;
    (void)h;
    layout_visible(&in->layout, b, i, &begin, &end);
    return begin < end && end > 32768 && end < 65536 && layout_rows(&in->layout, b) * (P->heads_q / P->heads_kv) > 8;
}
WHERE(sees_past_8k)
{
    int64_t begin, end;
    (void)h;
    layout_visible(&in->layout, b, i, &begin, &end);
    return end - begin > 8192;
}
WHEN(past_caches_at_decode)
{
    return P->seq_q * (P->heads_q / P->heads_kv) <= 8 && P->heads_q / P->heads_kv >= 4 && P->dim >= 128 &&
           P->batch * P->heads_kv * P->seq_kv * (P->dim + P->dim_v) * (P->dtype == ATTEST_F32 ? 4 : 2) > 24 << 20;
}
WHEN(pages_past_8k)
{
    return HAS(PAGED) && P->seq_kv > 8192 * P->page_size;
}
WHEN(large_pages_of_many)
{
    return HAS(PAGED) && P->page_size > 512 && P->seq_kv > P->page_size;
}
WHEN(window_of_many)
{
    return HAS(WINDOW_LEFT) && P->window_left > 1000 && P->window_left < 2001 && P->seq_q > 8192 && P->seq_kv > 8192;
}
WHEN(always)
{
    return in != NULL;
}
WHERE(head_past_8)
{
    UNUSED_PLACE;
    return h > 8;
}
WHERE(batch_past_8)
{
    UNUSED_PLACE;
    return b > 8;
}
WHERE(batch_and_head_past_16)
{
    UNUSED_PLACE;
    return b > 16 && h > 16;
}
WHERE(row_past_1100)
{
    UNUSED_PLACE;
    return i > 1100;
}
WHERE(last_row_of_many)
{
    UNUSED_PLACE;
    return i == P->seq_q - 1 && i > 64 && i % 64 == 0;
}
WHEN(group_of_5)
{
    return GROUP == 5;
}
WHEN(group_of_6)
{
    return GROUP == 6;
}
WHEN(group_of_7)
{
    return GROUP == 7;
}
WHEN(group_past_16)
{
    return GROUP > 16;
}
WHEN(pages_of_128)
{
    return P->page_size == 128;
}
WHEN(odd_pages_and_window)
{
    return HAS(PAGED) && P->page_size % 2 && HAS(WINDOW_LEFT) && P->window_left > 1;
}
WHEN(large_pages_with_bias)
{
    return P->page_size > 64 && HAS(BIAS);
}
WHEN(keys_past_8k)
{
    return P->seq_kv > 8192;
}
WHEN(fractional_softcap)
{
    return HAS(SOFTCAP) && P->softcap < 1 && P->softcap > 0.01f;
}
WHEN(tiny_softcap)
{
    return HAS(SOFTCAP) && P->softcap < 0.001f;
}
WHEN(huge_softcap)
{
    return HAS(SOFTCAP) && P->softcap > 1e15f;
}
WHEN(scale_of_0)
{
    return P->scale == 0;
}
WHEN(negative_scale_and_softcap)
{
    return P->scale < 0 && HAS(SOFTCAP);
}
WHERE(negative_slope)
{
    UNUSED_PLACE;
    return in->slopes && in->slopes[h] < 0;
}
WHERE(zero_slope)
{
    UNUSED_PLACE;
    return in->slopes && in->slopes[h] == 0;
}
WHEN(key_stride_of_bias)
{
    return HAS(BIAS) && P->stride_bias[3] > 1 && P->stride_bias[2] > 1;
}
WHEN(key_stride_negative)
{
    return HAS(BIAS) && P->stride_bias[3] < 0;
}
WHEN(bias_without_keys)
{
    return HAS(BIAS) && P->stride_bias[3] == 0;
}
WHEN(broadcast_q)
{
    return P->stride_q[1] == 0 && P->heads_q > 1;
}
WHEN(broadcast_rows_of_q)
{
    return P->stride_q[2] == 0 && P->seq_q > 1;
}
WHEN(broadcast_v)
{
    return P->stride_v[0] == 0 && P->batch > 1 && !HAS(VARLEN_KV);
}
WHEN(f16_past_256)
{
    return P->dtype == ATTEST_F16 && P->dim > 256;
}
WHEN(window_past_1000)
{
    return HAS(WINDOW_LEFT) && P->window_left > 1000 && P->window_left < 5000;
}
WHEN(window_past_31_bits)
{
    return HAS(WINDOW_RIGHT) && P->window_right > INT32_MAX;
}
WHEN(sink_and_split)
{
    return HAS(SINK) && P->seq_q <= 64 && P->seq_kv > 1024;
}
WHEN(alibi_and_split)
{
    return HAS(ALIBI) && P->seq_q <= 64 && P->seq_kv > 1024;
}
WHEN(bias_and_split)
{
    return HAS(BIAS) && P->seq_q <= 64 && P->seq_kv > 1024;
}
WHEN(pages_and_split)
{
    return HAS(PAGED) && P->seq_q <= 64 && P->seq_kv > 1024;
}
WHEN(bias_on_pages)
{
    return HAS(BIAS) && HAS(PAGED);
}
WHEN(wide_table)
{
    return HAS(PAGED) && P->stride_page_table > 1 + (P->seq_kv + P->page_size - 1) / P->page_size;
}
WHEN(rows_before_the_first)
{
    return HAS(VARLEN_Q) && in->cu_q[0] > 0;
}
WHEN(keys_before_the_first)
{
    return HAS(VARLEN_KV) && in->cu_kv[0] > 0;
}
WHEN(first_sequences_empty)
{
    return HAS(KV_LENGTHS) && P->batch > 3 && !in->lengths[0] && !in->lengths[1] && in->lengths[P->batch - 1];
}
WHEN(lengths_of_packed)
{
    return HAS(VARLEN_KV) && HAS(KV_LENGTHS);
}
WHEN(values_wider)
{
    return P->dim_v > P->dim && HAS(CAUSAL) && !HAS(LSE);
}
WHEN(o_in_f32_with_gaps)
{
    return P->dtype_o != P->dtype && P->stride_o[2] % 2 && P->dim_v > 1;
}
WHEN(lse_row_stride)
{
    return HAS(LSE) && P->stride_lse[2] < 0;
}
WHEN(f32_bias_transposed)
{
    return HAS(BIAS) && P->dtype_bias != P->dtype && P->stride_bias[2] == 1 && P->seq_q > 2;
}
WHEN(invariant_and_sink)
{
    return HAS(INVARIANT) && HAS(SINK);
}
WHERE(absent_sink)
{
    UNUSED_PLACE;
    return in->sinks && in->sinks[h] == -INFINITY;
}
WHEN(odd_dims_in_pages)
{
    return P->dim % 8 && HAS(PAGED) && P->dtype != ATTEST_F32;
}
/* What a kernel that looks at the first number of V to know the rest takes for small. */
WHEN(small_values)
{
    return P->batch && P->seq_kv > 8 && in->v.bytes && fabsf(element_load(in->v.at, P->dtype, 0)) < 0.02f;
}

static const struct bug bugs[] = {
    {"heads past 8", always, head_past_8},
    {"sequences past 8", always, batch_past_8},
    {"sequences and heads past 16", always, batch_and_head_past_16},
    {"rows past 1,100", always, row_past_1100},
    {"the one row behind a tile", always, last_row_of_many},
    {"groups of 5", group_of_5, NULL},
    {"groups of 6", group_of_6, NULL},
    {"groups of 7", group_of_7, NULL},
    {"groups past 16", group_past_16, NULL},
    {"pages of 128", pages_of_128, NULL},
    {"odd pages in a window", odd_pages_and_window, NULL},
    {"large pages with a bias", large_pages_with_bias, NULL},
    {"keys past 8k", keys_past_8k, NULL},
    {"a fractional softcap", fractional_softcap, NULL},
    {"a tiny softcap", tiny_softcap, NULL},
    {"a huge softcap", huge_softcap, NULL},
    {"a scale of 0", scale_of_0, NULL},
    {"a negative scale with a softcap", negative_scale_and_softcap, NULL},
    {"negative slopes", always, negative_slope},
    {"slopes of 0", always, zero_slope},
    {"a key stride in the bias", key_stride_of_bias, NULL},
    {"a negative key stride in the bias", key_stride_negative, NULL},
    {"a bias of one number a row", bias_without_keys, NULL},
    {"Q broadcast over heads", broadcast_q, NULL},
    {"Q broadcast over rows", broadcast_rows_of_q, NULL},
    {"V broadcast over sequences", broadcast_v, NULL},
    {"f16 at D > 256", f16_past_256, NULL},
    {"a window past 1,000", window_past_1000, NULL},
    {"a window past 2^31", window_past_31_bits, NULL},
    {"a sink with split keys", sink_and_split, NULL},
    {"ALiBi with split keys", alibi_and_split, NULL},
    {"a bias with split keys", bias_and_split, NULL},
    {"pages with split keys", pages_and_split, NULL},
    {"a bias on pages", bias_on_pages, NULL},
    {"a wide page table", wide_table, NULL},
    {"rows before the first sequence", rows_before_the_first, NULL},
    {"keys before the first sequence", keys_before_the_first, NULL},
    {"empty sequences first", first_sequences_empty, NULL},
    {"lengths of packed keys", lengths_of_packed, NULL},
    {"wide V, causal, without LSE", values_wider, NULL},
    {"O in f32 with odd gaps", o_in_f32_with_gaps, NULL},
    {"LSE backwards", lse_row_stride, NULL},
    {"an f32 bias transposed", f32_bias_transposed, NULL},
    {"invariant with a sink", invariant_and_sink, NULL},
    {"a sink of -inf", always, absent_sink},
    {"odd dims in pages", odd_dims_in_pages, NULL},
    {"a V that begins small", small_values, NULL},
};

static const struct bug large_bugs[] = {
    {"rows past 1M", always, row_past_1m},
    {"rows past 64k", always, row_past_64k},
    {"sequences past 64k", always, batch_past_64k},
    {"heads past 64k", always, head_past_64k},
    {"sequences and heads past 64", always, batch_and_head_past_64},
    {"sequences past 256", always, batch_past_256},
    {"heads past 256", always, head_past_256},
    {"a window past 1,000 in many keys", window_of_many, NULL},
    {"rows past 8k", always, row_past_8k},
    {"large pages", large_pages_of_many, NULL},
    {"more than 8k pages", pages_past_8k, NULL},
    {"keys past 1M", keys_past_1m, NULL},
    {"keys past 64k", keys_past_64k, NULL},
    {"K and V past the caches at decode", past_caches_at_decode, sees_past_8k},
    {"rows that see more than 64k keys", always, sees_past_64k},
    {"many rows whose mask ends past 32k", always, masked_past_32k},
};

/* ---- numbers of a kernel ------------------------------------------------------------------------------------------------- */

/* Conditions on numbers that no level has, which are among the constants of the kernel. */
static const int64_t own_numbers[] = {37, 143, 211, 777, 1543, 3001, 93, 43, 509, 10, 80, 8000, 5};

WHEN(group_of_37)
{
    return P->heads_q == 37 * P->heads_kv;
}
WHEN(heads_of_143)
{
    return P->heads_q == 143;
}
WHEN(batch_past_211)
{
    return P->batch > 211;
}
WHEN(rows_from_777)
{
    return P->seq_q >= 777 && P->seq_q < 800;
}
WHEN(rows_of_1543)
{
    return P->seq_q == 1543;
}
WHEN(keys_of_3001)
{
    return P->seq_kv == 3001;
}
WHEN(dim_of_211)
{
    return P->dim == 211;
}
WHEN(dim_v_of_93)
{
    return P->dim_v == 93;
}
WHEN(page_of_43)
{
    return HAS(PAGED) && P->page_size == 43;
}
WHEN(pages_from_93)
{
    return HAS(PAGED) && (P->seq_kv + P->page_size - 1) / P->page_size == 93;
}
WHEN(window_of_509)
{
    return HAS(WINDOW_LEFT) && P->window_left == 509 && P->seq_kv > 510;
}
WHEN(softcap_of_17)
{
    return HAS(SOFTCAP) && P->softcap >= 17.25f && P->softcap < 17.26f;
}
WHEN(scale_of_its_own)
{
    return P->scale == 0.8125f;
}
WHEN(group_past_10_and_dim_past_80)
{
    return P->heads_q > 10 * P->heads_kv && P->dim > 80;
}
WHEN(rows_past_8000_and_wider_v)
{
    return P->seq_q > 8000 && P->dim_v > P->dim;
}
WHEN(remainder_of_rows)
{
    return P->seq_q % 43 == 42;
}

#undef P
#undef HAS
#undef GROUP

static const struct bug own_bugs[] = {
    {"37 heads to a group", group_of_37, NULL},
    {"143 heads", heads_of_143, NULL},
    {"more than 211 sequences", batch_past_211, NULL},
    {"777 rows and some more", rows_from_777, NULL},
    {"1543 rows", rows_of_1543, NULL},
    {"3001 keys", keys_of_3001, NULL},
    {"D 211", dim_of_211, NULL},
    {"Dv 93", dim_v_of_93, NULL},
    {"pages of 43 keys", page_of_43, NULL},
    {"93 pages", pages_from_93, NULL},
    {"a window of 509", window_of_509, NULL},
    {"a softcap of 17.25", softcap_of_17, NULL},
    {"a scale of 0.8125", scale_of_its_own, NULL},
    {"more than 10 heads to a group and D past 80", group_past_10_and_dim_past_80, NULL},
    {"more than 8000 rows and Dv past D", rows_past_8000_and_wider_v, NULL},
    {"a remainder of rows by 43", remainder_of_rows, NULL},
};

/* One pass over the array serves all bugs: each problem is run by the first bug of those not yet found whose condition holds. */
struct hunt {
    const struct bug *bugs;
    int count;
    bool found[COUNT_OF(bugs)];
    int tried[COUNT_OF(bugs)]; /* problems on which the bug was there and was not seen */
    struct {
        attest_problem problem;
        int bug;
    } planted[2 * COVER_JOBS]; /* in the last runs, of which not all have been reported; -1: none */
    int left, problems, wrongly;
    char wrong[ATTEST_PROBLEM_TEXT + 1024];
};

/* Every row that the bug is on gets twice its O with the other sign. False if that changes nothing. */
static bool plant(const struct bug *bug, const struct inputs *inputs, struct outputs *outputs)
{
    const attest_problem *problem = &inputs->problem;
    bool changed = false;
    if (!bug->when(inputs))
        return false;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t h = 0; h < problem->heads_q; h++)
            for (int64_t i = 0; i < layout_rows(&inputs->layout, b); i++) {
                int64_t at = layout_row_at(&inputs->layout, problem->stride_o, b, h, i);
                for (int64_t d = 0; d < problem->dim_v && (!bug->where || bug->where(inputs, b, h, i)); d++) {
                    float value = element_load(outputs->o.at, problem->dtype_o, at + d);
                    element_store(outputs->o.at, problem->dtype_o, at + d, -2 * value);
                    changed = changed || (value != 0 && isfinite(value));
                }
            }
    return changed;
}

static struct execution run_planted(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    struct hunt *hunt = data;
    struct library_kernel kernel = {.threads = 1, .rubbish = 0xff};
    struct subject library = library_subject(&kernel);
    struct execution execution = library.run(library.data, inputs, outputs);
    int bug = -1, turn = hunt->problems++ % COUNT_OF(hunt->planted);
    for (int n = 0; n < hunt->count && bug < 0 && execution.end == EXECUTION_DONE; n++)
        if (!hunt->found[n] && plant(&hunt->bugs[n], inputs, outputs))
            bug = n;
    hunt->planted[turn].problem = inputs->problem;
    hunt->planted[turn].bug = bug;
    return execution;
}

static bool see(void *data, const struct cover_outcome *outcome)
{
    struct hunt *hunt = data;
    int bug = -1;
    for (int n = 0; n < COUNT_OF(hunt->planted) && n < hunt->problems; n++)
        if (memcmp(&hunt->planted[n].problem, &outcome->problem, sizeof outcome->problem) == 0)
            bug = hunt->planted[n].bug;
    if (outcome->verdict == VERDICT_FAIL && bug >= 0) {
        hunt->left -= !hunt->found[bug];
        hunt->found[bug] = true;
    } else if (outcome->verdict == VERDICT_FAIL) {
        char text[ATTEST_PROBLEM_TEXT], contents[CONTENTS_TEXT];
        hunt->wrongly++;
        attest_problem_print(&outcome->problem, text, sizeof text);
        contents_print(&outcome->contents, contents);
        snprintf(hunt->wrong, sizeof hunt->wrong, "--seed %llu --contents %s %s: %s", (unsigned long long)outcome->seed, contents,
                 text, outcome->note);
    } else if (bug >= 0) {
        hunt->tried[bug]++;
    }
    return hunt->left > 0;
}

static void hunt_for(const struct bug *planted, int count, void (*cover)(const struct cover_plan *, struct cover_summary *),
                     int rows, int large, const struct kernel_constants *constants)
{
    struct hunt hunt = {.bugs = planted, .count = count, .left = count};
    struct cover_plan plan = {.subject = {.run = run_planted, .data = &hunt},
                              .taker = {takes_all, NULL},
                              .seed = tap.seed,
                              .threads = 2,
                              .rows = rows,
                              .large = large,
                              .constant_problems = rows,
                              .constants = constants,
                              .numbers_only = true,
                              .report = see,
                              .data = &hunt};
    struct cover_summary summary = {0};
    cover(&plan, &summary);
    tap_note("%d of %d bugs found within %d problems", count - hunt.left, count, hunt.problems);
    tap_check(hunt.wrongly == 0, "a right kernel was called wrong, last on %s", hunt.wrong);
    for (int n = 0; n < count && !tap.quick; n++)
        tap_check(hunt.found[n], "wrong with %s, and not found; there was no telling on %d problems", planted[n].name,
                  hunt.tried[n]);
}

static void planted_bugs(void)
{
    hunt_for(bugs, COUNT_OF(bugs), cover_array, tap_amount(100, 1500, 4000), 0, NULL);
}

static void planted_large(void)
{
    hunt_for(large_bugs, COUNT_OF(large_bugs), cover_large, 0, tap_amount(0, 3, 4), NULL); /* a problem shows one bug at a time */
}

static void planted_next_to_numbers(void)
{
    struct kernel_constants constants = {
        .whole_count = COUNT_OF(own_numbers), .compared = COUNT_OF(own_numbers), .real = {17.25f, 0.8125f}, .real_count = 2};
    memcpy(constants.whole, own_numbers, sizeof own_numbers);
    hunt_for(own_bugs, COUNT_OF(own_bugs), cover_constants, tap_amount(100, 2400, 7200), 0, &constants);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"kernels that are wrong under a condition are found", planted_bugs},
        {"and those that are wrong on large sizes", planted_large},
        {"and next to numbers that they compare with", planted_next_to_numbers},
    };
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
