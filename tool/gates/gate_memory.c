/*
 * gate_memory.c - the memory gate: touches only what it owns.
 *
 * A few problems that between them have every feature, and some of them again with gaps between all rows, are run
 * - between guard bands, with tensors that end at, and with tensors that begin behind a page that cannot be touched; scratch
 *   memory likewise. Inputs cannot be written at all. After each run bands, slack and the gaps between rows must be as they were,
 *   and after a second run into outputs with other contents no element may have kept them;
 * - on a GPU between guard bands alone, and then under compute-sanitizer: see cuda_tools.c;
 * - from a source, built with AddressSanitizer and UndefinedBehaviorSanitizer, with the bands poisoned for it;
 * - the image itself, prebuilt or as it ships, under valgrind, on the smaller ones, where valgrind knows its instructions. Not in the
 *   short proofs of selftest.
 * After every run in the sandbox the registers of all threads and the state of the process must be as they were (registers.c, state.c).
 * Then one of them is run `leak_runs` times, and memory, open files and threads must not have grown.
 * All but the runs under tools are in the sandbox, and what that forbids ends them (sandbox.c).
 *
 * details: guards, problems, sanitizer ("address,undefined" or null), valgrind (number of problems, or why it was not run, or null), sandbox (what was
 * enforced), leak {runs, bytes, files, threads}. artefacts: printed (by the kernel), sanitizer_log or valgrind_log.
 */
#include "gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build/build.h"
#include "cuda_tools.h"
#include "problem_pick.h"
#include "data/same_bits.h"

enum { MOST_PROBLEMS = 12, MOST_PADDED = 4, WARM_UP_CALLS = 64, STATIONS = 3 };
#define MOST_FLOPS     1e8
#define VALGRIND_FLOPS 3e6
#define LEAK_BYTES     (32 << 10) /* of growth that may be an accident: then it is looked at twice */
#define CHECKED_SLOWER 10.0       /* sanitizers and valgrind get so many times the time */

struct memory {
    struct proof *proof;
    struct gate_result *result;
    const struct problem_entry *problems[MOST_PROBLEMS];
    int count;
};

/* Where kernels run: each guard is a worker of its own. */
static const struct {
    enum guard guard;
    const char *name;
    const char *words;
} stations[STATIONS] = {
    {GUARD_BANDS, "bands", "between guard bands"},
    {GUARD_END, "end", "with a guard page behind each tensor"},
    {GUARD_START, "start", "with a guard page before each tensor"},
};

/* A GPU has no pages that cannot be touched. */
static int station_count(const struct memory *memory)
{
    return memory->proof->device ? 1 : STATIONS;
}

static bool stop(struct memory *memory, const struct problem_entry *entry, const char *where, const struct execution *execution)
{
    gate_say(memory->result, execution->end == EXECUTION_LACKING ? VERDICT_INCONCLUSIVE : VERDICT_FAIL, "%.400s, %s, on %s",
             execution->sentence, where, entry->text);
    return false;
}

/* ---- guards --------------------------------------------------------------------------------------------------------- */

/* One run into outputs full of `byte`, copied to `outputs`. */
static bool run_into(struct memory *memory, struct executor *executor, const struct problem_entry *entry, const char *where,
                     int byte, struct outputs *outputs)
{
    int slot = 0;
    char why[256];
    executor_poison(executor, slot, byte);
    struct execution execution = executor_run(executor, &slot, 1, byte ^ 0x5a);
    if (execution.end != EXECUTION_DONE)
        return stop(memory, entry, where, &execution);
    if (!executor_intact(executor, slot, why, sizeof why)) {
        gate_say(memory->result, VERDICT_FAIL, "%s, %s, on %s", why, where, entry->text);
        return false;
    }
    executor_copy(executor, slot, outputs);
    return true;
}

static bool run_guarded(struct memory *memory, struct executor *executor, const char *where, const struct problem_entry *entry,
                        const struct inputs *inputs, struct outputs outputs[2])
{
    struct execution execution;
    char what[256];
    if (!executor_load(executor, 0, inputs, &execution))
        return stop(memory, entry, where, &execution);
    if (!run_into(memory, executor, entry, where, 0xff, &outputs[0]) ||
        !run_into(memory, executor, entry, where, 0x00, &outputs[1]))
        return false;
    if (all_written((struct computed){inputs, &outputs[0]}, 0xff, (struct computed){inputs, &outputs[1]}, 0x00, what, sizeof what))
        return true;
    gate_say(memory->result, VERDICT_FAIL, "it does not write %s, on %s", what, entry->text);
    return false;
}

static bool run_problem(struct memory *memory, struct executor *const executors[STATIONS], const struct problem_entry *entry)
{
    struct inputs inputs;
    struct outputs outputs[2] = {0};
    enum exit_code code;
    char why[512] = "out of memory";
    bool good = inputs_make(&entry->problem, memory->proof->seed, NULL, &inputs, &code, why, sizeof why);
    if (!good) {
        gate_say(memory->result, VERDICT_INCONCLUSIVE, "%s: %s", entry->text, why);
        return false;
    }
    good = outputs_make(&outputs[0], &inputs) && outputs_make(&outputs[1], &inputs);
    if (!good)
        gate_say(memory->result, VERDICT_INCONCLUSIVE, "%s: out of memory", entry->text);
    int64_t files = executor_holdings(executors[0]).files;
    for (int i = 0; i < station_count(memory) && good; i++)
        good = run_guarded(memory, executors[i], stations[i].words, entry, &inputs, outputs);
    files = executor_holdings(executors[0]).files - files;
    if (good && files > 0 && !memory->proof->device) { /* a driver opens what it likes */
        gate_say(memory->result, VERDICT_FAIL, "it leaks: after two calls it holds %lld more open files, on %s", (long long)files,
                 entry->text);
        good = false;
    }
    outputs_free(&outputs[0]);
    outputs_free(&outputs[1]);
    inputs_free(&inputs);
    return good;
}

/* ---- leaks ---------------------------------------------------------------------------------------------------------- */

/* `calls` calls of the problem in slot 0, many in one request. */
static bool call_often(struct memory *memory, struct executor *executor, const struct problem_entry *entry, int calls)
{
    int slots[EXECUTOR_SLOTS] = {0};
    for (int left = calls; left > 0; left -= EXECUTOR_SLOTS) {
        struct execution execution = executor_run(executor, slots, left < EXECUTOR_SLOTS ? left : EXECUTOR_SLOTS, EXECUTOR_LEFT);
        if (execution.end != EXECUTION_DONE)
            return stop(memory, entry, "called many times", &execution);
    }
    return true;
}

/* The bytes that so many calls added to what the worker holds. */
static bool measure_growth(struct memory *memory, struct executor *executor, const struct problem_entry *entry, int calls,
                           int64_t *bytes)
{
    int64_t before = executor_holdings(executor).bytes;
    if (!call_often(memory, executor, entry, calls))
        return false;
    *bytes = executor_holdings(executor).bytes - before;
    return true;
}

static bool run_leaks(struct memory *memory, struct executor *executor)
{
    const struct problem_entry *entry = pick_cheapest(memory->problems, memory->count);
    int calls = (int)memory->proof->policy.leak_runs;
    struct holdings grown = {0}, before;
    struct inputs inputs;
    struct execution execution;
    enum exit_code code;
    char why[512];
    if (!inputs_make(&entry->problem, memory->proof->seed, NULL, &inputs, &code, why, sizeof why))
        return true;
    bool good = executor_load(executor, 0, &inputs, &execution) || stop(memory, entry, "called many times", &execution);
    inputs_free(&inputs);
    before = executor_holdings(executor);
    good =
        good && call_often(memory, executor, entry, WARM_UP_CALLS) && measure_growth(memory, executor, entry, calls, &grown.bytes);
    if (good && grown.bytes > 0 && grown.bytes < LEAK_BYTES) { /* once more: a heap may settle late, a leak does not */
        int64_t again = 0;
        good = measure_growth(memory, executor, entry, calls, &again);
        grown.bytes = again < grown.bytes ? again : grown.bytes;
    }
    grown.files = executor_holdings(executor).files - before.files;
    grown.threads = executor_holdings(executor).threads - before.threads;
    json_put(memory->result->details, "leak",
             json_pack("{s:i, s:I, s:I, s:I}", "runs", calls, "bytes", (json_int_t)grown.bytes, "files", (json_int_t)grown.files,
                       "threads", (json_int_t)grown.threads));
    if (!good || (grown.bytes <= 0 && grown.files <= 0 && grown.threads <= 0))
        return good;
    gate_say(memory->result, VERDICT_FAIL,
             "it leaks: after %d calls it holds %lld more bytes, %lld more files and %lld more threads, on %s", calls,
             (long long)grown.bytes, (long long)grown.files, (long long)grown.threads, entry->text);
    return false;
}

/* ---- in the sandbox ------------------------------------------------------------------------------------------------- */

static bool run_stations(struct memory *memory)
{
    struct executor *executors[STATIONS] = {0};
    struct gate_result *result = memory->result;
    json_t *names = json_array(), *guards = json_array();
    bool good = true;
    for (int i = 0; i < station_count(memory) && good; i++) {
        if ((good = (executors[i] = gate_open(memory->proof, stations[i].guard, result)) != NULL))
            executor_watch(executors[i]);
        json_add(guards, json_string(stations[i].name));
    }
    if (good) {
        memory->count = pick_problems(memory->proof, MOST_FLOPS, memory->problems, MOST_PROBLEMS);
        json_put(result->details, "sandbox", executor_sandbox(executors[0]));
    }
    for (int i = 0; i < memory->count && good; i++) {
        json_add(names, json_string(memory->problems[i]->text));
        good = run_problem(memory, executors, memory->problems[i]);
    }
    for (int i = 0; i < memory->count && i < MOST_PADDED && good; i++) {
        char text[ATTEST_PROBLEM_TEXT];
        struct problem_entry padded = {.problem = pick_padded(&memory->problems[i]->problem), .text = text};
        if (attest_problem_print(&padded.problem, text, sizeof text) != ATTEST_OK || !gate_takes(memory->proof, &padded.problem))
            continue;
        json_add(names, json_string(text));
        good = run_problem(memory, executors, &padded);
    }
    good = good && (memory->count == 0 || memory->proof->device || run_leaks(memory, executors[0]));
    json_put(result->details, "guards", guards);
    json_put(result->details, "problems", names);
    for (int i = 0; i < STATIONS; i++) {
        if (i == 0 && executors[i] && *executor_printed(executors[i]))
            gate_write(memory->proof, result, "printed", "memory_printed.log", executor_printed(executors[i]));
        executor_close(executors[i], NULL);
    }
    return good;
}

/* ---- under a tool --------------------------------------------------------------------------------------------------- */

struct tool_run {
    const char *name;     /* "under AddressSanitizer ..." */
    const char *artefact; /* "sanitizer_log" */
    const char *file;
    struct executor_spec spec;
    const char *lacking; /* what to say if the machine, as the tool shows it, lacks what the kernel needs */
    double flops;
    int most;
};

/* One problem under the tool, which has its own opinion on what is an error. */
static bool run_under(struct memory *memory, struct executor *executor, const struct tool_run *tool,
                      const struct problem_entry *entry)
{
    struct inputs inputs;
    struct execution execution;
    enum exit_code code;
    char why[512];
    int slot = 0;
    if (!inputs_make(&entry->problem, memory->proof->seed, NULL, &inputs, &code, why, sizeof why))
        return true;
    bool good = executor_load(executor, slot, &inputs, &execution);
    inputs_free(&inputs);
    if (good)
        execution = executor_run(executor, &slot, 1, 0xff);
    if (execution.end == EXECUTION_LACKING)
        snprintf(execution.sentence, sizeof execution.sentence, "%s", tool->lacking);
    if (execution.end != EXECUTION_DONE)
        return stop(memory, entry, tool->name, &execution);
    if (executor_intact(executor, slot, why, sizeof why))
        return true;
    gate_say(memory->result, VERDICT_FAIL, "%s, %s, on %s", why, tool->name, entry->text);
    return false;
}

static void cut_out(char *text, const char *part)
{
    const size_t length = strlen(part);
    for (char *at = text; length > 1 && (at = strstr(at, part));)
        memmove(at, at + length, strlen(at + length) + 1);
}

/* Keeps what a tool printed. The log is kept as evidence, and in which folders this program and its work lie is no part of it. */
static void keep_log(struct memory *memory, const struct tool_run *tool, const char *printed)
{
    char *text = strdup(printed), program[4096] = "", work[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    char *name = length > 0 ? strrchr(program, '/') : NULL;
    if (name)
        name[1] = '\0';
    snprintf(work, sizeof work, "%s/", memory->proof->folder);
    if (text) {
        cut_out(text, program);
        cut_out(text, work);
        gate_write(memory->proof, memory->result, tool->artefact, tool->file, text);
    }
    free(text);
}

/* Runs the problems under the tool. *ran says how many. */
static bool run_tool(struct memory *memory, struct tool_run *tool, int *ran)
{
    const struct problem_entry *problems[MOST_PROBLEMS];
    struct execution execution;
    tool->spec.threads = memory->proof->threads;
    tool->spec.seconds = CHECKED_SLOWER * memory->proof->policy.call_seconds;
    tool->spec.relaxed = true;
    struct executor *executor = executor_open(&tool->spec, &execution);
    if (!executor) {
        gate_say(memory->result, execution.end == EXECUTION_LACKING ? VERDICT_INCONCLUSIVE : VERDICT_FAIL,
                 "%s it does not load: %s", tool->name, execution.sentence);
        return false;
    }
    int count = pick_problems(memory->proof, tool->flops, problems, tool->most);
    bool good = true;
    for (*ran = 0; *ran < count && good; ++*ran)
        good = run_under(memory, executor, tool, problems[*ran]);
    if (good) {
        executor_end(executor, &execution);
        if (execution.end != EXECUTION_DONE && !strstr(execution.sentence, "LeakSanitizer has encountered a fatal error")) {
            gate_say(memory->result, VERDICT_FAIL, "%s, at the end: %s", tool->name, execution.sentence);
            good = false;
        }
    }
    if (*executor_printed(executor))
        keep_log(memory, tool, executor_printed(executor));
    executor_close(executor, NULL);
    return good;
}

/* The name of the sanitizer's library that an image was linked with, from its strings; it has to be loaded before all else.
 * To be freed; NULL if there is none. */
static char *find_runtime(const char *image)
{
    static const char *const names[] = {"libasan.so", "libclang_rt.asan"};
    char *found = NULL, *bytes = NULL;
    long size = 0;
    FILE *file = fopen(image, "rb");
    if (file && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0 && (bytes = calloc((size_t)size + 1, 1))) {
        rewind(file);
        if (fread(bytes, 1, (size_t)size, file) == (size_t)size)
            for (int i = 0; i < COUNT_OF(names) && !found; i++) {
                const char *at = memmem(bytes, (size_t)size, names[i], strlen(names[i]));
                found = at ? strdup(at) : NULL;
            }
    }
    free(bytes);
    if (file)
        fclose(file);
    return found;
}

/* The candidate's source built with sanitizers; to be freed. NULL if that cannot be done here, and then `why` has the reason. */
static char *build_checked(const struct proof *proof, char *why, size_t why_size)
{
    const struct candidate *candidate = &proof->candidate;
    char log[BUILD_LOG_SIZE] = "", *flags = candidate_flags(candidate->source);
    char *image = gate_path(proof, "%s_checked.so", candidate->name);
    snprintf(why, why_size, "%s cannot be read, or memory ran out", candidate->source);
    if (!flags || !image || !build_image(candidate->source, flags, image, BUILD_CHECKED, log, sizeof log)) {
        if (*log)
            build_first_error(log, why, why_size);
        free(image);
        image = NULL;
    }
    free(flags);
    return image;
}

static bool run_sanitizers(struct memory *memory)
{
    char preload[256], why[480];
    char *image = build_checked(memory->proof, why, sizeof why), *runtime = image ? find_runtime(image) : NULL;
    const char *environment[] = {preload, "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=0:exitcode=99",
                                 "UBSAN_OPTIONS=print_stacktrace=1", "OMP_WAIT_POLICY=passive", NULL};
    struct tool_run tool = {.name = "under AddressSanitizer and UndefinedBehaviorSanitizer",
                            .artefact = "sanitizer_log",
                            .file = "sanitizer.log",
                            .spec = {.image = image, .guard = GUARD_BANDS, .environment = environment},
                            .lacking = "there is not enough memory",
                            .flops = MOST_FLOPS / 2,
                            .most = MOST_PROBLEMS};
    bool good = false;
    int ran;
    if (runtime) {
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime);
        good = run_tool(memory, &tool, &ran);
    } else {
        gate_say(memory->result, VERDICT_INCONCLUSIVE,
                 "it cannot be built with -fsanitize=address,undefined: %s; most often the compiler's sanitizer libraries are "
                 "missing (for gcc, install libasan and libubsan of its version)",
                 image ? "its image names no sanitizer library" : why);
    }
    free(runtime);
    free(image);
    if (good)
        json_put(memory->result->details, "sanitizer", json_string("address,undefined"));
    return good;
}

/* Valgrind ends with AVX2. */
static bool valgrind_lacks(const char *needs)
{
    return *needs && strcmp(needs, "avx2") != 0;
}

static bool run_valgrind(struct memory *memory)
{
    static const char *const wrapper[] = {"valgrind",
                                          "--tool=memcheck",
                                          "--error-exitcode=99",
                                          "--leak-check=full",
                                          "--errors-for-leak-kinds=definite",
                                          "--vgdb=no",
                                          "--num-callers=8",
                                          NULL};
    const double asked = memory->proof->policy.valgrind_problems;
    const int most = asked < 1 ? 1 : asked < MOST_PROBLEMS ? (int)asked : MOST_PROBLEMS; /* without its source nothing else looks */
    char version[128];
    char *command[] = {(char *)(uintptr_t) "valgrind", (char *)(uintptr_t) "--version", NULL};
    struct tool_run tool = {.name = "under valgrind",
                            .artefact = "valgrind_log",
                            .file = "valgrind.log",
                            .spec = {.image = memory->proof->candidate.image, .guard = GUARD_END, .wrapper = wrapper},
                            .lacking =
                                "valgrind does not know the instructions that it needs: prove the source, which is checked by "
                                "sanitizers instead",
                            .flops = VALGRIND_FLOPS,
                            .most = most};
    int ran = 0;
    if (build_command(command, 60, version, sizeof version) != 0) {
        gate_say(memory->result, VERDICT_INCONCLUSIVE,
                 "the image has to be run under valgrind, which is not here: install the package valgrind");
        return false;
    }
    bool good = run_tool(memory, &tool, &ran);
    if (good)
        json_put(memory->result->details, "valgrind", json_integer(ran));
    return good;
}

/* ---- the gate ------------------------------------------------------------------------------------------------------- */

void gate_memory(struct proof *proof, struct gate_result *result)
{
    struct memory memory = {.proof = proof, .result = result};
    json_put(result->details, "sanitizer", json_null());
    json_put(result->details, "valgrind", json_null());
    if (!run_stations(&memory))
        return;
    if (proof->candidate.cuda) {
        cuda_gate_memory(proof, result);
        return;
    }
    if (memory.count == 0) {
        gate_say(result, VERDICT_NOT_APPLICABLE, "it takes none of the problems of the suite that are small enough");
        return;
    }
    if (proof->candidate.source && !run_sanitizers(&memory))
        return;
    /* The image that ships is not the one that sanitizers see. */
    if (proof->candidate.source && proof->policy.valgrind_problems < 1)
        json_put(result->details, "valgrind", json_string("not run: the policy asks for none"));
    else if (proof->candidate.source && valgrind_lacks(proof->facts.needs))
        json_put(result->details, "valgrind", json_string("not run: valgrind does not know AVX-512 and AMX"));
    else if (!run_valgrind(&memory))
        return;
    gate_say(result, VERDICT_PASS,
             "nothing outside its outputs was touched in %d problems (guard bands, guard pages, %s), and nothing leaks",
             memory.count, proof->candidate.source ? "sanitizers" : "valgrind");
}
