/*
 * cuda_tools.c - the memory and the profile gate of CUDA candidates. See cuda_tools.h.
 *
 * memory: every check of compute-sanitizer on up to MOST_CHECKED small problems of the suite that the kernel takes, spread over the
 * suite.
 *     details: device, problems [...], sanitizer {memcheck: {verdict, errors, warnings, sentence}, ...}; artefacts: one log for
 *     each problem and check.
 * profile: ncu on up to MOST_PROFILED of the timed problems.
 *     details: device, problems [{problem, verdict, sentence, limiter, metrics {...}, workload {...}}]; artefacts: one log for
 *     each.
 */
#include "cuda_tools.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_build.h"
#include "cuda_compile.h"
#include "cuda_profiler.h"
#include "cuda_sanitizer.h"

enum { MOST_CHECKED = 4, MOST_PROFILED = 3, DRIVER_SECONDS = 60 };

/* Multiply-adds that a problem under the sanitizer may have: it is 10 to 100 times slower there. */
#define CHECKED_WORK 3e7

/* A call under a tool may take so many times the policy's call_seconds. */
#define TOOL_PATIENCE 10

/* ---- the device -------------------------------------------------------------------------------------------------------------- */

/* The few functions of the driver that are needed, as the CUDA driver API declares them; a CUresult and a CUdevice are ints. */
struct driver {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*get)(int *device, int ordinal);
    int (*name)(char *name, int length, int device);
    int (*attribute)(int *value, int attribute, int device);
};
enum { ATTRIBUTE_MULTIPROCESSORS = 16, ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 };

/* What the child that asks the driver answers. */
struct answer {
    bool found;
    struct cuda_device device;
    char why[160];
};

/* POSIX lets the address of a function come as the address of an object; C needs it to be said. */
static bool symbol(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static void ask_driver(struct answer *answer)
{
    struct driver driver;
    struct cuda_device *found = &answer->device;
    int count = 0, device, status;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !symbol(library, "cuInit", &driver.init) || !symbol(library, "cuDeviceGetCount", &driver.count) ||
        !symbol(library, "cuDeviceGet", &driver.get) || !symbol(library, "cuDeviceGetName", &driver.name) ||
        !symbol(library, "cuDeviceGetAttribute", &driver.attribute)) {
        snprintf(answer->why, sizeof answer->why, "no NVIDIA driver here: run this on a machine with a GPU");
        return;
    }
    if ((status = driver.init(0)) != 0 || (status = driver.count(&count)) != 0 || count == 0) {
        snprintf(answer->why, sizeof answer->why,
                 "the NVIDIA driver finds no GPU here (CUDA error %d): run this on a machine with a GPU", status);
        return;
    }
    answer->found = driver.get(&device, 0) == 0 && driver.name(found->name, sizeof found->name, device) == 0 &&
                    driver.attribute(&found->major, ATTRIBUTE_MAJOR, device) == 0 &&
                    driver.attribute(&found->minor, ATTRIBUTE_MINOR, device) == 0 &&
                    driver.attribute(&found->multiprocessors, ATTRIBUTE_MULTIPROCESSORS, device) == 0;
    if (!answer->found)
        snprintf(answer->why, sizeof answer->why, "the NVIDIA driver does not describe its GPU");
}

bool cuda_device_find(struct cuda_device *device, char *why, size_t why_size)
{
    struct answer answer = {.why = "the NVIDIA driver does not answer"};
    int stream[2];
    *device = (struct cuda_device){0};
    if (pipe(stream) != 0) {
        snprintf(why, why_size, "no pipe could be made");
        return false;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(stream[0]);
        ask_driver(&answer);
        ssize_t sent = write(stream[1], &answer, sizeof answer);
        _exit(sent == sizeof answer ? 0 : 1);
    }
    close(stream[1]);
    struct pollfd waiting = {.fd = stream[0], .events = POLLIN};
    struct answer said;
    if (child > 0 && poll(&waiting, 1, DRIVER_SECONDS * 1000) == 1 && read(stream[0], &said, sizeof said) == sizeof said)
        answer = said;
    else if (child > 0)
        kill(child, SIGKILL);
    close(stream[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    *device = answer.device;
    device->name[sizeof device->name - 1] = '\0';
    if (!answer.found)
        snprintf(why, why_size, "%s", answer.why);
    return answer.found;
}

/* ---- the worker -------------------------------------------------------------------------------------------------------------- */

bool cuda_worker_make(const struct proof *proof, const attest_problem *problem, struct cuda_worker_command *command)
{
    uint64_t drawn[2];
    *command = (struct cuda_worker_command){0};
    if (readlink("/proc/self/exe", command->program, sizeof command->program - 1) <= 0 ||
        getrandom(drawn, sizeof drawn, 0) != sizeof drawn ||
        attest_problem_print(problem, command->problem, sizeof command->problem) != ATTEST_OK)
        return false;
    snprintf(command->marker, sizeof command->marker, "%016llx%016llx", (unsigned long long)drawn[0], (unsigned long long)drawn[1]);
    snprintf(command->seed, sizeof command->seed, "%llu", (unsigned long long)(proof->seed & INT64_MAX));
    const char *argv[] = {command->program, "worker",      "--cuda",   proof->candidate.image, command->problem,
                          "--seed",         command->seed, "--marker", command->marker,        NULL};
    memcpy(command->argv, argv, sizeof argv);
    command->worker = (struct cuda_worker){command->argv, command->marker};
    return true;
}

/* ---- what both gates need ---------------------------------------------------------------------------------------------------- */

/* Everything a gate here starts with; false, and the result filled, if something is missing. */
struct bench {
    struct cuda_device device;
    struct cuda_manifest manifest;
    char *tool;
};

static json_t *device_json(const struct cuda_device *device)
{
    char capability[16];
    snprintf(capability, sizeof capability, "%d.%d", device->major, device->minor);
    return json_pack("{s:s, s:s, s:i}", "name", device->name, "compute_capability", capability, "multiprocessors",
                     device->multiprocessors);
}

static bool bench_open(struct proof *proof, const char *tool, const char *remedy, struct bench *bench, struct gate_result *result)
{
    char why[600];
    *bench = (struct bench){0};
    if (!cuda_device_find(&bench->device, why, sizeof why))
        gate_say(result, VERDICT_INCONCLUSIVE, "%s", why);
    else if (!(bench->tool = cuda_tool_find(tool)))
        gate_say(result, VERDICT_INCONCLUSIVE, "%s is neither in PATH nor in /usr/local/cuda*/bin; %s", tool, remedy);
    else if (!cuda_candidate_manifest(&proof->candidate, &bench->manifest, why, sizeof why))
        gate_say(result, VERDICT_FAIL, "%s", why);
    else if (!proof->candidate.image)
        gate_say(result, VERDICT_INCONCLUSIVE, "there is no image yet: run the build gate first");
    else {
        json_put(result->details, "device", device_json(&bench->device));
        return true;
    }
    return false;
}

static void bench_close(struct bench *bench)
{
    cuda_manifest_free(&bench->manifest);
    free(bench->tool);
}

static bool takes(const struct proof *proof, const struct bench *bench, const attest_problem *problem)
{
    char text[256];
    return (!proof->candidate.dtype || proof->candidate.dtype == problem->dtype) &&
           !cuda_manifest_refusal(&bench->manifest, problem, text, sizeof text);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------------ */

static bool is_small(const attest_problem *p)
{
    double rows = (double)p->batch * (double)p->heads_q * (double)p->seq_q;
    return rows * (double)p->seq_kv * (double)(p->dim + p->dim_v) <= CHECKED_WORK && rows > 0 && p->seq_kv > 0;
}

/* Chooses problems that are spread evenly over those of a list that will do. Returns how many. */
static int spread(const struct proof *proof, const struct bench *bench, const struct problem_list *list, bool small, int most,
                  const attest_problem **chosen)
{
    int good = 0, count = 0, seen = 0;
    for (int i = 0; i < list->count; i++)
        good += takes(proof, bench, &list->entries[i].problem) && (!small || is_small(&list->entries[i].problem));
    for (int i = 0; i < list->count && count < most; i++) {
        const attest_problem *problem = &list->entries[i].problem;
        if (!takes(proof, bench, problem) || (small && !is_small(problem)))
            continue;
        if (seen++ * most / (good > most ? good : most) >= count)
            chosen[count++] = problem;
    }
    return count;
}

/* One check on one problem; false if it did not pass, with the result filled. */
static bool check_problem(struct proof *proof, const struct bench *bench, enum cuda_check check, int number,
                          const attest_problem *problem, json_t *found, struct gate_result *result)
{
    struct cuda_worker_command command = {0};
    struct cuda_finding finding = {.verdict = VERDICT_INCONCLUSIVE, .sentence = "the worker could not be made"};
    char artefact[64];
    char *log = gate_path(proof, "%s_%d.log", cuda_check_name(check), number);
    if (log && cuda_worker_make(proof, problem, &command)) {
        cuda_sanitizer_run(check, bench->tool, &command.worker, TOOL_PATIENCE * proof->policy.call_seconds, log, &finding);
        snprintf(artefact, sizeof artefact, "%s %d", cuda_check_name(check), number);
        if (access(log, R_OK) == 0)
            json_put(result->artefacts, artefact, json_string(log));
    }
    json_put(found, cuda_check_name(check),
             json_pack("{s:s, s:I, s:I, s:s}", "verdict", verdict_name(finding.verdict), "errors", (json_int_t)finding.errors,
                       "warnings", (json_int_t)finding.warnings, "sentence", finding.sentence));
    free(log);
    if (finding.verdict != VERDICT_PASS)
        gate_say(result, finding.verdict, "%.100s: %s", command.problem, finding.sentence);
    return finding.verdict == VERDICT_PASS;
}

void cuda_gate_memory(struct proof *proof, struct gate_result *result)
{
    struct bench bench;
    const attest_problem *problems[MOST_CHECKED];
    if (bench_open(proof, "compute-sanitizer", "it comes with the CUDA toolkit", &bench, result)) {
        int count = spread(proof, &bench, &proof->suite, true, MOST_CHECKED, problems);
        json_t *names = json_array(), *found = json_object();
        bool good = count > 0;
        for (int i = 0; i < count && good; i++) {
            char text[ATTEST_PROBLEM_TEXT] = "";
            attest_problem_print(problems[i], text, sizeof text);
            json_add(names, json_string(text));
            for (int check = 0; check < CUDA_CHECK_COUNT && good; check++)
                good = check_problem(proof, &bench, (enum cuda_check)check, i, problems[i], found, result);
        }
        json_put(result->details, "problems", names);
        json_put(result->details, "sanitizer", found);
        if (count == 0)
            gate_say(result, VERDICT_NOT_APPLICABLE, "the suite has no small problem that the kernel takes");
        else if (good)
            gate_say(result, VERDICT_PASS, "memcheck, racecheck, initcheck and synccheck find nothing on %d problem%s (%s)", count,
                     count == 1 ? "" : "s", bench.device.name);
    }
    bench_close(&bench);
}

/* ---- profile ----------------------------------------------------------------------------------------------------------------- */

static json_t *metrics_json(const struct cuda_profile *profile)
{
    json_t *metrics = json_object();
    for (int i = 0; i < METRIC_COUNT; i++)
        json_put(metrics, cuda_metric_name((enum cuda_metric)i), profile->there[i] ? json_number(profile->values[i]) : json_null());
    return metrics;
}

/* The manifest's numbers on this device; false if it has none for it. */
static bool configure_here(const struct bench *bench, const attest_problem *problem, struct cuda_configuration *configuration,
                           char *why, size_t size)
{
    int number = bench->device.major * 10 + bench->device.minor;
    for (int arch = 0; arch < cuda_limits_count; arch++)
        if (bench->manifest.archs >> arch & 1 && cuda_limits[arch].number == number)
            return cuda_configure(&bench->manifest, arch, problem->dtype, cuda_manifest_instance(&bench->manifest, problem), NULL,
                                  configuration, why, size);
    snprintf(why, size, "the manifest does not name sm_%d, which this GPU is", number);
    return false;
}

static struct cuda_finding profile_problem(struct proof *proof, const struct bench *bench, int number,
                                           const attest_problem *problem, json_t *row, struct gate_result *result)
{
    struct cuda_finding finding = {.verdict = VERDICT_INCONCLUSIVE, .sentence = "the worker could not be made"};
    struct cuda_worker_command command;
    struct cuda_configuration configuration;
    struct cuda_profile profile;
    struct inputs inputs;
    enum exit_code code;
    int arch = bench->device.major * 10 + bench->device.minor;
    char *log = gate_path(proof, "profile_%d.csv", number), artefact[64];
    bool measured = log && cuda_worker_make(proof, problem, &command) &&
                    configure_here(bench, problem, &configuration, finding.sentence, sizeof finding.sentence);
    measured = measured && cuda_profiler_run(bench->tool, arch, &command.worker, TOOL_PATIENCE * proof->policy.call_seconds, log,
                                             &profile, &finding);
    if (log && access(log, R_OK) == 0) {
        snprintf(artefact, sizeof artefact, "profile %d", number);
        json_put(result->artefacts, artefact, json_string(log));
    }
    free(log);
    if (!measured || !inputs_make(problem, proof->seed, NULL, &inputs, &code, finding.sentence, sizeof finding.sentence))
        return finding;
    struct cuda_workload load = cuda_workload(&inputs.layout, &bench->manifest, &configuration);
    char limiter[96];
    cuda_profile_judge(&profile, &load, &bench->manifest, &configuration, arch, &finding);
    cuda_limiter(&profile, limiter, sizeof limiter);
    json_put(row, "limiter", json_string(limiter));
    json_put(row, "metrics", metrics_json(&profile));
    json_put(row, "workload",
             json_pack("{s:f, s:f, s:f}", "pairs", load.pairs, "bytes_read", load.read, "bytes_written", load.written));
    inputs_free(&inputs);
    return finding;
}

void cuda_gate_profile(struct proof *proof, struct gate_result *result)
{
    struct bench bench;
    const attest_problem *problems[MOST_PROFILED];
    if (bench_open(proof, "ncu", "it is part of Nsight Compute", &bench, result)) {
        int count = spread(proof, &bench, &proof->timed, false, MOST_PROFILED, problems);
        json_t *rows = json_array();
        gate_say(result, VERDICT_NOT_APPLICABLE, "none of the timed problems is one that the kernel takes");
        for (int i = 0; i < count; i++) {
            char text[ATTEST_PROBLEM_TEXT] = "";
            json_t *row = json_object();
            attest_problem_print(problems[i], text, sizeof text);
            struct cuda_finding finding = profile_problem(proof, &bench, i, problems[i], row, result);
            json_put(row, "problem", json_string(text));
            json_put(row, "verdict", json_string(verdict_name(finding.verdict)));
            json_put(row, "sentence", json_string(finding.sentence));
            json_add(rows, row);
            gate_say(result, finding.verdict, "%.100s: %s", text, finding.sentence);
            if (finding.verdict != VERDICT_PASS)
                break;
        }
        json_put(result->details, "problems", rows);
    }
    bench_close(&bench);
}
