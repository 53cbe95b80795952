/*
 * plan.c - plans and runs of the kernel that was chosen (choose.h).
 */
#include "choose.h"
#include "reference.h"
#include "cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- plans ----------------------------------------------------------------------------------------------------------------- */

attest_status plan_fill(struct attest_plan *plan, attest_context *context, const attest_problem *p, struct kernel kernel,
                        struct tile_wish tile)
{
    *plan = (struct attest_plan){.problem = *p, .kernel = kernel, .threads = context->threads};
    buffers_get(plan->buffers, p);
    snprintf(plan->name, sizeof plan->name, tile.q ? "%.120s@%ux%u" : "%.120s", kernel.name, tile.q, tile.kv);
    if (kernel.cuda) {
        const attest_cuda_image *image;
        struct text why = context_text(context);
        TRY(cuda_refusal(context->gpu, kernel.cuda, tile, p, &image, why));
        return cuda_plan_create(context->gpu, kernel.cuda, image, p, &plan->cuda, &plan->workspace, why);
    }
    if (kernel.code)
        cpu_plan(plan, kernel.code == context->added);
    else
        plan->workspace = reference_workspace(p);
    return ATTEST_OK;
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
    struct wish wish;
    struct kernel chosen;
    TRY(context_ready(context));
    TRY(problem_read(&p, problem, why));
    TRY(wish_read(kernel, &wish, why));
    TRY(kernel_choose(context, &p, &wish, &chosen));
    struct attest_plan *made = malloc(sizeof *made);
    if (!made)
        return fail(why, ATTEST_ERROR_MEMORY, "no memory for a plan");
    attest_status status = plan_fill(made, context, &p, chosen, wish.tile);
    if (status == ATTEST_OK)
        *plan = made;
    else
        free(made);
    return status;
}

void attest_plan_destroy(attest_plan *plan)
{
    if (plan)
        cuda_plan_destroy(plan->cuda);
    free(plan);
}

const char *attest_plan_kernel(const attest_plan *plan)
{
    return plan ? plan->name : "";
}

size_t attest_plan_workspace_size(const attest_plan *plan)
{
    return plan ? plan->workspace : 0;
}

/* ---- runs ------------------------------------------------------------------------------------------------------------------ */

static attest_status check_workspace(const attest_plan *plan, const void *workspace, size_t workspace_size, struct text why)
{
    if (plan->workspace && !workspace)
        return fail(why, ATTEST_ERROR_WORKSPACE, "workspace is NULL; the plan needs %zu bytes", plan->workspace);
    if (workspace_size < plan->workspace)
        return fail(why, ATTEST_ERROR_WORKSPACE, "workspace_size is %zu; the plan needs %zu bytes", workspace_size,
                    plan->workspace);
    if ((uintptr_t)workspace % WORKSPACE_ALIGN)
        return fail(why, ATTEST_ERROR_WORKSPACE, "workspace is not aligned to %d bytes", WORKSPACE_ALIGN);
    return ATTEST_OK;
}

attest_status attest_run(attest_context *context, const attest_plan *plan, const attest_tensors *tensors, void *workspace,
                         size_t workspace_size, void *stream)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    attest_tensors t;
    TRY(context_ready(context));
    if (!plan)
        return fail(why, ATTEST_ERROR_ARGUMENT, "plan is NULL");
    if (context->gpu != (plan->cuda ? cuda_plan_gpu(plan->cuda) : NULL))
        return fail(why, ATTEST_ERROR_ARGUMENT, "the plan was made for another device than %s, which the context is on",
                    context->device);
    if (plan->cuda) {
        TRY(tensors_read_device(&t, tensors, plan->buffers, cuda_plan_align(plan->cuda), plan->name, why));
        TRY(check_workspace(plan, workspace, workspace_size, why));
        return cuda_run(plan->cuda, &t, workspace, stream, why);
    }
    if (stream)
        return fail(why, ATTEST_ERROR_ARGUMENT, "stream is not NULL, and %s runs on the CPU", plan->kernel.name);
    TRY(tensors_read(&t, tensors, &plan->problem, plan->buffers, true, why));
    TRY(check_workspace(plan, workspace, workspace_size, why));
    if (row_count(&plan->problem) == 0)
        return ATTEST_OK;
    if (plan->kernel.code)
        cpu_run(plan, &t, workspace);
    else
        reference_run(&plan->problem, &t, workspace);
    return ATTEST_OK;
}

/* ---- the one call ---------------------------------------------------------------------------------------------------------- */

/* Copies on the GPU of what the tensors point to. */
struct copies {
    const struct buffer *buffers;
    attest_tensors host, device;
    void *memory[TENSORS]; /* as allocated */
};

/* The outputs are copied as well, so that what lies between their elements comes back as it was. */
static attest_status copies_make(attest_context *context, struct copies *copies)
{
    enum { ALIGN = 256 };
    for (int i = 0; i < TENSORS; i++) {
        const struct buffer *buffer = &copies->buffers[i];
        if (!buffer->wanted || !buffer->bytes)
            continue;
        /* The copy of element 0 is aligned, wherever the extent begins. */
        int64_t shift = ((buffer->first % ALIGN) + ALIGN) % ALIGN;
        TRY(attest_memory_alloc(context, (size_t)(buffer->bytes + shift), &copies->memory[i]));
        char *from = (char *)copies->memory[i] + shift;
        const char *host = tensor_data(&copies->host, i);
        tensor_set(&copies->device, i, (void *)((uintptr_t)from - (uintptr_t)buffer->first));
        TRY(attest_memory_put(context, from, host + buffer->first, (size_t)buffer->bytes, NULL));
    }
    return ATTEST_OK;
}

static attest_status copies_fetch(attest_context *context, const struct copies *copies)
{
    for (int i = 0; i < TENSORS; i++) {
        const struct buffer *buffer = &copies->buffers[i];
        if (buffer->output && copies->memory[i])
            TRY(attest_memory_get(context, (char *)(uintptr_t)tensor_data(&copies->host, i) + buffer->first,
                                  (const void *)((uintptr_t)tensor_data(&copies->device, i) + (uintptr_t)buffer->first),
                                  (size_t)buffer->bytes, NULL));
    }
    return ATTEST_OK;
}

static attest_status run_copied(attest_context *context, const attest_plan *plan, const attest_tensors *tensors, void *workspace)
{
    struct copies copies = {.buffers = plan->buffers, .device = {.size = sizeof copies.device}};
    TRY(tensors_read(&copies.host, tensors, &plan->problem, plan->buffers, true, context_text(context)));
    attest_status status = copies_make(context, &copies);
    if (status == ATTEST_OK)
        status = attest_run(context, plan, &copies.device, workspace, plan->workspace, NULL);
    if (status == ATTEST_OK)
        status = copies_fetch(context, &copies);
    for (int i = 0; i < TENSORS; i++)
        if (copies.memory[i])
            gpu_free(context->gpu, copies.memory[i], (struct text){0});
    return status;
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
    if (status == ATTEST_OK)
        status = attest_memory_alloc(context, attest_plan_workspace_size(plan), &workspace);
    if (status == ATTEST_OK)
        status = context->gpu ? run_copied(context, plan, tensors, workspace)
                              : attest_run(context, plan, tensors, workspace, attest_plan_workspace_size(plan), NULL);
    if (status != ATTEST_OK)
        fail(theirs, status, "%s", context ? attest_context_detail(context) : "no memory for a context");
    if (context)
        attest_memory_free(context, workspace);
    attest_plan_destroy(plan);
    attest_context_destroy(context);
    return status;
}
