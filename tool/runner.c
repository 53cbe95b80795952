/*
 * runner.c - plans, workspaces and the choice of kernels, for the commands that run them (see runner.h).
 */
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

attest_status runner_make(struct runner *runner, const attest_problem *problem, const char *kernel, int threads, char *why,
                          size_t why_size)
{
    *runner = (struct runner){0};
    attest_status status = attest_context_create(&runner->context);
    if (status != ATTEST_OK) {
        snprintf(why, why_size, "no context: %s", attest_status_name(status));
        return status;
    }
    status = attest_context_set_threads(runner->context, threads);
    if (status == ATTEST_OK)
        status = attest_plan_create(runner->context, problem, kernel, &runner->plan);
    if (status != ATTEST_OK) {
        snprintf(why, why_size, "%s", attest_context_detail(runner->context));
    } else {
        runner->workspace_size = attest_plan_workspace_size(runner->plan);
        runner->workspace = aligned_alloc(64, (runner->workspace_size + 64) / 64 * 64);
        if (!runner->workspace) {
            snprintf(why, why_size, "no memory for a workspace of %zu bytes", runner->workspace_size);
            status = ATTEST_ERROR_MEMORY;
        }
    }
    if (status != ATTEST_OK)
        runner_free(runner);
    return status;
}

void runner_free(struct runner *runner)
{
    attest_plan_destroy(runner->plan);
    attest_context_destroy(runner->context);
    free(runner->workspace);
    *runner = (struct runner){0};
}

void runner_poison(struct runner *runner, int byte)
{
    memset(runner->workspace, byte, runner->workspace_size);
}

attest_status runner_run(struct runner *runner, const attest_tensors *tensors, char *why, size_t why_size)
{
    attest_status status = attest_run(runner->context, runner->plan, tensors, runner->workspace, runner->workspace_size, NULL);
    if (status != ATTEST_OK)
        snprintf(why, why_size, "%s", attest_context_detail(runner->context));
    return status;
}

int kernels_select(struct session *session, const attest_problem *problem, const char **names, int most, char *why, size_t why_size)
{
    const char *glob = session->options.kernel;
    attest_kernel_info info = {.size = sizeof info};
    int count = 0;
    int matches = 0;
    snprintf(why, why_size, "no kernel takes it");
    for (size_t i = 0; i < attest_kernel_count() && count < most; i++) {
        char reason[512] = "";
        if (attest_kernel_get(i, &info) != ATTEST_OK || (glob && !kernel_matches(glob, info.name)))
            continue;
        matches++;
        if (attest_kernel_refusal(session->context, i, problem, reason, sizeof reason) == ATTEST_OK) {
            names[count++] = info.name;
            if (!glob)
                return count;
        } else if (matches == 1) {
            snprintf(why, why_size, "%s: %s", info.name, reason);
        } else {
            snprintf(why, why_size, "none of the kernels %s takes it here; attest explain says why", glob ? glob : "*");
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
