/*
 * Every feature alone, every pair of features, and random combinations of all of them, at sizes round every tile and in every
 * layout, on every kernel. Guard pages lie tight behind or before every buffer; what no row may see is NaN.
 */
#include "gen.h"
#include "drive.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static attest_context *context;

/* The oracle itself writes where the strides of the problem say, and nowhere else. */
static void check_oracle_strides(const struct instance *in, const struct verdict_basis *basis)
{
    const attest_problem *p = &in->problem;
    int64_t first[2] = {0}, count[2] = {0};
    static const char letters[2] = {'o', 'l'};
    static const double untouched = -12345.678;
    double *buffers[2], *at[2];
    for (int n = 0; n < 2; n++) {
        tap_check(attest_problem_extent(p, letters[n], &first[n], &count[n]) == ATTEST_OK, "no extent of %c", letters[n]);
        buffers[n] = malloc(sizeof(double) * (size_t)(count[n] + 1));
        at[n] = (double *)((uintptr_t)buffers[n] - (uintptr_t)(first[n] * (int64_t)sizeof(double)));
        for (int64_t k = 0; k < count[n]; k++)
            buffers[n][k] = untouched;
    }
    bool lse = p->flags & ATTEST_LSE;
    attest_status status =
        attest_reference(context, p, &in->tensors, ATTEST_EXACT, 0, p->batch * p->heads_q * p->seq_q, at[0], lse ? at[1] : NULL);
    tap_check(status == ATTEST_OK, "oracle: %s", attest_context_detail(context));
    int64_t wrong = 0, written[2] = {0}, expected = 0;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            for (int64_t i = 0; i < instance_rows(in, b); i++, expected++) {
                int64_t row = judge_row(in, b, h, i);
                wrong += memcmp(at[0] + offset_o(in, b, h, i), basis->o + row * p->dim_v, sizeof(double) * (size_t)p->dim_v) != 0;
                wrong += lse && at[1][offset_lse(in, b, h, i)] != basis->lse[row];
            }
    for (int n = 0; n < 2; n++)
        for (int64_t k = 0; k < count[n]; k++)
            written[n] += buffers[n][k] != untouched;
    tap_check(wrong == 0 && written[0] == expected * p->dim_v && written[1] == (lse ? expected : 0),
              "the oracle has %lld rows wrong and writes %lld elements for %lld rows", (long long)wrong, (long long)written[0],
              (long long)expected);
    free(buffers[0]);
    free(buffers[1]);
}

/* Cases cycle through the placements, so that each feature meets each of them. */
static void one_case(const attest_problem *p, const char *key, int number)
{
    if (!drive_case(p))
        return;
    struct rng rng = rng_from(tap.seed, key);
    struct instance in;
    struct instance_options options = {.placement = (enum placement)(number % 3)};
    if (!instance_create(&in, p, rng_next(&rng), &options))
        return;
    struct verdict_basis basis;
    attest_context_set_threads(context, 1 + (int)rng_below(&rng, 3));
    if (tap_check(basis_create(&basis, context, &in), "the oracle refused")) {
        drive_run_all(context, &in, &basis, options.placement);
        check_oracle_strides(&in, &basis);
        basis_destroy(&basis);
    }
    instance_destroy(&in);
}

static void draw_cases(const char *what, uint64_t flags, int count, bool any_flags, double work, bool strides)
{
    if (!context)
        context = drive_context(2);
    for (int n = 0; n < count; n++) {
        char key[64];
        snprintf(key, sizeof key, "%s %llu %d", what, (unsigned long long)flags, n);
        struct rng rng = rng_from(tap.seed, key);
        attest_problem p;
        gen_problem(&rng, &p, any_flags ? gen_flags(&rng) : flags, work, strides);
        one_case(&p, key, n);
    }
}

static const uint64_t features[] = {0,
                                    ATTEST_CAUSAL,
                                    ATTEST_BOTTOM_RIGHT,
                                    ATTEST_WINDOW_LEFT,
                                    ATTEST_WINDOW_RIGHT,
                                    ATTEST_SOFTCAP,
                                    ATTEST_ALIBI,
                                    ATTEST_BIAS,
                                    ATTEST_SINK,
                                    ATTEST_LSE,
                                    ATTEST_VARLEN_Q,
                                    ATTEST_VARLEN_KV,
                                    ATTEST_KV_LENGTHS,
                                    ATTEST_PAGED,
                                    ATTEST_INVARIANT};
enum { FEATURES = sizeof features / sizeof *features };

static void alone(void)
{
    for (int f = 0; f < FEATURES; f++)
        draw_cases("alone", features[f], tap_amount(2, 15, 100), false, 3e6, false);
}

static void pairs(void)
{
    for (int f = 1; f < FEATURES; f++)
        for (int g = 1; g < f; g++)
            if ((features[f] | features[g]) != (ATTEST_PAGED | ATTEST_VARLEN_KV))
                draw_cases("pairs", features[f] | features[g], tap_amount(1, 4, 30), false, 1e6, true);
}

static void combined(void)
{
    draw_cases("combined", 0, tap_amount(40, 800, 10000), true, 2e6, true);
}
static void strided(void)
{
    draw_cases("strided", ATTEST_LSE, tap_amount(10, 150, 2000), false, 2e6, true);
}
static void bigger(void)
{
    draw_cases("bigger", 0, tap_amount(1, 8, 200), true, 3e7, true);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"alone", alone}, {"pairs", pairs}, {"combined", combined}, {"strided", strided}, {"bigger", bigger},
    };
    int status = tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
    attest_context_destroy(context);
    return status;
}
