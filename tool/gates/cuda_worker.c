/*
 * cuda_worker.c - attest worker --cuda: runs problems on the images of a candidate, once each, for a tool that watches the process.
 * See cuda_tools.h. What a tool is to see must not be hidden: tensors and the workspace have allocations of exactly their size, and
 * nobody but the kernel writes to outputs and workspace, or reads them.
 */
#include "cuda_tools.h"

#include <stdio.h>
#include <string.h>

#include "cuda/cuda_index.h"
#include "run/device_arrays.h"

static enum exit_code say_failed(struct session *session, attest_context *context, attest_status status, const char *problem)
{
    bool broken = status == ATTEST_ERROR_DEVICE || status == ATTEST_ERROR_INTERNAL;
    return give_up(session, broken ? EXIT_FAILED : EXIT_LACKING, NULL, "%s: %s", problem, attest_context_detail(context));
}

static enum exit_code run_problem(struct session *session, attest_context *context, const char *kernel, const char *text)
{
    attest_problem problem;
    struct inputs inputs;
    struct outputs outputs;
    struct device_arrays arrays = {0};
    attest_plan *plan = NULL;
    void *workspace = NULL;
    char why[512] = "out of memory";
    enum exit_code code = EXIT_LACKING;
    if (attest_problem_parse(text, &problem, why, sizeof why) != ATTEST_OK)
        return give_up(session, EXIT_USAGE, NULL, "%s: %s", text, why);
    if (!inputs_make(&problem, (uint64_t)session->options.seed, NULL, &inputs, &code, why, sizeof why))
        return give_up(session, code, NULL, "%s: %s", text, why);
    if (!outputs_make(&outputs, &inputs)) {
        inputs_free(&inputs);
        return give_up(session, EXIT_LACKING, NULL, "%s: out of memory", text);
    }
    attest_tensors host = outputs_tensors(&inputs, &outputs);
    attest_status status = attest_plan_create(context, &problem, kernel, &plan);
    size_t size = status == ATTEST_OK ? attest_plan_workspace_size(plan) : 0;
    if (status == ATTEST_OK)
        status = device_arrays_make(&arrays, context, &problem, &host, 0, why, sizeof why);
    if (status == ATTEST_OK && size)
        status = attest_memory_alloc(context, size, &workspace);
    if (status == ATTEST_OK)
        status = device_arrays_put_inputs(&arrays, &host);
    do {
        if (status == ATTEST_OK)
            status = attest_run(context, plan, &arrays.tensors, workspace, size, NULL);
        if (status == ATTEST_OK)
            status = attest_synchronize(context, NULL);
    } while (status == ATTEST_OK && session->options.keep_going);
    code = status == ATTEST_OK ? EXIT_PASS : say_failed(session, context, status, text);
    if (arrays.context)
        device_arrays_free(&arrays);
    if (workspace)
        attest_memory_free(context, workspace);
    attest_plan_destroy(plan);
    outputs_free(&outputs);
    inputs_free(&inputs);
    return code;
}

enum exit_code cuda_worker_main(struct session *session)
{
    const struct options *options = &session->options;
    attest_context *context = NULL;
    struct cuda_loaded loaded = {0};
    char why[512];
    enum exit_code code = EXIT_PASS;
    if (options->word_count < 1 || !options->marker)
        return give_up(session, EXIT_USAGE, NULL, "an index of images, problems and a marker are needed");
    attest_status status = attest_context_create_on(options->device ? options->device : "cuda", &context);
    if (status != ATTEST_OK) {
        code = give_up(session, EXIT_LACKING, NULL, "%s", context ? attest_context_detail(context) : "out of memory");
    } else if (!cuda_index_load(options->words[0], &loaded, why, sizeof why)) {
        code = give_up(session, EXIT_LACKING, NULL, "%s", why);
    } else {
        status = attest_context_add_cuda_kernel(context, &loaded.kernel);
        if (status != ATTEST_OK)
            code = say_failed(session, context, status, loaded.kernel.name);
    }
    for (int i = 1; i < options->word_count && code == EXIT_PASS; i++)
        code = run_problem(session, context, loaded.kernel.name, options->words[i]);
    if (code == EXIT_PASS)
        printf("%s\n", options->marker);
    attest_context_destroy(context);
    cuda_index_free(&loaded);
    return code;
}
