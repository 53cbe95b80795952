/*
 * test_gate_runs.c - the memory gate and the determinism gate on kernels that misbehave (kernels/misbehave.c, as in test_executor.c); what
 * is timed, and what is left to others.
 */
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gates/gate.h"
#include "gates/measure.h"
#include "gates/problem_pick.h"
#include "run/worker.h"

static const char *const suite[] = {
    "fwd:f32:b2:hq4:hkv2:sq17:skv40:d16:dv24:causal:br:wl=30:softcap=15:alibi:bias:lse",
    "fwd:f16:b4:hq4:hkv2:s30:d16:varlenq=70:varlenkv=90:causal:lse",
    "fwd:bf16:b3:hq4:hkv2:sq3:skv50:d16:page=16,20:lens:causal:br:lse",
    "fwd:f32:b2:h2:sq20:skv25:d24:qs=-4000,-2000,-50:ks=3400,1700,-34:vs=3203,1601,31:os=-9000,-4500,77:lse",
    "fwd:f32:b1:hq4:hkv1:sq1:skv1100:d16:lse",
    "fwd:f32:b1:h1:s8:d8:sink", /* which it refuses */
};

static char *image;

/* A gate on a kernel that does this, with few runs. Returns its details. */
static json_t *run_gate(void (*gate)(struct proof *, struct gate_result *), const char *misdeed, struct gate_result *result)
{
    char folder[] = "/tmp/attest-test-XXXXXX", command[128], named[128];
    struct problem_entry entries[COUNT_OF(suite)] = {0};
    struct session session = {0};
    struct proof proof = {.session = &session, .policy = default_policy, .seed = tap.seed, .threads = 2};
    char why[256];
    *result = (struct gate_result){.verdict = VERDICT_COUNT, .details = json_object(), .artefacts = json_object()};
    for (int i = 0; i < COUNT_OF(suite); i++) {
        entries[i].text = (char *)(uintptr_t)suite[i];
        tap_check(attest_problem_parse(suite[i], &entries[i].problem, why, sizeof why) == ATTEST_OK, "%s", why);
    }
    proof.suite.entries = entries;
    proof.suite.count = COUNT_OF(suite);
    proof.policy.leak_runs = 50;
    proof.policy.valgrind_problems = 0;
    proof.policy.determinism_runs = 12;
    proof.policy.call_seconds = 60;
    tap_check((proof.folder = mkdtemp(folder)) != NULL, "no folder");
    snprintf(named, sizeof named, "%s/%s.so", folder, misdeed); /* it does what it is called after */
    proof.candidate = (struct candidate){.kind = CANDIDATE_SO, .image = named};
    snprintf(command, sizeof command, "cp \"$MISBEHAVE\" %.30s/%.40s.so", folder, misdeed);
    tap_check(system(command) == 0, "%s", command);
    gate(&proof, result);
    snprintf(command, sizeof command, "rm -r %s", folder);
    tap_check(system(command) == 0, "%s", command);
    json_decref(result->artefacts);
    return result->details;
}

struct expectation {
    const char *misdeed;
    enum verdict verdict;
    const char *words; /* of the sentence */
};

static void check_gate(void (*gate)(struct proof *, struct gate_result *), const struct expectation *expectation)
{
    struct gate_result result;
    if (!tap_case("%s", expectation->misdeed))
        return;
    json_decref(run_gate(gate, expectation->misdeed, &result));
    tap_check(result.verdict == expectation->verdict && strstr(result.sentence, expectation->words), "%s: %s: %s",
              expectation->misdeed, verdict_name(result.verdict), result.sentence);
}

static void test_determinism(void)
{
    static const struct expectation expectations[] = {
        {"NOTHING", VERDICT_PASS, "the same bits in 12 runs"},     {"UNSTABLE", VERDICT_FAIL, "other bits in run 2"},
        {"DEPENDS_ON_SCRATCH", VERDICT_FAIL, "other bits in run"}, {"DEPENDS_ON_ADDRESS", VERDICT_FAIL, "other bits in run"},
        {"COUNT_IN_STACK", VERDICT_PASS, "the same bits"},         {"COUNT_IN_REGISTERS", VERDICT_PASS, "the same bits"},
        {"DEPENDS_ON_BATCH", VERDICT_FAIL, "is computed alone"},   {"CRASH_NULL", VERDICT_FAIL, "null pointer"},
        {"CONSTRUCTOR_EXIT", VERDICT_FAIL, "does not load"},
    };
    for (int i = 0; i < COUNT_OF(expectations); i++)
        check_gate(gate_determinism, &expectations[i]);
}

static void test_memory(void)
{
    static const struct expectation expectations[] = {
        {"READ_BEHIND_K", VERDICT_FAIL, "with a guard page behind each tensor"},
        {"READ_BEFORE_K", VERDICT_FAIL, "with a guard page before each tensor"},
        {"WRITE_BEHIND_SCRATCH", VERDICT_FAIL, "its scratch memory"},
        {"WRITE_GAP", VERDICT_FAIL, "in a gap that belongs to no row"},
        {"WRITE_INPUT", VERDICT_FAIL, "it wrote to an input"},
        {"LEAK_MEMORY", VERDICT_FAIL, "it leaks: after 50 calls"},
        {"LEAK_FILES", VERDICT_FAIL, "tried to duplicate a file descriptor"},
        {"LEAVE_FLUSH", VERDICT_FAIL, "it leaves the processor in another state"},
        {"LEAVE_ENVIRONMENT", VERDICT_FAIL, "it changed its environment"},
        {"LEAVE_MAPPING", VERDICT_FAIL, "it left memory mapped"},
        {"SOCKET", VERDICT_FAIL, "tried to open a socket"},
    };
    for (int i = 0; i < COUNT_OF(expectations); i++)
        check_gate(gate_memory, &expectations[i]);
    /* A kernel that behaves is proven if valgrind is here, and otherwise nothing is said. */
    struct gate_result result;
    bool valgrind = system("valgrind --version > /dev/null 2>&1") == 0;
    json_t *details = run_gate(gate_memory, "PRINT_PASS", &result);
    tap_check(result.verdict == (valgrind ? VERDICT_PASS : VERDICT_INCONCLUSIVE), "%s: %s", verdict_name(result.verdict),
              result.sentence);
    tap_check(json_array_size(json_object_get(details, "problems")) >= 5 && json_object_get(details, "sandbox") &&
                  json_array_size(json_object_get(details, "guards")) == 3,
              "details");
    json_decref(details);
}

static void test_padded(void)
{
    for (int i = 0; i < COUNT_OF(suite); i++) {
        attest_problem problem, padded;
        char why[256] = "";
        tap_check(attest_problem_parse(suite[i], &problem, why, sizeof why) == ATTEST_OK, "%s", why);
        padded = pick_padded(&problem);
        tap_check(attest_problem_check(&padded, why, sizeof why) == ATTEST_OK, "%s: %s", suite[i], why);
    }
}

/* A problem is timed if the library, as it is, gives it to one of the two. */
static void test_left_to_others(void)
{
    attest_context *context = NULL;
    attest_plan *plan = NULL;
    struct problem_entry entry = {.text = (char *)"fwd:f32:b1:h2:s60:d32"};
    const struct problem_list problems = {&entry, 1};
    tap_check(attest_context_create_on("cpu", &context) == ATTEST_OK &&
                  attest_problem_parse(entry.text, &entry.problem, NULL, 0) == ATTEST_OK &&
                  attest_plan_create(context, &entry.problem, NULL, &plan) == ATTEST_OK,
              "%s", entry.text);
    const char *names[] = {"somebody", attest_plan_kernel(plan)};
    for (int chosen = 0; chosen < 2; chosen++) {
        struct measurement measurement;
        struct measure_spec spec = {.a = {.name = "a candidate", .kernel = "ref_fwd"},
                                    .b = {.name = names[chosen], .kernel = names[1]},
                                    .problems = &problems,
                                    .policy = &default_policy,
                                    .threads = 1,
                                    .seed = tap.seed,
                                    .clock = "a=10",
                                    .chooser = context};
        measure(&spec, &measurement);
        tap_check(measurement.end == (chosen ? MEASURE_DONE : MEASURE_INAPPLICABLE), "against %s: %d, %s", names[chosen],
                  (int)measurement.end, measurement.sentence);
        tap_check(chosen || (strstr(measurement.sentence, "the library gives fwd:f32:b1:h2:s60:d32 to ") &&
                             strstr(measurement.sentence, names[1])),
                  "%s", measurement.sentence);
        measurement_free(&measurement);
    }
    attest_plan_destroy(plan);
    attest_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"determinism", test_determinism},
                                            {"memory", test_memory},
                                            {"padded", test_padded},
                                            {"left_to_others", test_left_to_others}};
    static char path[4096];
    if (argc == 2 && strcmp(argv[1], "worker") == 0)
        return worker_main();
    const char *folder = getenv("ATTEST_TEST_KERNELS");
    snprintf(path, sizeof path, "%s/misbehave.so", folder ? folder : ".");
    image = path;
    setenv("MISBEHAVE", path, 1);
    if (access(image, R_OK) != 0) {
        fprintf(stderr, "ATTEST_TEST_KERNELS is not set: run tests/executor.t\n");
        return 2;
    }
    return tap_main(argc, argv, tests, COUNT_OF(tests));
}
