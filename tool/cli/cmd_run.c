/*
 * cmd_run.c - attest run: one problem, from and to .npy files.
 */
#include "run/runner.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/inputs.h"
#include "data/npy.h"

/* The arrays of a problem in the order of FILE_Q ...: the option, the flag (0: always there), and the word that sets it. */
static const struct {
    const char *option;
    uint64_t flag;
    const char *word;
} arrays[FILE_COUNT] = {
    [FILE_Q] = {"q", 0, ""},
    [FILE_K] = {"k", 0, ""},
    [FILE_V] = {"v", 0, ""},
    [FILE_BIAS] = {"bias", ATTEST_BIAS, "bias"},
    [FILE_ALIBI] = {"alibi-slopes", ATTEST_ALIBI, "alibi"},
    [FILE_SINKS] = {"sinks", ATTEST_SINK, "sink"},
    [FILE_CU_Q] = {"cu-seqlens-q", ATTEST_VARLEN_Q, "varlenq=TOTAL"},
    [FILE_CU_KV] = {"cu-seqlens-kv", ATTEST_VARLEN_KV, "varlenkv=TOTAL"},
    [FILE_LENGTHS] = {"kv-lengths", ATTEST_KV_LENGTHS, "lens"},
    [FILE_PAGES] = {"page-table", ATTEST_PAGED, "page=SIZE,COUNT"},
    [FILE_MASK] = {"mask", ATTEST_MASK, "mask"},
    [FILE_OFFSETS] = {"row-offsets", ATTEST_ROW_OFFSETS, "offsets"},
    [FILE_STARTS] = {"kv-starts", ATTEST_KV_STARTS, "starts"},
    [FILE_ROWS] = {"q-lengths", ATTEST_Q_LENGTHS, "qlens"},
};

static bool uses_array(const attest_problem *problem, int file)
{
    return !arrays[file].flag || problem->flags & arrays[file].flag;
}

/* The array that an option names must belong to the problem. */
static enum exit_code check_files(struct session *session, const attest_problem *problem)
{
    char hint[128];
    for (int i = 0; i < FILE_COUNT; i++) {
        if (!session->options.files[i] || uses_array(problem, i))
            continue;
        snprintf(hint, sizeof hint, "add the word %s to the problem, or leave --%s away", arrays[i].word, arrays[i].option);
        return give_up(session, EXIT_USAGE, hint, "--%s is given, but the problem does not use it", arrays[i].option);
    }
    if (session->options.lse && !(problem->flags & ATTEST_LSE))
        return give_up(session, EXIT_USAGE, "add the word lse to the problem", "--lse is given, but the problem has no LSE output");
    return EXIT_PASS;
}

/* One output as a C-order array: float32, or the f16 bits as they are. */
struct array {
    struct view view;
    const char *descr;
    size_t item_size;
    unsigned char *data;
    double low, high, sum;
    int64_t finite, count;
    uint64_t digest; /* of the bits the kernel wrote */
};

static bool array_make(struct array *array, const attest_problem *problem, char tensor, const struct buffer *buffer)
{
    bool halves = buffer->dtype == ATTEST_F16;
    array->view = layout_view(problem, tensor);
    array->descr = halves ? "<f2" : "<f4";
    array->item_size = halves ? 2 : 4;
    array->count = view_count(&array->view);
    array->low = INFINITY;
    array->high = -INFINITY;
    array->digest = 1;
    array->data = malloc((size_t)array->count * array->item_size + 1);
    if (!array->data)
        return false;
    size_t size = element_size(buffer->dtype);
    for (int64_t n = 0; n < array->count; n++) {
        int64_t at = view_at(&array->view, n);
        float value = element_load(buffer->at, buffer->dtype, at);
        array->digest = digest_bytes(array->digest, (unsigned char *)buffer->at + at * (int64_t)size, size);
        element_store(array->data, halves ? ATTEST_F16 : ATTEST_F32, n, value);
        if (!isfinite(value))
            continue;
        array->finite++;
        array->low = fmin(array->low, (double)value);
        array->high = fmax(array->high, (double)value);
        array->sum += (double)value;
    }
    return true;
}

static json_t *array_summary(const struct array *array)
{
    json_t *shape = json_array();
    for (int i = 0; i < array->view.rank; i++)
        json_add(shape, json_integer(array->view.shape[i]));
    bool any = array->finite > 0;
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:o}", "shape", shape, "min", any ? json_number(array->low) : json_null(), "max",
                     any ? json_number(array->high) : json_null(), "mean",
                     any ? json_number(array->sum / (double)array->finite) : json_null(), "not_finite",
                     (json_int_t)(array->count - array->finite), "digest", json_text("%016" PRIx64, array->digest));
}

static enum exit_code write_array(struct session *session, const char *path, const struct array *array)
{
    char why[512];
    bool usage = false;
    if (!path ||
        npy_write(path, array->descr, array->item_size, array->view.rank, array->view.shape, array->data, &usage, why, sizeof why))
        return EXIT_PASS;
    return give_up(session, usage ? EXIT_USAGE : EXIT_INTERNAL, NULL, "%s", why);
}

static json_t *list_sources(const struct options *options, const attest_problem *problem)
{
    json_t *sources = json_object();
    for (int i = 0; i < FILE_COUNT; i++) {
        if (!uses_array(problem, i))
            continue;
        json_t *source =
            options->files[i] ? json_text("from %s", options->files[i]) : json_text("drawn from seed %" PRId64, options->seed);
        json_put(sources, arrays[i].option, source);
    }
    return sources;
}

static enum exit_code report_run(struct session *session, struct runner *runner, const struct inputs *inputs,
                                 const struct outputs *outputs)
{
    struct report *report = &session->report;
    const attest_problem *problem = &inputs->problem;
    struct array o = {0}, lse = {0};
    bool with_lse = (problem->flags & ATTEST_LSE) != 0;
    enum exit_code code = EXIT_PASS;
    if (!array_make(&o, problem, 'o', &outputs->o) || (with_lse && !array_make(&lse, problem, 'l', &outputs->lse))) {
        code = give_up(session, EXIT_LACKING, NULL, "out of memory for the output");
    } else {
        code = write_array(session, session->options.out, &o);
        if (code == EXIT_PASS && with_lse)
            code = write_array(session, session->options.lse, &lse);
        if (code == EXIT_PASS) {
            report_put(report, "problem", json_string(session->problems.entries[0].text));
            report_put(report, "kernel", json_string(attest_plan_kernel(runner->plan)));
            report_put(report, "device", json_string(attest_context_device(runner->context)));
            if (context_on_cpu(runner->context))
                report_put(report, "threads", json_integer(attest_context_threads(runner->context)));
            report_put(report, "workspace", json_integer((json_int_t)runner->workspace_size));
            report_put(report, "inputs", list_sources(&session->options, problem));
            report_put(report, "O", array_summary(&o));
            if (with_lse)
                report_put(report, "LSE", array_summary(&lse));
        }
    }
    free(o.data);
    free(lse.data);
    return code;
}

enum exit_code cmd_run(struct session *session)
{
    const attest_problem *problem = &session->problems.entries[0].problem;
    struct inputs inputs = {0};
    struct outputs outputs = {0};
    struct runner runner = {0};
    char why[1024] = "";
    enum exit_code code = check_files(session, problem);
    if (code != EXIT_PASS)
        return code;
    attest_status status = runner_make_on(&runner, attest_context_device(session->context), problem, session->options.kernel,
                                          attest_context_threads(session->context), why, sizeof why);
    if (status != ATTEST_OK)
        return give_up(session, exit_code_of(status), "attest explain PROBLEM says which kernels take it", "%s", why);
    if (!inputs_make(problem, (uint64_t)session->options.seed, session->options.files, &inputs, &code, why, sizeof why)) {
        give_up(session, code, NULL, "%s", why);
    } else if (!outputs_make(&outputs, &inputs)) {
        code = give_up(session, EXIT_LACKING, NULL, "out of memory for the output");
    } else {
        attest_tensors tensors = outputs_tensors(&inputs, &outputs);
        status = runner_run(&runner, &tensors, why, sizeof why);
        code = status == ATTEST_OK ? report_run(session, &runner, &inputs, &outputs)
                                   : give_up(session, exit_code_of(status), NULL, "%s", why);
    }
    outputs_free(&outputs);
    inputs_free(&inputs);
    runner_free(&runner);
    return code;
}
