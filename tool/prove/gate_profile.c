/*
 * gate_profile.c - the profile gate: runs on the hardware it claims.
 *
 * For a CPU kernel the claim is `needs`, and it is checked in the image itself: the instructions of the feature that it claims are
 * there, and none of a feature that it does not claim, which would stop it with an illegal instruction on a machine it says it runs
 * on. For a CUDA kernel ncu measures it: see cuda_tools.c.
 *
 * Sub-features have names of their own: the assembler knows them all (instruction_sets.c). And the image runs on an emulated processor
 * that has exactly what it declares, as far as qemu-user emulates that.
 *
 * details: instructions {feature: count}, claimed, features (declared, by the assembler's names), checked (distinct instructions),
 * emulated {processor, problems}, or why it was not run.
 */
#include "gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "cuda_tools.h"
#include "examine.h"
#include "instruction_sets.h"
#include "pick.h"

enum { MOST_EMULATED = 3 };
#define EMULATED_FLOPS  3e6
#define EMULATED_SLOWER 10.0 /* an emulated processor gets so many times the time */

/* In the order in which each builds on those before it. */
enum { ISA_AVX2, ISA_AVX512, ISA_AVX512BF16, ISA_AMX, ISA_COUNT };
static const char *const isa_names[] = {"avx2", "avx512", "avx512bf16", "amx"};

/* The feature that a line of a disassembly needs; -1 for plain x86-64. `text` is mnemonic and operands. */
static int isa_of(const char *text)
{
    if (strstr(text, "%tmm") || strncmp(text, "tdp", 3) == 0 || strncmp(text, "tile", 4) == 0 || strncmp(text, "ldtilecfg", 9) == 0)
        return ISA_AMX;
    if (text[0] != 'v' && text[0] != 'k')
        return -1;
    if (strncmp(text, "vdpbf16", 7) == 0 || strncmp(text, "vcvtne", 6) == 0)
        return ISA_AVX512BF16;
    if (strstr(text, "%zmm") || strstr(text, "{%k") || strstr(text, ",%k") || strstr(text, " %k"))
        return ISA_AVX512;
    return strstr(text, "%xmm") || strstr(text, "%ymm") || strncmp(text, "vzero", 5) == 0 ? ISA_AVX2 : -1;
}

/* False if the image could not be disassembled. */
static bool count_instructions(const char *image, long counts[ISA_COUNT])
{
    enum { ROOM = 64 << 20 };
    char *text = malloc(ROOM), *rest = NULL;
    char *argv[] = {(char *)(uintptr_t) "objdump",        (char *)(uintptr_t) "-d", (char *)(uintptr_t) "--no-show-raw-insn",
                    (char *)(uintptr_t) "--no-addresses", (char *)(uintptr_t)image, NULL};
    bool done = text && build_command(argv, 60, text, ROOM) == 0;
    for (char *line = done ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        int isa = line[0] == '\t' ? isa_of(line + 1) : -1;
        if (isa >= 0)
            counts[isa]++;
    }
    free(text);
    return done;
}

/* Every single instruction, by the name of its feature. */
static bool sub_features_are_declared(struct proof *proof, struct gate_result *result)
{
    char why[480];
    enum verdict verdict = instruction_sets_judge(proof->candidate.image, proof->facts.needs, result->details, why, sizeof why);
    if (verdict != VERDICT_PASS)
        gate_say(result, verdict, "%s", why);
    return verdict == VERDICT_PASS;
}

/* ---- on an emulated processor ------------------------------------------------------------------------------------------------ */

/* One problem on the emulated processor; the result has to be right. */
static bool run_one(struct proof *proof, struct executor *executor, const struct problem_entry *entry, struct gate_result *result)
{
    struct exam exam;
    struct outputs outputs = {0};
    struct finding finding = {0};
    char why[512] = "out of memory";
    if (!exam_make_quick(&exam, &entry->problem, proof->seed, NULL, 0, proof->threads, why, sizeof why)) {
        gate_say(result, VERDICT_INCONCLUSIVE, "%s: %s", entry->text, why);
        return false;
    }
    enum verdict verdict = VERDICT_INCONCLUSIVE;
    if (outputs_make(&outputs, &exam.inputs))
        verdict = subject_run(executor_subject(executor), &exam.inputs, exam.digest, &outputs, NULL, why, sizeof why);
    if (verdict == VERDICT_PASS) {
        verdict = exam_judge(&exam, &outputs, &finding);
        if (verdict != VERDICT_PASS)
            snprintf(why, sizeof why, "%.500s", finding.what);
    }
    if (verdict != VERDICT_PASS)
        gate_say(result, verdict, "on an emulated processor that has what it declares and nothing else (qemu-user): %.300s, on %s",
                 why, entry->text);
    outputs_free(&outputs);
    exam_free(&exam);
    return verdict == VERDICT_PASS;
}

/* The image on a processor that has the declared features and nothing else, as qemu emulates it. */
static bool runs_emulated(struct proof *proof, struct gate_result *result)
{
    const char *processor = instruction_sets_emulated(proof->facts.needs);
    const char *wrapper[] = {"qemu-x86_64", "-cpu", processor, NULL};
    const char *version[] = {"qemu-x86_64", "--version", NULL};
    const struct problem_entry *problems[MOST_EMULATED];
    struct execution execution;
    char log[512];
    if (!processor) {
        json_put(result->details, "emulated", json_string("not run: qemu-user emulates no AVX-512; the assembler decides alone"));
        return true;
    }
    if (build_command((char *const *)(uintptr_t)version, 60, log, sizeof log) != 0) {
        gate_say(result, VERDICT_INCONCLUSIVE,
                 "it has to run on an emulated processor that has what it declares: install the package qemu-user");
        return false;
    }
    struct executor_spec spec = {.image = proof->candidate.image,
                                 .threads = 1,
                                 .guard = GUARD_BANDS,
                                 .seconds = EMULATED_SLOWER * proof->policy.call_seconds,
                                 .wrapper = wrapper,
                                 .relaxed = true};
    struct executor *executor = executor_open(&spec, &execution);
    if (!executor) {
        gate_say(result, execution.end == EXECUTION_LACKING ? VERDICT_INCONCLUSIVE : VERDICT_FAIL,
                 "on an emulated processor that has what it declares and nothing else it does not load: %.400s",
                 execution.sentence);
        return false;
    }
    int count = pick_problems(proof, EMULATED_FLOPS, problems, MOST_EMULATED);
    bool good = true;
    for (int i = 0; i < count && good; i++)
        good = run_one(proof, executor, problems[i], result);
    executor_close(executor, NULL);
    json_put(result->details, "emulated", json_pack("{s:s, s:i}", "processor", processor, "problems", count));
    return good;
}

static void profile_cpu(struct proof *proof, struct gate_result *result)
{
    long counts[ISA_COUNT] = {0};
    int claimed = -1, used = -1;
#if !defined(__x86_64__)
    gate_say(result, VERDICT_NOT_APPLICABLE, "features are known for x86-64 alone, and this machine is another");
    return;
#endif
    if (!count_instructions(proof->candidate.image, counts)) {
        gate_say(result, VERDICT_INCONCLUSIVE, "objdump cannot read the image, or is not here; install binutils");
        return;
    }
    json_t *found = json_object();
    for (int i = 0; i < ISA_COUNT; i++) {
        json_put(found, isa_names[i], json_integer(counts[i]));
        if (strcmp(proof->facts.needs, isa_names[i]) == 0)
            claimed = i;
        if (counts[i])
            used = i;
    }
    json_put(result->details, "instructions", found);
    json_put(result->details, "claimed", json_string(proof->facts.needs));
    if (used > claimed)
        gate_say(result, VERDICT_FAIL, "it says that it needs %s, and has %ld instructions of %s",
                 claimed < 0 ? "nothing" : isa_names[claimed], counts[used], isa_names[used]);
    else if (claimed >= 0 && counts[claimed] == 0)
        gate_say(result, VERDICT_FAIL, "it claims %s and has not one instruction of it", isa_names[claimed]);
    else if (sub_features_are_declared(proof, result) && runs_emulated(proof, result)) {
        if (claimed < 0)
            gate_say(result, VERDICT_PASS, "plain instructions alone, as it says");
        else
            gate_say(result, VERDICT_PASS, "%ld instructions of %s, and none beyond", counts[claimed], isa_names[claimed]);
    }
}

void gate_profile(struct proof *proof, struct gate_result *result)
{
    if (proof->candidate.cuda)
        cuda_gate_profile(proof, result);
    else
        profile_cpu(proof, result);
}
