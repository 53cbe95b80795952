/*
 * Truths about attention that need no reference: what must happen to the output when the inputs change in a known way. The first
 * table holds to the bit, the second within rounding; every kernel is asked on shapes that take each of its paths.
 */
#include "drive.h"
#include "tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static attest_context *context;

/* ------------------------------------------------------------------------------------------------------------ values -- */

/* Multiples of 1/16 below 4: powers of two scale them exactly in every dtype, and so does a change of sign. */
static double base_at(const struct instance *in, char tensor, int64_t b, int64_t h, int64_t row, int64_t d)
{
    struct rng rng = instance_rng(in, tensor, b, h, row, d);
    double x = rint(16 * rng_normal(&rng)) / 16;
    return fmin(fmax(x, -3.9375), 3.9375);
}

#define VALUES(name)                                                                                                               \
    static double name(const struct instance *in, struct rng *rng, char tensor, int64_t b, int64_t h, int64_t row, int64_t d)
#define BASE ((void)rng, base_at(in, tensor, b, h, row, d))

VALUES(base)
{
    return BASE;
}
VALUES(v_times_8)
{
    return tensor == 'v' ? 8 * BASE : BASE;
}
VALUES(v_over_4)
{
    return tensor == 'v' ? BASE / 4 : BASE;
}
VALUES(v_negated)
{
    return tensor == 'v' ? -BASE : BASE;
}
VALUES(qk_negated)
{
    return tensor == 'v' ? BASE : -BASE;
}
VALUES(q_times_4)
{
    return tensor == 'q' ? 4 * BASE : tensor == 'k' ? BASE / 4 : BASE;
}
VALUES(k_times_4)
{
    return tensor == 'k' ? 4 * BASE : tensor == 'q' ? BASE / 4 : BASE;
}
VALUES(columns_turned)
{
    (void)rng;
    return base_at(in, tensor, b, h, row, tensor == 'v' ? (d + 1) % in->problem.dim_v : d);
}
VALUES(heads_turned)
{
    int64_t heads = tensor == 'q' ? in->problem.heads_q : in->problem.heads_kv, group = in->problem.heads_q / in->problem.heads_kv;
    (void)rng;
    return base_at(in, tensor, b, (h + (tensor == 'q' ? group : 1)) % heads, row, d);
}
VALUES(batch_turned)
{
    (void)rng;
    return base_at(in, tensor, (b + 1) % in->problem.batch, h, row, d);
}
VALUES(other_heads_nan)
{
    int64_t group = in->problem.heads_q / in->problem.heads_kv;
    return (tensor == 'q' ? h / group : h) % 2 ? NAN : BASE;
}
VALUES(other_rows_changed)
{
    return tensor == 'q' && row % 3 ? 2 - BASE : BASE;
}
VALUES(later_keys_changed)
{
    return tensor != 'q' && row > in->problem.seq_q / 2 ? 3.5 - BASE : BASE;
}

/* One key lies 200 below the others (in units of the score), or above them, for every row. */
enum { MARKED_KEY = 3 };
static double marked(const struct instance *in, char tensor, int64_t b, int64_t h, int64_t row, int64_t d, double score)
{
    if (tensor == 'q' && d == 0)
        return 4;
    if (tensor == 'k' && row == MARKED_KEY)
        return d == 0 ? score / 4 / (double)in->problem.scale : 0;
    return tensor == 'v' ? base_at(in, tensor, b, h, row, d) : base_at(in, tensor, b, h, row, d) / 8;
}
VALUES(key_below)
{
    return (void)rng, marked(in, tensor, b, h, row, d, -256);
}
VALUES(key_below_changed)
{
    return tensor == 'v' && row == MARKED_KEY ? 3 - BASE : marked(in, tensor, b, h, row, d, -256);
}
VALUES(key_above)
{
    return (void)rng, marked(in, tensor, b, h, row, d, 256);
}

VALUES(k_shifted)
{
    return tensor == 'k' ? BASE + (double)(d % 3) / 4 : BASE;
}
VALUES(keys_reversed)
{
    (void)rng;
    return base_at(in, tensor, b, h, tensor == 'q' ? row : in->problem.seq_kv - 1 - row, d);
}
VALUES(keys_doubled)
{
    (void)rng;
    return base_at(in, tensor, b, h, tensor == 'q' ? row : row / 2, d);
}
VALUES(v_one)
{
    return tensor == 'v' ? 1 : BASE;
}
VALUES(q_zero)
{
    return tensor == 'q' ? 0 : BASE;
}
VALUES(v_other)
{
    return tensor == 'v' ? (double)((row * 5 + d * 3) % 17 - 8) / 8 : BASE;
}
VALUES(v_sum)
{
    return tensor == 'v' ? BASE + v_other(in, rng, tensor, b, h, row, d) : BASE;
}

/* ----------------------------------------------------------------------------------------------------------- results -- */

/* O and LSE of a run by logical index, as doubles: float32 and smaller lose nothing. */
struct result {
    int64_t heads, rows, dim_v;
    double *o, *lse;
};

static double *at_o(const struct result *r, int64_t b, int64_t h, int64_t i)
{
    return r->o + ((b * r->heads + h) * r->rows + i) * r->dim_v;
}
static double *at_lse(const struct result *r, int64_t b, int64_t h, int64_t i)
{
    return r->lse + (b * r->heads + h) * r->rows + i;
}

static struct result compute(const attest_problem *p, const char *kernel, value_function *values)
{
    struct result r = {p->heads_q, p->seq_q, p->dim_v, NULL, NULL};
    struct instance in;
    struct instance_options options = {.values = values};
    if (!instance_create(&in, p, tap.seed, &options))
        return r;
    if (drive_run(context, kernel, &in, PLACE_PLAIN)) {
        int64_t rows = p->batch * p->heads_q * p->seq_q;
        r.o = malloc(sizeof(double) * (size_t)(rows * (p->dim_v + 1)));
        r.lse = r.o + rows * p->dim_v;
        for (int64_t b = 0; b < p->batch; b++)
            for (int64_t h = 0; h < p->heads_q; h++)
                for (int64_t i = 0; i < p->seq_q; i++) {
                    for (int64_t d = 0; d < p->dim_v; d++)
                        at_o(&r, b, h, i)[d] = load(p->dtype_o, in.o.data, offset_o(&in, b, h, i) + d);
                    *at_lse(&r, b, h, i) = load(ATTEST_F32, in.lse.data, offset_lse(&in, b, h, i));
                }
    }
    instance_destroy(&in);
    return r;
}

/* ------------------------------------------------------------------------------------------------------- to the bit -- */

enum compare { SAME, TIMES_8, OVER_4, NEGATED, TURNED_COLUMNS, TURNED_HEADS, TURNED_BATCH, EVEN_HEADS, UNCHANGED_ROWS, EARLY_ROWS };

/* What O[b,h,i,d] must be after the change, or NaN where nothing is claimed; `lse` gets the same for LSE. */
static double wanted(enum compare how, const struct result *first, const attest_problem *p, int64_t b, int64_t h, int64_t i,
                     int64_t d, double *lse)
{
    int64_t group = p->heads_q / p->heads_kv;
    *lse = *at_lse(first, b, h, i);
    double o = at_o(first, b, h, i)[d];
    switch (how) {
    case TIMES_8:
        return 8 * o;
    case OVER_4:
        return o / 4;
    case NEGATED:
        return -o;
    case TURNED_COLUMNS:
        return at_o(first, b, h, i)[(d + 1) % p->dim_v];
    case TURNED_HEADS:
        *lse = *at_lse(first, b, (h + group) % p->heads_q, i);
        return at_o(first, b, (h + group) % p->heads_q, i)[d];
    case TURNED_BATCH:
        *lse = *at_lse(first, (b + 1) % p->batch, h, i);
        return at_o(first, (b + 1) % p->batch, h, i)[d];
    case EVEN_HEADS:
        *lse = h / group % 2 ? NAN : *lse;
        return h / group % 2 ? NAN : o;
    case UNCHANGED_ROWS:
        *lse = i % 3 ? NAN : *lse;
        return i % 3 ? NAN : o;
    case EARLY_ROWS:
        *lse = i > p->seq_q / 2 ? NAN : *lse;
        return i > p->seq_q / 2 ? NAN : o;
    default:
        return o;
    }
}

static const struct relation {
    const char *name;
    value_function *before, *after;
    enum compare how;
    bool causal_only;
} relations[] = {
    {"V times 8", base, v_times_8, TIMES_8, false},
    {"V over 4", base, v_over_4, OVER_4, false},
    {"V negated", base, v_negated, NEGATED, false},
    {"Q and K negated", base, qk_negated, SAME, false},
    {"Q times 4, K over 4", base, q_times_4, SAME, false},
    {"K times 4, Q over 4", base, k_times_4, SAME, false},
    {"V columns permuted", base, columns_turned, TURNED_COLUMNS, false},
    {"heads permuted", base, heads_turned, TURNED_HEADS, false},
    {"batch permuted", base, batch_turned, TURNED_BATCH, false},
    {"NaN in every other head", base, other_heads_nan, EVEN_HEADS, false},
    {"other query rows changed", base, other_rows_changed, UNCHANGED_ROWS, false},
    {"later keys changed", base, later_keys_changed, EARLY_ROWS, true},
    {"a key 256 below the others", key_below, key_below_changed, SAME, false},
};

/* A denormal f16 result was rounded where its multiple is not: such elements say nothing about bits. */
static bool loses_bits(const attest_problem *p, double o)
{
    return p->dtype_o == ATTEST_F16 && fabs(o) < 0x1p-11;
}

static void check_relation(const struct relation *relation, const attest_problem *p, const char *kernel, const struct result *plain)
{
    struct result own = {0}, second = compute(p, kernel, relation->after);
    if (relation->before != base)
        own = compute(p, kernel, relation->before);
    struct result first = relation->before == base ? *plain : own;
    int wrong = 0;
    char where[256] = "";
    for (int64_t b = 0; first.o && second.o && b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            for (int64_t i = 0; i < p->seq_q; i++)
                for (int64_t d = 0; d < p->dim_v; d++) {
                    double lse, o = wanted(relation->how, &first, p, b, h, i, d, &lse), got = at_o(&second, b, h, i)[d];
                    bool bad_o =
                        !isnan(o) && got != o && !(loses_bits(p, o) && relation->how <= OVER_4 && relation->how >= TIMES_8);
                    bool bad_lse = !isnan(lse) && *at_lse(&second, b, h, i) != lse;
                    if ((bad_o || bad_lse) && !wrong++)
                        snprintf(where, sizeof where, "first at [%lld,%lld,%lld,%lld]: O %.9g, not %.9g; LSE %.9g, not %.9g",
                                 (long long)b, (long long)h, (long long)i, (long long)d, got, o, *at_lse(&second, b, h, i), lse);
                }
    tap_check(first.o && second.o && wrong == 0, "%s: %s: %d elements have other bits, %s", kernel, relation->name, wrong, where);
    free(own.o);
    free(second.o);
}

static const char *const shapes[] = {
    "b2:hq4:hkv2:sq37:skv150:d40:dv24",      "b2:hq4:hkv2:sq1:skv700:d64",   "b2:h2:s130:d64:causal",
    "b2:hq6:hkv2:sq3:skv260:d128:causal:br", "b2:hq4:hkv2:sq9:skv9:d7:dv33", "b2:h2:sq70:skv300:d64:wl=40:wr=3:br",
};
static const char *const dtypes[] = {"f32", "f16", "bf16", "bf16:o=f32"};

/* Calls `check` for each kernel on each shape and dtype. */
static void each_kernel(void (*check)(const attest_problem *p, const char *kernel))
{
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            if (tap.quick && (s + t) % 5)
                continue;
            char line[128], why[256] = "";
            attest_problem p;
            snprintf(line, sizeof line, "fwd:%s:%s:lse", dtypes[t], shapes[s]);
            if (!tap_check(attest_problem_parse(line, &p, why, sizeof why) == ATTEST_OK, "%s: %s", line, why))
                continue;
            attest_kernel_info info = {0};
            for (int k = 0; (k = drive_next(context, &p, k, &info)) >= 0; k++) {
                bool slow = !strcmp(info.backend, "ref") && p.seq_q > 40;
                if ((!slow || tap.lengthy) && tap_case("%s %s", info.name, line))
                    check(&p, info.name);
            }
        }
}

static void check_bits(const attest_problem *p, const char *kernel)
{
    struct result plain = compute(p, kernel, base);
    for (size_t n = 0; n < sizeof relations / sizeof *relations; n++)
        if (!relations[n].causal_only || ((p->flags & ATTEST_CAUSAL) && p->seq_q == p->seq_kv))
            check_relation(&relations[n], p, kernel, &plain);
    free(plain.o);
}

static void to_the_bit(void)
{
    each_kernel(check_bits);
}

/* The row of V that a dominant key holds comes back, bit for bit, wherever the key is visible. */
static void check_dominant(const attest_problem *p, const char *kernel)
{
    struct instance in;
    struct instance_options options = {.values = key_above};
    if (!instance_create(&in, p, tap.seed, &options))
        return;
    if (drive_run(context, kernel, &in, PLACE_PLAIN))
        for (int64_t b = 0; b < p->batch; b++)
            for (int64_t h = 0; h < p->heads_q; h++)
                for (int64_t i = 0; i < p->seq_q; i++)
                    for (int64_t d = 0; d < p->dim_v && instance_visible(&in, b, i, MARKED_KEY); d++) {
                        double want = load(p->dtype, in.v.data, offset_v(&in, b, h / (p->heads_q / p->heads_kv), MARKED_KEY) + d);
                        double got = load(p->dtype_o, in.o.data, offset_o(&in, b, h, i) + d);
                        tap_check(got == want, "%s: row %lld, column %lld is %.9g, V has %.9g", kernel, (long long)i, (long long)d,
                                  got, want);
                    }
    instance_destroy(&in);
}
static void dominant_key(void)
{
    each_kernel(check_dominant);
}

/* A window as wide as the keys is no window. */
static void check_window(const attest_problem *p, const char *kernel)
{
    if (p->flags & (ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT))
        return;
    attest_problem windowed = *p;
    windowed.flags |= ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT;
    windowed.window_left = windowed.window_right = p->seq_q + p->seq_kv;
    struct result first = compute(p, kernel, base), second = compute(&windowed, kernel, base);
    size_t count = (size_t)(p->batch * p->heads_q * p->seq_q * (p->dim_v + 1));
    tap_check(first.o && second.o && !memcmp(first.o, second.o, count * sizeof(double)), "%s: a wide window changes bits", kernel);
    free(first.o);
    free(second.o);
}
static void wide_window(void)
{
    each_kernel(check_window);
}

/* ------------------------------------------------------------------------------------------------- within rounding -- */

/* What two correct results of magnitude `size` may differ by. */
static double slack(const attest_problem *p, const char *kernel, double size)
{
    uint32_t p_dtype = p->dtype == ATTEST_BF16 && (strstr(kernel, "bf16") || strstr(kernel, "amx")) ? ATTEST_BF16 : ATTEST_F32;
    return size * (4 * type_unit(p->dtype_o) + 4 * type_unit(p_dtype) + 0x1p-24 * (double)(p->seq_kv + 16 * p->dim)) + 0x1p-23;
}

static bool masked(const attest_problem *p)
{
    return p->flags & (ATTEST_CAUSAL | ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT);
}

static void compare_close(const char *what, const attest_problem *p, const char *kernel, const struct result *a,
                          const struct result *b, double lse_shift)
{
    if (!tap_check(a->o && b->o, "%s: %s did not run", kernel, what))
        return;
    int64_t rows = p->batch * p->heads_q * p->seq_q;
    double worst = 0, worst_lse = 0;
    for (int64_t n = 0; n < rows * p->dim_v; n++)
        worst = fmax(worst, isfinite(a->o[n] - b->o[n]) ? fabs(a->o[n] - b->o[n]) : (double)INFINITY);
    for (int64_t n = 0; n < rows && !isnan(lse_shift); n++)
        if (isfinite(a->lse[n]) || isfinite(b->lse[n]))
            worst_lse = fmax(worst_lse, fabs(a->lse[n] + lse_shift - b->lse[n]));
    tap_check(worst <= slack(p, kernel, 4), "%s: %s: O differs by %g", kernel, what, worst);
    tap_check(worst_lse <= 0x1p-24 * (double)(p->seq_kv + 40 * p->dim), "%s: %s: LSE differs by %g", kernel, what, worst_lse);
}

static void check_close(const attest_problem *p, const char *kernel)
{
    struct result plain = compute(p, kernel, base), shifted = compute(p, kernel, k_shifted);
    compare_close("K shifted by a vector", p, kernel, &plain, &shifted, NAN);
    free(shifted.o);

    struct result other = compute(p, kernel, v_other), sum = compute(p, kernel, v_sum);
    for (int64_t n = 0; other.o && plain.o && n < p->batch * p->heads_q * p->seq_q * p->dim_v; n++)
        other.o[n] += plain.o[n];
    compare_close("V + V'", p, kernel, &other, &sum, 0);
    free(other.o);
    free(sum.o);

    struct result ones = compute(p, kernel, v_one);
    for (int64_t n = 0; ones.o && n < p->batch * p->heads_q * p->seq_q * p->dim_v; n++) {
        bool blind = ones.lse[n / p->dim_v] == (double)-INFINITY;
        tap_check(fabs(ones.o[n] - (blind ? 0 : 1)) <= slack(p, kernel, 1), "%s: V = 1 gives %.9g", kernel, ones.o[n]);
    }
    free(ones.o);

    if (!masked(p)) {
        struct result reversed = compute(p, kernel, keys_reversed);
        compare_close("keys reversed", p, kernel, &plain, &reversed, 0);
        free(reversed.o);
        attest_problem twice = *p;
        twice.seq_kv *= 2;
        attest_problem_pack(&twice);
        struct result doubled = compute(&twice, kernel, keys_doubled);
        compare_close("keys doubled", p, kernel, &plain, &doubled, log(2));
        free(doubled.o);
    }
    free(plain.o);
}
static void within_rounding(void)
{
    each_kernel(check_close);
}

/* Q = 0 gives the mean of the visible V, and every output lies between the smallest and the largest V it may see. */
static void check_means(const attest_problem *p, const char *kernel)
{
    for (int zero = 0; zero < 2; zero++) {
        struct instance in;
        struct instance_options options = {.values = zero ? q_zero : base};
        if (!instance_create(&in, p, tap.seed, &options))
            return;
        bool ran = drive_run(context, kernel, &in, PLACE_PLAIN);
        for (int64_t b = 0; ran && b < p->batch; b++)
            for (int64_t h = 0; h < p->heads_q; h++)
                for (int64_t i = 0; i < p->seq_q; i += 1 + p->seq_q / 11)
                    for (int64_t d = 0; d < p->dim_v; d++) {
                        double sum = 0, count = 0, low = INFINITY, high = -INFINITY;
                        for (int64_t j = 0; j < p->seq_kv; j++)
                            if (instance_visible(&in, b, i, j)) {
                                double v = load(p->dtype, in.v.data, offset_v(&in, b, h / (p->heads_q / p->heads_kv), j) + d);
                                sum += v;
                                count++;
                                low = fmin(low, v);
                                high = fmax(high, v);
                            }
                        double got = load(p->dtype_o, in.o.data, offset_o(&in, b, h, i) + d), allowed = slack(p, kernel, 4);
                        if (count == 0)
                            tap_check(got == 0, "%s: an empty row has %g", kernel, got);
                        else if (zero)
                            tap_check(fabs(got - sum / count) <= allowed, "%s: Q = 0 gives %.9g, the mean is %.9g", kernel, got,
                                      sum / count);
                        else
                            tap_check(got >= low - allowed && got <= high + allowed, "%s: %g is outside %g to %g", kernel, got, low,
                                      high);
                    }
        instance_destroy(&in);
    }
}
static void means(void)
{
    each_kernel(check_means);
}

/* Grouped heads are the same as KV heads repeated. */
VALUES(repeated_heads)
{
    (void)rng;
    return base_at(in, tensor, b, tensor == 'q' ? h : h / 2, row, d);
}
static void check_groups(const attest_problem *p, const char *kernel)
{
    attest_problem grouped = *p, repeated = *p;
    grouped.heads_q = repeated.heads_q = repeated.heads_kv = 4;
    grouped.heads_kv = 2;
    attest_problem_pack(&grouped);
    attest_problem_pack(&repeated);
    struct result first = compute(&grouped, kernel, base), second = compute(&repeated, kernel, repeated_heads);
    compare_close("grouped heads", &grouped, kernel, &first, &second, 0);
    free(first.o);
    free(second.o);
}
static void grouped_heads(void)
{
    each_kernel(check_groups);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"to the bit", to_the_bit},
        {"dominant key", dominant_key},
        {"wide window", wide_window},
        {"within rounding", within_rounding},
        {"means", means},
        {"grouped heads", grouped_heads},
    };
    attest_context_create(&context);
    attest_context_set_threads(context, 1); /* other counts give the same bits: test_determinism.c */
    int status = tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
    attest_context_destroy(context);
    return status;
}
