/*
 * gate_speed.c - the speed gate: is the candidate faster than the champion, and really so? Measured by measure.c, judged by
 * statistics.c.
 *
 * PASS is FASTER and nothing else. SLOWER and SAME are FAIL: that is no defect of the kernel, which can be proven all the same.
 * What is one, an output that is wrong while it is timed or a time that no machine can reach, is FAIL with "cheat": true. The
 * details are those of measurement_put; every sample is in the artefact "samples".
 */
#include "gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

static void keep_samples(struct proof *proof, struct gate_result *result, const struct measurement *measurement,
                         const struct measure_spec *spec)
{
    char *path = gate_path(proof, "samples.json");
    json_t *samples = measurement_samples(measurement, spec);
    if (path && samples && json_dump_file(samples, path, JSON_COMPACT | JSON_SORT_KEYS) == 0)
        json_put(result->artefacts, "samples", json_string(path));
    json_decref(samples);
    free(path);
}

static void conclude(struct gate_result *result, const struct measurement *measurement)
{
    const struct suite_verdict *suite = &measurement->suite;
    bool cheat = false;
    switch (measurement->end) {
    case MEASURE_WRONG:
        cheat = true;
        gate_say(result, VERDICT_FAIL, "%s", measurement->sentence);
        break;
    case MEASURE_LACKING:
        gate_say(result, VERDICT_INCONCLUSIVE, "%s", measurement->sentence);
        break;
    case MEASURE_INAPPLICABLE:
        gate_say(result, VERDICT_NOT_APPLICABLE, "%s", measurement->sentence);
        break;
    case MEASURE_DONE:
        cheat = suite->below_floor;
        if (suite->speed == SPEED_INCONCLUSIVE && !cheat)
            gate_say(result, VERDICT_INCONCLUSIVE, "%s", suite->sentence);
        else
            gate_say(result, suite->speed == SPEED_FASTER ? VERDICT_PASS : VERDICT_FAIL, "%s%s",
                     suite->speed == SPEED_FASTER || cheat ? "" : "proven speed: ", suite->sentence);
    }
    json_put(result->details, "cheat", json_boolean(cheat));
}

/* Who does not take a problem of its own types that the champion takes cannot take its place, however fast it is elsewhere. */
static void stay_whole(struct gate_result *result, const struct measurement *measurement, uint32_t dtypes, const char *opponent)
{
    char sentence[480];
    snprintf(sentence, sizeof sentence, "%.470s", result->sentence);
    for (int i = 0; i < measurement->count && result->verdict == VERDICT_PASS; i++)
        if (measurement->shapes[i].refused_by_a && dtypes >> measurement->shapes[i].entry->problem.dtype & 1)
            gate_say(result, VERDICT_INCONCLUSIVE, "it does not take %s, which %s takes; elsewhere: %s",
                     measurement->shapes[i].entry->text, opponent, sentence);
}

void gate_speed(struct proof *proof, struct gate_result *result)
{
    const struct opponent *opponent = &proof->opponent;
    if (proof->reigns) {
        gate_say(result, VERDICT_NOT_APPLICABLE, "it is the reigning champion itself: there is nobody to beat");
        return;
    }
    if (!opponent->name) {
        gate_say(result, VERDICT_NOT_APPLICABLE, "no champion yet to compare with");
        return;
    }
    bool any = strcmp(opponent->name, OPPONENT_LIBRARY) == 0;
    struct measure_spec spec = {
        .a = {.name = proof->candidate.name, .image = proof->candidate.image},
        .b = {.name = opponent->name, .image = opponent->image, .kernel = opponent->image || any ? NULL : opponent->name},
        .problems = &proof->timed,
        .dtype = proof->candidate.dtype,
        .policy = &proof->policy,
        .device = proof->device,
        .threads = proof->threads,
        .seed = proof->seed,
        .clock = proof->clock,
    };
    /* On a GPU kernels are for problems of some kind; an opponent that was asked for is met on all of them. */
    if (proof->device && !any && !proof->session->options.vs)
        attest_context_create_on(proof->device, &spec.chooser);
    struct measurement measurement;
    measure(&spec, &measurement);
    attest_context_destroy(spec.chooser);
    conclude(result, &measurement);
    stay_whole(result, &measurement, proof->facts.dtypes, opponent->name);
    measurement_put(&measurement, &spec, result->details);
    if (measurement.end == MEASURE_DONE && !measurement.same_binary)
        keep_samples(proof, result, &measurement, &spec);
    measurement_free(&measurement);
}
