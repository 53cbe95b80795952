/*
 * audit_policy.c - the rules that a record was judged by. See audit_policy.h.
 *
 * A policy number stands for fixed rules. Whoever makes a number of policy.def laxer, or takes a problem out of the suite, and leaves
 * the policy number as it is, makes records that a program with the true rules tells apart; and the records of before are told apart
 * by the edited program. Numbers that are stricter, and suites with more problems, are no matter.
 */
#include "audit_policy.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/decision.h"
#include "base/embedded.h"
#include "evidence/member.h"
#include "gates/gate.h"
#include "base/report.h"

/* Of these numbers more is laxer; of all others less is. */
static bool more_is_laxer(const char *name)
{
    static const char *const names[] = {"call_seconds", "memory_mb", "worst_shape", "error_growth"};
    for (int i = 0; i < COUNT_OF(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void check_numbers(const json_t *record, json_t *findings)
{
    json_t *here = policy_json(&default_policy), *value;
    const char *name;
    json_object_foreach(here, name, value)
    {
        const json_t *then = json_object_get(json_object_get(record, "policy"), name);
        double difference = json_number_value(then) - json_number_value(value);
        if (!json_is_number(then) || (more_is_laxer(name) ? difference > 0 : difference < 0))
            json_add(findings, json_text("it was judged by laxer rules than those of policy %d: %s is %g, and must be %g",
                                         POLICY_NUMBER, name, json_number_value(then), json_number_value(value)));
    }
    json_decref(here);
}

/* Whether a kernel of a problem class such as fwd:few:f16 or fwd:any is asked for a problem such as fwd:f16:h1:... */
static bool is_for(const char *class, const char *problem)
{
    const char *dtype = strrchr(class, ':'), *word = strchr(problem, ':');
    size_t length = dtype ? strlen(dtype) : 0;
    return !dtype || !word || strcmp(dtype, ":any") == 0 || (strncmp(word, dtype, length) == 0 && word[length] == ':');
}

static bool has_problem(const json_t *record, const char *problem)
{
    const json_t *text;
    size_t index;
    json_array_foreach(json_object_get(record, "suite"), index, text)
    {
        if (json_is_string(text) && strcmp(json_string_value(text), problem) == 0)
            return true;
    }
    return false;
}

static void check_suite(const json_t *record, json_t *findings)
{
    char *text = strndup(embedded_prove_suite.data, (size_t)(embedded_prove_suite.end - embedded_prove_suite.data)), *rest = NULL;
    char first[256] = "";
    int lacking = 0;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        line[strcspn(line, "#")] = '\0';
        line += strspn(line, " \t\r");
        line[strcspn(line, " \t\r")] = '\0';
        if (!*line || !is_for(text_at(record, "problem_class"), line) || has_problem(record, line))
            continue;
        if (lacking++ == 0)
            snprintf(first, sizeof first, "%s", line);
    }
    if (lacking)
        json_add(findings, json_text("its suite lacks %d of the problems of policy %d, such as %s", lacking, POLICY_NUMBER, first));
    free(text);
}

void audit_policy(const json_t *record, json_t *findings)
{
    int policy = record_policy(record);
    if (policy > POLICY_NUMBER) {
        json_add(findings, json_text("it was judged by policy %d, and this attest knows none after %d: use a newer one",
                                     (int)json_integer_value(json_object_get(record, "policy_number")), POLICY_NUMBER));
        return;
    }
    if (!json_object_get(record, "policy_number"))
        return;
    json_t *needed = decision_needed(record);
    if (!json_equal(needed, json_object_get(record, "needed")))
        json_add(findings, json_text("the gates it says it needs are not those of policy %d", policy));
    json_decref(needed);
    if (policy == POLICY_NUMBER && text_is(record, "verdict", "PROVEN")) {
        check_numbers(record, findings);
        if (text_is(record, "kind", "shipped"))
            check_suite(record, findings);
    }
}
