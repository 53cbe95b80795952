/*
 * postmortem.c - what failed, the evidence, the attempts, the decision and what to try next, from the records alone. See
 * postmortem.h.
 *
 * What to try next comes from two tables: by the gate that decided, and, where the stage oracle named stages, by stage.
 */
#include "postmortem.h"

#include <stdbool.h>
#include <stdlib.h>

#include "decision.h"
#include "base/digest.h"
#include "history.h"
#include "member.h"

static const struct {
    const char *gate, *advice;
} by_gate[] = {
    {"build", "Read the build log from its first message on: warnings are errors, and later ones often follow from the first."},
    {"oracle", "Repair the first wrong stage before any other: the later ones work on what it hands them."},
    {"memory",
     "Look for what is touched outside of the task: rows past row_end, keys past key_end, gaps between strides, scratch past "
     "scratch_size. A source is also run under AddressSanitizer; its log names the line."},
    {"determinism",
     "Look for what is read before it is written: scratch and outputs are full of rubbish. A result must not depend on "
     "addresses, on threads, or on what ran before."},
    {"correctness",
     "Take the first problem that fails and make it smaller while it still fails; then ask `attest oracle` about that one."},
    {"speed",
     "The times were not those of honest work. Every call gets fresh inputs and its output is checked: nothing may be carried "
     "from one call to the next."},
    {"profile",
     "Compare the instructions that the profile found with those the kernel claims to use; the compiler flags may not be "
     "those that were meant."},
};

static const struct {
    const char *stage, *advice;
} by_stage[] = {
    {"S",
     "S: check the scale (1/sqrt(D) unless the problem gives one), the order of softcap, ALiBi and bias, the head that K is taken "
     "from, and the strides of Q and K."},
    {"mask",
     "mask: compare the keys that a row sees with attest_row_visible: causal and window bounds, the ragged end, sequences that "
     "are shorter than the rest."},
    {"P",
     "P: check that the maximum is that of the row (not of the tile), that it is taken out before exp, and that the sum runs over "
     "the visible keys alone."},
    {"normalisation", "normalisation: check the division by the sum, rows that see no key, and where the sink joins."},
    {"rescale",
     "rescale: when a new tile raises the maximum, both the sum and the output so far must be scaled by exp(old - new)."},
    {"PV",
     "PV: check that V is read in the layout it was packed in, that P and V agree on the order of the keys, and the precision that "
     "P is rounded to."},
    {"epilogue",
     "epilogue: check the strides of O and LSE, the head and row that a result is written to, and the rounding to the type "
     "of O."},
};

/* Text of a record in a cell of a table: no line ends, no bars. */
static void print_cell(FILE *out, const char *text)
{
    for (; *text; text++)
        fputs(*text == '|' ? "\\|" : *text == '\n' ? " " : (char[]){*text, 0}, out);
}

static void print_number(FILE *out, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        fprintf(out, "- %s: %lld\n", key, (long long)json_integer_value(value));
}

static void write_diagnosis(FILE *out, const json_t *diagnosis)
{
    static const char *const places[] = {"tile", "batch", "head", "row", "column"};
    char *stages = canonical_text(json_object_get(diagnosis, "stages"));
    fprintf(out, "\nThe stage oracle:\n\n- stages: %s\n", stages ? stages : "");
    free(stages);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        print_number(out, diagnosis, places[i]);
    if (*text_at(diagnosis, "pattern"))
        fprintf(out, "- pattern: %s\n", text_at(diagnosis, "pattern"));
    if (*text_at(diagnosis, "cause"))
        fprintf(out, "- likely cause: %s\n", text_at(diagnosis, "cause"));
}

static const json_t *diagnosis_of(const json_t *gate)
{
    const json_t *diagnosis = json_object_get(json_object_get(gate, "details"), "diagnosis");
    return json_is_object(diagnosis) ? diagnosis : NULL;
}

static void write_failure(FILE *out, const json_t *record, const struct decision *decision)
{
    fputs("## What failed\n\n", out);
    if (decision->gate) {
        fprintf(out, "The **%s** gate said %s: %s\n", text_at(decision->gate, "gate"), text_at(decision->gate, "verdict"),
                text_at(decision->gate, "sentence"));
        if (diagnosis_of(decision->gate))
            write_diagnosis(out, diagnosis_of(decision->gate));
    } else {
        fprintf(out, "%s\n",
                strcmp(decision->verdict, "PROVEN") == 0 ? "Nothing: the last record is proven." : text_at(record, "decision"));
    }
}

static void write_evidence(FILE *out, const json_t *record)
{
    static const char *const digests[] = {"policy_digest", "suite_digest"}, *const facts[] = {"closure", "image", "compiler"};
    const json_t *candidate = json_object_get(record, "candidate"), *gate, *digest;
    const char *name;
    size_t index;
    fprintf(out, "\n## Evidence\n\n| what | which |\n|---|---|\n| run | %lld, %s |\n| machine | %s, %s |\n",
            (long long)json_integer_value(json_object_get(record, "run")), text_at(record, "started"),
            text_at(json_object_get(record, "device"), "class"), text_at(json_object_get(record, "device"), "model"));
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (*text_at(candidate, facts[i]))
            fprintf(out, "| %s | `%s` |\n", facts[i], text_at(candidate, facts[i]));
    for (size_t i = 0; i < sizeof digests / sizeof digests[0]; i++)
        if (*text_at(record, digests[i]))
            fprintf(out, "| %s | `%s` |\n", digests[i], text_at(record, digests[i]));
    json_array_foreach(json_object_get(record, "gates"), index, gate)
    {
        json_object_foreach(json_object_get(gate, "artefacts"), name, digest) fprintf(
            out, "| %s, %s | `%s` |\n", text_at(gate, "gate"), name, json_string_value(digest) ? json_string_value(digest) : "");
    }
}

static void write_attempts(FILE *out, const json_t *records)
{
    size_t count = json_array_size(records);
    fputs("\n## Attempts\n\n| run | when | what changed | gates | verdict | why |\n|---|---|---|---|---|---|\n", out);
    for (size_t i = count; i-- > 0;) {
        const json_t *record = json_array_get(records, i);
        char change[320], gates[512];
        history_change(record, i + 1 < count ? json_array_get(records, i + 1) : NULL, change, sizeof change);
        history_gates(record, gates, sizeof gates);
        fprintf(out, "| %lld | %s | ", (long long)json_integer_value(json_object_get(record, "run")), text_at(record, "started"));
        print_cell(out, change);
        fputs(" | ", out);
        print_cell(out, gates);
        fprintf(out, " | %s | ", text_at(record, "verdict"));
        print_cell(out, text_at(record, "decision"));
        fputs(" |\n", out);
    }
}

/* Rejected attempts since the kernel was last proven. */
static int rejected_in_a_row(const json_t *records)
{
    const json_t *record;
    size_t index;
    int count = 0;
    json_array_foreach(records, index, record)
    {
        if (text_is(record, "verdict", "PROVEN"))
            break;
        count += text_is(record, "verdict", "REJECTED");
    }
    return count;
}

static void write_decision(FILE *out, const json_t *records, const json_t *record)
{
    const char *opponent = text_at(record, "opponent");
    int rejected = rejected_in_a_row(records);
    fprintf(out, "\n## Decision\n\n%s: %s.", text_at(record, "verdict"), text_at(record, "decision"));
    if (rejected > 1)
        fprintf(out, " %d attempts were rejected since it was last proven, or since the first.", rejected);
    if (!text_is(record, "verdict", "PROVEN"))
        fprintf(out, " It is not promoted%s%s.", *opponent ? "; what reigns stays: " : "", opponent);
    fputs("\n", out);
}

static void write_next_stages(FILE *out, const json_t *diagnosis)
{
    const json_t *stage;
    size_t index;
    json_array_foreach(json_object_get(diagnosis, "stages"), index, stage)
    {
        for (size_t i = 0; i < sizeof by_stage / sizeof by_stage[0]; i++)
            if (json_is_string(stage) && strcmp(by_stage[i].stage, json_string_value(stage)) == 0)
                fprintf(out, "- %s\n", by_stage[i].advice);
    }
}

static void write_next(FILE *out, const json_t *record, const struct decision *decision)
{
    const char *gate = text_at(decision->gate, "gate"), *word = text_at(record, "word");
    bool lacking = text_is(decision->gate, "verdict", "INCONCLUSIVE");
    fputs("\n## What to try next\n\n", out);
    if (text_is(record, "champion", "SLOWER") || text_is(record, "champion", "SAME"))
        fputs("- It is right. Compare its profile with the champion's on the shape where it loses most.\n", out);
    if (text_is(record, "champion", "INCONCLUSIVE"))
        fputs("- It is right, and its speed is open: prove it again on a quieter machine.\n", out);
    if (!decision->gate) {
        fprintf(out, "- `attest prove %s` runs all gates.\n", word);
        return;
    }
    if (lacking)
        fputs("- Nothing is wrong that is known: get what the gate lacked, as its sentence says, and prove again.\n", out);
    for (size_t i = 0; !lacking && i < sizeof by_gate / sizeof by_gate[0]; i++)
        if (strcmp(by_gate[i].gate, gate) == 0)
            fprintf(out, "- %s\n", by_gate[i].advice);
    write_next_stages(out, diagnosis_of(decision->gate));
    const json_t *seed = json_object_get(record, "seed");
    fprintf(out, "- See the same again: `attest prove %s --only %s", word, gate);
    if (json_integer_value(seed) > 0)
        fprintf(out, " --seed %lld", (long long)json_integer_value(seed));
    fputs("`\n", out);
}

void postmortem_write(FILE *out, const json_t *records)
{
    const json_t *record = json_array_get(records, 0);
    struct decision decision;
    decide(record, &decision);
    fprintf(out, "# Post-mortem: %s\n\n", text_at(record, "kernel"));
    write_failure(out, record, &decision);
    write_evidence(out, record);
    write_attempts(out, records);
    write_decision(out, records, record);
    write_next(out, record, &decision);
}
