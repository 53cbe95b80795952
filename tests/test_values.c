/*
 * Values that break kernels: logits to +-1e4, rising and falling rows, equal rows, the maximum in the ragged tail, one finite key
 * among -inf, masked leading blocks, denormals, V near the largest finite, non-finite values that some rows see, and tensors
 * whose offsets need more than 32 bits.
 */
#include "drive.h"
#include "tap.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static attest_context *context;

static const char *const dtypes[] = {"f32", "f16", "bf16"};
static const char *const shapes[] = {"b1:hq4:hkv2:sq70:skv131:d64", "b1:hq2:hkv1:sq1:skv700:d128", "b2:h1:sq17:skv17:d5:dv33",
                                     "b1:hq6:hkv2:sq3:skv300:d72"};

/* Runs every kernel on every shape and dtype with these values, and with these words added to the problem. */
static bool nan_behind_bias, without_lse;
static void everywhere(value_function *values, const char *words, bool exact_scores)
{
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            if (tap.quick && (s + t) % 2)
                continue;
            char line[256], why[256] = "";
            attest_problem p;
            snprintf(line, sizeof line, "fwd:%s:%s%s%s", dtypes[t], shapes[s], without_lse ? "" : ":lse", words);
            if (!tap_case("%s", line) ||
                !tap_check(attest_problem_parse(line, &p, why, sizeof why) == ATTEST_OK, "%s: %s", line, why))
                continue;
            struct instance in;
            struct instance_options options = {
                .values = values, .placement = PLACE_GUARD_AFTER, .nan_behind_bias = nan_behind_bias};
            if (!instance_create(&in, &p, tap.seed, &options))
                continue;
            struct verdict_basis basis;
            if (tap_check(basis_create(&basis, context, &in), "the oracle refused")) {
                basis.exact_scores = exact_scores;
                drive_run_all(context, &in, &basis, PLACE_GUARD_BEFORE);
                basis_destroy(&basis);
            }
            instance_destroy(&in);
        }
}

#define VALUES(name)                                                                                                               \
    static double name(const struct instance *in, struct rng *rng, char tensor, int64_t b, int64_t h, int64_t row, int64_t d)
#define OTHERWISE values_normal(in, rng, tensor, b, h, row, d)

/* Small integers: dot products are exact, so the scores are known to the last bit. */
VALUES(integers)
{
    return tensor == 'q' || tensor == 'k' ? (double)(rng_below(rng, 17) - 8) : OTHERWISE;
}
static void large_logits(void)
{
    everywhere(integers, ":scale=16", true);
}
static void large_logits_with_sink(void)
{
    everywhere(integers, ":scale=16:sink", true);
}
static void large_logits_capped(void)
{
    everywhere(integers, ":scale=16:softcap=20", true);
}
static void no_scale(void)
{
    everywhere(integers, ":scale=0", true);
}
static void negative_scale(void)
{
    everywhere(integers, ":scale=-0.125", true);
}

/* Scores that rise (or fall) by a constant from key to key: the maximum moves in every tile, or never. */
VALUES(rising)
{
    if (tensor == 'q')
        return d == 0 ? 1 : 0;
    return tensor == 'k' ? (d == 0 ? (double)(row % 256) : 1) : OTHERWISE;
}
static void rising_rows(void)
{
    everywhere(rising, ":scale=0.5", true);
}
static void rising_steeply(void)
{
    everywhere(rising, ":scale=32", true);
}
static void falling_rows(void)
{
    everywhere(rising, ":scale=-0.5", true);
}
static void falling_steeply(void)
{
    everywhere(rising, ":scale=-32", true);
}
static void rising_causal(void)
{
    everywhere(rising, ":scale=2:causal:br", true);
}
/* Rows begin to see keys one after another, while the scores of those that have begun rise. */
static void rising_in_a_window(void)
{
    everywhere(rising, ":scale=0.5:causal:br:wl=40", true);
}

VALUES(equal_keys)
{
    (void)rng;
    if (tensor == 'k')
        return (double)(d % 5) - 2;
    return tensor == 'q' ? (double)((row + d) % 7) - 3 : OTHERWISE;
}
static void equal_rows(void)
{
    everywhere(equal_keys, "", true);
}
static void equal_large_rows(void)
{
    everywhere(equal_keys, ":scale=100", true);
}

/* The last key of a sequence, behind the last full tile of any size, outweighs all others. */
VALUES(tail_maximum)
{
    if (tensor == 'q')
        return d == 0 ? 1 : 0;
    return tensor == 'k' && d == 0 ? (row == instance_keys(in, b) - 1 ? 60 : (double)(rng_below(rng, 5) - 2)) : OTHERWISE;
}
static void maximum_in_the_tail(void)
{
    everywhere(tail_maximum, ":scale=1", true);
}

VALUES(one_finite_bias)
{
    return tensor == 'b' ? (d == (row * 7 + h) % instance_keys(in, b) ? 0.5 : (double)-INFINITY) : OTHERWISE;
}
static void one_finite_key(void)
{
    everywhere(one_finite_bias, ":bias", false);
}
static void one_finite_key_f32(void)
{
    everywhere(one_finite_bias, ":bias=f32:causal", false);
}

VALUES(no_finite_bias)
{
    return tensor == 'b' ? (double)-INFINITY : OTHERWISE;
}
static void no_finite_key(void)
{
    everywhere(no_finite_bias, ":bias", false);
}
static void no_finite_key_but_a_sink(void)
{
    everywhere(no_finite_bias, ":bias:sink", false);
}

/* The first keys are invisible to most rows: whole tiles before the first visible key. */
VALUES(leading_bias)
{
    return tensor == 'b' ? (d < instance_keys(in, b) - 3 ? (double)-INFINITY : rng_normal(rng)) : OTHERWISE;
}
/* A key whose bias is -inf is invisible: if it is so for all rows, not even its NaN reaches them. */
VALUES(hiding_bias)
{
    return tensor == 'b' ? (d % 3 == 1 ? (double)-INFINITY : rng_normal(rng)) : OTHERWISE;
}
static void nan_hidden_by_bias(void)
{
    nan_behind_bias = true;
    everywhere(hiding_bias, ":bias", false);
    everywhere(hiding_bias, ":bias=f32:causal:br", false);
    everywhere(no_finite_bias, ":bias", false);
    nan_behind_bias = false;
}
static void masked_leading_blocks(void)
{
    everywhere(leading_bias, ":bias", false);
}
static void masked_by_window(void)
{
    everywhere(values_normal, ":wl=2:causal:br", false);
}
static void masked_everything(void)
{
    everywhere(values_normal, ":wl=0:wr=0:br", false);
}
static void window_of_any_width(void)
{
    everywhere(values_normal, ":wl=9223372036854775807:wr=9223372036854775807:br", false);
}

VALUES(large_bias)
{
    return tensor == 'b'                    ? (rng_chance(rng, 3) ? -1e4 : 1e4 * rng_uniform(rng))
           : tensor == 'q' || tensor == 'k' ? (double)(rng_below(rng, 5) - 2)
                                            : OTHERWISE;
}
static void biases_of_thousands(void)
{
    everywhere(large_bias, ":bias=f32:scale=0.25", true);
}

VALUES(denormal_v)
{
    return tensor == 'v' ? type_smallest(in->problem.dtype) * (double)(1 + rng_below(rng, 60)) : OTHERWISE;
}
static void denormal_values(void)
{
    everywhere(denormal_v, "", false);
}
VALUES(denormal_qk)
{
    return tensor == 'q' || tensor == 'k' ? type_smallest(in->problem.dtype) * (double)(rng_below(rng, 90) - 45) : OTHERWISE;
}
static void denormal_scores(void)
{
    everywhere(denormal_qk, "", false);
}

VALUES(large_v)
{
    return tensor == 'v' ? type_largest(in->problem.dtype) * (rng_chance(rng, 2) ? 1 : -1) / 4096 : OTHERWISE;
}
static void large_values(void)
{
    everywhere(large_v, "", false);
}
/* attest.h: sums are normalised at the end, so |v| times the number of keys must be finite in float32. */
VALUES(largest_v)
{
    double keys = in->problem.dtype == ATTEST_F16 || in->problem.seq_kv < 1 ? 1 : (double)in->problem.seq_kv;
    return tensor == 'v' ? type_largest(in->problem.dtype) / keys : OTHERWISE;
}
static void largest_values(void)
{
    everywhere(largest_v, "", false);
}

/* Numbers that are still normal, while their products with small weights are not. */
VALUES(small_v)
{
    return tensor == 'v' ? ldexp((double)(1 + rng_below(rng, 7)), in->problem.dtype == ATTEST_F16 ? -14 : -118) : OTHERWISE;
}
static void small_values(void)
{
    everywhere(small_v, "", false);
}

/* A kernel may take another way where nobody asks for LSE. */
static void output_alone(void)
{
    without_lse = true;
    everywhere(small_v, "", false);
    everywhere(denormal_v, "", false);
    everywhere(largest_v, "", false);
    everywhere(integers, ":scale=16", true);
    everywhere(rising, ":scale=0.5", true);
    everywhere(rising, ":scale=2:causal:br", true);
    everywhere(rising, ":scale=0.5:causal:br:wl=40", true);
    everywhere(equal_keys, ":scale=100", true);
    everywhere(tail_maximum, ":scale=1", true);
    everywhere(values_normal, ":wl=2:causal:br", false);
    without_lse = false;
}

VALUES(extreme_sinks)
{
    static const double sinks[] = {1e4, -1e4, (double)-INFINITY, 0, (double)FLT_MAX, -(double)FLT_MAX};
    return tensor == 's' ? sinks[h % 6] : OTHERWISE;
}
static void sinks_of_any_size(void)
{
    everywhere(extreme_sinks, ":sink", false);
}

VALUES(steep_slopes)
{
    return tensor == 'a' ? (h % 2 ? 30 : -3) : OTHERWISE;
}
static void slopes_of_any_size(void)
{
    everywhere(steep_slopes, ":alibi:br", false);
}

/* A row that sees no key is 0 even if its query is NaN. */
VALUES(nan_in_blind_rows)
{
    return tensor == 'q' && row < 5 ? NAN : OTHERWISE;
}
static void blind_rows(void)
{
    /* Bottom-right with fewer keys than rows: the first rows see nothing. */
    static const char *const lines[] = {"fwd:f32:h2:sq40:skv35:d16:causal:br:lse", "fwd:bf16:h2:sq40:skv35:d32:causal:br:lse",
                                        "fwd:f16:hq4:hkv1:sq9:skv4:d64:causal:br:lse:sink"};
    for (size_t n = 0; n < sizeof lines / sizeof *lines; n++) {
        attest_problem p;
        struct instance in;
        struct instance_options options = {.values = nan_in_blind_rows};
        attest_kernel_info info = {0};
        if (!tap_case("%s", lines[n]) || !tap_check(attest_problem_parse(lines[n], &p, NULL, 0) == ATTEST_OK, "parse") ||
            !instance_create(&in, &p, tap.seed, &options))
            continue;
        for (int k = 0; (k = drive_next(context, &p, k, &info)) >= 0; k++) {
            if (!drive_run(context, info.name, &in, PLACE_PLAIN))
                continue;
            for (int64_t h = 0; h < p.heads_q; h++)
                for (int64_t i = 0; i < p.seq_q - p.seq_kv; i++) {
                    double lse = load(ATTEST_F32, in.lse.data, offset_lse(&in, 0, h, i));
                    double want = p.flags & ATTEST_SINK ? load(ATTEST_F32, in.sinks.data, h) : (double)-INFINITY;
                    tap_check(lse == want, "%s: LSE of blind row %lld is %g, not %g", info.name, (long long)i, lse, want);
                    for (int64_t d = 0; d < p.dim_v; d++)
                        tap_check(load(p.dtype_o, in.o.data, offset_o(&in, 0, h, i) + d) == 0, "%s: blind row %lld is not 0",
                                  info.name, (long long)i);
                }
        }
        instance_destroy(&in);
    }
}

/* ------------------------------------------------------------------------------------------------- non-finite values -- */

static char spoiled_tensor;
static int64_t spoiled_key, spoiled_head;
static double spoiled_value;

VALUES(one_spoiled)
{
    if (tensor == spoiled_tensor && b == 0 && h == spoiled_head && row == spoiled_key && d == 0)
        return spoiled_value;
    return OTHERWISE;
}

/* Rows that see the value show it; rows of other heads and sequences keep their bits. */
static void check_spoiled(const char *kernel, struct instance *in, const unsigned char *clean_o)
{
    const attest_problem *p = &in->problem;
    int64_t group = p->heads_q / p->heads_kv;
    size_t element = type_bytes(p->dtype_o);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            for (int64_t i = 0; i < p->seq_q; i++) {
                int64_t at = offset_o(in, b, h, i);
                if (b == 0 && h / group == spoiled_head) {
                    if (instance_visible(in, b, i, spoiled_key)) {
                        double got = load(p->dtype_o, in->o.data, at);
                        bool shown = spoiled_tensor == 'v' && isinf(spoiled_value) ? got == spoiled_value : isnan(got);
                        tap_check(shown, "%s: row %lld sees %g in %c and has %g", kernel, (long long)i, spoiled_value,
                                  spoiled_tensor, got);
                    }
                    continue;
                }
                tap_check(!memcmp((const unsigned char *)in->o.data + at * (int64_t)element, clean_o + (size_t)at * element,
                                  element * (size_t)p->dim_v),
                          "%s: %g in %c of head %lld reaches sequence %lld, head %lld, row %lld", kernel, spoiled_value,
                          spoiled_tensor, (long long)spoiled_head, (long long)b, (long long)h, (long long)i);
            }
}

static void non_finite(void)
{
    static const struct {
        char tensor;
        double value;
    } table[] = {{'v', NAN}, {'v', INFINITY}, {'v', -INFINITY}, {'k', NAN}};
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (size_t n = 0; n < sizeof table / sizeof *table; n++)
            for (int decode = 0; decode < 2; decode++) {
                char line[128];
                attest_problem p;
                struct instance clean, in;
                struct instance_options options = {.values = one_spoiled};
                snprintf(line, sizeof line, "fwd:%s:b2:hq4:hkv2:sq%d:skv90:d40%s", dtypes[t], decode ? 1 : 90,
                         decode ? "" : ":causal");
                if (!tap_case("%s %c %g", line, table[n].tensor, table[n].value) ||
                    !tap_check(attest_problem_parse(line, &p, NULL, 0) == ATTEST_OK, "parse"))
                    continue;
                spoiled_tensor = table[n].tensor;
                spoiled_value = table[n].value;
                spoiled_head = 1;
                spoiled_key = 50;
                if (!instance_create(&clean, &p, tap.seed, NULL) || !instance_create(&in, &p, tap.seed, &options))
                    continue;
                attest_kernel_info info = {0};
                for (int k = 0; (k = drive_next(context, &p, k, &info)) >= 0; k++)
                    if (drive_run(context, info.name, &clean, PLACE_PLAIN) && drive_run(context, info.name, &in, PLACE_PLAIN))
                        check_spoiled(info.name, &in, clean.o.data);
                instance_destroy(&clean);
                instance_destroy(&in);
            }
}

/* ------------------------------------------------------------------------------------------- more than 2^31 elements -- */

/* Copies a tensor of `rows` runs of `run` elements from a packed place to a sparse one, or back. */
static void scatter(unsigned char *packed, unsigned char *sparse, size_t element, int64_t rows, int64_t run, int64_t stride,
                    bool back)
{
    for (int64_t r = 0; r < rows; r++) {
        unsigned char *a = packed + (size_t)(r * run) * element, *b = sparse + r * stride * (int64_t)element;
        memcpy(back ? a : b, back ? b : a, (size_t)run * element);
    }
}

static void far_apart(void)
{
    static const char *const lines[] = {"fwd:f16:b1:h1:sq3:skv5:d8:lse", "fwd:bf16:b1:h1:sq3:skv5:d32:lse",
                                        "fwd:f32:b1:h1:sq3:skv5:d8:lse"};
    static const char letters[] = "qkvo";
    for (size_t n = 0; n < sizeof lines / sizeof *lines; n++)
        for (int letter = 0; letter < 4; letter++)
            for (int negative = 0; negative < 2; negative++) {
                attest_problem p;
                struct instance in;
                if (!tap_case("%s %c%s", lines[n], letters[letter], negative ? "-" : "+") ||
                    !tap_check(attest_problem_parse(lines[n], &p, NULL, 0) == ATTEST_OK, "parse") ||
                    !instance_create(&in, &p, tap.seed, NULL))
                    continue;
                struct verdict_basis basis;
                if (!tap_check(basis_create(&basis, context, &in), "the oracle refused"))
                    continue;
                int64_t stride = (INT64_C(1) << 31) + 24, rows = strchr("qo", letters[letter]) ? 3 : 5;
                size_t element = type_bytes(p.dtype), size = ((size_t)((rows - 1) * stride) + 64) * element;
                unsigned char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
                if (!tap_check(map != MAP_FAILED, "no address space for %zu bytes", size))
                    continue;
                unsigned char *zero = negative ? map + (size_t)((rows - 1) * stride) * element : map;
                int64_t signed_stride = negative ? -stride : stride;
                attest_problem far = p;
                struct instance view = in;
                struct buffer *buffer = letter == 0 ? &in.q : letter == 1 ? &in.k : letter == 2 ? &in.v : &in.o;
                int64_t *const strides[] = {far.stride_q, far.stride_k, far.stride_v, far.stride_o};
                strides[letter][2] = signed_stride;
                strides[letter][0] = strides[letter][1] = stride * 8;
                const void **const inputs[] = {&view.tensors.q, &view.tensors.k, &view.tensors.v};
                if (letter < 3) {
                    *inputs[letter] = zero;
                    scatter(buffer->bytes, zero, element, rows, letter == 2 ? p.dim_v : p.dim, signed_stride, false);
                } else {
                    view.tensors.o = zero;
                }
                attest_kernel_info info = {0};
                for (int k = 0; (k = drive_next(context, &far, k, &info)) >= 0; k++) {
                    attest_plan *plan = NULL;
                    char why[256] = "";
                    instance_poison(&in);
                    tap_check(attest_plan_create(context, &far, info.name, &plan) == ATTEST_OK, "%s",
                              attest_context_detail(context));
                    size_t bytes = attest_plan_workspace_size(plan);
                    void *workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
                    tap_check(attest_run(context, plan, &view.tensors, workspace, bytes, NULL) == ATTEST_OK, "%s: %s", info.name,
                              attest_context_detail(context));
                    if (letter == 3)
                        scatter(in.o.bytes, zero, element, rows, p.dim_v, signed_stride, true);
                    tap_check(judge(&basis, &in, kernel_p_dtype(&info, &p), why, sizeof why), "%s: %s", info.name, why);
                    free(workspace);
                    attest_plan_destroy(plan);
                }
                munmap(map, size);
                basis_destroy(&basis);
                instance_destroy(&in);
            }
}

/* K and V that no cache holds are read in another rhythm. */
static void more_than_caches_hold(void)
{
    static const char *const lines[] = {"fwd:f32:b1:hq4:hkv1:sq1:skv24700:d128:lse",
                                        "fwd:f32:b2:hq7:hkv1:sq1:skv11003:d128:dv160:causal:br:lse"};
    for (size_t n = 0; n < sizeof lines / sizeof *lines; n++) {
        attest_problem p;
        struct instance in;
        struct verdict_basis basis;
        struct instance_options options = {.placement = PLACE_GUARD_AFTER};
        if (!tap_case("%s", lines[n]) ||
            !tap_check(attest_problem_parse(lines[n], &p, NULL, 0) == ATTEST_OK, "parse %s", lines[n]) ||
            !instance_create(&in, &p, tap.seed, &options))
            continue;
        if (tap_check(basis_create(&basis, context, &in), "the oracle refused")) {
            drive_run_all(context, &in, &basis, PLACE_GUARD_BEFORE);
            basis_destroy(&basis);
        }
        instance_destroy(&in);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"large logits", large_logits},
        {"large logits with sink", large_logits_with_sink},
        {"large logits capped", large_logits_capped},
        {"no scale", no_scale},
        {"negative scale", negative_scale},
        {"rising rows", rising_rows},
        {"rising steeply", rising_steeply},
        {"falling rows", falling_rows},
        {"falling steeply", falling_steeply},
        {"rising causal", rising_causal},
        {"rising in a window", rising_in_a_window},
        {"equal rows", equal_rows},
        {"equal large rows", equal_large_rows},
        {"maximum in the tail", maximum_in_the_tail},
        {"one finite key", one_finite_key},
        {"one finite key, f32 bias", one_finite_key_f32},
        {"no finite key", no_finite_key},
        {"no finite key but a sink", no_finite_key_but_a_sink},
        {"NaN hidden by a bias of -inf", nan_hidden_by_bias},
        {"masked leading blocks", masked_leading_blocks},
        {"masked by window", masked_by_window},
        {"masked but the diagonal", masked_everything},
        {"window of any width", window_of_any_width},
        {"biases of thousands", biases_of_thousands},
        {"denormal values", denormal_values},
        {"denormal scores", denormal_scores},
        {"large values", large_values},
        {"largest values", largest_values},
        {"small values", small_values},
        {"output alone", output_alone},
        {"sinks of any size", sinks_of_any_size},
        {"slopes of any size", slopes_of_any_size},
        {"blind rows", blind_rows},
        {"non-finite values", non_finite},
        {"more than 2^31 elements apart", far_apart},
        {"more than caches hold", more_than_caches_hold},
    };
    attest_context_create(&context);
    attest_context_set_threads(context, 1);
    int status = tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
    attest_context_destroy(context);
    return status;
}
