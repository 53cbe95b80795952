/*
 * gate_emulation.c - the emulation gate: races and waits are right under every order the hardware may choose.
 *
 * A CUDA candidate is compiled for the emulated device (cuda_emulation.h) and runs there problems of two kinds (emulation_problems.h)
 * that share the time of the policy: small ones that cover all fields of a problem, in two orders each, and larger ones in which rings
 * of stages and grids go round, in every order (side by side, last first, first first, shuffled; copies late and early). All orders
 * have to give the same bits, which are judged against the oracle; wrong numbers are diagnosed there as the oracle gate does. What the emulated device checks on the way is at the head of its
 * clocks.cpp. An image is compiled when the first problem needs it.
 *
 * Every feature that the manifest takes, every dtype, dim and architecture has to be in a problem that was run: the gate takes up to
 * LATEST times its time for that, and is INCONCLUSIVE if it is not enough.
 *
 * details: devices (compute capabilities), images, different, compiled, compile_seconds, orders, problems [{problem, contents, seed,
 * device, orders, verdict, note}], refused (problems that the library does not take), launches, accesses, left_out (larger problems that
 * did not fit), not_run (features), diagnosis (of wrong numbers, as in the oracle gate; null: none).
 */
#include <inttypes.h>
#include <stdarg.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "theory/repeated_call.h"
#include "cuda_emulation.h"
#include "emulation_problems.h"
#include "judge/examine.h"
#include "run/far_strides.h"
#include "gate.h"
#include "theory/visible_fields.h"
#include "theory/out_of_range.h"
#include "theory/relations.h"
#include "theory/stages.h"

enum { MOST_WORKERS = 16, FIRST_COVERING = 8, LATEST = 3, ENOUGH_REFUSED = 12, SERVED_BY_ONE = 12 };

#define MOST_DIAGNOSED 1.5 /* seconds of processor time of one run: the stage oracle asks for dozens */

struct task {
    struct emulation_problem of;
    enum verdict verdict; /* NOT APPLICABLE: refused by the library */
    bool run, diagnosed;
    double max_error; /* of O, in the first order; -1: not finite */
    double seconds;   /* of processor time, of one order */
    bool observed[COVERING_FIELDS];
    char note[900];
};

/* What the problems that were run had. */
struct met {
    uint64_t flags;
    int refused[64]; /* problems with a flag that the library refused */
    bool groups[EMULATION_MOST_GROUPS], devices[EMULATION_MOST_DEVICES], o32, dimv;
};

struct emulated_gate {
    struct proof *proof;
    struct cuda_emulation emulation;
    struct emulation_problems *problems;
    double seconds;
    int threads;
    double spent[EMULATION_KINDS];
    bool ended[EMULATION_KINDS];
    int taken[EMULATION_KINDS];
    struct met met;
    atomic_bool asked_low[EMULATION_MOST_GROUPS]; /* run_low_bias */
    json_t *list;                                 /* of problems that were run */
    json_t *diagnosis;                            /* of the first wrong numbers; NULL: none */
    int right, refused;
    bool unknown, failed;
    enum verdict verdict; /* of the failure, and its sentence */
    char sentence[2600];
    int64_t launches, accesses;
};

/* ---- what has to be run ------------------------------------------------------------------------------------------------ */

static void note_met(struct emulated_gate *gate, const struct emulation_problem *of)
{
    struct met *met = &gate->met;
    met->flags |= of->problem.flags;
    met->groups[of->group] = true;
    met->o32 = met->o32 || of->problem.dtype_o != of->problem.dtype;
    met->dimv = met->dimv || of->problem.dim_v != of->problem.dim;
    for (int i = 0; i < gate->emulation.device_count; i++)
        met->devices[i] = met->devices[i] || gate->emulation.devices[i] == of->device;
}

struct words {
    char *text;
    size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void add_words(struct words *words, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (words->used && words->used < words->size)
        words->used += (size_t)snprintf(words->text + words->used, words->size - words->used, ", ");
    if (words->used < words->size)
        words->used += (size_t)vsnprintf(words->text + words->used, words->size - words->used, format, arguments);
    va_end(arguments);
}

/* Whether the manifest takes some problem with a feature. */
static bool takes_feature(const struct emulated_gate *gate, const struct cuda_feature *feature)
{
    static const struct {
        const char *word, *text;
    } values[] = {
        {"wl", "wl=3"},       {"wr", "wr=3"}, {"softcap", "softcap=2"}, {"varlenq", "varlenq=2"}, {"varlenkv", "varlenkv=40"},
        {"page", "page=64,4"}};
    const char *word = feature->word;
    for (int i = 0; i < COUNT_OF(values); i++)
        word = strcmp(values[i].word, word) == 0 ? values[i].text : word;
    for (int i = 0; i < gate->emulation.group_count; i++) {
        attest_problem problem;
        char text[ATTEST_PROBLEM_TEXT];
        snprintf(text, sizeof text, "fwd:%s:b2:h2:sq1:skv40:d%d:%s", cuda_dtype_name(gate->emulation.groups[i].dtype),
                 gate->emulation.groups[i].dim, word);
        if (attest_problem_parse(text, &problem, NULL, 0) == ATTEST_OK && gate_takes(gate->proof, &problem))
            return true;
    }
    return false;
}

/* Writes what is missing, separated by commas; returns whether anything is. */
static bool list_missing(const struct emulated_gate *gate, char *text, size_t size)
{
    const struct cuda_manifest *manifest = gate->proof->manifest;
    const struct met *met = &gate->met;
    struct words words = {text, size, 0};
    text[0] = '\0';
    for (int i = 0; i < cuda_feature_count; i++)
        if (!(met->flags & cuda_features[i].flag) && takes_feature(gate, &cuda_features[i]) &&
            met->refused[__builtin_ctzll(cuda_features[i].flag)] < ENOUGH_REFUSED)
            add_words(&words, "%s", cuda_features[i].said);
    bool narrow = false;
    for (int i = 0; i < gate->emulation.group_count; i++) {
        const struct emulation_group *group = &gate->emulation.groups[i];
        narrow = narrow || group->dtype != ATTEST_F32;
        if (!met->groups[i])
            add_words(&words, "%s with dim %d", cuda_dtype_name(group->dtype), group->dim);
    }
    for (int i = 0; i < gate->emulation.device_count; i++)
        if (!met->devices[i])
            add_words(&words, "compute capability %d.%d", gate->emulation.devices[i] / 10, gate->emulation.devices[i] % 10);
    if (narrow && !manifest->refuses_o32 && !met->o32)
        add_words(&words, "an O of another type than Q");
    if (manifest->padding && !manifest->refuses_dimv && !met->dimv)
        add_words(&words, "a dim_v that differs from dim");
    return words.used > 0;
}

/* What the library never takes with this kernel, whatever its manifest says, cannot be run. */
static void note_refused(struct emulated_gate *gate, const attest_problem *problem)
{
    for (int bit = 0; bit < 64; bit++)
        gate->met.refused[bit] += (int)(problem->flags >> bit & 1);
}

/* ---- running ----------------------------------------------------------------------------------------------------------- */

/* Of this thread and of the worker: other work of the machine does not make a gate see less. */
static double processor_seconds(struct executor *executor)
{
    struct timespec own;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
    return (double)own.tv_sec + 1e-9 * (double)own.tv_nsec + (executor ? executor_processor_seconds(executor) : 0);
}

static void fail(struct task *task, const char *sentence)
{
    task->verdict = VERDICT_FAIL;
    snprintf(task->note, sizeof task->note, "%s", sentence);
}

/* With what the emulated device noted, which may be the cause. */
static void fail_with_note(struct task *task, const char *sentence, struct executor *executor)
{
    char why[400];
    fail(task, sentence);
    if (cuda_emulation_torn(executor, why, sizeof why))
        snprintf(task->note, sizeof task->note, "%.230s; it may be that %.380s", sentence, why);
}

/* Asks the stage oracle about one problem, and puts its answer in `found` if it names fewer stages than what is there. */
static void ask_stages(struct emulated_gate *gate, struct executor *executor, const attest_problem *problem, uint64_t seed,
                       unsigned *stages, char *found, size_t size)
{
    struct diagnosis diagnosis;
    char why[400], *folder = gate_path(gate->proof, "emulation");
    if (stages_diagnose(stages_subject(executor), problem, seed, folder, &diagnosis, why, sizeof why)) {
        if (diagnosis.wrong && (!*stages || __builtin_popcount(diagnosis.stages) < __builtin_popcount(*stages))) {
            *stages = diagnosis.stages;
            diagnosis_sentence(&diagnosis, found, size);
            json_decref(gate->diagnosis);
            gate->diagnosis = diagnosis_json(&diagnosis);
        }
        diagnosis_free(&diagnosis);
    }
    free(folder);
}

/* Which stage is the first to go wrong, from the stage oracle on the emulated device, is added to the note. It is asked about the problem
 * that came out wrong, and, where that is too small to tell stages apart or too large to be run often, about one with several tiles. It chooses inputs of its own: if
 * all stages are right with those, there is nothing to add. */
static void diagnose(struct emulated_gate *gate, struct task *task, struct executor *executor)
{
    const struct emulation_group *group = &gate->emulation.groups[task->of.group];
    attest_problem larger;
    unsigned stages = 0;
    char text[ATTEST_PROBLEM_TEXT], found[400];
    bool mine = false;
#pragma omp critical(emulated_tasks)
    if (!gate->proof->terse && !gate->failed && !gate->diagnosis)
        mine = (gate->diagnosis = json_null()) != NULL;
    if (!mine)
        return;
    if (task->seconds < MOST_DIAGNOSED)
        ask_stages(gate, executor, &task->of.problem, task->of.seed, &stages, found, sizeof found);
    snprintf(text, sizeof text, "fwd:%s:b1:hq2:hkv1:sq35:skv150:d%d%s", cuda_dtype_name(group->dtype), group->dim,
             gate->proof->facts.refuses & ATTEST_LSE ? "" : ":lse");
    if (__builtin_popcount(stages) != 1 && attest_problem_parse(text, &larger, NULL, 0) == ATTEST_OK &&
        gate_takes(gate->proof, &larger))
        ask_stages(gate, executor, &larger, task->of.seed, &stages, found, sizeof found);
    if (stages) {
        size_t used = strlen(task->note);
        snprintf(task->note + used, sizeof task->note - used, "; %s", found);
        task->diagnosed = true;
    }
}

/* Judges the bits of the first order, before others are run. */
static bool judge_first(struct task *task, struct exam *exam, struct outputs *first, struct executor *executor)
{
    struct finding finding = {0};
    task->verdict = exam_judge(exam, first, &finding);
    task->max_error = isfinite(finding.max_error) ? finding.max_error : -1;
    snprintf(task->note, sizeof task->note, "%s", finding.what);
    if (task->verdict == VERDICT_FAIL)
        fail_with_note(task, finding.what, executor);
    if (task->verdict == VERDICT_INCONCLUSIVE) /* the inputs tell little of the numbers; races were looked for all the same */
        task->verdict = VERDICT_PASS;
    return task->verdict == VERDICT_PASS;
}

/* Whether the worker is still there after a run that was `about` something. If not, what the emulated device said is why the task fails. */
static bool still_there(struct emulated_gate *gate, struct task *task, struct executor *executor, const struct execution *execution,
                        const char *about)
{
    char why[640], sentence[800];
    if (execution_survived(execution))
        return true;
    const enum emulation_finding finding = cuda_emulation_finding(executor, why, sizeof why);
    if (finding == FINDING_NONE)
        snprintf(why, sizeof why, "%s", execution->sentence);
    gate->unknown = gate->unknown || finding == FINDING_UNKNOWN;
    snprintf(sentence, sizeof sentence, "%s%s", about, why);
    fail(task, sentence);
    if (finding == FINDING_EXHAUSTED)
        task->verdict = VERDICT_INCONCLUSIVE;
    return false;
}

/* One sequence alone, as a dense problem, which has the same bits if the problem is ATTEST_INVARIANT. False if the worker is gone. */
static bool run_alone(struct emulated_gate *gate, struct task *task, const struct exam *exam, const struct outputs *first,
                      struct executor *executor)
{
    const int64_t batch = exam->inputs.problem.batch, sequence = batch ? (int64_t)(task->of.seed % (uint64_t)batch) : -1;
    struct execution execution = {.end = EXECUTION_REFUSED};
    char what[256] = "", why[400];
    bool same =
        sequence < 0 || same_alone(executor_subject(executor), &exam->inputs, first, sequence, &execution, what, sizeof what);
    if (!same) {
        snprintf(why, sizeof why, "other bits if sequence %lld is computed alone (%s)", (long long)sequence, what);
        fail(task, why);
    }
    return still_there(gate, task, executor, &execution, "with one sequence alone: ");
}

/* Lengths and pages out of range. False if the worker is gone. */
static bool run_out_of_range(struct emulated_gate *gate, struct task *task, const struct exam *exam, const struct outputs *first,
                             struct executor *executor)
{
    struct execution execution;
    char why[640] = "";
    if (!right_out_of_range(executor_subject(executor), &exam->inputs, first, task->of.seed, &execution, why, sizeof why))
        fail(task, why);
    return still_there(gate, task, executor, &execution,
                       "with lengths or pages on the device that are out of range, which are to be clamped: ");
}

/* Once for each group: a bias that is low and the same for all keys of a row hides nothing. False if the worker is gone. */
static bool run_low_bias(struct emulated_gate *gate, struct task *task, struct executor *executor)
{
    const struct emulation_group *group = &gate->emulation.groups[task->of.group];
    struct relation_verdict found;
    attest_problem problem;
    char text[96], why[800];
    snprintf(text, sizeof text, "fwd:%s:b1:hq2:hkv1:sq5:skv70:d%d:lse", cuda_dtype_name(group->dtype), group->dim);
    if (gate->proof->policy.emulation_low_bias == 0 || attest_problem_parse(text, &problem, NULL, 0) != ATTEST_OK ||
        atomic_exchange(&gate->asked_low[task->of.group], true))
        return true;
    relation_check(relation_find("a bias that is low and the same for all keys"), executor_subject(executor),
                   gate_taker(gate->proof), &problem, true, task->of.seed, &found);
    if (found.verdict != VERDICT_FAIL)
        return true;
    snprintf(why, sizeof why, "with a bias that is low and the same for all keys of a row, %s: %s", text, found.sentence);
    fail(task, why);
    return found.end == EXECUTION_DONE;
}

/* One problem in its orders. False if the worker is gone. */
static bool run_task(struct emulated_gate *gate, struct task *task, struct executor *executor)
{
    const struct emulation_problem *of = &task->of;
    struct exam exam;
    struct outputs first = {0}, again = {0};
    struct execution execution;
    char why[640];
    const int slot = 0;
    bool there = true;
    if (of->kind == EMULATION_COVERING || of->filled
            ? !exam_make_quick(&exam, &of->problem, of->seed, &of->contents, NULL, 1, why, sizeof why)
            : !exam_make(&exam, &of->problem, of->seed, NULL, 0, 1, why, sizeof why))
        return true;
    if (!outputs_make(&first, &exam.inputs) || !outputs_make(&again, &exam.inputs))
        goto out;
    there = executor_load(executor, slot, &exam.inputs, &execution);
    if (!there) {
        there = execution_survived(&execution);
        if (!there)
            fail(task, execution.sentence);
        else if (execution.end == EXECUTION_LACKING) /* the record says so */
            snprintf(task->note, sizeof task->note, "not run: %s", execution.sentence);
        goto out;
    }
    for (int order = 0; order < of->orders; order++) {
        struct outputs *outputs = order ? &again : &first;
        executor_poison(executor, slot, 0xff);
        const double begin = processor_seconds(executor);
        execution = executor_run(executor, &slot, 1, 0x5a + order);
        task->seconds = processor_seconds(executor) - begin;
        task->run = true;
        if (execution.end != EXECUTION_DONE) {
            if (still_there(gate, task, executor, &execution, ""))
                fail(task, execution.sentence);
            there = false;
            goto out;
        }
        if (!executor_intact(executor, slot, why, sizeof why)) {
            fail(task, why);
            goto out;
        }
        executor_copy(executor, slot, outputs);
        if (order && !outputs_equal(&first, &again)) {
            fail_with_note(task, "the bits depend on the order of warps and copies, or on what was in shared memory before",
                           executor);
            goto out;
        }
        if (!order && !judge_first(task, &exam, &first, executor)) {
            if (!of->far) /* with offsets that fit, all stages may be right */
                diagnose(gate, task, executor);
            goto out;
        }
        if (!order && of->kind == EMULATION_COVERING)
            observed_fields(&exam, of->row, task->observed);
    }
    if (of->problem.flags & ATTEST_INVARIANT && !contents_special(&of->contents))
        there = run_alone(gate, task, &exam, &first, executor);
    if (there && task->verdict == VERDICT_PASS && of->kind == EMULATION_COVERING && !contents_special(&of->contents))
        there = run_out_of_range(gate, task, &exam, &first, executor) && run_low_bias(gate, task, executor);
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

/* The kind that had less of the time; a few small problems come first, because they reject most of what is wrong. */
static bool take_kind(struct emulated_gate *gate, enum emulation_kind kind, struct task *task)
{
    gate->ended[kind] = gate->ended[kind] || !emulation_problems_next(gate->problems, kind, &task->of);
    gate->taken[kind] += !gate->ended[kind];
    return !gate->ended[kind];
}

/* Of the time for problems; compiling is not counted. */
static double seconds_passed(const struct emulated_gate *gate)
{
    return (gate->spent[EMULATION_COVERING] + gate->spent[EMULATION_TELLING]) / gate->threads;
}

static bool take_task(struct emulated_gate *gate, struct task *task)
{
    char missing[32];
    bool taken = false;
    *task = (struct task){.verdict = VERDICT_NOT_APPLICABLE};
#pragma omp critical(emulated_tasks)
    {
        double passed = seconds_passed(gate);
        bool over = passed > gate->seconds && (!list_missing(gate, missing, sizeof missing) || passed > LATEST * gate->seconds);
        enum emulation_kind kind =
            gate->taken[EMULATION_COVERING] < FIRST_COVERING || gate->spent[EMULATION_COVERING] <= gate->spent[EMULATION_TELLING]
                ? EMULATION_COVERING
                : EMULATION_TELLING;
        if (!over && !gate->failed)
            taken = take_kind(gate, kind, task) || take_kind(gate, 1 - kind, task);
    }
    return taken;
}

static void add_result(struct emulated_gate *gate, const struct task *task, double seconds)
{
    const struct emulation_problem *of = &task->of;
    char text[ATTEST_PROBLEM_TEXT] = "", contents[CONTENTS_TEXT] = "";
    struct far_spread spreads[TENSORS_MOST];
    const attest_problem problem = of->far ? far_strides(&of->problem, spreads) : of->problem;
    attest_problem_print(&problem, text, sizeof text);
    if (of->kind == EMULATION_COVERING || of->filled)
        contents_print(&of->contents, contents);
#pragma omp critical(emulated_tasks)
    {
        gate->spent[of->kind] += seconds;
        gate->right += task->run && task->verdict == VERDICT_PASS;
        if (!task->run && task->verdict == VERDICT_NOT_APPLICABLE) {
            gate->refused++;
            note_refused(gate, &of->problem);
        }
        if (task->run || *task->note)
            json_add(gate->list,
                     json_pack("{s:s, s:s, s:I, s:i, s:i, s:s, s:s, s:f, s:f}", "problem", text, "contents", contents, "seed",
                               (json_int_t)of->seed, "device", of->device, "orders", of->orders, "verdict",
                               verdict_name(task->verdict), "note", task->note, "max_error", task->max_error, "seconds", seconds));
        if (task->run) {
            note_met(gate, of);
            emulation_problems_mark(gate->problems, of, task->observed);
        }
        /* The first failure is told, or the one that has a diagnosis, which takes longer than others take to fail. */
        if ((!gate->failed || task->diagnosed) && (task->verdict == VERDICT_FAIL || task->verdict == VERDICT_INCONCLUSIVE)) {
            gate->failed = true;
            gate->verdict = task->verdict;
            snprintf(gate->sentence, sizeof gate->sentence, "%.750s, on %s%s%s (seed %" PRIu64 ")", task->note, text,
                     *contents ? " with " : "", contents, of->seed);
        }
    }
}

/* Images that do not compile end the gate. */
static bool has_images(struct emulated_gate *gate, int group)
{
    char why[512];
    enum verdict verdict = cuda_emulation_compile(gate->proof, &gate->emulation, group, why, sizeof why);
    if (verdict == VERDICT_PASS)
        return true;
#pragma omp critical(emulated_tasks)
    if (!gate->failed) {
        gate->failed = true;
        gate->verdict = verdict;
        snprintf(gate->sentence, sizeof gate->sentence, "%s", why);
    }
    return false;
}

/* A worker for each device and group of images that this thread meets; after a while another one, whose device has another number of
 * multiprocessors. */
static void work(struct emulated_gate *gate)
{
    struct executor *executors[EMULATION_MOST_GROUPS][EMULATION_MOST_DEVICES] = {{0}};
    int served[EMULATION_MOST_GROUPS][EMULATION_MOST_DEVICES] = {{0}};
    struct task task;
    while (take_task(gate, &task)) {
        struct execution execution;
        int device = 0;
        while (gate->emulation.devices[device] != task.of.device)
            device++;
        if (!has_images(gate, task.of.group))
            break;
        struct executor *far = NULL, **executor = task.of.far ? &far : &executors[task.of.group][device];
        double begin = processor_seconds(*executor), spent = 0;
        if (!*executor)
            *executor = cuda_emulation_open(gate->proof, &gate->emulation, task.of.group, task.of.device,
                                            task.of.far ? GUARD_FAR : GUARD_BANDS, &execution);
        if (!*executor) {
            task.verdict = execution.end == EXECUTION_LACKING ? VERDICT_INCONCLUSIVE : VERDICT_FAIL;
            snprintf(task.note, sizeof task.note, "%s", execution.sentence);
        } else {
            bool there = run_task(gate, &task, *executor);
            spent = processor_seconds(*executor) - begin;
            if (!there || task.of.far || ++served[task.of.group][device] % SERVED_BY_ONE == 0) {
                end_worker(gate, *executor);
                *executor = NULL;
            }
        }
        add_result(gate, &task, spent > 0 ? spent : 0);
    }
    for (int group = 0; group < EMULATION_MOST_GROUPS; group++)
        for (int i = 0; i < EMULATION_MOST_DEVICES; i++)
            end_worker(gate, executors[group][i]);
}

/* ---- the gate ---------------------------------------------------------------------------------------------------------- */

static void describe(const struct emulated_gate *gate, struct gate_result *result, const char *missing)
{
    const struct cuda_emulation *emulation = &gate->emulation;
    json_t *devices = json_array();
    for (int i = 0; i < emulation->device_count; i++)
        json_add(devices, json_integer(emulation->devices[i]));
    json_put(result->details, "devices", devices);
    json_put(result->details, "images", json_integer(emulation->images));
    json_put(result->details, "different", json_integer(emulation->different));
    json_put(result->details, "compiled", json_integer(emulation->compiled));
    json_put(result->details, "compile_seconds", json_real(emulation->seconds));
    json_put(result->details, "orders", json_integer(EMULATION_ORDERS));
    json_put(result->details, "problems", json_incref(gate->list));
    json_put(result->details, "refused", json_integer(gate->refused));
    json_put(result->details, "launches", json_integer(gate->launches));
    json_put(result->details, "accesses", json_integer(gate->accesses));
    json_put(result->details, "left_out", json_integer(emulation_problems_left(gate->problems)));
    json_put(result->details, "not_run", json_string(missing));
    json_put(result->details, "diagnosis", gate->diagnosis ? json_incref(gate->diagnosis) : json_null());
}

static void conclude(struct emulated_gate *gate, struct gate_result *result)
{
    char rest[96] = "", missing[300];
    const int left = emulation_problems_left(gate->problems);
    bool incomplete = list_missing(gate, missing, sizeof missing);
    describe(gate, result, missing);
    if (left)
        snprintf(rest, sizeof rest, "; %d larger problems did not fit in %.0f s", left, gate->seconds);
    if (gate->failed && gate->unknown)
        gate_say(result, VERDICT_NOT_APPLICABLE, "it uses PTX outside of the vocabulary that is emulated: %.900s", gate->sentence);
    else if (gate->failed)
        gate_say(result, gate->verdict, "%s", gate->sentence);
    else if (!gate->right)
        gate_say(result, VERDICT_INCONCLUSIVE, "nothing was run in emulation%s", rest);
    else if (incomplete)
        gate_say(
            result, VERDICT_INCONCLUSIVE,
            "the manifest takes what no problem of %.0f s in emulation had: %.300s; refuse it there, or give more time (--policy "
            "emulation_seconds=%.0f)",
            seconds_passed(gate), missing, 4 * gate->seconds);
    else
        gate_say(result, VERDICT_PASS,
                 "no race, no wait for what does not come, nothing read that was not written: %d problems in %d orders, %" PRId64
                 " launches, %" PRId64 " million accesses checked in %.0f s%s",
                 gate->right, EMULATION_ORDERS, gate->launches, gate->accesses / 1000000, seconds_passed(gate), rest);
}

void gate_emulation(struct proof *proof, struct gate_result *result)
{
    struct emulated_gate gate = {.proof = proof, .seconds = proof->policy.emulation_seconds, .list = json_array()};
    char why[512];
    if (!proof->candidate.cuda) {
        gate_say(result, VERDICT_NOT_APPLICABLE, "a kernel for CPUs has no device code");
    } else if (!proof->candidate.source || !proof->manifest) {
        gate_say(result, VERDICT_NOT_APPLICABLE, "it was built elsewhere: without its source it cannot be emulated");
    } else {
        enum verdict verdict = cuda_emulation_prepare(proof, &gate.emulation, why, sizeof why);
        gate.problems = verdict == VERDICT_PASS ? emulation_problems_make(proof, &gate.emulation) : NULL;
        if (verdict != VERDICT_PASS) {
            gate_say(result, verdict, "%s", why);
        } else if (!gate.problems) {
            gate_say(result, VERDICT_INCONCLUSIVE, "out of memory");
        } else {
            gate.threads = proof->threads < 1 ? 1 : proof->threads > MOST_WORKERS ? MOST_WORKERS : proof->threads;
#pragma omp parallel num_threads(gate.threads)
            work(&gate);
            conclude(&gate, result);
        }
        emulation_problems_free(gate.problems);
        cuda_emulation_free(&gate.emulation);
    }
    json_decref(gate.list);
    json_decref(gate.diagnosis);
}
