/*
 * The kernel table: names and needs are consistent, the plan takes the first kernel that takes the problem, explain says what
 * refusal says, patterns choose, and what the machine lacks or what is disabled is told apart from what a kernel does not do.
 */
#include "gen.h"
#include "drive.h"
#include "tap.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static attest_context *context;

static void table(void)
{
    size_t count = attest_kernel_count();
    tap_check(count >= 2, "only %zu kernels", count);
    for (size_t k = 0; k < count; k++) {
        attest_kernel_info info = {.size = sizeof info}, other = {.size = sizeof other};
        if (!tap_check(attest_kernel_get(k, &info) == ATTEST_OK, "kernel %zu", k))
            continue;
        tap_check(info.name && *info.name && info.summary && *info.summary && info.needs, "%zu lacks a text", k);
        tap_check(!strcmp(info.backend, "cuda") || !strcmp(info.backend, "cpu") || !strcmp(info.backend, "ref"), "%s: backend '%s'",
                  info.name, info.backend);
        tap_check(!strncmp(info.name, info.backend, strlen(info.backend)), "%s does not start with %s", info.name, info.backend);
        tap_check(strlen(info.summary) < 120 && !strchr(info.summary, '\n'), "%s: the summary is not one line", info.name);
        for (size_t n = 0; n < k; n++)
            tap_check(attest_kernel_get(n, &other) == ATTEST_OK && strcmp(other.name, info.name) != 0, "%s is there twice",
                      info.name);
    }
    attest_kernel_info last = {.size = sizeof last};
    attest_kernel_get(count - 1, &last);
    tap_check(!strcmp(last.backend, "ref") && !*last.needs, "the last kernel is %s, not the reference", last.name);
    tap_check(attest_kernel_get(count, &last) == ATTEST_ERROR_ARGUMENT, "a kernel beyond the last");
    tap_check(attest_kernel_get(SIZE_MAX, &last) == ATTEST_ERROR_ARGUMENT, "a kernel far beyond the last");
    tap_check(attest_kernel_get(0, NULL) == ATTEST_ERROR_ARGUMENT, "into nothing");
    attest_problem p;
    char text[256] = "";
    attest_problem_init(&p, ATTEST_F32, 1, 1, 1, 1, 1, 1);
    tap_check(attest_kernel_refusal(context, count, &p, text, sizeof text) == ATTEST_ERROR_ARGUMENT && text[0],
              "refusal beyond the last");
    tap_check(attest_kernel_refusal(NULL, 0, &p, text, sizeof text) == ATTEST_ERROR_ARGUMENT, "refusal without a context");
    tap_check(attest_kernel_refusal(context, 0, NULL, text, sizeof text) == ATTEST_ERROR_ARGUMENT, "refusal without a problem");
}

/* One problem: the choice, the explanation and the refusals agree, and a refused kernel cannot be forced. */
static void check_choice(attest_context *with, const attest_problem *p)
{
    size_t count = attest_kernel_count();
    const char *first = NULL;
    char explanation[8192] = "";
    tap_check(attest_explain(with, p, explanation, sizeof explanation) == ATTEST_OK, "explain: %s", attest_context_detail(with));
    for (size_t k = 0; k < count; k++) {
        attest_kernel_info info = {.size = sizeof info};
        char why[512] = "";
        attest_plan *plan = NULL;
        attest_kernel_get(k, &info);
        attest_status refusal = attest_kernel_refusal(with, k, p, why, sizeof why);
        attest_status forced = attest_plan_create(with, p, info.name, &plan);
        tap_check(refusal == forced, "%s: refusal says %s, the plan says %s", info.name, attest_status_name(refusal),
                  attest_status_name(forced));
        tap_check(strstr(explanation, info.name) != NULL, "explain does not mention %s", info.name);
        if (refusal == ATTEST_OK) {
            tap_check(why[0] == '\0', "%s: a sentence with OK: %s", info.name, why);
            tap_check(plan && !strcmp(attest_plan_kernel(plan), info.name), "%s was asked for, another came", info.name);
            first = first ? first : info.name;
        } else {
            tap_check(refusal == ATTEST_ERROR_UNSUPPORTED || refusal == ATTEST_ERROR_UNAVAILABLE, "%s: refusal is %s", info.name,
                      attest_status_name(refusal));
            tap_check(why[0] != '\0' && !plan, "%s: no sentence, or a plan", info.name);
            tap_check(strstr(explanation, why) != NULL, "explain does not say of %s: %s", info.name, why);
            tap_check(strstr(attest_context_detail(with), info.name) == NULL || forced != ATTEST_OK, "detail names %s", info.name);
        }
        attest_plan_destroy(plan);
    }
    attest_plan *plan = NULL;
    if (tap_check(attest_plan_create(with, p, NULL, &plan) == ATTEST_OK, "no plan: %s", attest_context_detail(with)))
        tap_check(first && !strcmp(attest_plan_kernel(plan), first), "the plan takes %s, the first that takes it is %s",
                  attest_plan_kernel(plan), first ? first : "none");
    attest_plan_destroy(plan);
}

static void choices(void)
{
    static const char *const disabled[] = {"", "amx", "avx512bf16", "avx512", "avx2"};
    for (size_t d = 0; d < sizeof disabled / sizeof *disabled; d++) {
        attest_context *with = drive_context(2);
        tap_check(attest_context_disable(with, disabled[d]) == ATTEST_OK, "disable %s", disabled[d]);
        for (int n = 0; n < tap_amount(20, 150, 2000); n++) {
            char key[32];
            attest_problem p;
            snprintf(key, sizeof key, "choice %d", n);
            struct rng rng = rng_from(tap.seed, key);
            gen_problem(&rng, &p, gen_flags(&rng), 1e7, false);
            if (drive_case(&p))
                check_choice(with, &p);
        }
        attest_context_destroy(with);
    }
}

/* Disabled is UNAVAILABLE, and the sentence names the feature. */
static void disabled_features(void)
{
    attest_context *none = drive_context(1);
    attest_context_disable(none, "avx2");
    tap_check(!*attest_context_features(none), "features are left: %s", attest_context_features(none));
    for (size_t k = 0; k < attest_kernel_count(); k++) {
        attest_kernel_info info = {.size = sizeof info};
        attest_problem p;
        char why[256] = "";
        attest_kernel_get(k, &info);
        attest_problem_init(&p,
                            strstr(info.name, "bf16_")  ? ATTEST_BF16
                            : strstr(info.name, "f16_") ? ATTEST_F16
                                                        : ATTEST_F32,
                            1, 1, 1, 4, 4, 32);
        attest_status status = attest_kernel_refusal(none, k, &p, why, sizeof why);
        tap_check(status == (*info.needs ? ATTEST_ERROR_UNAVAILABLE : ATTEST_OK), "%s without features: %s: %s", info.name,
                  attest_status_name(status), why);
        char first[32];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(info.needs, ","), info.needs);
        if (!strcmp(info.backend, "cuda"))
            strcpy(first, "an NVIDIA GPU");
        tap_check(!*info.needs || strstr(why, first), "%s: '%s' is not in: %s", info.name, first, why);
    }
    attest_context_destroy(none);
}

static void patterns(void)
{
    static const char *const list[] = {"*",        "cpu_*", "*_scalar", "ref*", "cpu_fwd_???_scalar", "*f32*", "cpu_fwd_f32_avx?",
                                       "nothing*", "bf16"};
    attest_problem p;
    attest_problem_init(&p, ATTEST_F32, 1, 2, 1, 9, 9, 16);
    for (size_t n = 0; n < sizeof list / sizeof *list; n++) {
        attest_plan *plan = NULL;
        const char *want = NULL;
        attest_kernel_info info = {0};
        for (int k = 0; !want && (k = drive_next(context, &p, k, &info)) >= 0; k++)
            if (fnmatch(list[n], info.name, 0) == 0)
                want = info.name;
        attest_status status = attest_plan_create(context, &p, list[n], &plan);
        tap_check((status == ATTEST_OK) == (want != NULL), "'%s': %s", list[n], attest_context_detail(context));
        tap_check(!want || (plan && !strcmp(attest_plan_kernel(plan), want)), "'%s' takes another kernel than %s", list[n], want);
        attest_plan_destroy(plan);
    }
}

/* Text that does not fit is cut, never overrun. */
static void cut_texts(void)
{
    attest_problem p;
    attest_problem_init(&p, ATTEST_F32, 1, 2, 1, 9, 9, 16);
    for (size_t size = 0; size < 300; size += 1 + size / 8) {
        char text[512];
        memset(text, '#', sizeof text);
        attest_status status = attest_explain(context, &p, text, size);
        tap_check(size == 0 || status == ATTEST_OK, "explain into %zu bytes", size);
        tap_check(text[size] == '#' && (!size || memchr(text, '\0', size)), "explain into %zu bytes overruns", size);
        memset(text, '#', sizeof text);
        for (size_t k = 0; k < attest_kernel_count(); k++)
            attest_kernel_refusal(context, k, &p, text, size);
        tap_check(text[size] == '#', "refusal into %zu bytes overruns", size);
    }
    tap_check(attest_explain(NULL, &p, NULL, 0) == ATTEST_ERROR_ARGUMENT, "explain without a context");
}

/* The struct form of attest_explain says what a plan and the refusals say. */
static void explained_choices(void)
{
    attest_problem p;
    const char *const wanted[] = {NULL, "cpu_fwd_f32_scalar", "ref_fwd"};
    attest_problem_init(&p, ATTEST_F32, 1, 2, 1, 9, 9, 16);
    for (size_t w = 0; w < sizeof wanted / sizeof *wanted; w++) {
        attest_plan *plan = NULL;
        int chosen = 0;
        if (!tap_check(attest_plan_create(context, &p, wanted[w], &plan) == ATTEST_OK, "%s", attest_context_detail(context)))
            continue;
        for (size_t k = 0; k < attest_kernel_count(); k++) {
            attest_choice choice = {.size = sizeof choice};
            attest_kernel_info info = {.size = sizeof info};
            char reason[256] = "";
            attest_kernel_get(k, &info);
            attest_status status = attest_kernel_refusal(context, k, &p, reason, sizeof reason);
            tap_check(attest_explain_kernel(context, &p, wanted[w], k, &choice) == ATTEST_OK, "%s", attest_context_detail(context));
            tap_check(!strcmp(choice.kernel, info.name) && choice.status == (uint32_t)status && !strcmp(choice.reason, reason),
                      "%s: %u, %s", choice.kernel, choice.status, choice.reason);
            chosen += (int)choice.chosen;
            tap_check(choice.chosen == !strcmp(info.name, attest_plan_kernel(plan)), "%s is chosen: %u", info.name, choice.chosen);
            tap_check(choice.workspace == (choice.chosen ? attest_plan_workspace_size(plan) : 0) && !*choice.how == !choice.chosen,
                      "%s: %llu bytes, %s", info.name, (unsigned long long)choice.workspace, choice.how);
            tap_check(!choice.proven_here || choice.proven, "proven here, and nowhere");
        }
        tap_check(chosen == 1, "%d kernels run", chosen);
        attest_plan_destroy(plan);
    }
    attest_choice choice = {.size = sizeof choice}, small = {.size = 16}, later = {.size = sizeof later};
    tap_check(attest_explain_kernel(context, &p, NULL, attest_kernel_count(), &choice) == ATTEST_ERROR_ARGUMENT, "no such kernel");
    tap_check(attest_explain_kernel(context, &p, "nothing", 0, &choice) == ATTEST_ERROR_ARGUMENT, "no such name");
    tap_check(attest_explain_kernel(context, &p, NULL, 0, &small) == ATTEST_ERROR_ARGUMENT, "a size that is too small");
    tap_check(attest_explain_kernel(context, &p, NULL, 0, NULL) == ATTEST_ERROR_ARGUMENT, "no choice");
    tap_check(attest_explain_kernel(NULL, &p, NULL, 0, &later) == ATTEST_ERROR_ARGUMENT, "no context");
}

/* attest_forward is the default plan. */
static void forward_is_the_default(void)
{
    attest_problem p;
    struct instance in;
    char why[256] = "";
    attest_problem_parse("fwd:f16:b2:hq4:hkv2:sq9:skv40:d33:causal:br:lse", &p, NULL, 0);
    if (!instance_create(&in, &p, tap.seed, NULL) || !drive_run(context, NULL, &in, PLACE_PLAIN))
        return;
    size_t size, again;
    unsigned char *first = drive_snapshot(&in, &size);
    instance_poison(&in);
    tap_check(attest_forward(&p, &in.tensors, why, sizeof why) == ATTEST_OK && !why[0], "forward: %s", why);
    unsigned char *second = drive_snapshot(&in, &again);
    tap_check(size == again && !memcmp(first, second, size), "forward has other bits");
    tap_check(instance_untouched(&in, why, sizeof why), "forward: %s", why);
    free(first);
    free(second);
    instance_destroy(&in);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"table", table},
        {"choices", choices},
        {"disabled features", disabled_features},
        {"patterns", patterns},
        {"explained choices", explained_choices},
        {"cut texts", cut_texts},
        {"forward is the default", forward_is_the_default},
    };
    attest_context_create(&context);
    int status = tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
    attest_context_destroy(context);
    return status;
}
