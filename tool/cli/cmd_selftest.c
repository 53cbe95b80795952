/*
 * cmd_selftest.c - attest selftest: proves the gates. Every kernel of the museum (mutate/museum.h) goes through a proof like any other;
 * then what the gates said is compared with what mutants.def says they have to say.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "commands.h"
#include "evidence/member.h"
#include "gates/gate.h"
#include "mutate/kill_rate.h"
#include "mutate/museum_proof.h"
#include "theory/stages.h"

struct selftest {
    struct museum museum;
    int counts[KIND_COUNT], right[KIND_COUNT];
    int diagnoses, right_diagnoses;
    int undecided; /* rows that are not right because a gate was inconclusive */
};

/* ---- what they came to ------------------------------------------------------------------------------------------------------ */

static bool is_expected(const struct selftest *test, const struct mutant *mutant, const json_t *failed)
{
    char gate[32];
    if (test->museum.emulated && museum_is_cuda(mutant) && strcmp(mutant->expected, "build") != 0 &&
        text_is(failed, "gate", "emulation"))
        return true;
    for (const char *at = mutant->expected; museum_next_gate(&at, gate, sizeof gate);)
        if (text_is(failed, "gate", gate))
            return true;
    return false;
}

/* What the speed gate came to: FASTER, SLOWER, SAME or INCONCLUSIVE; CHEAT; or nothing, if it was not run. */
static const char *speed_of(const struct mutant *mutant)
{
    const json_t *gate = record_gate(mutant->record, "speed");
    if (museum_is_cheat(gate) || text_is(gate, "verdict", "INCONCLUSIVE"))
        return museum_is_cheat(gate) ? "CHEAT" : "INCONCLUSIVE";
    return text_at(json_object_get(json_object_get(gate, "details"), "suite"), "speed");
}

/* The stages that a diagnosis names, as they are written in mutants.def: "S or mask". */
static void stages_found(const json_t *gate, char *text, size_t size)
{
    const json_t *stages = json_object_get(json_object_get(json_object_get(gate, "details"), "diagnosis"), "stages"), *stage;
    size_t i, used = 0;
    text[0] = '\0';
    json_array_foreach(stages, i, stage)
    {
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " or " : "", json_string_value(stage));
    }
}

/* Whether a text is a set of stages, such as "S or mask". */
static bool is_stages(const char *text)
{
    while (*text) {
        size_t length = strcspn(text, " ");
        bool found = false;
        for (int i = 0; i < STAGE_COUNT; i++) {
            const char *name = stage_name((enum stage)(1 << i));
            found = found || (strlen(name) == length && strncmp(text, name, length) == 0);
        }
        if (!found)
            return false;
        text += length;
        text += strncmp(text, " or ", 4) == 0 ? 4 : strlen(text) ? 1 : 0;
    }
    return true;
}

/* Whether the gate names what was planted: exactly these stages, or these words in its sentence. */
static bool diagnosed(const char *names, const json_t *gate, char *found, size_t size)
{
    stages_found(gate, found, size);
    if (*names && is_stages(names))
        return strcmp(found, names) == 0;
    bool said = strstr(text_at(gate, "sentence"), names) != NULL;
    snprintf(found, size, "%s", said ? names : "something else");
    return said;
}

/* A kernel that two gates have to reject. */
static const char *outcome_of_both(struct selftest *test, const struct mutant *mutant, json_t *row, bool *right)
{
    const json_t *build = record_gate(mutant->record, gates[0].name), *failed = museum_rejection(mutant->record, 1);
    char first[160], found[160];
    const char *parts = strstr(mutant->names, MUSEUM_PARTS), *second = parts ? parts + sizeof MUSEUM_PARTS - 1 : "";
    snprintf(first, sizeof first, "%.*s", parts ? (int)(parts - mutant->names) : (int)sizeof first - 1, mutant->names);
    if (!text_is(build, "verdict", "FAIL"))
        return failed ? "WRONG GATE" : "SURVIVED";
    if (!failed)
        return "SURVIVED";
    if (!text_is(failed, "gate", museum_second_gate(mutant)))
        return "WRONG GATE";
    bool named = diagnosed(first, build, found, sizeof found) && diagnosed(second, failed, found, sizeof found);
    test->diagnoses++;
    test->right_diagnoses += named;
    json_put(row, "diagnosis", json_string(named ? mutant->names : found));
    *right = named;
    return named ? "killed" : "WRONG DIAGNOSIS";
}

/* One cell of the matrix. */
static const char *mark(const struct mutant *mutant, const struct gate *gate)
{
    const json_t *found = record_gate(mutant->record, gate->name);
    enum verdict verdict = found ? verdict_find(text_at(found, "verdict")) : VERDICT_COUNT;
    static const char *const marks[] = {"pass", "FAIL", "?", "n/a", "."};
    if (verdict == VERDICT_FAIL && !gate->needed && !museum_is_cheat(found))
        return strcmp(speed_of(mutant), "SLOWER") == 0 ? "slower" : "same";
    return marks[verdict];
}

static bool is_inconclusive(const struct mutant *mutant)
{
    for (int i = 0; i < gate_count; i++)
        if (text_is(record_gate(mutant->record, gates[i].name), "verdict", "INCONCLUSIVE"))
            return true;
    return false;
}

/* In one word, what a row came to; the row is right if it is "killed", "as expected" or "proven". */
static const char *outcome(struct selftest *test, const struct mutant *mutant, json_t *row, bool *right)
{
    const json_t *failed = museum_rejection(mutant->record, 0);
    const char *only = test->museum.session->options.only;
    char found[160] = "";
    *right = false;
    if (!mutant->record)
        return "LOST";
    if (mutant->kind == KIND_HARMLESS) {
        *right = !failed &&
                 (only || text_is(mutant->record, "verdict", "PROVEN") ||
                  (test->museum.emulated && museum_is_cuda(mutant) && text_is(mutant->record, "verdict", "PROVEN IN EMULATION")));
        return *right ? "proven" : failed ? "REJECTED" : "NOT PROVEN";
    }
    if (mutant->kind == KIND_SPEED) {
        *right = strcmp(speed_of(mutant), mutant->names) == 0;
        json_put(row, "diagnosis", json_string(speed_of(mutant)));
        return *right ? "as expected" : "NOT AS EXPECTED";
    }
    if (*museum_second_gate(mutant))
        return outcome_of_both(test, mutant, row, right);
    if (!failed)
        return "SURVIVED";
    if (!is_expected(test, mutant, failed))
        return "WRONG GATE";
    if (*mutant->names && strstr(mutant->expected, text_at(failed, "gate"))) {
        bool named = diagnosed(mutant->names, failed, found, sizeof found);
        test->diagnoses++;
        test->right_diagnoses += named;
        json_put(row, "diagnosis", json_string(found));
        if (!named)
            return "WRONG DIAGNOSIS";
    }
    *right = true;
    return "killed";
}

/* What the gate said that matters most for a row that is not right. */
static const char *sentence_of(const struct mutant *mutant, const json_t *failed)
{
    const json_t *second = *museum_second_gate(mutant) ? museum_rejection(mutant->record, 1) : NULL;
    return second ? text_at(second, "sentence") : failed ? text_at(failed, "sentence") : text_at(mutant->record, "decision");
}

static void print_mutant(void *data, const struct mutant *mutant)
{
    struct selftest *test = data;
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s}", "mutant", mutant->stem, "kind", kind_words[mutant->kind], "expected",
                            *mutant->expected ? mutant->expected : "none", "planted", mutant->sentence, "diagnosis", "");
    bool right;
    for (int i = 0; i < gate_count; i++)
        json_put(row, gates[i].name, json_string(mark(mutant, &gates[i])));
    const char *word = outcome(test, mutant, row, &right);
    const json_t *failed = museum_rejection(mutant->record, 0);
    json_put(row, "outcome", json_string(word));
    json_put(row, "right", json_boolean(right));
    json_put(row, "sentence", json_string(sentence_of(mutant, failed)));
    json_put(row, "seconds", json_real(json_number_value(json_object_get(mutant->record, "seconds"))));
    test->counts[mutant->kind]++;
    test->right[mutant->kind] += right;
    test->undecided += !right && !failed && mutant->kind != KIND_SPEED && is_inconclusive(mutant);
    if (!right) {
        json_t *notes = json_array();
        json_add(notes, json_text("planted: %s", mutant->sentence));
        if (*mutant->names)
            json_add(notes, json_text("expected: %s", mutant->names));
        json_add(notes, json_text("found: %s", *mutant->lost ? mutant->lost : text_at(row, "sentence")));
        json_add(notes,
                 json_text("reproduce: attest selftest %s --seed %llu", mutant->stem, (unsigned long long)test->museum.seed));
        json_put(row, "notes", notes);
    }
    report_row(&test->museum.session->report, row);
}

static void print_table(const struct selftest *test)
{
    static struct column columns[16] = {{"mutant", "mutant", -22}, {"expected", "expected", -11}};
    int count = 2, widths[COUNT_OF(columns)] = {0};
    for (int i = 0; i < gate_count && count < COUNT_OF(columns) - 2; i++)
        columns[count++] = (struct column){gates[i].name, gates[i].name, -6};
    columns[count++] = (struct column){"diagnosis", "diagnosis", -14};
    columns[count++] = (struct column){"outcome", "outcome", -8};
    for (int i = 0; i < test->museum.count; i++) {
        int length = (int)strlen(test->museum.mutants[i].stem), named = (int)strlen(test->museum.mutants[i].names);
        int expected = (int)strlen(test->museum.mutants[i].expected);
        widths[0] = length > widths[0] ? length : widths[0];
        widths[1] = expected > widths[1] ? expected : widths[1];
        widths[count - 2] = named > widths[count - 2] ? named : widths[count - 2];
    }
    report_table(&test->museum.session->report, "mutants", columns, count, widths);
}

/* ---- mutants that nobody wrote ----------------------------------------------------------------------------------------------- */

static enum exit_code measure_kill_rate(struct session *session)
{
    uint64_t seed;
    if (session->options.word_count)
        return give_up(session, EXIT_USAGE, "--of KERNEL names the kernels that mutants are made of",
                       "--generate takes no mutant's name, and got '%s'", session->options.words[0]);
    if (session->options.only && gate_listed(session->options.only, "speed"))
        return give_up(session, EXIT_USAGE, "leave speed away",
                       "--generate has no use for the speed gate: mutants are to be right, not fast");
    if (!session->options.proof_seed && getrandom(&seed, sizeof seed, 0) == (ssize_t)sizeof seed)
        session->options.proof_seed = (int64_t)(seed >> 12) + 1;
    return kill_rate_measure(session);
}

/* ---- the command ------------------------------------------------------------------------------------------------------------ */

enum exit_code cmd_selftest(struct session *session)
{
    struct selftest test = {.museum = {.session = session, .seed = (uint64_t)session->options.proof_seed}};
    struct museum *museum = &test.museum;
    enum exit_code code = gates_check(session);
    if (code == EXIT_PASS && session->options.generate)
        return measure_kill_rate(session);
    if (code == EXIT_PASS)
        code = museum_read(museum);
    if (code == EXIT_PASS && !museum->seed && getrandom(&museum->seed, sizeof museum->seed, 0) == (ssize_t)sizeof museum->seed)
        museum->seed = (museum->seed >> 12) + 1;
    if (code == EXIT_PASS)
        museum_leave_out(museum);
    if (code == EXIT_PASS && session->options.sample)
        code = museum_sample(museum);
    if (code == EXIT_PASS) {
        struct report *report = &session->report;
        print_table(&test);
        museum_prove(museum, print_mutant, &test);
        progress_clear();
        int all = 0, right = 0;
        for (int kind = 0; kind < KIND_COUNT; kind++) {
            all += test.counts[kind];
            right += test.right[kind];
        }
        report_put(report, "seed", json_integer((json_int_t)museum->seed));
        if (session->options.sample)
            report_put(report, "sample", json_text("%d rows of %d", all, museum->of));
        report_put(report, "killed",
                   json_text("%d of %d mutants, by the gate expected", test.right[KIND_MUTANT], test.counts[KIND_MUTANT]));
        report_put(report, "diagnosed", json_text("%d of %d", test.right_diagnoses, test.diagnoses));
        report_put(report, "clocked", json_text("%d of %d as expected", test.right[KIND_SPEED], test.counts[KIND_SPEED]));
        report_put(report, "harmless", json_text("%d of %d proven", test.right[KIND_HARMLESS], test.counts[KIND_HARMLESS]));
        if (museum->left_out)
            report_put(report, "left out", json_text("%d CUDA rows: %s", museum->left_out, museum->lacking));
        bool lacking = right < all && all - right == test.undecided;
        report_put(report, "verdict", json_string(all == 0 || lacking ? "INCONCLUSIVE" : right == all ? "PASS" : "FAIL"));
        code = all == 0 || lacking ? EXIT_LACKING : right == all ? EXIT_PASS : EXIT_FAILED;
    }
    museum_free(museum);
    return code;
}
