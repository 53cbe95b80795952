/*
 * Every tiny shape: Sq, Skv and D each 1 to 9, with every mask and every dtype, on every kernel, under every set of CPU features
 * that this machine allows. What else there is to vary (batch, heads, Dv, output dtype, layout, features) is drawn per case.
 */
#include "gen.h"
#include "drive.h"
#include "tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 9, MASKS_PER_AXIS = 4, FEATURE_SETS = 8 };

/* -1 stands for no limit. */
static const int64_t window_limits[MASKS_PER_AXIS] = {-1, 0, 1, 3};

/* The first context has all features; each of the others lacks one of them and those that are built on it. */
static attest_context *contexts[FEATURE_SETS];
static int context_count;

static void make_contexts(void)
{
    if (context_count)
        return;
    contexts[context_count++] = drive_context(1);
    char features[128];
    snprintf(features, sizeof features, "%s", attest_context_features(contexts[0]));
    tap_note("features: %s", features);
    for (char *name = strtok(features, ","); name && context_count < FEATURE_SETS; name = strtok(NULL, ",")) {
        contexts[context_count] = drive_context(1);
        tap_check(attest_context_disable(contexts[context_count++], name) == ATTEST_OK, "disable %s", name);
    }
}

/* Modifiers that are sampled on top of the mask. */
static uint64_t sampled_flags(struct rng *rng)
{
    static const uint64_t some[] = {ATTEST_SOFTCAP, ATTEST_ALIBI, ATTEST_BIAS, ATTEST_SINK, ATTEST_KV_LENGTHS};
    uint64_t flags = rng_chance(rng, 2) ? ATTEST_LSE : 0;
    for (size_t n = 0; n < sizeof some / sizeof *some; n++)
        if (rng_chance(rng, 8))
            flags |= some[n];
    return flags;
}

static void draw_rest(attest_problem *p, struct rng *rng)
{
    static const int64_t dims[] = {1, 2, 5, 8, 9, 16, 17, 33};
    p->batch = rng_chance(rng, 3) ? 2 : 1;
    p->heads_kv = 1 + rng_below(rng, 2);
    p->heads_q = p->heads_kv * (1 + rng_below(rng, 3));
    p->dim_v = rng_chance(rng, 2) ? p->dim : dims[rng_below(rng, (int64_t)(sizeof dims / sizeof *dims))];
    p->flags |= sampled_flags(rng);
    if (rng_chance(rng, 4))
        p->dtype_o = ATTEST_F32;
    if (p->flags & ATTEST_SOFTCAP)
        p->softcap = 2;
    if (p->flags & ATTEST_BIAS)
        p->dtype_bias = rng_chance(rng, 2) ? p->dtype : ATTEST_F32;
    attest_problem_pack(p);
    if (rng_chance(rng, 3))
        gen_strides(rng, p);
}

/* Under fewer features the same kernels must give the same bits, and the plan must take the first that is left. */
static void peel_features(struct instance *in)
{
    for (int c = 1; c < context_count; c++) {
        attest_kernel_info info = {0};
        for (int k = 0; (k = drive_next(contexts[c], &in->problem, k, &info)) >= 0; k++) {
            size_t size, again_size;
            if (!drive_run(contexts[0], info.name, in, PLACE_PLAIN))
                continue;
            unsigned char *first = drive_snapshot(in, &size);
            if (drive_run(contexts[c], info.name, in, PLACE_PLAIN)) {
                unsigned char *again = drive_snapshot(in, &again_size);
                tap_check(size == again_size && !memcmp(first, again, size), "%s: other bits with features '%s'", info.name,
                          attest_context_features(contexts[c]));
                free(again);
            }
            free(first);
        }
    }
}

static void one_case(const attest_problem *p, const char *key)
{
    if (!drive_case(p))
        return;
    struct rng rng = rng_from(tap.seed, key);
    struct instance in;
    struct instance_options options = {.placement = rng_chance(&rng, 8) ? PLACE_GUARD_AFTER : PLACE_PLAIN};
    if (!instance_create(&in, p, rng_next(&rng), &options))
        return;
    struct verdict_basis basis;
    if (tap_check(basis_create(&basis, contexts[0], &in), "the oracle refused")) {
        drive_run_all(contexts[0], &in, &basis, options.placement);
        if (rng_chance(&rng, 16))
            peel_features(&in);
        basis_destroy(&basis);
    }
    instance_destroy(&in);
}

static void one_mask(attest_dtype dtype, uint64_t flags, int64_t left, int64_t right)
{
    for (int64_t sq = 1; sq <= MOST; sq++)
        for (int64_t skv = 1; skv <= MOST; skv++)
            for (int64_t d = 1; d <= MOST; d++) {
                char key[96];
                snprintf(key, sizeof key, "%d %llu %lld %lld %lld %lld %lld", (int)dtype, (unsigned long long)flags,
                         (long long)left, (long long)right, (long long)sq, (long long)skv, (long long)d);
                struct rng rng = rng_from(tap.seed, key);
                if (tap.quick && !rng_chance(&rng, 40))
                    continue;
                attest_problem p;
                attest_problem_init(&p, dtype, 1, 1, 1, sq, skv, d);
                p.flags = flags | (left >= 0 ? ATTEST_WINDOW_LEFT : 0) | (right >= 0 ? ATTEST_WINDOW_RIGHT : 0);
                p.window_left = left >= 0 ? left : 0;
                p.window_right = right >= 0 ? right : 0;
                draw_rest(&p, &rng);
                one_case(&p, key);
            }
}

static void all_masks(attest_dtype dtype, uint64_t flags)
{
    make_contexts();
    for (int left = 0; left < MASKS_PER_AXIS; left++)
        for (int right = 0; right < MASKS_PER_AXIS; right++)
            one_mask(dtype, flags, window_limits[left], window_limits[right]);
}

#define TEST(type, mask, flags)                                                                                                    \
    static void type##_##mask(void)                                                                                                \
    {                                                                                                                              \
        all_masks(ATTEST_##type, flags);                                                                                           \
    }
#define TESTS(type)                                                                                                                \
    TEST(type, full, 0)                                                                                                            \
    TEST(type, full_br, ATTEST_BOTTOM_RIGHT)                                                                                       \
    TEST(type, causal, ATTEST_CAUSAL)                                                                                              \
    TEST(type, causal_br, ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT)
TESTS(F32)
TESTS(F16)
TESTS(BF16)

/* What ATTEST_DISABLE takes away at creation is the same as what attest_context_disable takes away later. */
static void disable_by_environment(void)
{
    make_contexts();
    char all[128];
    snprintf(all, sizeof all, "%s", attest_context_features(contexts[0]));
    tap_check(contexts[0] != NULL, "no context");
    for (char *name = strtok(all, ","); name; name = strtok(NULL, ",")) {
        attest_context *by_call = drive_context(1), *by_environment = NULL;
        tap_check(attest_context_disable(by_call, name) == ATTEST_OK, "disable %s", name);
        setenv("ATTEST_DISABLE", name, 1);
        tap_check(attest_context_create(&by_environment) == ATTEST_OK, "create with ATTEST_DISABLE=%s", name);
        unsetenv("ATTEST_DISABLE");
        tap_check(!strcmp(attest_context_features(by_call), attest_context_features(by_environment)), "%s: '%s' is not '%s'", name,
                  attest_context_features(by_call), attest_context_features(by_environment));
        size_t length = strlen(name);
        for (const char *at = attest_context_features(by_call); *at; at += strcspn(at, ","), at += *at == ',')
            tap_check(strcspn(at, ",") != length || strncmp(at, name, length) != 0, "%s is still there", name);
        attest_context_destroy(by_call);
        attest_context_destroy(by_environment);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"f32", F32_full},
        {"f32:br", F32_full_br},
        {"f32:causal", F32_causal},
        {"f32:causal:br", F32_causal_br},
        {"f16", F16_full},
        {"f16:br", F16_full_br},
        {"f16:causal", F16_causal},
        {"f16:causal:br", F16_causal_br},
        {"bf16", BF16_full},
        {"bf16:br", BF16_full_br},
        {"bf16:causal", BF16_causal},
        {"bf16:causal:br", BF16_causal_br},
        {"disable by environment", disable_by_environment},
    };
    int status = tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
    for (int n = 0; n < context_count; n++)
        attest_context_destroy(contexts[n]);
    return status;
}
