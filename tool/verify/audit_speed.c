/*
 * audit_speed.c - the verdict of the speed gate, computed again. See audit_speed.h.
 *
 * Where the samples were kept with the evidence (they are an artefact of the gate, left out if they are large), the same functions
 * that judged them judge them again, with the policy and the seed of the record: every verdict must be the same word, and every
 * ratio and bound the same number. Another machine's logarithm may differ in the last bits, hence the tolerance.
 */
#include "audit_speed.h"

#include <math.h>
#include <stdlib.h>

#include "evidence/member.h"
#include "evidence/objects.h"
#include "base/report.h"
#include "data/statistics.h"

static const double tolerance = 1e-6;

/* The blocks of a list; to be freed. NULL if they are none. */
static struct block *read_blocks(const json_t *list, int *count)
{
    size_t size = json_array_size(list), index, call;
    struct block *blocks = size ? calloc(size, sizeof *blocks) : NULL;
    json_t *item, *seconds;
    *count = blocks ? (int)size : 0;
    json_array_foreach(list, index, item)
    {
        if (!blocks)
            break;
        blocks[index].a_first = text_at(item, "order")[0] == 'A';
        blocks[index].process = (int)json_integer_value(json_object_get(item, "process"));
        json_array_foreach(json_object_get(item, "seconds"), call, seconds)
        {
            if (call < BLOCK_CALLS)
                blocks[index].seconds[call] = json_number_value(seconds);
        }
    }
    return blocks;
}

static bool same_number(const json_t *object, const char *key, double expected)
{
    const json_t *value = json_object_get(object, key);
    if (!isfinite(expected))
        return !json_is_number(value);
    return json_is_number(value) && fabs(json_number_value(value) - expected) <= tolerance * fabs(expected);
}

static bool same_verdict(const json_t *object, enum speed speed, const struct interval *log_ratio)
{
    return text_is(object, "speed", speed_name(speed)) && same_number(object, "ratio", exp(log_ratio->estimate)) &&
           same_number(object, "low", exp(log_ratio->low)) && same_number(object, "high", exp(log_ratio->high));
}

struct again {
    struct shape_samples *samples;
    struct shape_verdict *verdicts;
    int count;
};

/* Judges one shape again, and keeps it for the suite. */
static void judge_again(struct again *again, const json_t *kept, const json_t *details, const struct speed_rules *rules,
                        json_t *findings)
{
    const char *problem = text_at(kept, "problem");
    const json_t *shape = member_find(json_object_get(details, "shapes"), "problem", problem);
    struct shape_samples *samples = &again->samples[again->count];
    struct shape_verdict *verdict = &again->verdicts[again->count];
    if (json_array_size(json_object_get(kept, "blocks")) == 0)
        return;
    *samples = (struct shape_samples){.problem = problem,
                                      .weight = 1,
                                      .floor = json_number_value(json_object_get(shape, "floor_s")),
                                      .clock_a = json_number_value(json_object_get(shape, "clock_a_hz")),
                                      .clock_b = json_number_value(json_object_get(shape, "clock_b_hz"))};
    samples->blocks = read_blocks(json_object_get(kept, "blocks"), &samples->count);
    samples->self = read_blocks(json_object_get(kept, "self"), &samples->self_count);
    again->count++;
    judge_shape(samples, rules, verdict);
    if (!same_verdict(shape, verdict->speed, &verdict->log_ratio))
        json_add(findings, json_text("its samples of %s do not give the recorded speed: %s", problem, verdict->sentence));
}

static void check_samples(const json_t *samples, const json_t *record, const json_t *details, json_t *findings)
{
    const json_t *policy = json_object_get(record, "policy"), *shapes = json_object_get(samples, "shapes"), *kept;
    double confidence = json_number_value(json_object_get(policy, "confidence"));
    struct speed_rules rules = {.opponent = text_at(samples, "b"),
                                .resamples = (int)json_number_value(json_object_get(policy, "resamples")),
                                .confidence = confidence > 0 ? confidence : 0.95, /* records before it was a number */
                                .least_effect = json_number_value(json_object_get(policy, "least_effect")),
                                .worst_shape = json_number_value(json_object_get(policy, "worst_shape")),
                                .seed = (uint64_t)json_integer_value(json_object_get(record, "seed"))};
    size_t most = json_array_size(shapes) + 1, index;
    struct again again = {.samples = calloc(most, sizeof *again.samples), .verdicts = calloc(most, sizeof *again.verdicts)};
    struct suite_verdict suite;
    if (!json_equal(json_object_get(samples, "seed"), json_object_get(record, "seed")))
        json_add(findings, json_string("its samples were taken with another seed"));
    json_array_foreach(shapes, index, kept)
    {
        if (again.samples && again.verdicts)
            judge_again(&again, kept, details, &rules, findings);
    }
    if (again.count > 0) {
        judge_suite(again.samples, again.verdicts, again.count, &rules, &suite);
        if (!same_verdict(json_object_get(details, "suite"), suite.speed, &suite.log_ratio))
            json_add(findings, json_text("its samples do not give the recorded speed: %s", suite.sentence));
    } else {
        json_add(findings, json_string("its samples are empty"));
    }
    for (int i = 0; i < again.count; i++) {
        free((void *)(uintptr_t)again.samples[i].blocks);
        free((void *)(uintptr_t)again.samples[i].self);
    }
    free(again.samples);
    free(again.verdicts);
}

void audit_speed(const char *evidence, const json_t *record, json_t *findings)
{
    const json_t *gate, *speed = NULL;
    size_t index, size;
    json_array_foreach(json_object_get(record, "gates"), index, gate)
    {
        if (text_is(gate, "gate", "speed"))
            speed = gate;
    }
    const json_t *details = json_object_get(speed, "details"), *suite = json_object_get(details, "suite");
    const char *digest = text_at(json_object_get(speed, "artefacts"), "samples");
    if (text_is(details, "clock", "simulated"))
        json_add(findings, json_string("it was timed on a simulated clock, which is for tests"));
    if (!suite)
        return;
    if (text_is(suite, "speed", "FASTER") != text_is(speed, "verdict", "PASS"))
        json_add(findings,
                 json_text("the speed gate says %s, but its suite is %s", text_at(speed, "verdict"), text_at(suite, "speed")));
    char *path = *digest ? object_path(evidence, digest) : NULL, *text = path ? file_read(path, &size) : NULL;
    json_t *samples = text ? json_loads(text, 0, NULL) : NULL;
    if (samples)
        check_samples(samples, record, details, findings);
    else if (text)
        json_add(findings, json_string("its samples cannot be read"));
    json_decref(samples);
    free(text);
    free(path);
}
