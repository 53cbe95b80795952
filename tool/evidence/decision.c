/*
 * decision.c - the decision matrix. See decision.h.
 *
 * The first row that fits decides on the verdict. "Needed" is what gates.def says: every gate but speed that is for kernels of this
 * kind and came with the policy of the record or before it.
 *
 *   a needed gate says FAIL, or speed found a cheat                        REJECTED       by the first such gate
 *   CUDA: build and emulation say PASS, and all other needed gates are
 *   INCONCLUSIVE for lack of a GPU alone                                   PROVEN IN EMULATION
 *   a needed gate says INCONCLUSIVE, or was not run                        INCONCLUSIVE   because of it
 *   oracle or correctness says NOT APPLICABLE                              INCONCLUSIVE   nothing was shown to be right
 *   every needed gate says PASS or NOT APPLICABLE                          PROVEN
 *
 * And for a kernel that is PROVEN, on who reigns:
 *
 *   speed was not run, or an earlier record is continued                   NOT ASKED      nobody is promoted
 *   it is the reigning champion itself                                     REIGNS         and goes on
 *   there is no opponent                                                   FIRST          promoted
 *   speed says PASS                                                        CHAMPION       promoted
 *   speed says otherwise, and the suite is SLOWER, SAME or INCONCLUSIVE    that word      the opponent stays
 *
 * A kernel that is not PROVEN is NOT PROVEN here, however fast it is.
 */
#include "decision.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "member.h"
#include "policy_number.h"
#include "verdict.h"
#include "base/report.h"

static const struct {
    const char *name;
    bool needed;
    int came, cpu, cuda; /* policies: see gates.def */
} rules[] = {
#define GATE(name, needed, came, cpu, cuda, claim) {#name, needed, came, cpu, cuda},
#include "gates.def"
#undef GATE
};
enum { RULE_COUNT = sizeof rules / sizeof rules[0] };

int record_policy(const json_t *record)
{
    json_int_t number = json_integer_value(json_object_get(record, "policy_number"));
    return number < 1 ? 1 : number > POLICY_NUMBER ? POLICY_NUMBER + 1 : (int)number;
}

/* Whether a record of its policy must have the result of a gate. */
static bool is_needed(int rule, const json_t *record)
{
    int since = text_is(record, "backend", "cuda") ? rules[rule].cuda : rules[rule].cpu;
    return rules[rule].needed && since && rules[rule].came <= record_policy(record);
}

json_t *decision_needed(const json_t *record)
{
    json_t *names = json_array();
    for (int i = 0; i < RULE_COUNT; i++)
        if (is_needed(i, record))
            json_add(names, json_string(rules[i].name));
    return names;
}

/* VERDICT_COUNT if the gate was not run, or says something that is no verdict. */
static enum verdict verdict_of(const json_t *gate)
{
    return gate ? verdict_find(text_at(gate, "verdict")) : VERDICT_COUNT;
}

/* The same, for a rule: a result of an earlier record (continuation.h) counts only if the gate has not become stricter since. What became stricter
 * after the record that continues it was made does not undo that record: it is behind (missing_gates), and was decided as it says. */
static enum verdict verdict_now(int rule, const json_t *record, const json_t *gate)
{
    int since = text_is(record, "backend", "cuda") ? rules[rule].cuda : rules[rule].cpu;
    const json_t *policy = json_object_get(gate, "policy_number");
    bool stricter = policy && json_integer_value(policy) < since && since <= record_policy(record);
    return stricter ? VERDICT_COUNT : verdict_of(gate);
}

/* A finding such as {"cheat": "the output was memoised"}, or just true. */
static bool is_cheat(const json_t *gate)
{
    const json_t *cheat = json_object_get(json_object_get(gate, "details"), "cheat");
    return cheat && !json_is_null(cheat) && !json_is_false(cheat);
}

/* Whether nothing but a GPU is missing: the emulation gate passed, and what could not be decided lacks one. */
static bool is_proven_in_emulation(const json_t *record)
{
    static const char *const shown[] = {"build", "emulation"};
    bool lacking = false;
    for (int i = 0; i < 2; i++)
        if (verdict_of(record_gate(record, shown[i])) != VERDICT_PASS)
            return false;
    for (int i = 0; i < RULE_COUNT; i++) {
        const json_t *gate = record_gate(record, rules[i].name);
        enum verdict verdict = verdict_now(i, record, gate);
        if (!is_needed(i, record) || verdict == VERDICT_PASS || verdict == VERDICT_NOT_APPLICABLE)
            continue;
        if (verdict != VERDICT_INCONCLUSIVE || !text_is(json_object_get(gate, "details"), "lacking", "gpu"))
            return false;
        lacking = true;
    }
    return lacking;
}

/* True if the verdict is decided by these rows, which no kernel that is proven passes. */
static bool decide_against(const json_t *record, struct decision *decision)
{
    for (int i = 0; i < RULE_COUNT; i++) {
        const json_t *gate = record_gate(record, rules[i].name);
        if ((rules[i].needed && verdict_of(gate) == VERDICT_FAIL) || (!rules[i].needed && is_cheat(gate))) {
            decision->verdict = "REJECTED";
            decision->gate = gate;
            snprintf(decision->sentence, sizeof decision->sentence, "rejected by the %s gate: %s", rules[i].name,
                     text_at(gate, "sentence"));
            return true;
        }
    }
    if (is_proven_in_emulation(record)) {
        decision->verdict = "PROVEN IN EMULATION";
        snprintf(decision->sentence, sizeof decision->sentence,
                 "right on the emulated device in every order; sanitizers, speed and profile, and the other gates at full size, "
                 "need a GPU");
        return true;
    }
    decision->verdict = "INCONCLUSIVE";
    for (int i = 0; i < RULE_COUNT; i++) {
        const json_t *gate = record_gate(record, rules[i].name);
        enum verdict verdict = verdict_now(i, record, gate);
        if (is_needed(i, record) && (verdict == VERDICT_INCONCLUSIVE || verdict == VERDICT_COUNT)) {
            decision->gate = gate;
            if (gate && verdict == VERDICT_INCONCLUSIVE)
                snprintf(decision->sentence, sizeof decision->sentence, "the %s gate is inconclusive: %s", rules[i].name,
                         text_at(gate, "sentence"));
            else
                snprintf(decision->sentence, sizeof decision->sentence, "the %s gate was not run", rules[i].name);
            return true;
        }
    }
    static const char *const essential[] = {"oracle", "correctness"};
    for (int i = 0; i < 2; i++) {
        const json_t *gate = record_gate(record, essential[i]);
        if (verdict_of(gate) == VERDICT_PASS)
            continue;
        decision->gate = gate;
        snprintf(decision->sentence, sizeof decision->sentence, "nothing was shown to be right: the %s gate does not apply: %s",
                 essential[i], text_at(gate, "sentence"));
        return true;
    }
    return false;
}

static void say(struct decision *decision, const char *champion, const char *sentence)
{
    decision->champion = champion;
    snprintf(decision->sentence, sizeof decision->sentence, "%s", sentence);
}

/* Who reigns, for a kernel that is proven. */
static void decide_reign(const json_t *record, struct decision *decision)
{
    const json_t *gate = record_gate(record, "speed"), *suite = json_object_get(json_object_get(gate, "details"), "suite");
    const char *opponent = json_string_value(json_object_get(record, "opponent")), *speed = text_at(suite, "speed");
    double ratio = json_number_value(json_object_get(suite, "ratio"));
    bool measured = isfinite(ratio) && ratio > 0;
    if (json_object_get(record, "continues")) {
        say(decision, "NOT ASKED", "proven: it passed what its earlier record had not; its speed was not asked for again");
    } else if (verdict_of(gate) == VERDICT_COUNT) {
        say(decision, "NOT ASKED", "proven; its speed was not asked for");
    } else if (json_is_true(json_object_get(record, "reigns"))) {
        say(decision, "REIGNS", "proven again, and it reigns already");
    } else if (!opponent) {
        say(decision, "FIRST", "proven, and the first of its class: promoted");
    } else if (verdict_of(gate) == VERDICT_PASS && measured) {
        decision->champion = "CHAMPION";
        snprintf(decision->sentence, sizeof decision->sentence, "proven, and %.2f x as fast as %s: promoted", ratio, opponent);
    } else if (strcmp(speed, "SLOWER") == 0 && measured && ratio < 1) {
        decision->champion = "SLOWER";
        snprintf(decision->sentence, sizeof decision->sentence, "proven, %.2f x slower than %s", 1 / ratio, opponent);
    } else if (strcmp(speed, "SLOWER") == 0) {
        decision->champion = "SLOWER";
        snprintf(decision->sentence, sizeof decision->sentence, "proven, and slower than %s: %s", opponent,
                 text_at(gate, "sentence"));
    } else if (strcmp(speed, "SAME") == 0) {
        decision->champion = "SAME";
        snprintf(decision->sentence, sizeof decision->sentence, "proven, and as fast as %s, which stays", opponent);
    } else {
        decision->champion = "INCONCLUSIVE";
        snprintf(decision->sentence, sizeof decision->sentence, "proven; whether it is faster than %s was not settled: %s",
                 opponent, text_at(gate, "sentence"));
    }
}

void decide(const json_t *record, struct decision *decision)
{
    *decision = (struct decision){.champion = "NOT PROVEN"};
    if (decide_against(record, decision))
        return;
    decision->verdict = "PROVEN";
    decide_reign(record, decision);
}

json_t *decision_classes(const json_t *record)
{
    static const char any[] = ":any";
    const char *class = text_at(record, "problem_class");
    size_t length = strlen(class), index;
    json_t *classes = json_array();
    if (length < strlen(any) || strcmp(class + length - strlen(any), any) != 0) {
        if (length)
            json_add(classes, json_string(class));
        return classes;
    }
    json_t *dtype;
    json_array_foreach(json_object_get(json_object_get(record, "candidate"), "dtypes"), index, dtype)
    {
        if (json_is_string(dtype))
            json_add(classes, json_text("%.*s:%s", (int)(length - strlen(any)), class, json_string_value(dtype)));
    }
    return classes;
}

void decision_make(json_t *record)
{
    struct decision decision;
    decide(record, &decision);
    bool promoted = strcmp(decision.champion, "FIRST") == 0 || strcmp(decision.champion, "CHAMPION") == 0;
    json_put(record, "verdict", json_string(decision.verdict));
    json_put(record, "champion", json_string(decision.champion));
    json_put(record, "decision", json_string(decision.sentence));
    json_put(record, "promoted", promoted ? decision_classes(record) : json_array());
}
