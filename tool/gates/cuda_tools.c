/*
 * cuda_tools.c - the memory and the profile gate of CUDA candidates. See cuda_tools.h. Tools are slow to start and quick to run:
 * there is one process for each check, all of them at once, with all problems; and one for the profile.
 *
 * memory: every check of compute-sanitizer on up to MOST_CHECKED small problems of the suite that between them have every feature
 * that the kernel takes, and on some of them again with gaps between all rows.
 *     details: device, checked [...], sanitizer {memcheck: {verdict, errors, warnings, sentence, seconds}, ...}; artefacts: one
 *     log for each check.
 * profile: ncu on up to MOST_PROFILED of the timed problems.
 *     details: device, problems [{problem, verdict, sentence, limiter, metrics {...}, workload {...}}]; artefact: profile, a log.
 */
#include "cuda_tools.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cuda_build.h"
#include "build/cuda_compile.h"
#include "cuda_profiler.h"
#include "cuda_sanitizer.h"
#include "problem_pick.h"

enum { MOST_CHECKED = 8, MOST_PADDED = 2, MOST_PROFILED = 4 };

/* Floating-point operations that a problem under the sanitizer may have: it is 10 to 100 times slower there. */
#define CHECKED_FLOPS 4e7

/* A call under a tool may take so many times the policy's call_seconds. */
#define TOOL_PATIENCE 10

/* ---- the device -------------------------------------------------------------------------------------------------------------- */

bool cuda_device_find(const char *word, struct cuda_device *device, char *why, size_t why_size)
{
    attest_device_info info = {.size = sizeof info};
    const char *number = word ? strchr(word, ':') : NULL;
    *device = (struct cuda_device){0};
    if (attest_device_get(number ? atoi(number + 1) : 0, &info, why, why_size) != ATTEST_OK) {
        size_t used = strlen(why);
        snprintf(why + used, why_size - used, "; run this on a machine with a GPU");
        return false;
    }
    snprintf(device->name, sizeof device->name, "%s", info.model);
    device->major = (int)info.compute / 10;
    device->minor = (int)info.compute % 10;
    device->multiprocessors = (int)info.multiprocessors;
    return true;
}

/* ---- the worker -------------------------------------------------------------------------------------------------------------- */

bool cuda_worker_make(const struct proof *proof, const attest_problem *const *problems, int count,
                      struct cuda_worker_command *command)
{
    uint64_t drawn[2];
    *command = (struct cuda_worker_command){0};
    if (readlink("/proc/self/exe", command->program, sizeof command->program - 1) <= 0 ||
        getrandom(drawn, sizeof drawn, 0) != sizeof drawn)
        return false;
    snprintf(command->marker, sizeof command->marker, "%016llx%016llx", (unsigned long long)drawn[0], (unsigned long long)drawn[1]);
    snprintf(command->seed, sizeof command->seed, "%llu", (unsigned long long)(proof->seed & INT64_MAX));
    const char *argv[] = {command->program, "worker",      "--cuda",   "--device",      proof->device ? proof->device : "cuda",
                          "--seed",         command->seed, "--marker", command->marker, proof->candidate.image};
    int used = COUNT_OF(argv);
    memcpy(command->argv, argv, sizeof argv);
    for (int i = 0; i < count && i < CUDA_MOST_PROBLEMS; i++) {
        if (attest_problem_print(problems[i], command->problems[i], sizeof command->problems[i]) != ATTEST_OK)
            return false;
        command->argv[used++] = command->problems[i];
    }
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

static bool bench_open(struct proof *proof, const char *tool, struct bench *bench, struct gate_result *result)
{
    char why[600];
    *bench = (struct bench){0};
    if (!cuda_device_find(proof->device, &bench->device, why, sizeof why))
        gate_say(result, VERDICT_INCONCLUSIVE, "%s", why);
    else if (!(bench->tool = cuda_tool_find(tool))) {
        cuda_tool_missing(tool, why, sizeof why);
        gate_say(result, VERDICT_INCONCLUSIVE, "%s", why);
    } else if (!cuda_candidate_manifest(&proof->candidate, &bench->manifest, why, sizeof why))
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

/* What one check came to. */
struct checked {
    struct cuda_finding finding;
    double seconds;
    char *log;
};

/* The problem with the fewest pairs of a row and a key, of those that have any; else the first one. */
static const attest_problem *smallest(const attest_problem *const *problems, int count)
{
    const attest_problem *found = problems[0];
    double least = INFINITY;
    for (int i = 0; i < count; i++) {
        const attest_problem *p = problems[i];
        double pairs = (double)(p->batch * p->heads_q) * (double)(p->seq_q * p->seq_kv);
        if (pairs > 0 && pairs < least) {
            least = pairs;
            found = p;
        }
    }
    return found;
}

/* All checks at once, each in a process of its own: `few` has one small problem. Racecheck counts every byte that is raced for, and
 * a kernel without a barrier would keep it busy for minutes; so it sees that one first, and the others only if nothing is wrong. */
static void run_checks(struct proof *proof, const struct bench *bench, const struct cuda_worker *worker,
                       const struct cuda_worker *few, struct checked checked[CUDA_CHECK_COUNT])
{
    double patience = TOOL_PATIENCE * proof->policy.call_seconds;
    for (int check = 0; check < CUDA_CHECK_COUNT; check++)
        checked[check].log = gate_path(proof, "%s.log", cuda_check_name((enum cuda_check)check));
#pragma omp parallel for num_threads(CUDA_CHECK_COUNT) schedule(static, 1)
    for (int check = 0; check < CUDA_CHECK_COUNT; check++) {
        double begin = omp_get_wtime();
        checked[check].finding = (struct cuda_finding){.verdict = VERDICT_INCONCLUSIVE, .sentence = "out of memory"};
        if (checked[check].log && check == CUDA_RACECHECK)
            cuda_sanitizer_run(CUDA_RACECHECK, bench->tool, few, patience, checked[check].log, &checked[check].finding);
        if (checked[check].log && (check != CUDA_RACECHECK || checked[check].finding.verdict == VERDICT_PASS))
            cuda_sanitizer_run((enum cuda_check)check, bench->tool, worker, patience, checked[check].log, &checked[check].finding);
        checked[check].seconds = omp_get_wtime() - begin;
    }
}

static void check_problems(struct proof *proof, const struct bench *bench, const attest_problem *const *problems, int count,
                           struct gate_result *result)
{
    struct cuda_worker_command *command = calloc(1, sizeof *command), *few = calloc(1, sizeof *few);
    struct checked checked[CUDA_CHECK_COUNT] = {0};
    json_t *found = json_object(), *names = json_array();
    const attest_problem *least = smallest(problems, count);
    bool made = command && few && cuda_worker_make(proof, problems, count, command) && cuda_worker_make(proof, &least, 1, few);
    if (made)
        run_checks(proof, bench, &command->worker, &few->worker, checked);
    else
        gate_say(result, VERDICT_INCONCLUSIVE, "the worker could not be made");
    if (made)
        gate_say(result, VERDICT_PASS, "memcheck, racecheck, initcheck and synccheck find nothing on %d problem%s (%s)", count,
                 count == 1 ? "" : "s", bench->device.name);
    for (int i = 0; made && i < count; i++)
        json_add(names, json_string(command->problems[i]));
    for (int check = CUDA_CHECK_COUNT - 1; made && check >= 0; check--) { /* so that the first one that fails has the last word */
        const struct cuda_finding *finding = &checked[check].finding;
        json_put(found, cuda_check_name((enum cuda_check)check),
                 json_pack("{s:s, s:I, s:I, s:s, s:f}", "verdict", verdict_name(finding->verdict), "errors",
                           (json_int_t)finding->errors, "warnings", (json_int_t)finding->warnings, "sentence", finding->sentence,
                           "seconds", checked[check].seconds));
        bool worse = finding->verdict == VERDICT_FAIL || result->verdict != VERDICT_FAIL;
        if (finding->verdict != VERDICT_PASS && worse)
            gate_say(result, finding->verdict, "%s", finding->sentence);
        if (checked[check].log && access(checked[check].log, R_OK) == 0)
            json_put(result->artefacts, cuda_check_name((enum cuda_check)check), json_string(checked[check].log));
    }
    for (int check = 0; check < CUDA_CHECK_COUNT; check++)
        free(checked[check].log);
    json_put(result->details, "checked", names);
    json_put(result->details, "sanitizer", found);
    free(command);
    free(few);
}

void cuda_gate_memory(struct proof *proof, struct gate_result *result)
{
    struct bench bench;
    const struct problem_entry *picked[MOST_CHECKED];
    const attest_problem *problems[MOST_CHECKED + MOST_PADDED];
    attest_problem padded[MOST_PADDED];
    if (bench_open(proof, "compute-sanitizer", &bench, result)) {
        int small = pick_problems(proof, CHECKED_FLOPS, picked, MOST_CHECKED), count = 0;
        for (; count < small; count++)
            problems[count] = &picked[count]->problem;
        for (int i = 0; i < small && i < MOST_PADDED; i++) {
            padded[i] = pick_padded(&picked[i]->problem);
            if (gate_takes(proof, &padded[i]))
                problems[count++] = &padded[i];
        }
        if (count == 0)
            gate_say(result, VERDICT_NOT_APPLICABLE, "the suite has no small problem that the kernel takes");
        else
            check_problems(proof, &bench, problems, count, result);
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

/* Judges a profile with tile_q x tile_kv, and where that fails with the pairs of tiles that the library may have chosen instead. */
static void judge_tiles(const struct bench *bench, const struct cuda_profile *profile, const struct layout *layout,
                        const struct cuda_configuration *plain, int arch, struct cuda_finding *finding)
{
    const struct cuda_manifest *manifest = &bench->manifest;
    struct cuda_workload load = cuda_workload(layout, manifest, plain);
    cuda_profile_judge(profile, &load, manifest, plain, arch, finding);
    for (int tile = 1; finding->verdict == VERDICT_FAIL && plain->numbers[CUDA_RATE] && tile <= manifest->tile_count; tile++) {
        struct cuda_configuration pair;
        struct cuda_finding other;
        char why[400];
        if (!cuda_has_tile(manifest, plain->dim, tile) ||
            !cuda_configure_tile(manifest, plain->arch, plain->dtype, plain->dim, tile, &pair, why, sizeof why) ||
            !pair.numbers[CUDA_RATE])
            continue;
        load = cuda_workload(layout, manifest, &pair);
        cuda_profile_judge(profile, &load, manifest, &pair, arch, &other);
        if (other.verdict == VERDICT_PASS)
            *finding = other;
    }
}

/* Judges the profile of one problem, which is launch `number` of the log. */
static struct cuda_finding profile_problem(struct proof *proof, const struct bench *bench, const char *log, int number,
                                           const attest_problem *problem, json_t *row)
{
    struct cuda_finding finding = {.verdict = VERDICT_INCONCLUSIVE};
    struct cuda_configuration configuration;
    struct cuda_profile profile;
    struct inputs inputs;
    enum exit_code code;
    int arch = bench->device.major * 10 + bench->device.minor;
    char limiter[96];
    if (!cuda_profile_parse(log, number, &profile, finding.sentence, sizeof finding.sentence) ||
        !configure_here(bench, problem, &configuration, finding.sentence, sizeof finding.sentence) ||
        !inputs_make(problem, proof->seed, NULL, &inputs, &code, finding.sentence, sizeof finding.sentence))
        return finding;
    struct cuda_workload load = cuda_workload(&inputs.layout, &bench->manifest, &configuration);
    judge_tiles(bench, &profile, &inputs.layout, &configuration, arch, &finding);
    cuda_limiter(&profile, limiter, sizeof limiter);
    json_put(row, "limiter", json_string(limiter));
    json_put(row, "metrics", metrics_json(&profile));
    json_put(row, "workload",
             json_pack("{s:f, s:f, s:f}", "pairs", load.pairs, "bytes_read", load.read, "bytes_written", load.written));
    inputs_free(&inputs);
    return finding;
}

static void profile_problems(struct proof *proof, const struct bench *bench, const attest_problem *const *problems, int count,
                             struct gate_result *result)
{
    struct cuda_worker_command *command = calloc(1, sizeof *command);
    struct cuda_finding finding = {.verdict = VERDICT_INCONCLUSIVE, .sentence = "the worker could not be made"};
    int arch = bench->device.major * 10 + bench->device.minor;
    char *path = gate_path(proof, "profile.csv"), *log = NULL;
    json_t *rows = json_array();
    if (command && path && cuda_worker_make(proof, problems, count, command))
        log = cuda_profiler_run(bench->tool, arch, count, &command->worker, TOOL_PATIENCE * proof->policy.call_seconds, path,
                                &finding);
    if (path && access(path, R_OK) == 0)
        json_put(result->artefacts, "profile", json_string(path));
    gate_say(result, finding.verdict, "%s", finding.sentence);
    for (int i = 0; i < count && log; i++) {
        json_t *row = json_object();
        finding = profile_problem(proof, bench, log, i, problems[i], row);
        json_put(row, "problem", json_string(command->problems[i]));
        json_put(row, "verdict", json_string(verdict_name(finding.verdict)));
        json_put(row, "sentence", json_string(finding.sentence));
        json_add(rows, row);
        gate_say(result, finding.verdict, "%.100s: %s", command->problems[i], finding.sentence);
        if (finding.verdict != VERDICT_PASS)
            break;
    }
    json_put(result->details, "problems", rows);
    free(command);
    free(path);
    free(log);
}

void cuda_gate_profile(struct proof *proof, struct gate_result *result)
{
    struct bench bench;
    const attest_problem *problems[MOST_PROFILED];
    if (bench_open(proof, "ncu", &bench, result)) {
        int count = 0;
        for (int i = 0; i < proof->timed.count && count < MOST_PROFILED; i++)
            if (takes(proof, &bench, &proof->timed.entries[i].problem))
                problems[count++] = &proof->timed.entries[i].problem;
        if (count == 0)
            gate_say(result, VERDICT_NOT_APPLICABLE, "none of the timed problems is one that the kernel takes");
        else
            profile_problems(proof, &bench, problems, count, result);
    }
    bench_close(&bench);
}
