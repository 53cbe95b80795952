/*
 * plan.c - the kernel table, why a kernel does not take a problem, and from there to plans and runs.
 */
#include "internal.h"
#include "reference.h"
#include "cpu/cpu.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BF16           "bf16"
#define NAME_F16            "f16"
#define NAME_F32            "f32"
#define KERNEL(dtype, arch) {"cpu_fwd_" NAME_##dtype "_" #arch, "cpu", ATTEST_##dtype, &cpu_fwd_##arch},
static const struct kernel kernels[] = {
#include "kernels.def"
    {"ref_fwd", "ref", 0, NULL},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* Who reigns on which class of machines, and where kernels were proven: written from the evidence. */
#define CHAMPION(device, dtype, kernel, model) {device, kernel, model, ATTEST_##dtype},
#define PROVEN(kernel, model)
static const struct champion {
    const char *device, *kernel, *model;
    uint32_t dtype;
} champions[] = {
#include "champions.def"
    {NULL, NULL, NULL, 0},
};
#undef CHAMPION
#undef PROVEN
#define CHAMPION(device, dtype, kernel, model)
#define PROVEN(kernel, model) {kernel, model},
static const struct proven {
    const char *kernel, *model;
} proofs[] = {
#include "champions.def"
    {NULL, NULL},
};

size_t attest_kernel_count(void)
{
    return KERNELS;
}

attest_status attest_kernel_get(size_t index, attest_kernel_info *info)
{
    if (index >= KERNELS || !info)
        return ATTEST_ERROR_ARGUMENT;
    attest_kernel_info own;
    TRY(struct_read(&own, sizeof own, KERNEL_INFO_SIZE_0_1, info, "info", (struct text){0}));
    info->name = kernels[index].name;
    info->backend = kernels[index].backend;
    info->needs = kernels[index].code ? kernels[index].code->needs : "";
    info->summary = kernels[index].code ? kernels[index].code->summary : "the oracle: double precision, one thread, no tricks";
    return ATTEST_OK;
}

/* ---- refusals -------------------------------------------------------------------------------------------------------------- */

static const char *flag_words(uint64_t flags)
{
    return flags & ATTEST_BIAS ? "a bias" : "this combination of flags";
}

/* The one predicate: ATTEST_OK, or why not. */
static attest_status refusal(const struct kernel *kernel, unsigned features, const attest_problem *p, struct text why)
{
    const attest_cpu_kernel *code = kernel->code;
    unsigned needs;
    if (!code)
        return ATTEST_OK;
    if (kernel->dtype && kernel->dtype != p->dtype)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it is for %s, the problem is %s", dtype_name(kernel->dtype),
                    dtype_name(p->dtype));
    if (!(code->dtypes >> p->dtype & 1))
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it does not take %s", dtype_name(p->dtype));
    if (p->flags & code->refuses)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it does not take %s", flag_words(p->flags & code->refuses));
    feature_find(code->needs, &needs);
    if (needs & ~features)
        return fail(why, ATTEST_ERROR_UNAVAILABLE, "it needs %s, which %s", code->needs,
                    needs & ~cpu_features_found() ? "this machine does not have" : "is disabled");
    return ATTEST_OK;
}

attest_status attest_kernel_refusal(attest_context *context, size_t index, const attest_problem *problem, char *text,
                                    size_t text_size)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context), theirs = {text, text_size};
    if (text && text_size)
        text[0] = 0;
    if (index >= KERNELS)
        return fail(theirs, fail(why, ATTEST_ERROR_ARGUMENT, "kernel index %zu is not below %d", index, KERNELS), "%s", why.data);
    attest_problem p;
    attest_status status = problem_read(&p, problem, why);
    if (status == ATTEST_OK)
        status = refusal(&kernels[index], context->features, &p, why);
    return status == ATTEST_OK ? ATTEST_OK : fail(theirs, status, "%s", why.data);
}

/* ---- plans ----------------------------------------------------------------------------------------------------------------- */

static bool matches(const struct kernel *kernel, const char *pattern)
{
    return !pattern || fnmatch(pattern, kernel->name, 0) == 0;
}

/* The kernel that reigns on machines of this class, if it takes the problem; NULL if none does. */
static const struct kernel *champion(const attest_context *context, const attest_problem *p)
{
    char class[80];
    device_class(context->features, class, sizeof class);
    for (const struct champion *row = champions; row->kernel; row++)
        for (int i = 0; i < KERNELS; i++)
            if (row->dtype == p->dtype && !strcmp(row->device, class) && !strcmp(row->kernel, kernels[i].name) &&
                refusal(&kernels[i], context->features, p, (struct text){0}) == ATTEST_OK)
                return &kernels[i];
    return NULL;
}

/* The kernel that was added if it is meant, the champion if nothing is said, else the first kernel that matches and takes the problem, or the most telling refusal
 * of those that match. */
static attest_status choose(attest_context *context, const attest_problem *p, const char *pattern, struct kernel *chosen)
{
    struct text why = context_text(context);
    const attest_cpu_kernel *added = context->added;
    if (pattern && added && strcmp(pattern, added->name) == 0) {
        char sentence[256];
        *chosen = (struct kernel){added->name, "cpu", 0, added};
        attest_status status = refusal(chosen, context->features, p, (struct text){sentence, sizeof sentence});
        return status == ATTEST_OK ? status : fail(why, status, "kernel: %s does not take this problem: %s", added->name, sentence);
    }
    const struct kernel *refused = NULL, *reigning = pattern ? NULL : champion(context, p);
    attest_status status = ATTEST_OK;
    if (reigning) {
        *chosen = *reigning;
        return ATTEST_OK;
    }
    for (int i = 0; i < KERNELS; i++) {
        if (!matches(&kernels[i], pattern))
            continue;
        attest_status this = refusal(&kernels[i], context->features, p, (struct text){0});
        if (this == ATTEST_OK) {
            *chosen = kernels[i];
            return ATTEST_OK;
        }
        /* "The machine lacks something" says more than "made for another dtype". */
        if (!refused || (this == ATTEST_ERROR_UNAVAILABLE && status != ATTEST_ERROR_UNAVAILABLE)) {
            refused = &kernels[i];
            status = this;
        }
    }
    if (!refused)
        return fail(why, ATTEST_ERROR_ARGUMENT,
                    "kernel: no kernel is called '%.64s'; 'attest list' and attest_kernel_get name them", pattern);
    char sentence[256];
    refusal(refused, context->features, p, (struct text){sentence, sizeof sentence});
    return fail(why, status, "kernel: %s does not take this problem: %s", refused->name, sentence);
}

static void plan_fill(struct attest_plan *plan, const attest_problem *p, struct kernel kernel, int threads)
{
    *plan = (struct attest_plan){.problem = *p, .kernel = kernel, .threads = threads};
    if (kernel.code)
        cpu_plan(plan);
    else
        plan->workspace = reference_workspace(p);
}

attest_status attest_plan_create(attest_context *context, const attest_problem *problem, const char *kernel, attest_plan **plan)
{
    if (plan)
        *plan = NULL;
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    if (!plan)
        return fail(why, ATTEST_ERROR_ARGUMENT, "plan is NULL");
    attest_problem p;
    struct kernel chosen;
    TRY(context_ready(context));
    TRY(problem_read(&p, problem, why));
    TRY(choose(context, &p, kernel, &chosen));
    struct attest_plan *made = malloc(sizeof *made);
    if (!made)
        return fail(why, ATTEST_ERROR_MEMORY, "no memory for a plan");
    plan_fill(made, &p, chosen, context->threads);
    *plan = made;
    return ATTEST_OK;
}

void attest_plan_destroy(attest_plan *plan)
{
    free(plan);
}

const char *attest_plan_kernel(const attest_plan *plan)
{
    return plan ? plan->kernel.name : "";
}

size_t attest_plan_workspace_size(const attest_plan *plan)
{
    return plan ? plan->workspace : 0;
}

/* ", proven on X", for a kernel that has a record; and whether that was on a machine like this one. */
static void proof_text(const char *kernel, char *text, size_t size)
{
    const char *here = cpu_model();
    const struct proven *proven = NULL;
    for (const struct proven *row = proofs; row->kernel; row++)
        if (!strcmp(row->kernel, kernel) && (!proven || !strcmp(row->model, here)))
            proven = row;
    if (!proven)
        snprintf(text, size, ", not proven yet");
    else
        snprintf(text, size, ", proven on %s%s", proven->model, strcmp(proven->model, here) ? ", not here" : "");
}

attest_status attest_explain(attest_context *context, const attest_problem *problem, char *text, size_t text_size)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    if (!text || !text_size)
        return fail(why, ATTEST_ERROR_ARGUMENT, "text is NULL or text_size is 0");
    text[0] = 0;
    attest_problem p;
    struct kernel chosen;
    TRY(problem_read(&p, problem, why));
    TRY(choose(context, &p, NULL, &chosen));
    struct attest_plan plan;
    plan_fill(&plan, &p, chosen, context->threads);
    size_t used = 0;
    for (int i = 0; i < KERNELS && used < text_size; i++) {
        char sentence[256];
        int length;
        proof_text(kernels[i].name, sentence, sizeof sentence);
        if (!kernels[i].code)
            sentence[0] = 0;
        if (kernels[i].name == chosen.name)
            length = snprintf(text + used, text_size - used, "%s: runs, with %d thread%s and %zu bytes of workspace%s\n",
                              chosen.name, plan.threads, plan.threads == 1 ? "" : "s", plan.workspace, sentence);
        else if (refusal(&kernels[i], context->features, &p, (struct text){sentence, sizeof sentence}) == ATTEST_OK)
            length = snprintf(text + used, text_size - used, "%s: would, but %s comes first\n", kernels[i].name, chosen.name);
        else
            length = snprintf(text + used, text_size - used, "%s: does not, %s\n", kernels[i].name, sentence);
        used += length > 0 ? (size_t)length : 0;
    }
    return ATTEST_OK;
}

/* ---- runs ------------------------------------------------------------------------------------------------------------------ */

attest_status attest_run(attest_context *context, const attest_plan *plan, const attest_tensors *tensors, void *workspace,
                         size_t workspace_size, void *stream)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    if (!plan)
        return fail(why, ATTEST_ERROR_ARGUMENT, "plan is NULL");
    if (stream)
        return fail(why, ATTEST_ERROR_ARGUMENT, "stream is not NULL, and %s runs on the CPU", plan->kernel.name);
    attest_tensors t;
    TRY(tensors_read(&t, tensors, &plan->problem, true, why));
    if (plan->workspace && !workspace)
        return fail(why, ATTEST_ERROR_WORKSPACE, "workspace is NULL; the plan needs %zu bytes", plan->workspace);
    if (workspace_size < plan->workspace)
        return fail(why, ATTEST_ERROR_WORKSPACE, "workspace_size is %zu; the plan needs %zu bytes", workspace_size,
                    plan->workspace);
    if ((uintptr_t)workspace % WORKSPACE_ALIGN)
        return fail(why, ATTEST_ERROR_WORKSPACE, "workspace is not aligned to %d bytes", WORKSPACE_ALIGN);
    if (row_count(&plan->problem) == 0)
        return ATTEST_OK;
    if (plan->kernel.code)
        cpu_run(plan, &t, workspace);
    else
        reference_run(&plan->problem, &t, workspace);
    return ATTEST_OK;
}

attest_status attest_forward(const attest_problem *problem, const attest_tensors *tensors, char *text, size_t text_size)
{
    struct text theirs = {text, text_size};
    attest_context *context = NULL;
    attest_plan *plan = NULL;
    void *workspace = NULL;
    if (text && text_size)
        text[0] = 0;
    attest_status status = attest_context_create(&context);
    if (status == ATTEST_OK)
        status = attest_plan_create(context, problem, NULL, &plan);
    if (status != ATTEST_OK)
        goto out;
    size_t size = attest_plan_workspace_size(plan);
    workspace = aligned_alloc(WORKSPACE_ALIGN, (size + WORKSPACE_ALIGN) / WORKSPACE_ALIGN * WORKSPACE_ALIGN);
    if (!workspace)
        status = fail(context_text(context), ATTEST_ERROR_MEMORY, "no memory for %zu bytes of workspace", size);
    else
        status = attest_run(context, plan, tensors, workspace, size, NULL);
out:
    if (status != ATTEST_OK)
        fail(theirs, status, "%s", context ? attest_context_detail(context) : "no memory for a context");
    free(workspace);
    attest_plan_destroy(plan);
    attest_context_destroy(context);
    return status;
}
