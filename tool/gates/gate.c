/*
 * gate.c - the table of gates, and what gates share.
 */
#include "gate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda_manifest.h"

#define GATE(name, needed, came, cpu, cuda, claim) {#name, claim, gate_##name, needed, came, cpu, cuda},
const struct gate gates[] = {
#include "evidence/gates.def"
};
#undef GATE
const int gate_count = COUNT_OF(gates);

const struct gate *gate_named(const char *name)
{
    for (int i = 0; i < gate_count; i++)
        if (strcmp(gates[i].name, name) == 0)
            return &gates[i];
    return NULL;
}

void gate_say(struct gate_result *result, enum verdict verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->sentence, sizeof result->sentence, format, arguments);
    va_end(arguments);
    result->verdict = verdict;
}

bool gate_listed(const char *only, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = only; at && *at;) {
        size_t word = strcspn(at, ",");
        if (word == length && strncmp(at, name, length) == 0)
            return true;
        at += word + (at[word] == ',');
    }
    return !only;
}

enum exit_code gates_check(struct session *session)
{
    const char *names[16];
    for (int i = 0; i < gate_count; i++)
        names[i] = gates[i].name;
    for (const char *at = session->options.only; at && *at;) {
        char word[32], hint[96];
        size_t length = strcspn(at, ",");
        bool known = false;
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        for (int i = 0; i < gate_count; i++)
            known = known || strcmp(names[i], word) == 0;
        if (!known) {
            const char *near = nearest_word(word, names, gate_count);
            snprintf(hint, sizeof hint, near ? "did you mean %s?" : "attest help prove names the gates", near);
            return give_up(session, EXIT_USAGE, hint, "there is no gate '%s'", word);
        }
        at += length + (at[length] == ',');
    }
    return EXIT_PASS;
}

struct executor *gate_open(struct proof *proof, enum guard guard, struct gate_result *result)
{
    struct execution execution;
    struct executor_spec spec = {.image = proof->candidate.image,
                                 .device = proof->device,
                                 .threads = proof->threads,
                                 .guard = guard,
                                 .seconds = proof->policy.call_seconds,
                                 .memory = (int64_t)proof->policy.memory_mb << 20};
    struct executor *executor = executor_open(&spec, &execution);
    if (executor)
        proof->facts = *executor_facts(executor);
    else if (execution.end == EXECUTION_LACKING && proof->device && (proof->no_gpu = true))
        gate_say(result, VERDICT_INCONCLUSIVE, "nothing was run: %s", execution.sentence);
    else
        gate_say(result, execution.end == EXECUTION_LACKING ? VERDICT_INCONCLUSIVE : VERDICT_FAIL, "the kernel does not load: %s",
                 execution.sentence);
    return executor;
}

bool gate_takes(const struct proof *proof, const attest_problem *problem)
{
    char text[256];
    if (proof->manifest && cuda_manifest_refusal(proof->manifest, problem, text, sizeof text))
        return false;
    return (!proof->candidate.dtype || proof->candidate.dtype == problem->dtype) && (proof->facts.dtypes >> problem->dtype & 1) &&
           !(problem->flags & proof->facts.refuses);
}

static bool takes(const void *data, const attest_problem *problem)
{
    return gate_takes(data, problem);
}

struct taker gate_taker(const struct proof *proof)
{
    return (struct taker){takes, proof};
}

char *gate_path(const struct proof *proof, const char *format, ...)
{
    char name[256], *path = NULL;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    return asprintf(&path, "%s/%s", proof->folder, name) < 0 ? NULL : path;
}

bool gate_write(const struct proof *proof, struct gate_result *result, const char *artefact, const char *name, const char *text)
{
    char *path = gate_path(proof, "%s", name);
    FILE *file = path ? fopen(path, "wb") : NULL;
    bool written = file && fputs(text, file) >= 0;
    written = file && fclose(file) == 0 && written;
    if (written)
        json_put(result->artefacts, artefact, json_string(path));
    free(path);
    return written;
}
