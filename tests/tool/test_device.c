/*
 * test_device.c - arrays on a device, indexes of CUDA images, and workers on a GPU. The last with a driver that is made up and
 * misbehaves (gpu_misdeeds.c), which tests/device.t puts where it is found; without, that part is left out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/device_arrays.h"
#include "data/inputs.h"
#include "cuda/cuda_index.h"
#include "run/executor.h"
#include "run/worker.h"
#include "tap.h"

static bool make(const char *text, struct inputs *inputs, struct outputs *outputs)
{
    attest_problem problem;
    enum exit_code code;
    char why[512] = "";
    bool made = attest_problem_parse(text, &problem, why, sizeof why) == ATTEST_OK &&
                inputs_make(&problem, 3, NULL, inputs, &code, why, sizeof why) && outputs_make(outputs, inputs);
    return tap_check(made, "%s: %s", text, why);
}

/* ---- arrays: on the CPU, which is a device like the others ------------------------------------------------------------ */

static void arrays(void)
{
    static const char *const texts[] = {"fwd:f16:b2:hq4:hkv2:sq9:skv20:d24:lse:bias:alibi:sink", "fwd:f32:h2:s7:d8:lens:page=4,9",
                                        "fwd:bf16:b3:h1:s40:d8:varlenq=60:varlenkv=90:lse", "fwd:f32:b0:h1:s4:d4"};
    for (int n = 0; n < COUNT_OF(texts); n++) {
        struct inputs inputs = {0};
        struct outputs outputs = {0};
        struct device_arrays copies;
        attest_context *context = NULL;
        char why[512] = "";
        if (!tap_case("%s", texts[n]) || !make(texts[n], &inputs, &outputs))
            continue;
        attest_tensors host = outputs_tensors(&inputs, &outputs);
        outputs_poison(&outputs);
        tap_check(attest_context_create_on("cpu", &context) == ATTEST_OK, "no context");
        attest_status status = device_arrays_make(&copies, context, &inputs.problem, &host, DEVICE_BAND, why, sizeof why);
        tap_check(status == ATTEST_OK && device_arrays_put_inputs(&copies, &host) == ATTEST_OK &&
                      device_arrays_put_outputs(&copies, &host) == ATTEST_OK,
                  "%s", why);
        tap_check(device_arrays_intact(&copies, &host, why, sizeof why), "%s", why);
        attest_plan *plan = NULL;
        tap_check(attest_plan_create(context, &inputs.problem, "ref_fwd", &plan) == ATTEST_OK, "no plan");
        void *workspace = aligned_alloc(64, attest_plan_workspace_size(plan) / 64 * 64 + 64);
        status = attest_run(context, plan, &copies.tensors, workspace, attest_plan_workspace_size(plan), NULL);
        tap_check(status == ATTEST_OK, "%s", attest_context_detail(context));
        tap_check(device_arrays_get_outputs(&copies, &host) == ATTEST_OK && device_arrays_intact(&copies, &host, why, sizeof why),
                  "%s", why);
        struct outputs direct = {0};
        tap_check(outputs_make(&direct, &inputs), "no memory");
        outputs_poison(&direct);
        attest_tensors plain = outputs_tensors(&inputs, &direct);
        attest_run(context, plan, &plain, workspace, attest_plan_workspace_size(plan), NULL);
        tap_check(outputs_equal(&outputs, &direct), "copies give other bits");
        if (inputs.q.bytes) {
            unsigned char *q = copies.memory[tensor_find(&copies.list, "q")];
            const size_t bytes = (size_t)copies.list.of[tensor_find(&copies.list, "q")].bytes;
            q[DEVICE_BAND + bytes + 9] ^= 1;
            tap_check(!device_arrays_intact(&copies, &host, why, sizeof why) && strstr(why, "byte 10 behind the end of Q"), "%s",
                      why);
            q[DEVICE_BAND + bytes + 9] ^= 1;
            q[DEVICE_BAND + 1] ^= 1;
            tap_check(!device_arrays_intact(&copies, &host, why, sizeof why) && strstr(why, "changed its inputs: Q"), "%s", why);
        }
        device_arrays_free(&copies);
        outputs_free(&direct);
        outputs_free(&outputs);
        inputs_free(&inputs);
        free(workspace);
        attest_plan_destroy(plan);
        attest_context_destroy(context);
    }
}

/* ---- indexes ---------------------------------------------------------------------------------------------------------- */

static void indexes(void)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"no JSON", "is no index"},
        {"{}", "it names none"},
        {"{\"kernel\": \"k\", \"images\": {\"f16 d64 sm_90\": {\"file\": \"none\", \"sha256\": \"00\", \"bytes\": 5}}}",
         "the image f16 d64 sm_90 is not there"},
    };
    for (int i = 0; i < COUNT_OF(bad); i++) {
        char path[] = "/tmp/attest-index-XXXXXX", why[512] = "";
        struct cuda_loaded loaded;
        int file = mkstemp(path);
        FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
        if (!tap_check(stream != NULL, "no file"))
            return;
        fputs(bad[i].text, stream);
        fclose(stream);
        tap_check(!cuda_index_load(path, &loaded, why, sizeof why) && strstr(why, bad[i].says), "%s", why);
        remove(path);
    }
}

/* ---- workers ---------------------------------------------------------------------------------------------------------- */

/* A kernel of the library for GPUs, or NULL. */
static const char *gpu_kernel(void)
{
    attest_kernel_info info = {.size = sizeof info};
    for (size_t i = 0; i < attest_kernel_count(); i++)
        if (attest_kernel_get(i, &info) == ATTEST_OK && strcmp(info.name, "cuda_fwd_f16_scalar") == 0)
            return info.name;
    return NULL;
}

/* The time that a call may take is short only where it has to run out. */
static struct executor *open_with(const char *misdeed, enum guard guard)
{
    static char variable[64];
    static const char *environment[] = {variable, NULL};
    struct execution execution;
    snprintf(variable, sizeof variable, "GPU_MISDEED=%s", misdeed);
    struct executor_spec spec = {.kernel = gpu_kernel(), .device = "cuda", .guard = guard, .environment = environment};
    spec.seconds = strcmp(misdeed, "hang") == 0 ? 3 : 60;
    struct executor *executor = executor_open(&spec, &execution);
    tap_check(executor != NULL, "%s: the worker does not start: %s", misdeed, execution.sentence);
    return executor;
}

static void workers(void)
{
    static const struct {
        const char *misdeed;
        enum execution_end end;
        const char *says; /* of the run, or of the guards */
    } cases[] = {
        {"answer", EXECUTION_DONE, ""},
        {"nothing", EXECUTION_DONE, ""},
        {"before", EXECUTION_DONE, "it wrote byte 3 before the start of O"},
        {"behind", EXECUTION_DONE, "it wrote byte 5 behind the end of O"},
        {"input", EXECUTION_INVALID, "it changed its inputs"},
        {"illegal", EXECUTION_CRASHED, "an illegal memory access"},
        {"hang", EXECUTION_HUNG, "did not end within"},
    };
    if (!getenv("ATTEST_TEST_MADE_UP") || !gpu_kernel()) {
        tap_note("no driver that is made up, or no kernels for GPUs: tests/device.t has one where nvcc is");
        return;
    }
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct inputs inputs = {0};
        struct outputs outputs = {0};
        struct execution execution;
        char why[512] = "";
        int slot = 0;
        if (!tap_case("%s", cases[i].misdeed) || !make("fwd:f16:b2:h2:sq5:skv30:d64:lse", &inputs, &outputs))
            continue;
        struct executor *executor = open_with(cases[i].misdeed, GUARD_END);
        if (!executor)
            continue;
        tap_check((executor_facts(executor)->dtypes >> ATTEST_F16 & 1) == 1, "it does not take f16");
        tap_check(executor_load(executor, slot, &inputs, &execution), "%s", execution.sentence);
        executor_poison(executor, slot, 0xff);
        execution = executor_run(executor, &slot, 1, 0x5a);
        tap_check(execution.end == cases[i].end, "end %d, not %d: %s", execution.end, cases[i].end, execution.sentence);
        if (execution.end == EXECUTION_DONE) {
            executor_copy(executor, slot, &outputs);
            bool right = executor_intact(executor, slot, why, sizeof why);
            tap_check(right == !*cases[i].says && strstr(why, cases[i].says), "%s", why);
            float one = element_load(outputs.o.at, ATTEST_F16, 0);
            tap_check(strcmp(cases[i].misdeed, "nothing") == 0 ? one != one : one == 1, "O begins with %g", (double)one);
        } else {
            tap_check(strstr(execution.sentence, cases[i].says) != NULL, "%s", execution.sentence);
            bool gone = execution.end != EXECUTION_INVALID;
            tap_check((executor_run(executor, &slot, 1, 0).end == EXECUTION_DONE) == false || !gone, "it goes on");
        }
        executor_close(executor, NULL);
        outputs_free(&outputs);
        inputs_free(&inputs);
    }
}

/* Several slots in a graph, of which only the first is moved; other tensors of the same problem; problems that are refused. */
static void timing(void)
{
    struct inputs inputs = {0}, large = {0};
    struct outputs outputs = {0}, unused = {0};
    struct execution execution;
    int slots[3] = {2, 0, 1};
    double seconds = 0;
    if (!getenv("ATTEST_TEST_MADE_UP") || !gpu_kernel() || !make("fwd:f16:h2:s20:d64", &inputs, &outputs) ||
        !make("fwd:bf16:h1:s8:d64", &large, &unused))
        return;
    struct executor *executor = open_with("answer", GUARD_BANDS);
    for (int i = 0; executor && i < 3; i++) {
        tap_check(executor_load(executor, i, &inputs, &execution), "%s", execution.sentence);
        executor_poison(executor, i, 0xff);
    }
    if (executor) {
        execution = executor_time(executor, slots, 3, 4, 1, &seconds);
        /* The GPU that is made up says 6 ms for everything. */
        tap_check(execution.end == EXECUTION_DONE && seconds > 4e-4 && seconds < 6e-4, "%g s: %s", seconds, execution.sentence);
        const uint16_t *moved = executor_outputs(executor, 2).o, *left = executor_outputs(executor, 0).o;
        tap_check(moved[0] == 0x3c00 && left[0] == 0xffff, "other outputs came back than were asked for");
        tap_check(!executor_load(executor, 3, &large, &execution) && execution.end == EXECUTION_REFUSED, "it takes bf16: %s",
                  execution.sentence);
        tap_check(executor_run(executor, slots, 3, 0xff).end == EXECUTION_DONE, "it does not go on after a refusal");
    }
    executor_close(executor, NULL);
    outputs_free(&outputs);
    outputs_free(&unused);
    inputs_free(&inputs);
    inputs_free(&large);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"arrays", arrays}, {"indexes", indexes}, {"workers", workers}, {"timing", timing}};
    if (argc == 2 && strcmp(argv[1], "worker") == 0)
        return worker_main();
    return tap_main(argc, argv, tests, COUNT_OF(tests));
}
