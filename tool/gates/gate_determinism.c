/*
 * gate_determinism.c - the determinism gate: same bits every time.
 *
 * For a few problems that between them have every feature, the outputs of the first run are what all others are compared with, to
 * the bit. Further runs come from fresh processes (so all addresses are new), tensors are moved within a process between runs, the
 * workspace and the outputs hold other rubbish each time, threads are 1, 2, 3 and all, and for half of the processes another
 * process keeps the machine busy. Then sequences of batched, packed and paged problems are computed alone, which <attest.h>
 * promises to give the same bits; on a GPU it does so with ATTEST_INVARIANT, which is then set. A GPU has threads of its own, and a
 * process there costs more: there are fewer.
 *
 * details: runs (of each problem), problems, threads, alone (sequences compared), different (null, or problem, where, when).
 */
#include "gate.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "theory/repeated_call.h"
#include "cuda_tools.h"
#include "problem_pick.h"
#include "base/subprocess.h"
#include "base/random.h"
#include "data/same_bits.h"

enum { MOST_PROBLEMS = 6, WORKERS = 6, DEVICE_WORKERS = 3, MOST_ALONE = 3 };
#define MOST_FLOPS 4e7

/* One problem with the outputs that others are compared with. */
struct standard {
    const struct problem_entry *entry;
    struct inputs inputs;
    struct outputs first, again;
};

struct determinism {
    struct proof *proof;
    struct gate_result *result;
    struct standard standards[MOST_PROBLEMS];
    int count;
    int alone;
};

/* Says that the gate is over. Returns false, so that a function can end with it. */
static bool stop(struct determinism *gate, const struct standard *standard, const struct execution *execution)
{
    gate_say(gate->result, execution->end == EXECUTION_LACKING ? VERDICT_INCONCLUSIVE : VERDICT_FAIL, "%.500s, on %s",
             execution->sentence, standard->entry->text);
    return false;
}

static bool differ(struct determinism *gate, const struct standard *standard, const char *when, const char *what)
{
    json_put(gate->result->details, "different",
             json_pack("{s:s, s:s, s:s}", "problem", standard->entry->text, "where", what, "when", when));
    gate_say(gate->result, VERDICT_FAIL, "other bits %s: %s, on %s", when, what, standard->entry->text);
    return false;
}

/* ---- the busy process ----------------------------------------------------------------------------------------------- */

/* A process that reads and writes memory until it is killed; for a GPU one that runs the candidate there, again and again. */
static pid_t start_load(const struct determinism *gate)
{
    static volatile unsigned char memory[1 << 22];
    struct cuda_worker_command *command = gate->proof->device ? calloc(1, sizeof *command) : NULL;
    const attest_problem *problem = &gate->standards[0].entry->problem;
    bool gpu = command && cuda_worker_make(gate->proof, &problem, 1, command);
    pid_t child = subprocess_fork(SIGKILL);
    if (child != 0) {
        free(command);
        return child;
    }
    if (gpu) {
        int count = 0, null = open("/dev/null", O_RDWR);
        while (command->argv[count])
            count++;
        command->argv[count] = "--keep-going";
        dup2(null, 1);
        dup2(null, 2);
        execv(command->program, (char *const *)(uintptr_t)command->argv);
        _exit(127);
    }
    for (size_t i = 0;; i = (i * 5 + 4097) % sizeof memory)
        memory[i]++;
}

/* ---- runs ----------------------------------------------------------------------------------------------------------- */

static bool run_once(struct determinism *gate, struct executor *executor, struct standard *standard, int number, bool move)
{
    struct execution execution;
    int slot = 0, rubbish = (int)(random_bits(gate->proof->seed, 31, (uint64_t)number) & 0xff);
    if (move && !executor_load(executor, slot, &standard->inputs, &execution))
        return stop(gate, standard, &execution);
    executor_poison(executor, slot, EXECUTOR_DRAWN);
    execution = executor_run(executor, &slot, 1, number % 2 ? rubbish : EXECUTOR_DRAWN);
    if (execution.end != EXECUTION_DONE)
        return stop(gate, standard, &execution);
    executor_copy(executor, slot, number == 0 ? &standard->first : &standard->again);
    return true;
}

/* The runs of one process on one problem. Tensors move before every other run. */
static bool run_some(struct determinism *gate, struct executor *executor, struct standard *standard, int worker, int threads,
                     int runs, bool loaded)
{
    struct computed first = {&standard->inputs, &standard->first}, again = {&standard->inputs, &standard->again};
    char what[256], when[128];
    for (int i = 0; i < runs; i++) {
        int number = worker * runs + i;
        if (!run_once(gate, executor, standard, number, i % 2 == 0))
            return false;
        if (number == 0 || same_bits(first, again, what, sizeof what))
            continue;
        char with[48] = "";
        if (!gate->proof->device)
            snprintf(with, sizeof with, ", with %d thread%s", threads, threads == 1 ? "" : "s");
        snprintf(when, sizeof when, "in run %d%s%s%s", number + 1, with, worker ? " in another process" : "",
                 loaded ? " on a busy machine" : "");
        return differ(gate, standard, when, what);
    }
    return true;
}

static struct executor *open_worker(struct determinism *gate, int threads)
{
    int all = gate->proof->threads;
    gate->proof->threads = threads;
    struct executor *executor = gate_open(gate->proof, GUARD_DRAWN, gate->result);
    gate->proof->threads = all;
    return executor;
}

static bool run_worker(struct determinism *gate, int worker, int threads, int runs)
{
    bool loaded = worker % 2 == 1, good = true;
    struct executor *executor = open_worker(gate, threads);
    if (!executor)
        return false;
    pid_t load = loaded ? start_load(gate) : 0;
    for (int i = 0; i < gate->count && good; i++)
        good = run_some(gate, executor, &gate->standards[i], worker, threads, runs, loaded);
    subprocess_end(load);
    executor_close(executor, NULL);
    return good;
}

/* ---- sequences alone ------------------------------------------------------------------------------------------------ */

static bool compare_alone(struct determinism *gate, struct executor *executor, struct standard *standard, int64_t sequence)
{
    struct execution execution;
    char what[256] = "", when[64];
    bool same =
        same_alone(executor_subject(executor), &standard->inputs, &standard->first, sequence, &execution, what, sizeof what);
    gate->alone += execution.end == EXECUTION_DONE;
    snprintf(when, sizeof when, "if sequence %lld is computed alone", (long long)sequence);
    if (!same)
        return differ(gate, standard, when, what);
    return execution.end == EXECUTION_DONE || execution.end == EXECUTION_REFUSED || stop(gate, standard, &execution);
}

/* On a GPU bits may depend on the batch unless the problem says that they must not: computes it once more, saying so. False if the
 * kernel does not take it, or it ended badly. */
static bool make_invariant(struct determinism *gate, struct executor *executor, struct standard *standard, bool *good)
{
    struct execution execution;
    int slot = 0;
    if (!gate->proof->device)
        return true;
    standard->inputs.problem.flags |= ATTEST_INVARIANT;
    if (!gate_takes(gate->proof, &standard->inputs.problem))
        return false;
    if (executor_load(executor, slot, &standard->inputs, &execution))
        execution = executor_run(executor, &slot, 1, EXECUTOR_DRAWN);
    if (execution.end == EXECUTION_DONE)
        executor_copy(executor, slot, &standard->first);
    else if (execution.end != EXECUTION_REFUSED)
        *good = stop(gate, standard, &execution);
    return execution.end == EXECUTION_DONE;
}

/* The first, the last and a middle sequence of each problem that has several, or that is packed or paged. */
static bool run_alone(struct determinism *gate)
{
    struct executor *executor = open_worker(gate, gate->proof->threads);
    bool good = executor != NULL;
    for (int i = 0; i < gate->count && good; i++) {
        struct standard *standard = &gate->standards[i];
        int64_t batch = standard->inputs.problem.batch, before = -1;
        if (!make_invariant(gate, executor, standard, &good))
            continue;
        for (int64_t n = 0; n < MOST_ALONE && good; n++) {
            int64_t sequence = n * (batch - 1) / (MOST_ALONE - 1);
            if (sequence > before)
                good = compare_alone(gate, executor, standard, sequence);
            before = sequence;
        }
    }
    executor_close(executor, NULL);
    return good;
}

/* ---- the gate ------------------------------------------------------------------------------------------------------- */

/* True if anything is to be compared. */
static bool make_standards(struct determinism *gate)
{
    const struct problem_entry *picked[MOST_PROBLEMS];
    int count = pick_problems(gate->proof, MOST_FLOPS, picked, MOST_PROBLEMS);
    json_t *names = json_array();
    for (int i = 0; i < count; i++) {
        struct standard *standard = &gate->standards[gate->count];
        enum exit_code code;
        char why[512];
        standard->entry = picked[i];
        if (!inputs_make(&picked[i]->problem, gate->proof->seed, NULL, &standard->inputs, &code, why, sizeof why))
            continue;
        if (!outputs_make(&standard->first, &standard->inputs) || !outputs_make(&standard->again, &standard->inputs)) {
            outputs_free(&standard->first);
            inputs_free(&standard->inputs);
            continue;
        }
        gate->count++;
        json_add(names, json_string(picked[i]->text));
    }
    json_put(gate->result->details, "problems", names);
    return gate->count > 0;
}

static void free_standards(struct determinism *gate)
{
    for (int i = 0; i < gate->count; i++) {
        outputs_free(&gate->standards[i].first);
        outputs_free(&gate->standards[i].again);
        inputs_free(&gate->standards[i].inputs);
    }
}

void gate_determinism(struct proof *proof, struct gate_result *result)
{
    struct determinism gate = {.proof = proof, .result = result};
    const int all = proof->threads, threads[WORKERS] = {all, all, 1, 2, 3, all};
    const int workers = proof->device ? DEVICE_WORKERS : WORKERS;
    int runs = ((int)proof->policy.determinism_runs + workers - 1) / workers;
    bool good = true;
    /* For the facts that the choice of problems needs; those of a CUDA kernel are in its manifest. */
    struct executor *executor = proof->manifest ? NULL : gate_open(proof, GUARD_DRAWN, result);
    if (!executor && !proof->manifest)
        return;
    executor_close(executor, NULL);
    if (!make_standards(&gate)) {
        gate_say(result, VERDICT_NOT_APPLICABLE,
                 "it takes none of the problems of the suite that are small enough to be run often");
        return;
    }
    json_t *list = json_array();
    for (int i = 0; i < workers && good; i++) {
        good = run_worker(&gate, i, threads[i], runs);
        json_add(list, json_integer(threads[i]));
    }
    good = good && run_alone(&gate);
    json_put(result->details, "runs", json_integer(runs * workers));
    if (proof->device)
        json_decref(list);
    else
        json_put(result->details, "threads", list);
    json_put(result->details, "alone", json_integer(gate.alone));
    if (!json_object_get(result->details, "different"))
        json_put(result->details, "different", json_null());
    if (good)
        gate_say(result, VERDICT_PASS, "the same bits in %d runs of %d problems, in %d processes%s, and for %d sequences alone",
                 runs * workers, gate.count, workers, proof->device ? "" : " with 1, 2, 3 and all threads", gate.alone);
    free_standards(&gate);
}
