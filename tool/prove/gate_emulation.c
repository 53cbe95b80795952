/*
 * gate_emulation.c - the emulation gate: races and waits are right under every order the hardware may choose.
 *
 * A CUDA candidate is compiled for the emulated device (cuda_emulation.h) and runs there problems of three kinds, most telling
 * first: more key blocks than three times the ring of stages, more tiles than four times the blocks that are resident, and keys in
 * pieces, for each image that differs from the others; every feature that the manifest does not refuse; and problems of the suite, drawn by the seed, until the time of the policy
 * is over. Each runs in every order (side by side, last first, first first, shuffled; copies late and early) and has to give the
 * same bits, which are judged against the oracle. What the emulated device checks on the way is at the head of its clocks.cpp.
 *
 * details: device (compute capabilities), images, compiled, orders, problems [{problem, device, verdict, note}], launches, accesses,
 * compile_seconds, left_out (problems that did not fit).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda_emulation.h"
#include "examine.h"
#include "gate.h"
#include "random.h"

enum { MOST_TASKS = 400, MOST_WORKERS = 16, SEED_STREAM = 71 };

struct task {
    char text[ATTEST_PROBLEM_TEXT];
    attest_problem problem;
    int device;
    enum verdict verdict; /* NOT APPLICABLE: refused by the library, or not run */
    bool run;
    char note[640];
};

struct emulated_gate {
    struct proof *proof;
    struct cuda_emulation emulation;
    struct task *tasks;
    int count, next;
    double begin, seconds;
    bool over, unknown;
    int failed; /* task, or -1 */
    int64_t launches, accesses;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- problems ---------------------------------------------------------------------------------------------------------- */

static bool add_task(struct emulated_gate *gate, const char *text, int device)
{
    attest_problem problem;
    if (gate->count == MOST_TASKS || attest_problem_parse(text, &problem, NULL, 0) != ATTEST_OK ||
        !gate_takes(gate->proof, &problem))
        return false;
    for (int i = 0; i < gate->count; i++)
        if (gate->tasks[i].device == device && strcmp(gate->tasks[i].text, text) == 0)
            return false;
    struct task *task = &gate->tasks[gate->count++];
    *task = (struct task){.problem = problem, .device = device, .verdict = VERDICT_NOT_APPLICABLE};
    snprintf(task->text, sizeof task->text, "%s", text);
    return true;
}

/* Adds a problem with as many of the words behind it as the kernel takes; with its LSE if it writes one. */
static void add_with(struct emulated_gate *gate, int device, const char *base, const char *words)
{
    char text[ATTEST_PROBLEM_TEXT];
    snprintf(text, sizeof text, "%s%s:lse", base, words);
    if (add_task(gate, text, device))
        return;
    snprintf(text, sizeof text, "%s%s", base, words);
    add_task(gate, text, device);
}

static void design(struct emulated_gate *gate, const struct cuda_configuration *image, int round)
{
    static const char *const features[] = {
        ":causal",      ":causal:br", ":wl=37:wr=5:br", ":softcap=7.5", ":alibi",      ":bias",
        ":sink:causal", ":lens",      ":o=f32",         ":layout=bshd", ":scale=-0.3", ":invariant",
    };
    const int64_t *n = image->numbers;
    const int tile_kv = (int)n[CUDA_TILE_KV], stages = n[CUDA_STAGES] > 0 ? (int)n[CUDA_STAGES] : 1,
              few = n[CUDA_ROWS_MOST] ? 1 : (int)n[CUDA_TILE_Q] / 2 + 3, device = cuda_limits[image->arch].number;
    const char *dtype = cuda_dtype_name(image->dtype);
    char base[160], words[64];
    if (round == 0) { /* the ring goes round */
        snprintf(base, sizeof base, "fwd:%s:b1:hq2:hkv1:sq%d:skv%d:d%d", dtype, few, tile_kv * (3 * stages + 2) + 5, image->dim);
        add_with(gate, device, base, "");
    } else if (round == 1) { /* the grid goes round, with tiles of all lengths */
        bool persistent = gate->proof->manifest->launch == ATTEST_LAUNCH_PERSISTENT;
        snprintf(base, sizeof base, "fwd:%s:b%d:hq2:hkv1:sq%d:skv%d:d%d", dtype, persistent ? 13 : 2, few, tile_kv + 9, image->dim);
        add_with(gate, device, base, ":causal:br");
    } else if (round == 2) { /* one tile: keys are cut into pieces, of which no row sees the last */
        snprintf(base, sizeof base, "fwd:%s:b1:h1:sq3:skv%d:d%d", dtype, 5 * tile_kv + 5, image->dim);
        add_with(gate, device, base, ":causal");
        add_with(gate, device, base, "");
    } else if (round == 3) {
        snprintf(base, sizeof base, "fwd:%s:b2:hq2:hkv1:sq%d:skv%d:d%d", dtype, few, tile_kv + 9, image->dim);
        snprintf(words, sizeof words, ":page=16,%d:lens", 2 * ((tile_kv + 9 + 15) / 16) + 3);
        add_with(gate, device, base, words);
        snprintf(words, sizeof words, ":varlenq=%d:varlenkv=%d:causal", 2 * few - few / 3, 2 * (tile_kv + 9) - 11);
        add_with(gate, device, base, words);
        snprintf(words, sizeof words, ":page=%d,4", tile_kv + 8);
        add_with(gate, device, base, words);
        snprintf(base, sizeof base, "fwd:%s:b2:h2:sq%d:skv%d:d%d", dtype, few, 3, image->dim - 8);
        add_with(gate, device, base, "");
    } else if (round - 4 < COUNT_OF(features)) {
        snprintf(base, sizeof base, "fwd:%s:b1:hq2:hkv1:sq%d:skv%d:d%d", dtype, few, tile_kv + 9, image->dim);
        add_with(gate, device, base, features[round - 4]);
    }
}

static double work_of(const attest_problem *p)
{
    return (double)p->batch * (double)p->heads_q * (double)(p->seq_q + 8) * (double)(p->seq_kv + 8) * (double)(p->dim + p->dim_v);
}

/* Problems of the suite that are small enough, in an order that the seed draws. */
static void draw_suite(struct emulated_gate *gate)
{
    const struct problem_list *suite = &gate->proof->suite;
    const double most = 3e7;
    for (int n = 0; n < 4 * suite->count; n++) {
        uint64_t bits = random_bits(gate->proof->seed, SEED_STREAM, (uint64_t)n);
        const struct problem_entry *entry = &suite->entries[bits % (uint64_t)suite->count];
        if (work_of(&entry->problem) <= most)
            add_task(gate, entry->text, gate->emulation.devices[(bits >> 32) % (uint64_t)gate->emulation.device_count]);
    }
}

static bool list_tasks(struct emulated_gate *gate)
{
    enum { ROUNDS = 17 };
    gate->tasks = calloc(MOST_TASKS, sizeof *gate->tasks);
    for (int round = 0; gate->tasks && round < ROUNDS; round++)
        for (int i = 0; i < gate->emulation.compiled; i++)
            if (gate->emulation.different[i].tile == 0)
                design(gate, &gate->emulation.different[i], round);
    if (gate->tasks)
        draw_suite(gate);
    return gate->count > 0;
}

/* ---- running ----------------------------------------------------------------------------------------------------------- */

static void fail(struct task *task, const char *sentence)
{
    task->verdict = VERDICT_FAIL;
    snprintf(task->note, sizeof task->note, "%s", sentence);
}

/* One problem in every order. False if the worker is gone. */
static bool run_task(struct emulated_gate *gate, struct task *task, struct executor *executor, uint64_t seed)
{
    struct exam exam;
    struct outputs first = {0}, again = {0};
    struct execution execution;
    struct finding finding;
    char why[640];
    const int slot = 0;
    bool there = true;
    if (!exam_make(&exam, &task->problem, seed, NULL, 0, 1, why, sizeof why))
        return true;
    if (!outputs_make(&first, &exam.inputs) || !outputs_make(&again, &exam.inputs))
        goto out;
    there = executor_load(executor, slot, &exam.inputs, &execution);
    if (!there) {
        there = execution.end == EXECUTION_REFUSED || execution.end == EXECUTION_LACKING;
        if (!there)
            fail(task, execution.sentence);
        goto out;
    }
    for (int order = 0; order < EMULATION_ORDERS; order++) {
        struct outputs *outputs = order ? &again : &first;
        executor_poison(executor, slot, 0xff);
        execution = executor_run(executor, &slot, 1, 0x5a + order);
        task->run = true;
        if (execution.end != EXECUTION_DONE) {
            fail(task, execution.sentence);
            bool unknown = false;
            if (cuda_emulation_finding(executor, why, sizeof why, &unknown))
                fail(task, why);
            gate->unknown = gate->unknown || unknown;
            there = false;
            goto out;
        }
        if (!executor_intact(executor, slot, why, sizeof why)) {
            fail(task, why);
            goto out;
        }
        executor_copy(executor, slot, outputs);
        if (order && !outputs_equal(&first, &again)) {
            fail(task, "the bits depend on the order of warps and copies");
            if (cuda_emulation_torn(executor, why, sizeof why))
                fail(task, why);
            goto out;
        }
    }
    task->verdict = exam_judge(&exam, &first, &finding);
    snprintf(task->note, sizeof task->note, "%s", finding.what);
    if (task->verdict == VERDICT_FAIL && cuda_emulation_torn(executor, why, sizeof why))
        fail(task, why);
    if (task->verdict == VERDICT_INCONCLUSIVE) /* the inputs tell little of the numbers; races were looked for all the same */
        task->verdict = VERDICT_PASS;
out:
    outputs_free(&first);
    outputs_free(&again);
    exam_free(&exam);
    return there;
}

static void end_worker(struct emulated_gate *gate, struct executor *executor)
{
    struct execution execution;
    int64_t launches, accesses;
    if (!executor)
        return;
    executor_end(executor, &execution);
    cuda_emulation_counts(executor, &launches, &accesses);
#pragma omp critical(emulated_counts)
    {
        gate->launches += launches;
        gate->accesses += accesses;
    }
    executor_close(executor, NULL);
}

static int take_task(struct emulated_gate *gate)
{
    int taken = -1;
#pragma omp critical(emulated_tasks)
    {
        gate->over = gate->over || now() - gate->begin > gate->seconds;
        if (!gate->over && gate->failed < 0 && gate->next < gate->count)
            taken = gate->next++;
    }
    return taken;
}

/* A worker for each device that this thread meets. */
static void work(struct emulated_gate *gate)
{
    struct executor *executors[EMULATION_MOST_DEVICES] = {0};
    for (int n; (n = take_task(gate)) >= 0;) {
        struct task *task = &gate->tasks[n];
        struct execution execution;
        int device = 0;
        while (gate->emulation.devices[device] != task->device)
            device++;
        if (!executors[device])
            executors[device] = cuda_emulation_open(gate->proof, &gate->emulation, task->device, -1, &execution);
        if (!executors[device]) {
            task->verdict = execution.end == EXECUTION_LACKING ? VERDICT_INCONCLUSIVE : VERDICT_FAIL;
            snprintf(task->note, sizeof task->note, "%s", execution.sentence);
        } else if (!run_task(gate, task, executors[device], gate->proof->seed + (uint64_t)n)) {
            end_worker(gate, executors[device]);
            executors[device] = NULL;
        }
#pragma omp critical(emulated_tasks)
        if ((task->verdict == VERDICT_FAIL || task->verdict == VERDICT_INCONCLUSIVE) && (gate->failed < 0 || n < gate->failed))
            gate->failed = n;
    }
    for (int i = 0; i < EMULATION_MOST_DEVICES; i++)
        end_worker(gate, executors[i]);
}

/* ---- the gate ---------------------------------------------------------------------------------------------------------- */

static void describe(const struct emulated_gate *gate, struct gate_result *result, int *right, int *left_out)
{
    json_t *problems = json_array();
    *right = *left_out = 0;
    for (int i = 0; i < gate->count; i++) {
        const struct task *task = &gate->tasks[i];
        *right += task->run && task->verdict == VERDICT_PASS;
        *left_out += i >= gate->next;
        if (task->run)
            json_add(problems, json_pack("{s:s, s:i, s:s, s:s}", "problem", task->text, "device", task->device, "verdict",
                                         verdict_name(task->verdict), "note", task->note));
    }
    json_t *devices = json_array();
    for (int i = 0; i < gate->emulation.device_count; i++)
        json_add(devices, json_integer(gate->emulation.devices[i]));
    json_put(result->details, "devices", devices);
    json_put(result->details, "images", json_integer(gate->emulation.images));
    json_put(result->details, "compiled", json_integer(gate->emulation.compiled));
    json_put(result->details, "compile_seconds", json_real(gate->emulation.seconds));
    json_put(result->details, "orders", json_integer(EMULATION_ORDERS));
    json_put(result->details, "problems", problems);
    json_put(result->details, "launches", json_integer(gate->launches));
    json_put(result->details, "accesses", json_integer(gate->accesses));
    json_put(result->details, "left_out", json_integer(*left_out));
}

static void conclude(struct emulated_gate *gate, struct gate_result *result)
{
    int right, left_out;
    char rest[96] = "";
    describe(gate, result, &right, &left_out);
    const struct task *failed = gate->failed >= 0 ? &gate->tasks[gate->failed] : NULL;
    if (left_out)
        snprintf(rest, sizeof rest, "; %d more problems did not fit in %.0f s", left_out, gate->seconds);
    if (failed && gate->unknown)
        gate_say(result, VERDICT_NOT_APPLICABLE, "it uses PTX outside of the vocabulary that is emulated: %.480s", failed->note);
    else if (failed)
        gate_say(result, failed->verdict, "%.480s, on %.140s", failed->note, failed->text);
    else if (!right)
        gate_say(result, VERDICT_INCONCLUSIVE, "nothing was run in emulation%s", rest);
    else
        gate_say(result, VERDICT_PASS,
                 "no race, no wait for what does not come, nothing read that was not written: %d problems in %d orders, %" PRId64
                 " launches, %" PRId64 " million accesses checked in %.0f s%s",
                 right, EMULATION_ORDERS, gate->launches, gate->accesses / 1000000, now() - gate->begin, rest);
}

void gate_emulation(struct proof *proof, struct gate_result *result)
{
    struct emulated_gate gate = {.proof = proof, .failed = -1, .seconds = proof->policy.emulation_seconds};
    char why[512];
    if (!proof->candidate.cuda) {
        gate_say(result, VERDICT_NOT_APPLICABLE, "a kernel for CPUs has no device code");
        return;
    }
    if (!proof->candidate.source || !proof->manifest) {
        gate_say(result, VERDICT_NOT_APPLICABLE, "it was built elsewhere: without its source it cannot be emulated");
        return;
    }
    enum verdict verdict = cuda_emulation_build(proof, &gate.emulation, why, sizeof why);
    gate.begin = now();
    if (verdict != VERDICT_PASS) {
        gate_say(result, verdict, "%s", why);
    } else if (!list_tasks(&gate)) {
        gate_say(result, VERDICT_NOT_APPLICABLE, "it takes none of the problems that are emulated");
    } else {
        int threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
        threads = threads < 1 ? 1 : threads > MOST_WORKERS ? MOST_WORKERS : threads;
#pragma omp parallel num_threads(threads)
        work(&gate);
        conclude(&gate, result);
    }
    free(gate.tasks);
    cuda_emulation_free(&gate.emulation);
}
