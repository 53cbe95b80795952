/*
 * fields.c - reading records that may lack anything, and numbers as people read them (see fields.h).
 */
#include "fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct gate_row gate_rows[] = {
#define GATE(name, needed, came, cpu, cuda, claim) {#name, claim, needed},
#include "evidence/gates.def"
#undef GATE
};
const int gate_row_count = (int)(sizeof gate_rows / sizeof gate_rows[0]);

const char *field_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

double value_number(const json_t *value, bool *found)
{
    const char *text = json_string_value(value);
    bool special = text && (strcmp(text, "nan") == 0 || strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0);
    if (found)
        *found = json_is_number(value) || special;
    if (json_is_number(value))
        return json_number_value(value);
    return !special || text[0] == 'n' ? NAN : text[0] == '-' ? -INFINITY : INFINITY;
}

double field_number(const json_t *object, const char *key, bool *found)
{
    return value_number(json_object_get(object, key), found);
}

json_t *field_object(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return json_is_object(value) ? value : NULL;
}

json_t *field_array(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return json_is_array(value) ? value : NULL;
}

json_t *details_of(const json_t *record, const char *gate)
{
    return field_object(record_gate(record, gate), "details");
}

const char *gate_name(const json_t *result)
{
    return *field_text(result, "gate") ? field_text(result, "gate") : "unnamed gate";
}

enum tone tone_of(const char *verdict)
{
    static const struct {
        const char *verdict;
        enum tone tone;
    } tones[] = {
        {"PASS", TONE_PASS},        {"PROVEN", TONE_PASS},   {"CHAMPION", TONE_PASS},
        {"FIRST", TONE_PASS},       {"FASTER", TONE_PASS},   {"right", TONE_PASS},
        {"wrong", TONE_FAIL},       {"REIGNS", TONE_PASS},   {"PROVEN IN EMULATION", TONE_PASS},
        {"FAIL", TONE_FAIL},        {"REJECTED", TONE_FAIL}, {"INCONCLUSIVE", TONE_OPEN},
        {"INTERRUPTED", TONE_OPEN},
    };
    for (size_t i = 0; i < sizeof tones / sizeof tones[0]; i++)
        if (strcmp(tones[i].verdict, verdict) == 0)
            return tones[i].tone;
    return TONE_NONE;
}

bool gate_counts(const json_t *result)
{
    const json_t *cheat = json_object_get(field_object(result, "details"), "cheat");
    return gate_needed(field_text(result, "gate")) || (cheat && !json_is_null(cheat) && !json_is_false(cheat));
}

bool gate_needed(const char *gate)
{
    for (int i = 0; i < gate_row_count; i++)
        if (strcmp(gate_rows[i].name, gate) == 0)
            return gate_rows[i].needed;
    return true;
}

const char *figure_of(figure text, double value)
{
    if (isnan(value))
        snprintf(text, FIGURE, "NaN");
    else if (isinf(value))
        snprintf(text, FIGURE, "%s", value > 0 ? "∞" : "−∞");
    else if (value != 0 && (fabs(value) < 1e-3 || fabs(value) >= 1e6))
        snprintf(text, FIGURE, "%.2e", value);
    else if (fabs(value) >= 100 || value == floor(value))
        snprintf(text, FIGURE, "%.0f", value);
    else
        snprintf(text, FIGURE, fabs(value) >= 10 ? "%.1f" : fabs(value) >= 0.1 ? "%.2f" : "%.4f", value);
    return text;
}

/* `value` in the first unit that leaves at least 1 of it; each is so many times the next. */
static const char *figure_unit(figure text, double value, double step, const char *const *units, int count)
{
    int unit = 0;
    if (!isfinite(value))
        return figure_of(text, value);
    while (unit < count - 1 && fabs(value) < 1 && value != 0) {
        value *= step;
        unit++;
    }
    snprintf(text, FIGURE,
             fabs(value) >= 1e6                            ? "%.2e %s"
             : fabs(value) >= 100 || value == floor(value) ? "%.0f %s"
             : fabs(value) >= 10                           ? "%.1f %s"
                                                           : "%.2f %s",
             value, units[unit]);
    return text;
}

const char *figure_seconds(figure text, double seconds)
{
    static const char *const units[] = {"s", "ms", "µs", "ns"};
    return figure_unit(text, seconds, 1000, units, 4);
}

const char *figure_bytes(figure text, double bytes)
{
    static const char *const units[] = {"GiB", "MiB", "KiB", "bytes"};
    return bytes == 0 ? strcpy(text, "0 bytes") : figure_unit(text, bytes / 1073741824.0, 1024, units, 4);
}

const char *figure_percent(figure text, double fraction)
{
    if (!isfinite(fraction))
        return figure_of(text, fraction);
    snprintf(text, FIGURE, fabs(fraction) < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * fraction);
    return text;
}

const char *figure_time(figure text, const char *stamp)
{
    size_t length = strlen(stamp);
    if (length >= 20 && stamp[10] == 'T' && stamp[length - 1] == 'Z')
        snprintf(text, FIGURE, "%.10s %.5s UTC", stamp, stamp + 11);
    else
        snprintf(text, FIGURE, "%.40s", stamp);
    return text;
}
