/*
 * runner.c - plans, workspaces and the choice of kernels, for the commands that run them (see runner.h).
 */
#include "runner.h"

#include <stdio.h>
#include <string.h>

attest_status runner_make_on(struct runner *runner, const char *device, const attest_problem *problem, const char *kernel,
                             int threads, char *why, size_t why_size)
{
    *runner = (struct runner){.problem = *problem};
    attest_status status = attest_context_create_on(device, &runner->context);
    if (!runner->context)
        snprintf(why, why_size, "no context: %s", attest_status_name(status));
    if (status == ATTEST_OK)
        status = attest_context_set_threads(runner->context, threads);
    if (status == ATTEST_OK)
        status = attest_plan_create(runner->context, problem, kernel, &runner->plan);
    if (status == ATTEST_OK) {
        runner->workspace_size = attest_plan_workspace_size(runner->plan);
        status = attest_memory_alloc(runner->context, runner->workspace_size + 1, &runner->workspace);
    }
    if (status != ATTEST_OK) {
        if (runner->context)
            snprintf(why, why_size, "%s", attest_context_detail(runner->context));
        runner_free(runner);
    }
    return status;
}

attest_status runner_make(struct runner *runner, const attest_problem *problem, const char *kernel, int threads, char *why,
                          size_t why_size)
{
    return runner_make_on(runner, "cpu", problem, kernel, threads, why, why_size);
}

void runner_free(struct runner *runner)
{
    if (runner->arrays.context)
        device_arrays_free(&runner->arrays);
    attest_plan_destroy(runner->plan);
    if (runner->workspace)
        attest_memory_free(runner->context, runner->workspace);
    attest_context_destroy(runner->context);
    *runner = (struct runner){0};
}

void runner_poison(struct runner *runner, int byte)
{
    attest_memory_set(runner->context, runner->workspace, byte, runner->workspace_size, NULL);
}

/* A run on a device with a memory of its own. */
static attest_status run_there(struct runner *runner, const attest_tensors *tensors, char *why, size_t why_size)
{
    struct device_arrays *arrays = &runner->arrays;
    attest_status status = ATTEST_OK;
    if (!arrays->context)
        status = device_arrays_make(arrays, runner->context, &runner->problem, tensors, DEVICE_BAND, why, why_size);
    if (status == ATTEST_OK)
        status = device_arrays_put_inputs(arrays, tensors);
    if (status == ATTEST_OK)
        status = device_arrays_put_outputs(arrays, tensors);
    if (status == ATTEST_OK)
        status = attest_run(runner->context, runner->plan, &arrays->tensors, runner->workspace, runner->workspace_size, NULL);
    if (status == ATTEST_OK)
        status = attest_synchronize(runner->context, NULL);
    if (status == ATTEST_OK)
        status = device_arrays_get_outputs(arrays, tensors);
    if (status != ATTEST_OK)
        snprintf(why, why_size, "%s", attest_context_detail(runner->context));
    else if (!device_arrays_intact(arrays, tensors, why, why_size))
        status = ATTEST_ERROR_INTERNAL;
    return status;
}

attest_status runner_run(struct runner *runner, const attest_tensors *tensors, char *why, size_t why_size)
{
    if (!context_on_cpu(runner->context))
        return run_there(runner, tensors, why, why_size);
    attest_status status = attest_run(runner->context, runner->plan, tensors, runner->workspace, runner->workspace_size, NULL);
    if (status != ATTEST_OK)
        snprintf(why, why_size, "%s", attest_context_detail(runner->context));
    return status;
}

/* The kernel's name, with the tile that --kernel asks for: "cuda_fwd_f16_wmma@48x64". */
static const char *with_tile(const char *name, const char *glob)
{
    static char kept[MOST_KERNELS][160];
    static int next;
    const char *tile = glob ? strchr(glob, '@') : NULL;
    if (!tile)
        return name;
    char *text = kept[next++ % MOST_KERNELS];
    snprintf(text, sizeof kept[0], "%s%s", name, tile);
    return text;
}

/* The one that a plan runs: its name in the table of kernels. */
static int select_choice(struct session *session, const attest_problem *problem, const char **name, char *why, size_t why_size)
{
    attest_kernel_info info = {.size = sizeof info};
    attest_plan *plan = NULL;
    int count = 0;
    if (attest_plan_create(session->context, problem, NULL, &plan) != ATTEST_OK) {
        snprintf(why, why_size, "%s", attest_context_detail(session->context));
        return 0;
    }
    for (size_t i = 0; i < attest_kernel_count() && !count; i++)
        if (attest_kernel_get(i, &info) == ATTEST_OK && strcmp(info.name, attest_plan_kernel(plan)) == 0) {
            *name = info.name;
            count = 1;
        }
    attest_plan_destroy(plan);
    return count;
}

int kernels_select(struct session *session, const attest_problem *problem, const char **names, int most, char *why, size_t why_size)
{
    const char *glob = session->options.kernel;
    attest_kernel_info info = {.size = sizeof info};
    int count = 0;
    int matches = 0;
    snprintf(why, why_size, "no kernel takes it");
    if (!glob)
        return select_choice(session, problem, names, why, why_size);
    for (size_t i = 0; i < attest_kernel_count() && count < most; i++) {
        char reason[512] = "";
        if (attest_kernel_get(i, &info) != ATTEST_OK || !kernel_matches(glob, info.name))
            continue;
        matches++;
        if (attest_kernel_refusal(session->context, i, problem, reason, sizeof reason) == ATTEST_OK) {
            names[count++] = with_tile(info.name, glob);
        } else if (matches == 1) {
            snprintf(why, why_size, "%s: %s", info.name, reason);
        } else {
            snprintf(why, why_size, "none of the kernels %s takes it here; attest explain says why", glob);
        }
    }
    return count;
}

void table_widths(const struct session *session, int *problem_width, int *kernel_width)
{
    attest_kernel_info info = {.size = sizeof info};
    *problem_width = *kernel_width = 0;
    for (int i = 0; i < session->problems.count; i++) {
        int length = (int)strlen(session->problems.entries[i].text);
        if (length > *problem_width && length <= 72)
            *problem_width = length;
    }
    for (size_t i = 0; i < attest_kernel_count(); i++) {
        if (attest_kernel_get(i, &info) != ATTEST_OK)
            continue;
        int length = (int)strlen(info.name);
        if ((!session->options.kernel || kernel_matches(session->options.kernel, info.name)) && length > *kernel_width)
            *kernel_width = length;
    }
}
