/*
 * export.c - a search in the T4 format in which auto-tuners exchange results ("schema_version", "metadata", "results"), with its
 * space beside them in the words of the T1 format ("ConfigurationSpace"). See search.h. Each result is one candidate whose settings
 * are known; "invalidity" is one of the words of the format: correct, compile, correctness, runtime, timeout, constraints.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/member.h"
#include "search.h"

static const char *invalidity_of(const json_t *trial)
{
    const char *stage = text_at(trial, "stage");
    if (json_is_number(json_object_get(trial, "score")) && !text_is(trial, "state", "REJECTED"))
        return "correct";
    if (strcmp(stage, "build") == 0 || strcmp(stage, "proposal") == 0)
        return "compile";
    return strcmp(stage, "process") == 0 ? "runtime" : strcmp(stage, "baseline") == 0 ? "correct" : "correctness";
}

/* A setting as the number that it is, where it is one. */
static json_t *value_json(const char *word)
{
    bool whole = *word && strspn(word, "0123456789") == strlen(word) && strlen(word) < 10;
    return whole ? json_integer(atoll(word)) : json_string(word);
}

static json_t *configuration_json(const json_t *settings)
{
    json_t *configuration = json_object(), *value;
    const char *name;
    json_object_foreach((json_t *)(uintptr_t)settings, name, value)
        json_put(configuration, name, value_json(json_string_value(value)));
    return configuration;
}

static double gate_seconds(const json_t *trial, const char *name)
{
    size_t i;
    json_t *gate;
    double sum = 0;
    json_array_foreach(json_object_get(trial, "gates"), i, gate) sum +=
        text_is(gate, "gate", name) ? json_number_value(json_object_get(gate, "seconds")) : 0;
    return sum;
}

/* Mean over the problems of the times of the candidate, in milliseconds, one each. */
static json_t *runtimes_of(const json_t *trial)
{
    json_t *runtimes = json_array(), *shape;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(trial, "screen"), "shapes"), i, shape)
        json_add(runtimes, json_real(1e3 * json_number_value(json_object_get(shape, "median_a_s"))));
    return runtimes;
}

static json_t *result_json(const json_t *trial)
{
    const char *invalidity = invalidity_of(trial);
    bool correct = strcmp(invalidity, "correct") == 0;
    json_t *measurements = json_array();
    double score = json_number_value(json_object_get(trial, "score"));
    if (correct)
        json_add(measurements, json_pack("{s:s, s:f, s:s}", "name", "speed", "value", exp(score), "unit", "of the start"));
    return json_pack("{s:o, s:{s:f, s:f, s:f, s:o}, s:s, s:i, s:o, s:[s], s:{s:O, s:O*, s:s, s:s}}", "configuration",
                     configuration_json(json_object_get(trial, "settings")), "times", "compilation_time",
                     1e3 * gate_seconds(trial, "build"), "validation",
                     1e3 * (gate_seconds(trial, "oracle") + gate_seconds(trial, "correctness")), "framework",
                     1e3 * json_number_value(json_object_get(trial, "seconds")), "runtimes", runtimes_of(trial), "invalidity",
                     invalidity, "correctness", correct ? 1 : 0, "measurements", measurements, "objectives", "speed", "attest",
                     "candidate", json_object_get(trial, "number"), "image", json_object_get(trial, "image"), "state",
                     text_at(trial, "state"), "sentence", text_at(trial, "sentence"));
}

static json_t *space_of(const json_t *about)
{
    json_t *parameters = json_array(), *conditions = json_array(), *knob, *rule, *value;
    size_t i, k;
    json_array_foreach(json_object_get(about, "space"), i, knob)
    {
        json_t *values = json_array();
        bool numeric = json_is_true(json_object_get(knob, "numeric"));
        json_array_foreach(json_object_get(knob, "values"), k, value) json_add(values, value_json(json_string_value(value)));
        json_add(parameters, json_pack("{s:s, s:s, s:o, s:o}", "Name", text_at(knob, "name"), "Type", numeric ? "int" : "string",
                                       "Values", values, "Default", value_json(text_at(knob, "start"))));
    }
    json_array_foreach(json_object_get(about, "fits"), i, rule) json_add(conditions, json_pack("{s:O}", "Expression", rule));
    return json_pack("{s:o, s:o}", "TuningParameters", parameters, "Conditions", conditions);
}

json_t *search_export(const json_t *search)
{
    const json_t *about = json_object_get(search, "start");
    json_t *results = json_array(), *trial;
    size_t i;
    json_array_foreach(json_object_get(search, "trials"), i, trial)
    {
        if (json_object_get(trial, "settings") && !text_is(trial, "state", "PROPOSED"))
            json_add(results, result_json(trial));
    }
    return json_pack("{s:s, s:{s:s, s:O, s:O*, s:O*, s:O*, s:O*, s:O*}, s:o, s:o, s:O*}", "schema_version", "1.0.0", "metadata",
                     "tool", "attest evolve", "search", json_object_get(search, "search"), "kernel",
                     json_object_get(about, "kernel"), "problems", json_object_get(about, "problems"), "device",
                     json_object_get(about, "device"), "proposer", json_object_get(about, "proposer"), "started",
                     json_object_get(about, "started"), "ConfigurationSpace", space_of(about), "results", results, "verdict",
                     json_object_get(search, "result"));
}
