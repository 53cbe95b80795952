/*
 * simulated_clock.c - times from a model of noise instead of a clock, for tests of the speed gate. The model is in statistics.h.
 */
#include "statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

static bool parse_word(const char *word, struct simulated_clock *clock, char *why, size_t why_size)
{
    const struct {
        const char *name;
        double *value;
        double low, high;
    } numbers[] = {{"a", &clock->a, 1e-9, 1e9},      {"b", &clock->b, 1e-9, 1e9},        {"noise", &clock->noise, 0, 1},
                   {"drift", &clock->drift, 0, 0.9}, {"period", &clock->period, 1, 1e9}, {"spike", &clock->spike, 0, 100},
                   {"spikes", &clock->spikes, 0, 1}};
    size_t length = strcspn(word, "=");
    const char *text = word[length] ? word + length + 1 : "";
    char *end;
    if (length == 4 && strncmp(word, "seed", 4) == 0) {
        clock->seed = strtoull(text, &end, 10);
        if (end != text && !*end && *text != '-')
            return true;
        snprintf(why, why_size, "a simulated clock takes seed=N with a whole number, not '%s'", word);
        return false;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strlen(numbers[i].name) != length || strncmp(numbers[i].name, word, length) != 0)
            continue;
        *numbers[i].value = strtod(text, &end);
        if (end != text && !*end && *numbers[i].value >= numbers[i].low && *numbers[i].value <= numbers[i].high)
            return true;
        snprintf(why, why_size, "a simulated clock takes %s=X with X from %g to %g, not '%s'", numbers[i].name, numbers[i].low,
                 numbers[i].high, word);
        return false;
    }
    snprintf(why, why_size, "a simulated clock has no '%s'; it has a, b, noise, drift, period, spike, spikes and seed", word);
    return false;
}

bool simulated_clock_parse(const char *text, struct simulated_clock *clock, char *why, size_t why_size)
{
    char word[64];
    *clock = (struct simulated_clock){
        .a = 1, .b = 1, .noise = 0.004, .drift = 0.01, .period = 400, .spike = 0.08, .spikes = 0.01, .seed = 1};
    while (*text) {
        size_t length = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), text);
        if (!parse_word(word, clock, why, why_size))
            return false;
        text += length + (text[length] == ',');
    }
    return true;
}

/* Between 0 and 1, never either. */
static double uniform(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

double simulated_clock_next(struct simulated_clock *clock, bool is_a)
{
    uint64_t call = clock->calls++;
    double radius = sqrt(-2 * log(uniform(random_bits(clock->seed, 0, call))));
    double normal = radius * cos(2 * M_PI * uniform(random_bits(clock->seed, 1, call)));
    double phase = uniform(random_bits(clock->seed, 2, 0));
    double drift = 1 + clock->drift * sin(2 * M_PI * ((double)call / clock->period + phase));
    double spike = uniform(random_bits(clock->seed, 3, call)) < clock->spikes ? 1 + clock->spike : 1;
    return 1e-3 * (is_a ? clock->a : clock->b) * exp(clock->noise * normal) * drift * spike;
}
