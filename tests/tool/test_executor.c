/*
 * test_executor.c - kernels that misbehave, each in its own way, and what the executor says of them. The folder ATTEST_TEST_KERNELS has
 * misbehave.so (kernels/misbehave.c), which does what its file is called after, and no_entry.so; tests/executor.t makes it.
 */
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/executor.h"
#include "data/same_bits.h"
#include "run/worker.h"
#include "run/runner.h"

static char folder[4096], image[4200], no_entry[4200];

static const char dense[] = "fwd:f32:b2:h2:s40:d16:lse";

/* ---- tools of the tests ------------------------------------------------------------------------------------------------------- */

static bool make_inputs(const char *text, struct inputs *inputs)
{
    attest_problem problem;
    enum exit_code code;
    char why[512] = "";
    bool made = attest_problem_parse(text, &problem, why, sizeof why) == ATTEST_OK &&
                inputs_make(&problem, tap.seed, NULL, inputs, &code, why, sizeof why);
    return tap_check(made, "%s: %s", text, why);
}

static int open_files(void)
{
    int count = 0;
    DIR *files = opendir("/proc/self/fd");
    while (files && readdir(files))
        count++;
    if (files)
        closedir(files);
    return count;
}

/* The image under the name of this misdeed, in a folder below that of the images ("": in that one). */
static const char *image_for(const char *below, const char *original, const char *misdeed)
{
    static char path[8800];
    snprintf(path, sizeof path, "%s/%s", folder, below);
    if (*below)
        mkdir(path, 0700);
    size_t used = strlen(path);
    snprintf(path + used, sizeof path - used, "/%s.so", misdeed);
    tap_check(link(original, path) == 0 || errno == EEXIST, "%s: %s", path, strerror(errno));
    return path;
}

/* A worker for misbehave.so that does this. The time that a call may take is short only where it has to run out: on a machine that is
 * busy with other things everything takes long. */
static struct executor *open_misbehaving(const char *misdeed, enum guard guard, bool relaxed, struct execution *execution)
{
    bool hangs = strcmp(misdeed, "HANG") == 0 || strcmp(misdeed, "NAP") == 0;
    struct executor_spec spec = {.image = image_for("", image, misdeed),
                                 .guard = guard,
                                 .threads = 2,
                                 .seconds = hangs ? 3 : 60,
                                 .memory = 200 << 20,
                                 .relaxed = relaxed};
    return executor_open(&spec, execution);
}

/* Opens, loads, runs and closes; the first thing that is not as it should be is in *execution. A damage that executor_intact finds is
 * put there as EXECUTION_DONE with a sentence. */
static void try_misdeed(const char *misdeed, enum guard guard, bool relaxed, const char *text, struct execution *execution)
{
    struct inputs inputs;
    int slot = 0;
    if (!make_inputs(text, &inputs))
        return;
    struct executor *executor = open_misbehaving(misdeed, guard, relaxed, execution);
    if (executor)
        executor_watch(executor);
    if (executor && executor_load(executor, slot, &inputs, execution))
        for (int i = 0; i < 2 && execution->end == EXECUTION_DONE; i++)
            *execution = executor_run(executor, &slot, 1, 0xff);
    if (executor && execution->end == EXECUTION_DONE &&
        !executor_intact(executor, slot, execution->sentence, sizeof execution->sentence))
        execution->seconds = 0;
    executor_close(executor, NULL);
    inputs_free(&inputs);
}

/* ---- what kernels can do wrong ------------------------------------------------------------------------------------------------ */

/* RELAXED: in the sandbox of sanitizers, where most system calls are allowed, and what they leave is found by looking. */
enum { ANY_GUARD = -1, RELAXED = -2 };

static const struct misdeed {
    const char *name;
    int guard;
    enum execution_end end;
    const char *words; /* of the sentence */
} misdeeds[] = {
    {"NOTHING", ANY_GUARD, EXECUTION_DONE, ""},
    {"CRASH_NULL", ANY_GUARD, EXECUTION_CRASHED, "it wrote address 0, through a null pointer"},
    {"CRASH_DIVIDE", GUARD_BANDS, EXECUTION_CRASHED, "division by zero"},
    {"CRASH_ABORT", GUARD_BANDS, EXECUTION_CRASHED, "abort"},
    {"CRASH_STACK", GUARD_BANDS, EXECUTION_CRASHED, "its stack overflowed"},
    {"CATCH_FAULTS", GUARD_BANDS, EXECUTION_CRASHED, "tried to install a signal handler"},
    {"HANG", GUARD_BANDS, EXECUTION_HUNG, "did not end within 3 seconds"},
    {"SLEEP", GUARD_BANDS, EXECUTION_CRASHED, "tried to sleep (pause)"},
    {"NAP", RELAXED, EXECUTION_HUNG, "did not end within 3 seconds"},
    {"EXIT_ZERO", GUARD_BANDS, EXECUTION_EXITED, "left by itself, with exit status 0"},
    {"EXIT_ZERO_AT_ONCE", GUARD_BANDS, EXECUTION_EXITED, "it printed: ok 1 - all tests pass"},
    {"PRINT_PASS", GUARD_BANDS, EXECUTION_DONE, ""},
    {"PRINT_FLOOD", GUARD_BANDS, EXECUTION_GREEDY, "prints without end: more than 256 KiB"},
    {"FORK", GUARD_BANDS, EXECUTION_CRASHED, "tried to start a thread or a process"},
    {"THREAD", GUARD_BANDS, EXECUTION_CRASHED, "which the sandbox does not allow"}, /* before it comes to the thread */
    {"EXECUTE", GUARD_BANDS, EXECUTION_CRASHED, "tried to run another program (execve)"},
    {"SOCKET", GUARD_BANDS, EXECUTION_CRASHED, "tried to open a socket (socket)"},
    {"SIGNAL_PARENT", GUARD_BANDS, EXECUTION_CRASHED, "tried to ask for its parent process"},
    {"SIGNAL_PARENT", RELAXED, EXECUTION_CRASHED, "tried to send a signal to another process"},
    {"SIGNAL_ALL", GUARD_BANDS, EXECUTION_CRASHED, "tried to send a signal to another process"},
    {"TRACE_PARENT", GUARD_BANDS, EXECUTION_CRASHED, "tried to ask for its parent process"},
    {"WRITE_FILE", GUARD_BANDS, EXECUTION_DONE, ""}, /* without misdeed.txt it opens none */
    {"READ_FILE", GUARD_BANDS, EXECUTION_CRASHED, "tried to open a file"},
    {"REMOVE_FILE", GUARD_BANDS, EXECUTION_CRASHED, "tried to remove a file"},
    {"WRITE_INPUT", ANY_GUARD, EXECUTION_CRASHED, "it wrote to an input: byte 0 of K"},
    {"PROTECT_INPUT", GUARD_BANDS, EXECUTION_CRASHED, "tried to change the protection of memory"},
    {"PROTECT_INPUT", RELAXED, EXECUTION_DONE, ""},
    {"READ_BEHIND_K", GUARD_END, EXECUTION_CRASHED, "it read byte 1 behind the end of K"},
    {"READ_BEFORE_K", GUARD_START, EXECUTION_CRASHED, "it read byte 1 before the start of K"},
    {"WRITE_BEHIND_O", GUARD_BANDS, EXECUTION_DONE, "it wrote byte 1 behind the end of O"},
    {"WRITE_BEHIND_O", GUARD_END, EXECUTION_CRASHED, "it wrote byte 1 behind the end of O"},
    {"WRITE_BEHIND_O", GUARD_START, EXECUTION_DONE, "it wrote byte 1 behind the end of O"},
    {"WRITE_BEFORE_O", GUARD_BANDS, EXECUTION_DONE, "it wrote byte 1 before the start of O"},
    {"WRITE_BEFORE_O", GUARD_END, EXECUTION_DONE, "it wrote byte 1 before the start of O"},
    {"WRITE_BEFORE_O", GUARD_START, EXECUTION_CRASHED, "it wrote byte 1 before the start of O"},
    {"WRITE_BEHIND_SCRATCH", GUARD_END, EXECUTION_DONE, "it wrote byte 1 behind the end of its scratch memory"},
    {"WRITE_FAR_BEHIND_SCRATCH", GUARD_END, EXECUTION_CRASHED, "it wrote byte 65 behind the end of its scratch memory"},
    {"HUGE_MEMORY", GUARD_BANDS, EXECUTION_GREEDY, "200 are allowed"},
    {"HUGE_MEMORY_SHORTLY", GUARD_BANDS, EXECUTION_GREEDY, "200 are allowed"},
    {"HUGE_MEMORY_ABORT", GUARD_BANDS, EXECUTION_GREEDY, "200 are allowed"},
    {"HUGE_SHARED_MEMORY", GUARD_BANDS, EXECUTION_GREEDY, "200 are allowed"},
    {"HUGE_WORKSPACE", GUARD_BANDS, EXECUTION_GREEDY, "asks for a workspace of"},
    {"CLOSE_CONTROL", GUARD_BANDS, EXECUTION_INVALID, "closed the socket"},
    {"WRITE_CONTROL", GUARD_BANDS, EXECUTION_INVALID, "wrote on the socket"},
    {"ANSWER_DONE", GUARD_BANDS, EXECUTION_INVALID, "out of turn"},
    {"CONSTRUCTOR_SOCKET", GUARD_BANDS, EXECUTION_CRASHED, "tried to open a socket"},
    {"CONSTRUCTOR_EXIT", GUARD_BANDS, EXECUTION_EXITED, "with exit status 0"},
#if defined(__x86_64__)
    {"LEAVE_FLUSH", ANY_GUARD, EXECUTION_INVALID, "after a call of tile flush-to-zero or denormals-are-zero is on (0x9f80)"},
    {"LEAVE_FLUSH", RELAXED, EXECUTION_INVALID, "flush-to-zero"},
    {"LEAVE_DENORMALS", GUARD_BANDS, EXECUTION_INVALID, "denormals-are-zero is on (0x1fc0)"},
    {"LEAVE_ROUNDING", GUARD_BANDS, EXECUTION_INVALID, "after a call of tile the rounding mode is another"},
    {"LEAVE_UNMASKED", GUARD_BANDS, EXECUTION_INVALID, "exceptions are not masked"},
    {"LEAVE_PRECISION", GUARD_BANDS, EXECUTION_INVALID, "the control word of the x87 is another (0x27f)"},
    {"LEAVE_X87", GUARD_BANDS, EXECUTION_INVALID, "left on the x87 stack"},
    {"LEAVE_MMX", GUARD_BANDS, EXECUTION_INVALID, "emms is missing"},
    {"LEAVE_DIRECTION", GUARD_BANDS, EXECUTION_INVALID, "the direction flag is set"},
    {"LEAVE_ALIGNMENT", GUARD_BANDS, EXECUTION_INVALID, "the alignment-check flag is set"},
    {"SIZES_ROUNDING", GUARD_BANDS, EXECUTION_INVALID, "after a call of scratch_size or shared_size the rounding mode is another"},
    {"ENTRY_FLUSH", GUARD_BANDS, EXECUTION_INVALID, "after a call of entry flush-to-zero"},
    {"KEEP_STATE", ANY_GUARD, EXECUTION_DONE, ""},
    {"READ_COUNTER", GUARD_BANDS, EXECUTION_CRASHED, "read the clock (the time-stamp counter)"},
    {"READ_CLOCK", GUARD_BANDS, EXECUTION_CRASHED, "read the clock"},
    {"OWN_CALL", GUARD_BANDS, EXECUTION_CRASHED, "ask for its process (getpid) by a system call of its own"},
    {"OWN_CALL_LOADING", GUARD_BANDS, EXECUTION_CRASHED, "by a system call of its own"},
#endif
    {"LEAVE_HANDLER", GUARD_BANDS, EXECUTION_CRASHED, "tried to install a signal handler (rt_sigaction)"},
    {"LEAVE_HANDLER", RELAXED, EXECUTION_INVALID, "it changed signal handlers"},
    {"LEAVE_BLOCKED", GUARD_BANDS, EXECUTION_CRASHED, "tried to block signals"},
    {"LEAVE_BLOCKED", RELAXED, EXECUTION_INVALID, "SigBlk"},
    {"LEAVE_PENDING", RELAXED, EXECUTION_INVALID, "SigPnd"},
    {"LEAVE_LIMIT", GUARD_BANDS, EXECUTION_CRASHED, "limits"},
    {"LEAVE_LIMIT", RELAXED, EXECUTION_INVALID, "it changed its limits: \"Max open files"},
    {"LEAVE_ENVIRONMENT", GUARD_BANDS, EXECUTION_INVALID, "it changed its environment"},
    {"LEAVE_VARIABLE", GUARD_BANDS, EXECUTION_INVALID, "it changed its environment"},
    {"LEAVE_FOLDER", GUARD_BANDS, EXECUTION_CRASHED, "tried to change its folder"},
    {"LEAVE_FOLDER", RELAXED, EXECUTION_INVALID, "it changed its current folder: \"/usr\""},
    {"LEAVE_UMASK", RELAXED, EXECUTION_INVALID, "it changed its file mode mask"},
    {"LEAVE_AFFINITY", RELAXED, EXECUTION_INVALID, "Cpus_allowed"},
    {"LEAVE_NICE", RELAXED, EXECUTION_INVALID, "nice 7"},
    {"LEAVE_TIMER", GUARD_BANDS, EXECUTION_CRASHED, "tried to set a timer"},
    {"LEAVE_TIMER", RELAXED, EXECUTION_INVALID, "it changed its timers"},
    {"LEAK_FILES", GUARD_BANDS, EXECUTION_CRASHED, "tried to duplicate a file descriptor"},
    {"LEAK_FILES", RELAXED, EXECUTION_INVALID, "it changed its open files: \"4 pipe:"},
    {"SWAP_FILES", GUARD_BANDS, EXECUTION_CRASHED, "tried to duplicate a file descriptor"},
    {"LEAVE_MAPPING", GUARD_BANDS, EXECUTION_INVALID, "it left memory mapped, of 1024 KiB"},
    {"LEAVE_UNMAPPED", GUARD_BANDS, EXECUTION_INVALID, "is no longer mapped where it was"},
    {"PATCH_CONSTANTS", ANY_GUARD, EXECUTION_INVALID, "it changed code or constants of the worker"},
    {"PATCH_TABLE", GUARD_BANDS, EXECUTION_INVALID, "it changed code or constants of the worker: the addresses of the functions"},
    {"PATCH_CODE", GUARD_BANDS, EXECUTION_CRASHED, "tried to change the protection of memory (mprotect)"},
    {"MAKE_CODE", GUARD_BANDS, EXECUTION_CRASHED, "tried to make memory executable (mmap)"},
    {"SWAP_TABLE", GUARD_BANDS, EXECUTION_INVALID, "it changed its table"},
    {"ANSWER_RIGHTLY", GUARD_BANDS, EXECUTION_INVALID, "out of turn"},
    {"ENTRY_NULL", GUARD_BANDS, EXECUTION_INVALID, "returned NULL"},
    {"ENTRY_CRASH", GUARD_BANDS, EXECUTION_CRASHED, "abort"},
    {"WRONG_ABI", GUARD_END, EXECUTION_INVALID, "kernel.abi is 99"},
    {"WRONG_NAME", GUARD_BANDS, EXECUTION_INVALID, "kernel.name must be"},
    {"BAD_TABLE", GUARD_END, EXECUTION_INVALID, "kernel.scratch_size must be there"},
    {"NEEDS_UNKNOWN", GUARD_BANDS, EXECUTION_INVALID, "kernel.needs is 'quantum'"},
};

static void test_misdeeds(void)
{
    static const char *const guards[] = {"bands", "end", "start"};
    for (int i = 0; i < COUNT_OF(misdeeds); i++) {
        const struct misdeed *misdeed = &misdeeds[i];
        for (int guard = GUARD_BANDS; guard <= GUARD_START; guard++) {
            bool relaxed = misdeed->guard == RELAXED;
            if ((misdeed->guard != ANY_GUARD && misdeed->guard != guard && !(relaxed && guard == GUARD_BANDS)) ||
                !tap_case("%s %s", misdeed->name, relaxed ? "relaxed" : guards[guard]))
                continue;
            int files = open_files();
            struct execution execution = {.end = EXECUTION_DONE};
            try_misdeed(misdeed->name, (enum guard)guard, relaxed, dense, &execution);
            tap_check(execution.end == misdeed->end, "%s: end %d, not %d: %s", misdeed->name, execution.end, misdeed->end,
                      execution.sentence);
            tap_check(*misdeed->words ? strstr(execution.sentence, misdeed->words) != NULL : !*execution.sentence,
                      "%s: '%s' does not say '%s'", misdeed->name, execution.sentence, misdeed->words);
            tap_check(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "%s: a process is left", misdeed->name);
            tap_check(open_files() == files, "%s: %d files are left open", misdeed->name, open_files() - files);
        }
    }
}

static void test_gaps(void)
{
    struct execution execution = {.end = EXECUTION_DONE};
    try_misdeed("WRITE_GAP", GUARD_BANDS, false, "fwd:f32:b2:h2:s40:d16:os=1360,680,17", &execution);
    tap_check(strstr(execution.sentence, "it wrote byte 64 of O, in a gap that belongs to no row"), "%s", execution.sentence);
    try_misdeed("NOTHING", GUARD_BANDS, false, "fwd:f32:b2:h2:s40:d16:os=1360,680,17", &execution);
    tap_check(execution.end == EXECUTION_DONE && !*execution.sentence, "%s", execution.sentence);
}

static void test_images(void)
{
    struct execution execution;
    struct executor_spec spec = {.image = no_entry};
    tap_check(!executor_open(&spec, &execution) && execution.end == EXECUTION_INVALID &&
                  strstr(execution.sentence, "does not export attest_cpu_kernel_entry"),
              "%s", execution.sentence);
    spec.image = "/nowhere/kernel.so";
    tap_check(!executor_open(&spec, &execution) && execution.end == EXECUTION_INVALID &&
                  strstr(execution.sentence, "cannot be loaded"),
              "%s", execution.sentence);
    spec = (struct executor_spec){.kernel = "cpu_fwd_f32_abacus"};
    tap_check(!executor_open(&spec, &execution) && execution.end == EXECUTION_INVALID && strstr(execution.sentence, "attest list"),
              "%s", execution.sentence);
    static const char *const wrapper[] = {"attest-no-such-command", NULL};
    spec = (struct executor_spec){.image = image, .wrapper = wrapper, .relaxed = true};
    tap_check(!executor_open(&spec, &execution) && execution.end == EXECUTION_LACKING && strstr(execution.sentence, "installed"),
              "%s", execution.sentence);
}

/* ---- what is told, printed and held ------------------------------------------------------------------------------------------- */

static void test_facts(void)
{
    struct execution execution;
    struct executor *executor = open_misbehaving("NOTHING", GUARD_BANDS, false, &execution);
    if (!tap_check(executor != NULL, "%s", execution.sentence))
        return;
    const struct kernel_facts *facts = executor_facts(executor);
    tap_check(strcmp(facts->name, "misbehave") == 0 && strcmp(facts->needs, "") == 0 && facts->dtypes == 0xe &&
                  facts->refuses == ATTEST_SINK && strstr(facts->summary, "plain C"),
              "%s, %s, %s, %x, %llx", facts->name, facts->needs, facts->summary, facts->dtypes, (unsigned long long)facts->refuses);
    json_t *sandbox = executor_sandbox(executor);
    char *text = json_dumps(sandbox, 0);
    tap_note("sandbox: %s", text);
    tap_check(json_is_true(json_object_get(sandbox, "seccomp")), "no seccomp: %s", text);
    free(text);
    json_decref(sandbox);
    struct inputs inputs;
    if (make_inputs("fwd:f32:h1:s8:d8:sink", &inputs)) {
        tap_check(!executor_load(executor, 0, &inputs, &execution) && execution.end == EXECUTION_REFUSED, "%d: %s", execution.end,
                  execution.sentence);
        inputs_free(&inputs);
    }
    if (make_inputs(dense, &inputs)) { /* a refusal is no end */
        int slot = 0;
        tap_check(executor_load(executor, slot, &inputs, &execution), "%s", execution.sentence);
        execution = executor_run(executor, &slot, 1, 0);
        tap_check(execution.end == EXECUTION_DONE && execution.seconds > 0 && execution.seconds < 10, "%g s: %s", execution.seconds,
                  execution.sentence);
        inputs_free(&inputs);
    }
    executor_close(executor, &execution);
    tap_check(execution.end == EXECUTION_DONE, "%s", execution.sentence);
}

static void test_printed(void)
{
    static const char *const names[] = {"PRINT_PASS", "PRINT_FLOOD"};
    static const enum execution_end ends[] = {EXECUTION_DONE, EXECUTION_GREEDY};
    for (int i = 0; i < COUNT_OF(names); i++) {
        struct execution execution;
        struct inputs inputs;
        int slot = 0;
        struct executor *executor = open_misbehaving(names[i], GUARD_BANDS, false, &execution);
        if (!tap_check(executor != NULL, "%s", execution.sentence) || !make_inputs(dense, &inputs))
            return;
        tap_check(executor_load(executor, slot, &inputs, &execution), "%s", execution.sentence);
        execution = executor_run(executor, &slot, 1, 0);
        const char *printed = executor_printed(executor);
        tap_check(execution.end == ends[i], "%s: %s", names[i], execution.sentence);
        tap_check(strstr(printed, "PASS") && strlen(printed) < 1 << 17, "%s: %zu bytes were kept", names[i], strlen(printed));
        executor_close(executor, NULL);
        inputs_free(&inputs);
    }
}

/* What 50 calls add. */
static struct holdings growth(const char *misdeed)
{
    struct execution execution;
    struct inputs inputs;
    struct holdings grown = {0};
    int slots[50] = {0};
    struct executor *executor = open_misbehaving(misdeed, GUARD_BANDS, false, &execution);
    if (!tap_check(executor != NULL, "%s", execution.sentence) || !make_inputs(dense, &inputs))
        return grown;
    tap_check(executor_load(executor, 0, &inputs, &execution), "%s", execution.sentence);
    execution = executor_run(executor, slots, 50, 0);
    struct holdings before = executor_holdings(executor);
    execution = executor_run(executor, slots, 50, 0);
    struct holdings after = executor_holdings(executor);
    tap_check(execution.end == EXECUTION_DONE, "%s", execution.sentence);
    grown = (struct holdings){after.bytes - before.bytes, after.files - before.files, after.threads - before.threads};
    executor_close(executor, NULL);
    inputs_free(&inputs);
    return grown;
}

static void test_holdings(void)
{
    struct holdings grown = growth("NOTHING");
    tap_check(grown.bytes == 0 && grown.files == 0 && grown.threads == 0, "%lld bytes, %lld files, %lld threads",
              (long long)grown.bytes, (long long)grown.files, (long long)grown.threads);
    grown = growth("LEAK_MEMORY");
    tap_check(grown.bytes > 50 * 15000 && grown.files == 0, "%lld bytes, %lld files", (long long)grown.bytes,
              (long long)grown.files);
}

/* ---- files -------------------------------------------------------------------------------------------------------------------- */

/* A kernel that writes `path`, with or without a folder where it may; what it ends in. */
static struct execution write_file(const char *path, const char *scratch)
{
    char name[4200];
    snprintf(name, sizeof name, "%s/misdeed.txt", folder);
    FILE *file = fopen(name, "w");
    if (file) {
        fputs(path, file);
        fclose(file);
    }
    struct executor_spec spec = {.image = image_for("", image, "WRITE_FILE"), .scratch = scratch, .threads = 1};
    struct execution execution;
    struct inputs inputs;
    int slot = 0;
    struct executor *executor = executor_open(&spec, &execution);
    if (executor && make_inputs(dense, &inputs)) {
        if (executor_load(executor, slot, &inputs, &execution))
            execution = executor_run(executor, &slot, 1, 0);
        inputs_free(&inputs);
    }
    executor_close(executor, NULL);
    unlink(name);
    return execution;
}

static void test_files(void)
{
    char scratch[] = "/tmp/attest-test-XXXXXX", inside[64], outside[64];
    if (!tap_check(mkdtemp(scratch) != NULL, "no folder"))
        return;
    snprintf(inside, sizeof inside, "%s/inside", scratch);
    snprintf(outside, sizeof outside, "%s-outside", scratch);
    struct execution execution = write_file(inside, NULL);
    tap_check(execution.end == EXECUTION_CRASHED && access(inside, F_OK) != 0, "without a scratch folder: %s", execution.sentence);
    execution = write_file(inside, scratch);
    tap_check(execution.end == EXECUTION_DONE && access(inside, F_OK) == 0, "into the scratch folder: %s", execution.sentence);
    execution = write_file(outside, scratch);
    tap_check(access(outside, F_OK) != 0, "outside of the scratch folder: a file was made");
    unlink(inside);
    unlink(outside);
    rmdir(scratch);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------------ */

/* The portable kernel in a worker and in this process give the same bits, with every guard; features and strides included. */
static void test_numbers(void)
{
    static const char *const problems[] = {
        "fwd:f32:b2:hq4:hkv2:sq17:skv40:d16:dv24:causal:br:wl=30:softcap=15:alibi:bias:sink:lse",
        "fwd:f32:b6:hq4:hkv2:s30:d16:varlenq=100:varlenkv=120:causal:lse",
        "fwd:f32:b5:hq4:hkv2:sq3:skv50:d16:page=16,20:lens:causal:br:lse",
        "fwd:f32:b2:h2:sq40:skv50:d24:qs=-4000,-2000,-50:ks=3400,1700,-34:vs=3203,1601,31:os=-9000,-4500,77:lse",
        "fwd:f32:b1:hq4:hkv1:sq1:skv1100:d16:lse",
        "fwd:f32:b0:h4:s16:d64:lse",
        "fwd:f32:b2:h4:sq16:skv0:d64:lse",
    };
    for (int guard = GUARD_BANDS; guard <= GUARD_START; guard++) {
        struct executor_spec spec = {.kernel = "cpu_fwd_f32_scalar", .guard = (enum guard)guard, .threads = 2};
        struct execution execution;
        struct executor *executor = executor_open(&spec, &execution);
        if (!tap_check(executor != NULL, "%s", execution.sentence))
            return;
        struct subject subject = executor_subject(executor);
        for (int i = 0; i < COUNT_OF(problems); i++) {
            struct inputs inputs;
            struct outputs here = {0}, there = {0};
            struct runner runner;
            char why[512] = "";
            if (!tap_case("%s guard %d", problems[i], guard) || !make_inputs(problems[i], &inputs))
                continue;
            tap_check(outputs_make(&here, &inputs) && outputs_make(&there, &inputs), "out of memory");
            execution = subject.run(subject.data, &inputs, &there);
            tap_check(execution.end == EXECUTION_DONE, "%s", execution.sentence);
            tap_check(executor_intact(executor, 0, why, sizeof why), "%s", why);
            if (runner_make(&runner, &inputs.problem, spec.kernel, 1, why, sizeof why) == ATTEST_OK) {
                attest_tensors tensors = outputs_tensors(&inputs, &here);
                tap_check(runner_run(&runner, &tensors, why, sizeof why) == ATTEST_OK, "%s", why);
                runner_free(&runner);
            }
            tap_check(same_bits((struct computed){&inputs, &here}, (struct computed){&inputs, &there}, why, sizeof why), "%s", why);
            tap_check(outputs_equal(&here, &there), "gaps differ");
            outputs_free(&here);
            outputs_free(&there);
            inputs_free(&inputs);
        }
        executor_close(executor, &execution);
        tap_check(execution.end == EXECUTION_DONE, "%s", execution.sentence);
    }
}

/* All slots at once, filled again, and run in one request; the outputs follow the inputs. */
static void test_slots(void)
{
    struct execution execution;
    struct executor *executor = open_misbehaving("NOTHING", GUARD_BANDS, false, &execution);
    struct inputs inputs[2] = {0};
    struct outputs expected[2] = {0}, got = {0};
    int slots[EXECUTOR_SLOTS];
    char why[256];
    uint64_t seed = tap.seed;
    bool good = tap_check(executor != NULL, "%s", execution.sentence);
    for (int i = 0; i < 2 && good; i++) {
        tap.seed = seed + (uint64_t)i;
        good = make_inputs("fwd:f32:b1:h1:s5:d8:lse", &inputs[i]) && outputs_make(&expected[i], &inputs[i]);
        struct subject subject = executor_subject(executor);
        good = good && tap_check(subject.run(subject.data, &inputs[i], &expected[i]).end == EXECUTION_DONE, "run");
    }
    tap.seed = seed;
    good = good && outputs_make(&got, &inputs[0]);
    for (int i = 0; i < EXECUTOR_SLOTS && good; i++) {
        slots[i] = i;
        good = tap_check(executor_load(executor, i, &inputs[0], &execution), "slot %d: %s", i, execution.sentence);
    }
    for (int i = 1; i < EXECUTOR_SLOTS && good; i += 2)
        good = tap_check(executor_fill(executor, i, &inputs[1]), "slot %d", i);
    if (good)
        execution = executor_run(executor, slots, EXECUTOR_SLOTS, 0x33);
    good = good && tap_check(execution.end == EXECUTION_DONE, "%s", execution.sentence);
    for (int i = 0; i < EXECUTOR_SLOTS && good; i++) {
        executor_copy(executor, i, &got);
        tap_check(same_bits((struct computed){&inputs[0], &got}, (struct computed){&inputs[0], &expected[i % 2]}, why, sizeof why),
                  "slot %d: %s", i, why);
        tap_check(executor_intact(executor, i, why, sizeof why), "slot %d: %s", i, why);
    }
    struct inputs other;
    if (good && make_inputs("fwd:f32:b1:h1:s6:d8:lse", &other)) {
        tap_check(!executor_fill(executor, 0, &other), "another problem was filled in");
        inputs_free(&other);
    }
    int empty = 0;
    executor_close(executor, NULL);
    executor = open_misbehaving("NOTHING", GUARD_BANDS, false, &execution);
    if (tap_check(executor != NULL, "%s", execution.sentence)) {
        execution = executor_run(executor, &empty, 1, 0);
        tap_check(execution.end == EXECUTION_INVALID && strstr(execution.sentence, "empty"), "an empty slot: %s",
                  execution.sentence);
    }
    executor_close(executor, NULL);
    for (int i = 0; i < 2; i++) {
        outputs_free(&expected[i]);
        inputs_free(&inputs[i]);
    }
    outputs_free(&got);
}

/* ---- under a sanitizer -------------------------------------------------------------------------------------------------------- */

/* ATTEST_TEST_RUNTIME is the library of AddressSanitizer; checked.so is misbehave.c built with it. */
static void test_sanitizers(void)
{
    static const struct {
        const char *misdeed, *words;
        bool at_end;
    } cases[] = {
        {"NOTHING", "", true},
        {"READ_BEHIND_K", "AddressSanitizer: use-after-poison", false},
        {"WRITE_BEFORE_O", "AddressSanitizer: use-after-poison", false},
        {"LEAK_MEMORY", "byte(s) leaked", true},
        {"SOCKET", "tried to open a socket", false},
        {"SIGNAL_PARENT", "tried to send a signal to another process", false},
    };
    const char *runtime = getenv("ATTEST_TEST_RUNTIME");
    char preload[4200], checked[4200];
    const char *environment[] = {preload, "ASAN_OPTIONS=detect_leaks=1:exitcode=99", NULL};
    if (!runtime || !*runtime) {
        tap_skip("this compiler has no AddressSanitizer");
        return;
    }
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", runtime);
    snprintf(checked, sizeof checked, "%s/checked.so", folder);
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct executor_spec spec = {.image = image_for("checked", checked, cases[i].misdeed),
                                     .environment = environment,
                                     .threads = 2,
                                     .seconds = 20,
                                     .relaxed = true};
        struct execution execution;
        struct inputs inputs;
        int slot = 0;
        struct executor *executor = executor_open(&spec, &execution);
        if (!tap_check(executor != NULL, "%s", execution.sentence) || !make_inputs(dense, &inputs))
            return;
        for (int n = 0; n < 3 && execution.end == EXECUTION_DONE; n++) /* loaded again: elsewhere, or where something else was */
            if (executor_load(executor, slot, &inputs, &execution))
                execution = executor_run(executor, &slot, 1, 0);
        if (cases[i].at_end && tap_check(execution.end == EXECUTION_DONE, "%s: %s", cases[i].misdeed, execution.sentence))
            executor_end(executor, &execution);
        tap_check(*cases[i].words ? execution.end == EXECUTION_CRASHED && strstr(execution.sentence, cases[i].words)
                                  : execution.end == EXECUTION_DONE,
                  "%s: %s\n%s", cases[i].misdeed, execution.sentence, executor_printed(executor));
        executor_close(executor, NULL);
        inputs_free(&inputs);
    }
}

/* ---- the end of the supervisor ------------------------------------------------------------------------------------------------ */

/* True if some process has a file mapped with this word in its path. */
static bool someone_has(const char *word)
{
    bool found = false;
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    while (processes && !found && (entry = readdir(processes))) {
        char path[300], bytes[65536];
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "/proc/%s/maps", entry->d_name);
        FILE *file = fopen(path, "rb");
        size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
        if (file)
            fclose(file);
        found = size && memmem(bytes, size, word, strlen(word));
    }
    if (processes)
        closedir(processes);
    return found;
}

/* A supervisor that is killed takes its worker along, even one that hangs. */
static void test_orphans(void)
{
    char word[64];
    snprintf(word, sizeof word, "orphan-%d", (int)getpid());
    pid_t child = fork();
    if (child == 0) {
        struct executor_spec spec = {.image = image_for(word, image, "HANG"), .seconds = 100};
        struct execution execution;
        struct inputs inputs;
        int slot = 0;
        struct executor *executor = executor_open(&spec, &execution);
        if (executor && make_inputs(dense, &inputs) && executor_load(executor, slot, &inputs, &execution))
            executor_run(executor, &slot, 1, 0);
        _exit(0);
    }
    bool seen = false;
    for (int i = 0; i < 3000 && !seen; i++, usleep(10000))
        seen = someone_has(word);
    tap_check(seen, "the worker was not seen");
    usleep(200000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    bool there = true;
    for (int i = 0; i < 3000 && there; i++, usleep(10000))
        there = someone_has(word);
    tap_check(!there, "the worker lives on");
}

/* Time in which the supervisor itself stood still, as when the whole machine does, is not held against a kernel: the same nap that
 * takes too long above. */
static void test_stalls(void)
{
    struct execution execution = {.end = EXECUTION_DONE};
    struct inputs inputs;
    int slot = 0;
    if (!make_inputs(dense, &inputs))
        return;
    struct executor *executor = open_misbehaving("NAP", GUARD_BANDS, true, &execution);
    bool loaded = executor && executor_load(executor, slot, &inputs, &execution);
    pid_t supervisor = getpid(), stopper = loaded ? fork() : -1;
    if (stopper == 0) {
        usleep(500000);
        kill(supervisor, SIGSTOP);
        usleep(4000000);
        kill(supervisor, SIGCONT);
        _exit(0);
    }
    if (loaded)
        execution = executor_run(executor, &slot, 1, 0xff);
    tap_check(stopper > 0 && execution.end == EXECUTION_DONE, "%s", execution.sentence);
    if (stopper > 0)
        waitpid(stopper, NULL, 0);
    executor_close(executor, NULL);
    inputs_free(&inputs);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"misdeeds", test_misdeeds}, {"gaps", test_gaps},         {"images", test_images}, {"facts", test_facts},
        {"printed", test_printed},   {"holdings", test_holdings}, {"files", test_files},   {"numbers", test_numbers},
        {"slots", test_slots},       {"orphans", test_orphans},   {"stalls", test_stalls}, {"sanitizers", test_sanitizers},
    };
    if (argc == 2 && strcmp(argv[1], "worker") == 0)
        return worker_main();
    const char *kernels = getenv("ATTEST_TEST_KERNELS");
    snprintf(folder, sizeof folder, "%s", kernels ? kernels : ".");
    snprintf(image, sizeof image, "%s/misbehave.so", folder);
    snprintf(no_entry, sizeof no_entry, "%s/no_entry.so", folder);
    if (access(image, R_OK) != 0) {
        fprintf(stderr, "ATTEST_TEST_KERNELS is not set: run tests/executor.t\n");
        return 2;
    }
    return tap_main(argc, argv, tests, COUNT_OF(tests));
}
