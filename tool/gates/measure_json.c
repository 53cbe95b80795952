/*
 * measure_json.c - what was measured, as it goes into evidence (see measure.h).
 */
#include "measure.h"

#include <math.h>

#include "run/surroundings.h"

static double mean_clock(const struct shape_measure *shape, int which)
{
    return shape->clock_count[which] ? shape->clock_sum[which] / shape->clock_count[which] : NAN;
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *shape_json(const struct shape_measure *shape)
{
    const struct shape_verdict *verdict = &shape->verdict;
    json_t *object = json_pack("{s:s}", "problem", shape->entry->text);
    json_put(object, "speed", json_string(speed_name(verdict->speed)));
    json_put(object, "ratio", number_or_null(exp(verdict->log_ratio.estimate)));
    json_put(object, "low", number_or_null(exp(verdict->log_ratio.low)));
    json_put(object, "high", number_or_null(exp(verdict->log_ratio.high)));
    json_put(object, "effect", number_or_null(expm1(verdict->effect)));
    json_put(object, "self_mad", number_or_null(verdict->self_mad));
    json_put(object, "g", number_or_null(verdict->g));
    json_put(object, "gz", number_or_null(verdict->gz));
    json_put(object, "median_a_s", number_or_null(verdict->median_a));
    json_put(object, "median_b_s", number_or_null(verdict->median_b));
    json_put(object, "floor_s", number_or_null(shape->floor));
    json_put(object, "below_floor", json_boolean(verdict->below_floor));
    json_put(object, "blocks", json_integer(shape->count));
    json_put(object, "calls", json_integer(shape->calls));
    if (shape->replays)
        json_put(object, "replays", json_integer(shape->replays));
    json_put(object, "slots", json_integer(shape->slots));
    json_put(object, "slot_bytes", json_real(shape->bytes));
    json_put(object, "judged", json_integer(shape->judged));
    json_put(object, "neighbours", json_integer(shape->neighbours));
    json_put(object, "clock_a_hz", number_or_null(mean_clock(shape, 0)));
    json_put(object, "clock_b_hz", number_or_null(mean_clock(shape, 1)));
    json_put(object, "sentence", json_string(verdict->sentence));
    return object;
}

void measurement_put(const struct measurement *measurement, const struct measure_spec *spec, json_t *details)
{
    const struct suite_verdict *suite = &measurement->suite;
    json_t *shapes = json_array(), *refused = json_array();
    for (int i = 0; i < measurement->count; i++) {
        const struct shape_measure *shape = &measurement->shapes[i];
        if (shape->refusal[0])
            json_add(refused, json_pack("{s:s, s:s, s:b}", "problem", shape->entry->text, "sentence", shape->refusal,
                                        "by_candidate", shape->refused_by_a));
        else
            json_add(shapes, shape_json(shape));
    }
    json_put(details, "opponent", json_string(spec->b.name));
    json_put(details, "clock", json_string(measurement->simulated ? "simulated" : spec->device ? "gpu" : "real"));
    json_put(details, "same_binary", json_boolean(measurement->same_binary));
    if (measurement->end != MEASURE_DONE) {
        json_decref(shapes);
        json_decref(refused);
    } else {
        json_put(details, "shapes", shapes);
        json_put(details, "refused", refused);
        json_put(details, "suite",
                 json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:s}", "speed", speed_name(suite->speed), "ratio",
                           number_or_null(measurement->same_binary ? 1 : exp(suite->log_ratio.estimate)), "low",
                           number_or_null(measurement->same_binary ? 1 : exp(suite->log_ratio.low)), "high",
                           number_or_null(measurement->same_binary ? 1 : exp(suite->log_ratio.high)), "effect",
                           number_or_null(expm1(suite->effect)), "worst",
                           number_or_null(measurement->same_binary ? 1 : exp(suite->worst)), "sentence", suite->sentence));
    }
    json_put(details, "floor", floor_bounds(spec->device != NULL));
    if (measurement->surroundings)
        json_put(details, "surroundings", json_incref(measurement->surroundings));
}

static json_t *blocks_json(const struct block *blocks, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        json_t *seconds = json_array();
        for (int k = 0; k < BLOCK_CALLS; k++)
            json_add(seconds, json_real(blocks[i].seconds[k]));
        json_add(list, json_pack("{s:s, s:i, s:o}", "order", blocks[i].a_first ? "ABBAABBA" : "BAABBAAB", "process",
                                 blocks[i].process, "seconds", seconds));
    }
    return list;
}

json_t *measurement_samples(const struct measurement *measurement, const struct measure_spec *spec)
{
    json_t *shapes = json_array();
    for (int i = 0; i < measurement->count; i++) {
        const struct shape_measure *shape = &measurement->shapes[i];
        if (shape->refusal[0])
            continue;
        json_add(shapes, json_pack("{s:s, s:i, s:o, s:o}", "problem", shape->entry->text, "calls", shape->calls, "blocks",
                                   blocks_json(shape->blocks, shape->count), "self", blocks_json(shape->self, shape->count)));
    }
    return json_pack("{s:s, s:s, s:s, s:I, s:i, s:o, s:O?}", "a", spec->a.name, "b", spec->b.name, "clock",
                     measurement->simulated ? "simulated" : "real", "seed", (json_int_t)spec->seed, "threads", spec->threads,
                     "shapes", shapes, "surroundings", measurement->surroundings);
}
