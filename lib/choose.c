/*
 * choose.c - the kernel table, why a kernel does not take a problem, and which one runs. See choose.h.
 */
#include "choose.h"
#include "cpu/cpu.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BF16 "bf16"
#define NAME_F16  "f16"
#define NAME_F32  "f32"
#define KERNEL(op, dtype, arch)                                                                                                    \
    {"cpu_" #op "_" NAME_##dtype "_" #arch, "cpu", OP_##op, ATTEST_##dtype, &cpu_##op##_##arch, NULL, NULL, false},
#define OP(name, word, summary) {"ref_" #word, "ref", OP_##word, 0, NULL, NULL, NULL, false},
static const struct kernel host_kernels[] = {
#include "kernels.def"
#include "ops.def"
};
#undef OP
enum { HOST_KERNELS = sizeof host_kernels / sizeof *host_kernels };

int kernel_count(void)
{
    return cuda_kernel_count + HOST_KERNELS;
}

const struct kernel *kernel_at(int index)
{
    return index < cuda_kernel_count ? &cuda_kernels[index] : &host_kernels[index - cuda_kernel_count];
}

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

const char *kernel_proven_on(const char *kernel, const char *here)
{
    const struct proven *proven = NULL;
    for (const struct proven *row = proofs; row->kernel; row++)
        if (!strcmp(row->kernel, kernel) && (!proven || !strcmp(row->model, here)))
            proven = row;
    return proven ? proven->model : NULL;
}

size_t attest_kernel_count(void)
{
    return (size_t)kernel_count();
}

attest_status attest_kernel_get(size_t index, attest_kernel_info *info)
{
    if (index >= attest_kernel_count() || !info)
        return ATTEST_ERROR_ARGUMENT;
    attest_kernel_info own;
    TRY(struct_read(&own, sizeof own, KERNEL_INFO_SIZE_0_1, info, "info", (struct text){0}));
    const struct kernel *kernel = kernel_at((int)index);
    info->name = kernel->name;
    info->backend = kernel->backend;
    info->needs = kernel->cuda ? kernel->needs : kernel->code ? kernel->code->needs : "";
    info->summary = kernel->cuda   ? kernel->cuda->summary
                    : kernel->code ? kernel->code->summary
                                   : "the oracle: double precision, one thread, no tricks";
    if (info->size >= offsetof(attest_kernel_info, candidate) + sizeof info->candidate)
        info->candidate = kernel->candidate;
    return ATTEST_OK;
}

/* ---- refusals -------------------------------------------------------------------------------------------------------------- */

static attest_status refusal_cpu(const attest_cpu_kernel *code, unsigned features, const attest_problem *p, struct text why)
{
    unsigned needs;
    if (!(code->dtypes >> p->dtype & 1))
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it does not take %s", dtype_name(p->dtype));
    if (p->flags & code->refuses)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it does not take %s", flag_title(p->flags & code->refuses));
    feature_find(code->needs, &needs);
    if (needs & ~features)
        return fail(why, ATTEST_ERROR_UNAVAILABLE, "it needs %s, which %s", code->needs,
                    needs & ~cpu_features_found() ? "this machine does not have" : "is disabled");
    return ATTEST_OK;
}

attest_status kernel_refusal(const attest_context *context, const struct kernel *kernel, struct tile_wish tile,
                             const attest_problem *p, struct text why)
{
    const attest_cuda_image *image;
    if (!kernel->cuda && context->gpu)
        return fail(why, ATTEST_ERROR_UNAVAILABLE, "it runs on the CPU, and this context is on %s", context->device);
    if (!kernel->cuda && tile.q)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it has no tiles to choose from");
    if (kernel->cuda && !context->gpu)
        return cuda_refusal(NULL, kernel->cuda, tile, p, &image, why);
    if (kernel->op != p->op)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it is for %s, the problem is %s", ops[kernel->op].word, ops[p->op].word);
    if (kernel->dtype && kernel->dtype != p->dtype)
        return fail(why, ATTEST_ERROR_UNSUPPORTED, "it is for %s, the problem is %s", dtype_name(kernel->dtype),
                    dtype_name(p->dtype));
    if (kernel->cuda)
        return cuda_refusal(context->gpu, kernel->cuda, tile, p, &image, why);
    return kernel->code ? refusal_cpu(kernel->code, context->features, p, why) : ATTEST_OK;
}

attest_status attest_kernel_refusal(attest_context *context, size_t index, const attest_problem *problem, char *text,
                                    size_t text_size)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context), theirs = {text, text_size};
    if (text && text_size)
        text[0] = 0;
    if (index >= attest_kernel_count())
        return fail(theirs, fail(why, ATTEST_ERROR_ARGUMENT, "kernel index %zu is not below %zu", index, attest_kernel_count()),
                    "%s", why.data);
    attest_problem p;
    attest_status status = problem_read(&p, problem, why);
    if (status == ATTEST_OK)
        status = kernel_refusal(context, kernel_at((int)index), (struct tile_wish){0}, &p, why);
    return status == ATTEST_OK ? ATTEST_OK : fail(theirs, status, "%s", why.data);
}

/* ---- the choice ------------------------------------------------------------------------------------------------------------- */

attest_status wish_read(const char *kernel, struct wish *wish, struct text why)
{
    *wish = (struct wish){0};
    if (!kernel)
        return ATTEST_OK;
    wish->given = true;
    size_t length = strcspn(kernel, "@");
    if (length >= sizeof wish->pattern)
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel: a name of %zu characters is too long", length);
    memcpy(wish->pattern, kernel, length);
    if (!kernel[length])
        return ATTEST_OK;
    int used = 0;
    if (sscanf(kernel + length, "@%4ux%4u%n", &wish->tile.q, &wish->tile.kv, &used) != 2 || kernel[length + (size_t)used] ||
        !wish->tile.q || !wish->tile.kv)
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel: '%.32s' is no pair of tiles; write for example @48x64", kernel + length);
    return ATTEST_OK;
}

static bool matches(const struct kernel *kernel, const struct wish *wish)
{
    return !wish->given || fnmatch(wish->pattern, kernel->name, 0) == 0;
}

static bool takes(const attest_context *context, const struct kernel *kernel, const attest_problem *p)
{
    return kernel_refusal(context, kernel, (struct tile_wish){0}, p, (struct text){0}) == ATTEST_OK;
}

/* A CUDA kernel that is for few rows or tiles only, and takes the problem: it is in its element there. */
static bool is_specialist(const attest_context *context, const struct kernel *kernel, const attest_problem *p)
{
    const attest_cuda_image *image = NULL;
    return context->gpu && kernel->cuda && !kernel->candidate && kernel->op == p->op && kernel->dtype == p->dtype &&
           cuda_refusal(context->gpu, kernel->cuda, (struct tile_wish){0}, p, &image, (struct text){0}) == ATTEST_OK &&
           (image->rows_most || image->tiles_most);
}

/* The kernel that reigns on machines of this class, if it takes the problem; NULL if none does. Champions win on problems of all
 * kinds, so specialists that come before them in the table have the first word. */
static const struct kernel *champion(const attest_context *context, const attest_problem *p)
{
    for (const struct champion *row = champions; row->kernel; row++) {
        if (row->dtype != p->dtype || strcmp(row->device, context->device_class) != 0)
            continue;
        const struct kernel *specialist = NULL;
        for (int i = 0; i < kernel_count(); i++) {
            if (!specialist && is_specialist(context, kernel_at(i), p))
                specialist = kernel_at(i);
            if (!strcmp(row->kernel, kernel_at(i)->name) && !kernel_at(i)->candidate && takes(context, kernel_at(i), p))
                return specialist ? specialist : kernel_at(i);
        }
    }
    return NULL;
}

/* The kernel that was added to the context under this name: what is added computes ATTEST_OP_FORWARD. */
static bool added(const attest_context *context, const char *name, struct kernel *kernel)
{
    if (context->added && strcmp(name, context->added->name) == 0)
        *kernel = (struct kernel){context->added->name, "cpu", OP_fwd, 0, context->added, NULL, NULL, false};
    else if (context->added_cuda && strcmp(name, context->added_cuda->name) == 0)
        *kernel = (struct kernel){context->added_cuda->name, "cuda", OP_fwd, 0, NULL, context->added_cuda, "", false};
    else
        return false;
    return true;
}

/* Whether a refusal says more than the one before: a kernel for this device, and there "the machine lacks something" says more than
 * "made for another dtype". */
static bool tells_more(const attest_context *context, const struct kernel *kernel, attest_status status,
                       const struct kernel *before, attest_status status_before)
{
    bool here = !kernel->cuda == !context->gpu, here_before = before && !before->cuda == !context->gpu;
    if (!before || here != here_before)
        return !before || here;
    return status == ATTEST_ERROR_UNAVAILABLE && status_before != ATTEST_ERROR_UNAVAILABLE;
}

static attest_status refuse(attest_context *context, const attest_problem *p, const struct wish *wish, const struct kernel *kernel)
{
    char sentence[256] = "";
    attest_status status = kernel_refusal(context, kernel, wish->tile, p, (struct text){sentence, sizeof sentence});
    if (context->gpu && !cuda_kernel_count && !kernel->cuda && !wish->given)
        return fail(context_text(context), ATTEST_ERROR_UNAVAILABLE,
                    "kernel: this library was built without nvcc, so it has no kernels for GPUs");
    return status == ATTEST_OK
               ? status
               : fail(context_text(context), status, "kernel: %s does not take this problem: %s", kernel->name, sentence);
}

/* The first kernel that matches and takes the problem, candidates or others; NULL if none does. *refused becomes the most telling of
 * those that match and do not take it. */
static const struct kernel *first_match(attest_context *context, const attest_problem *p, const struct wish *wish, bool candidates,
                                        const struct kernel **refused, attest_status *status)
{
    for (int i = 0; i < kernel_count(); i++) {
        const struct kernel *kernel = kernel_at(i);
        if (!matches(kernel, wish) || (kernel->candidate != candidates && !wish->given))
            continue;
        if (kernel->cuda && !context->gpu && !wish->given) /* the CPU has kernels of its own for every problem */
            continue;
        attest_status this = kernel_refusal(context, kernel, wish->tile, p, (struct text){0});
        if (this == ATTEST_OK)
            return kernel;
        if (tells_more(context, kernel, this, *refused, *status)) {
            *refused = kernel;
            *status = this;
        }
    }
    return NULL;
}

attest_status kernel_choose(attest_context *context, const attest_problem *p, const struct wish *wish, struct kernel *chosen)
{
    if (added(context, wish->pattern, chosen))
        return refuse(context, p, wish, chosen);
    const struct kernel *refused = NULL, *found = wish->given ? NULL : champion(context, p);
    attest_status status = ATTEST_OK;
    if (!found)
        found = first_match(context, p, wish, false, &refused, &status);
    if (!found && !wish->given)
        found = first_match(context, p, wish, true, &refused, &status);
    if (found) {
        *chosen = *found;
        return ATTEST_OK;
    }
    if (!refused)
        return fail(context_text(context), ATTEST_ERROR_ARGUMENT,
                    "kernel: no kernel is called '%.64s'; 'attest list' and attest_kernel_get name them", wish->pattern);
    return refuse(context, p, wish, refused);
}
