/* Running kernels: see drive.h. */
#include "drive.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

uint32_t kernel_p_dtype(const attest_kernel_info *info, const attest_problem *problem)
{
    bool tiles = strstr(info->needs, "bf16") || strstr(info->needs, "amx");
    return tiles && problem->dtype == ATTEST_BF16 ? ATTEST_BF16 : ATTEST_F32;
}

bool drive_case(const attest_problem *problem)
{
    char line[ATTEST_PROBLEM_TEXT] = "", why[512] = "";
    if (attest_problem_print(problem, line, sizeof line) == ATTEST_OK)
        return tap_case("%s", line);
    attest_problem_check(problem, why, sizeof why);
    return tap_case("refused: %s", why) && tap_check(false, "a valid problem is refused: %s", why);
}

attest_context *drive_context(int threads)
{
    attest_context *context = NULL;
    if (!tap_check(attest_context_create(&context) == ATTEST_OK, "no context"))
        return NULL;
    if (tap_check(attest_context_set_threads(context, threads) == ATTEST_OK, "%d threads: %s", threads,
                  attest_context_detail(context)))
        return context;
    attest_context_destroy(context);
    return NULL;
}

/*
 * The workspace must be 64-byte aligned, so a guard page behind it is only tight for sizes that are multiples of 64. Without
 * guard pages (many small cases) a fringe of its own kind is checked instead.
 */
enum { WORKSPACE_FRINGE = 64 };

static unsigned char *make_workspace(struct buffer *guarded, size_t size, enum placement placement)
{
    size_t rounded = (size + 63) / 64 * 64;
    memset(guarded, 0, sizeof *guarded);
    if (placement == PLACE_PLAIN) {
        unsigned char *plain = aligned_alloc(64, rounded + WORKSPACE_FRINGE);
        if (plain)
            memset(plain, 0xFF, rounded + WORKSPACE_FRINGE);
        return plain;
    }
    if (!buffer_create(guarded, placement, 0, (int64_t)rounded, 1))
        return NULL;
    memset(guarded->bytes, 0xFF, guarded->size);
    return guarded->bytes;
}

static bool fringe_untouched(const unsigned char *workspace, size_t size, enum placement placement)
{
    size_t rounded = (size + 63) / 64 * 64;
    for (size_t n = size; placement == PLACE_PLAIN && n < rounded + WORKSPACE_FRINGE; n++)
        if (workspace[n] != 0xFF)
            return false;
    return true;
}

bool drive_run(attest_context *context, const char *kernel, struct instance *in, enum placement placement)
{
    attest_plan *plan = NULL;
    if (!tap_check(attest_plan_create(context, &in->problem, kernel, &plan) == ATTEST_OK, "plan for %s: %s",
                   kernel ? kernel : "any", attest_context_detail(context)))
        return false;
    struct buffer guarded;
    size_t size = attest_plan_workspace_size(plan);
    unsigned char *workspace = make_workspace(&guarded, size, placement);
    bool good = tap_check(workspace != NULL, "no memory for a workspace of %zu bytes", size);
    if (good) {
        instance_poison(in);
        attest_status status = attest_run(context, plan, &in->tensors, size ? workspace : NULL, size, NULL);
        good = tap_check(status == ATTEST_OK, "%s: status %s: %s", attest_plan_kernel(plan), attest_status_name(status),
                         attest_context_detail(context));
        char why[256] = "";
        good = good && tap_check(instance_untouched(in, why, sizeof why), "%s: %s", attest_plan_kernel(plan), why);
        good = good &&
               tap_check(fringe_untouched(workspace, size, placement), "%s: wrote behind its workspace", attest_plan_kernel(plan));
        if (placement == PLACE_PLAIN)
            free(workspace);
        else
            buffer_destroy(&guarded);
    }
    attest_plan_destroy(plan);
    return good;
}

int drive_next(attest_context *context, const attest_problem *problem, int index, attest_kernel_info *info)
{
    for (int count = (int)attest_kernel_count(); index < count; index++) {
        info->size = sizeof *info;
        if (attest_kernel_refusal(context, (size_t)index, problem, NULL, 0) == ATTEST_OK &&
            attest_kernel_get((size_t)index, info) == ATTEST_OK)
            return index;
    }
    return -1;
}

int drive_run_all(attest_context *context, struct instance *in, const struct verdict_basis *basis, enum placement placement)
{
    attest_kernel_info info = {0};
    int ran = 0;
    for (int k = 0; (k = drive_next(context, &in->problem, k, &info)) >= 0; k++) {
        char why[512] = "";
        ran++;
        if (drive_run(context, info.name, in, placement))
            tap_check(judge(basis, in, kernel_p_dtype(&info, &in->problem), why, sizeof why), "%s: %s", info.name, why);
    }
    tap_check(ran > 0, "no kernel takes this problem");
    return ran;
}

static void copy_sequence(const struct instance *in, int64_t b, unsigned char **at)
{
    const attest_problem *p = &in->problem;
    size_t element = type_bytes(p->dtype_o), row = element * (size_t)p->dim_v;
    for (int64_t h = 0; h < p->heads_q; h++)
        for (int64_t i = 0; i < instance_rows(in, b); i++) {
            memcpy(*at, (const unsigned char *)in->o.data + offset_o(in, b, h, i) * (int64_t)element, row);
            *at += row;
            if (p->flags & ATTEST_LSE) {
                memcpy(*at, (const float *)in->lse.data + offset_lse(in, b, h, i), sizeof(float));
                *at += sizeof(float);
            }
        }
}

static size_t sequence_size(const struct instance *in, int64_t b)
{
    const attest_problem *p = &in->problem;
    size_t row = type_bytes(p->dtype_o) * (size_t)p->dim_v + (p->flags & ATTEST_LSE ? sizeof(float) : 0);
    return row * (size_t)(p->heads_q * instance_rows(in, b));
}

unsigned char *drive_snapshot_sequence(const struct instance *in, int64_t b, size_t *size)
{
    *size = sequence_size(in, b);
    unsigned char *copy = malloc(*size + 1), *at = copy;
    if (copy)
        copy_sequence(in, b, &at);
    return copy;
}

unsigned char *drive_snapshot(const struct instance *in, size_t *size)
{
    *size = 0;
    for (int64_t b = 0; b < in->problem.batch; b++)
        *size += sequence_size(in, b);
    unsigned char *copy = malloc(*size + 1), *at = copy;
    for (int64_t b = 0; copy && b < in->problem.batch; b++)
        copy_sequence(in, b, &at);
    return copy;
}
