/*
 * Tests of calls with inputs that a gate changes: what reaches the worker (the pointers of `tensors`) is what was changed, and nothing
 * else. Were it not, a gate would compare a call with itself and find nothing.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/tensor_list.h"
#include "tap.h"
#include "theory/out_of_range.h"
#include "theory/repeated_call.h"

struct watched {
    const struct inputs *inputs; /* as they were */
    int calls, changed[TENSORS_MOST];
};

static const char *const problems[] = {
    "fwd:f32:b3:hq4:hkv2:s20:d16:lens:alibi:sink:bias:lse",
    "fwd:f16:b3:hq4:hkv2:sq12:skv40:d16:page=8,20:lens",
    "fwd:f32:b4:h2:s30:d8:varlenq=60:varlenkv=80:causal:lse",
    "fwd:f32:b9:h2:sq5:skv12:d8:qlens:starts:offsets:mask",
};

static void note_changes(struct watched *watched, const struct inputs *now)
{
    struct tensor_list list;
    tensor_list_get(&now->problem, &list);
    watched->calls++;
    for (int i = 0; i < list.count; i++) {
        const unsigned char *a = tensor_pointer(&watched->inputs->tensors, &list.of[i]),
                            *b = tensor_pointer(&now->tensors, &list.of[i]);
        const int64_t first = list.of[i].first_byte;
        watched->changed[i] += a && b && a != b && memcmp(a + first, b + first, (size_t)list.of[i].bytes) != 0;
    }
}

static struct execution run(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    (void)outputs;
    note_changes(data, inputs);
    return (struct execution){.end = EXECUTION_DONE};
}

static struct execution run_after(void *data, const struct inputs *before, const struct inputs *inputs, struct outputs *outputs)
{
    struct watched *watched = data;
    (void)outputs;
    tap_check(inputs == watched->inputs, "the second call has other inputs");
    note_changes(data, before);
    return (struct execution){.end = EXECUTION_DONE};
}

static bool is_changed(const struct watched *watched, const char *name)
{
    struct tensor_list list;
    tensor_list_get(&watched->inputs->problem, &list);
    return watched->changed[tensor_find(&list, name)] > 0;
}

static bool has(const struct inputs *inputs, const char *name)
{
    struct tensor_list list;
    tensor_list_get(&inputs->problem, &list);
    return tensor_pointer(&inputs->tensors, &list.of[tensor_find(&list, name)]) != NULL;
}

/* Inputs of a problem with these contents, and room for its outputs; false, and a failure, if they cannot be had. */
static bool inputs_for(const char *text, const char *words, struct inputs *inputs, struct outputs *outputs)
{
    struct contents contents = {0};
    attest_problem problem;
    enum exit_code code;
    char why[512] = "";
    bool made = contents_parse(words, &contents, why, sizeof why) &&
                attest_problem_parse(text, &problem, why, sizeof why) == ATTEST_OK &&
                inputs_make_with(&problem, tap.seed, &contents, inputs, &code, why, sizeof why);
    return tap_check(made, "%s: %s", text, why) && tap_check(outputs_make(outputs, inputs), "out of memory");
}

/* Over some seeds, every input of the problem is another one at some time. */
static void test_before(void)
{
    static const char *const names[] = {"q", "k", "v", "bias", "alibi_slopes", "sinks", "kv_lengths"};
    for (size_t n = 0; n < sizeof problems / sizeof *problems; n++) {
        struct inputs inputs;
        struct outputs outputs;
        char why[512] = "";
        if (!tap_case("%s", problems[n]) || !inputs_for(problems[n], "", &inputs, &outputs))
            continue;
        struct watched watched = {.inputs = &inputs};
        for (uint64_t seed = 0; seed < 60; seed++)
            same_after_another((struct subject){run, run_after, &watched}, &inputs, &outputs, seed, why, sizeof why);
        tap_check(watched.calls == 60, "%d calls", watched.calls);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            tap_check(is_changed(&watched, names[i]) == has(&inputs, names[i]), "%s: %s", names[i],
                      has(&inputs, names[i]) ? "never another one" : "changed, and not there");
        outputs_free(&outputs);
        inputs_free(&inputs);
    }
}

/* Lengths, ends of packed sequences and pages are out of range, and nothing else is. */
static void test_out_of_range(void)
{
    static const char *const names[] = {"kv_lengths", "page_table", "cu_seqlens_q", "cu_seqlens_kv", "q_lengths", "kv_starts"};
    for (size_t n = 0; n < sizeof problems / sizeof *problems; n++) {
        struct inputs inputs;
        struct outputs outputs;
        struct execution execution;
        char why[512] = "";
        if (!tap_case("%s", problems[n]) || !inputs_for(problems[n], "lengths=full", &inputs, &outputs))
            continue;
        struct watched watched = {.inputs = &inputs};
        right_out_of_range((struct subject){run, run_after, &watched}, &inputs, &outputs, tap.seed, &execution, why, sizeof why);
        tap_check(watched.calls == 1, "%d calls", watched.calls);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            tap_check(is_changed(&watched, names[i]) == has(&inputs, names[i]), "%s is %s", names[i],
                      has(&inputs, names[i]) ? "in range" : "changed, and not there");
        tap_check(!is_changed(&watched, "q") && !is_changed(&watched, "k"), "Q or K was changed, too");
        outputs_free(&outputs);
        inputs_free(&inputs);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"before", test_before}, {"out of range", test_out_of_range}};
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
