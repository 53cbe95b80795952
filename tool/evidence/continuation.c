/*
 * continuation.c - records that continue earlier ones. See continuation.h; docs/evidence.md says what that is worth.
 *
 * One image passes all gates, or nothing is combined: a record continues another only if both are about the same image, byte for
 * byte, on the same device class. A result counts for the policy of the record in which it stands, never for a later one.
 */
#include "continuation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decision.h"
#include "member.h"
#include "policy_number.h"
#include "statement.h"

static const struct {
    const char *name;
    bool needed;
    int came, cpu, cuda;
} rules[] = {
#define GATE(name, needed, came, cpu, cuda, claim) {#name, needed, came, cpu, cuda},
#include "gates.def"
#undef GATE
};

static json_int_t sequence_of(const json_t *record)
{
    return json_integer_value(json_object_get(record, "sequence"));
}

/* ---- combining ------------------------------------------------------------------------------------------------------------- */

json_t *continuation_add(const json_t *base, const json_t *record)
{
    json_t *combined = json_copy((json_t *)(uintptr_t)record), *gates = json_array();
    for (int i = 0; i < COUNT_OF(rules); i++) {
        json_t *own = record_gate(record, rules[i].name), *earlier = record_gate(base, rules[i].name);
        if (own) {
            own = json_copy(own);
            json_put(own, "policy_number", json_integer(record_policy(record)));
            json_add(gates, own);
        } else if (earlier) {
            json_add(gates, json_incref(earlier));
        }
    }
    json_put(combined, "gates", gates);
    return combined;
}

/* NULL if the entry can be continued by the record, else what speaks against it. */
static const char *objection(const json_t *entry, const json_t *record)
{
    const json_t *earlier = statement_predicate(entry);
    const char *image = text_at(json_object_get(earlier, "candidate"), "image");
    if (!entry || json_object_get(entry, "problem") || json_array_size(json_object_get(entry, "findings")) > 0)
        return "it continues a record that is not there or not in order";
    if (!text_is(json_object_get(entry, "statement"), "predicateType", PREDICATE_PROOF) ||
        sequence_of(earlier) >= sequence_of(record))
        return "it continues a statement that is no earlier proof";
    if (!text_is(earlier, "kernel", text_at(record, "kernel")) || !text_is(earlier, "kind", text_at(record, "kind")) ||
        !text_is(json_object_get(earlier, "device"), "class", text_at(json_object_get(record, "device"), "class")))
        return "it continues a record of another kernel or device class";
    if (!*image || !text_is(json_object_get(record, "candidate"), "image", image))
        return "it continues a record of another image";
    if (text_is(earlier, "verdict", "REJECTED"))
        return "it continues a record that was rejected";
    return NULL;
}

json_t *continuation_combine(const json_t *statements, const json_t *entry, char *why, size_t why_size)
{
    const json_t *record = statement_predicate(entry);
    const char *continues = text_at(record, "continues");
    if (!json_object_get(record, "continues"))
        return continuation_add(NULL, record);
    const json_t *earlier = statements_find(statements, continues);
    const char *against = objection(earlier, record);
    if (against) {
        snprintf(why, why_size, "%s: %.12s", against, continues);
        return NULL;
    }
    /* The numbers fall from record to record, so this ends. */
    json_t *base = continuation_combine(statements, earlier, why, why_size);
    json_t *combined = base ? continuation_add(base, record) : NULL;
    json_decref(base);
    return combined;
}

/* ---- what is missing ------------------------------------------------------------------------------------------------------- */

json_t *continuation_missing(const json_t *combined)
{
    json_t *missing = json_array();
    bool cuda = text_is(combined, "backend", "cuda");
    for (int i = 0; i < COUNT_OF(rules); i++) {
        const json_t *gate = record_gate(combined, rules[i].name);
        int since = cuda ? rules[i].cuda : rules[i].cpu;
        bool passed = text_is(gate, "verdict", "PASS") || text_is(gate, "verdict", "NOT APPLICABLE");
        if (rules[i].needed && since && (!passed || json_integer_value(json_object_get(gate, "policy_number")) < since))
            json_add(missing, json_string(rules[i].name));
    }
    return missing;
}

/* The policy all of whose gates were passed: the newest that is older than every missing gate. */
static int whole_policy(const json_t *combined, const json_t *missing)
{
    int policy = POLICY_NUMBER;
    bool cuda = text_is(combined, "backend", "cuda");
    const json_t *name;
    size_t index;
    json_array_foreach(missing, index, name)
    {
        for (int i = 0; i < COUNT_OF(rules); i++) {
            int since = cuda ? rules[i].cuda : rules[i].cpu;
            if (strcmp(rules[i].name, json_string_value(name)) == 0 && since - 1 < policy)
                policy = since - 1;
        }
    }
    return policy < 1 ? 1 : policy;
}

void continuation_sentence(const json_t *combined, const json_t *missing, char *text, size_t size)
{
    size_t count = json_array_size(missing);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        if (i == 0)
            snprintf(text, size, "proven under policy %d; gate%s ", whole_policy(combined, missing), count == 1 ? "" : "s");
        else
            snprintf(text + used, size - used, i + 1 < count ? ", " : " and ");
        used = strlen(text);
        snprintf(text + used, size - used, "%s", json_string_value(json_array_get(missing, i)));
    }
    size_t used = strlen(text);
    if (count)
        snprintf(text + used, size - used, " of policy %d not run", POLICY_NUMBER);
}
