/*
 * explain.c - which kernel runs, and why not the others: as a struct for each kernel, and as text.
 */
#include "choose.h"

#include <stdio.h>
#include <string.h>

/* The plan that would be made, on this stack. */
struct explained {
    attest_problem problem;
    struct wish wish;
    struct kernel chosen;
    struct attest_plan plan;
};

static attest_status explain(attest_context *context, const attest_problem *problem, const char *kernel,
                             struct explained *explained)
{
    struct text why = context_text(context);
    TRY(context_ready(context));
    TRY(problem_read(&explained->problem, problem, why));
    TRY(wish_read(kernel, &explained->wish, why));
    TRY(kernel_choose(context, &explained->problem, &explained->wish, &explained->chosen));
    return plan_fill(&explained->plan, context, &explained->problem, explained->chosen, explained->wish.tile);
}

static attest_choice choice_of(attest_context *context, const struct explained *explained, const struct kernel *kernel)
{
    const struct attest_plan *plan = &explained->plan;
    attest_choice choice = {.size = sizeof choice, .kernel = kernel->name};
    if (kernel->code || kernel->cuda)
        choice.proven = kernel_proven_on(kernel->name, attest_context_model(context));
    choice.proven_here = choice.proven && !strcmp(choice.proven, attest_context_model(context));
    choice.chosen = kernel->name == explained->chosen.name;
    choice.status = (uint32_t)kernel_refusal(context, kernel, explained->wish.tile, &explained->problem,
                                             (struct text){choice.reason, sizeof choice.reason});
    if (!choice.chosen)
        return choice;
    choice.workspace = plan->workspace;
    if (plan->cuda)
        cuda_plan_describe(plan->cuda, choice.how, sizeof choice.how);
    else
        snprintf(choice.how, sizeof choice.how, "%d thread%s", plan->threads, plan->threads == 1 ? "" : "s");
    return choice;
}

attest_status attest_explain_kernel(attest_context *context, const attest_problem *problem, const char *kernel, size_t index,
                                    attest_choice *choice)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    attest_choice own;
    struct explained explained = {.wish = {0}};
    TRY(struct_read(&own, sizeof own, CHOICE_SIZE_0_1, choice, "choice", why));
    if (index >= attest_kernel_count())
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel index %zu is not below %zu", index, attest_kernel_count());
    TRY(explain(context, problem, kernel, &explained));
    own = choice_of(context, &explained, kernel_at((int)index));
    own.size = choice->size;
    memcpy(choice, &own, choice->size < sizeof own ? choice->size : sizeof own);
    cuda_plan_destroy(explained.plan.cuda);
    return ATTEST_OK;
}

attest_status attest_explain(attest_context *context, const attest_problem *problem, char *text, size_t text_size)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    if (!text || !text_size)
        return fail(why, ATTEST_ERROR_ARGUMENT, "text is NULL or text_size is 0");
    text[0] = 0;
    struct explained explained = {.wish = {0}};
    TRY(explain(context, problem, NULL, &explained));
    size_t used = 0;
    for (int i = 0; i < kernel_count() && used < text_size; i++) {
        const struct kernel *kernel = kernel_at(i);
        const attest_choice choice = choice_of(context, &explained, kernel);
        const bool proves = kernel->code || kernel->cuda; /* the oracle is not proven, the others are by it */
        int length;
        if (choice.chosen)
            length = snprintf(text + used, text_size - used, "%s: runs, with %s and %zu bytes of workspace%s%s%s\n", choice.kernel,
                              choice.how, (size_t)choice.workspace,
                              !proves         ? ""
                              : choice.proven ? ", proven on "
                                              : ", not proven yet",
                              choice.proven ? choice.proven : "", choice.proven && !choice.proven_here ? ", not here" : "");
        else if (choice.status == ATTEST_OK)
            length =
                snprintf(text + used, text_size - used, "%s: would, but %s comes first\n", choice.kernel, explained.chosen.name);
        else
            length = snprintf(text + used, text_size - used, "%s: does not, %s\n", choice.kernel, choice.reason);
        used += length > 0 ? (size_t)length : 0;
    }
    cuda_plan_destroy(explained.plan.cuda);
    return ATTEST_OK;
}
