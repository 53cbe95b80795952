/*
 * render_junit.c - records as JUnit XML: a suite for each kernel, with a case for each gate and one for the verdict.
 *
 * FAIL is a failure, INCONCLUSIVE (and a verdict that is missing) an error. A gate that does not apply, and a no from one that
 * is not needed for PROVEN (speed, unless it found a cheat), is skipped with its sentence.
 */
#include <math.h>
#include <string.h>

#include "fields.h"
#include "render_formats.h"
#include "writer.h"

enum outcome { OUTCOME_PASS, OUTCOME_FAILURE, OUTCOME_ERROR, OUTCOME_SKIPPED, OUTCOME_COUNT };

static enum outcome outcome_of(bool counts, const char *verdict)
{
    enum tone tone = tone_of(verdict);
    if (tone == TONE_PASS)
        return OUTCOME_PASS;
    if (strcmp(verdict, "NOT APPLICABLE") == 0 || !counts)
        return OUTCOME_SKIPPED;
    return tone == TONE_FAIL ? OUTCOME_FAILURE : OUTCOME_ERROR;
}

static void count_outcomes(const json_t *record, int counts[OUTCOME_COUNT])
{
    size_t number;
    json_t *result;
    json_array_foreach(field_array(record, "gates"), number, result)
        counts[outcome_of(gate_counts(result), field_text(result, "verdict"))]++;
    counts[outcome_of(true, field_text(record, "verdict"))]++;
}

static void write_counts(FILE *out, const int counts[OUTCOME_COUNT])
{
    write_markup(out, " tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\"",
                 counts[OUTCOME_PASS] + counts[OUTCOME_FAILURE] + counts[OUTCOME_ERROR] + counts[OUTCOME_SKIPPED],
                 counts[OUTCOME_FAILURE], counts[OUTCOME_ERROR], counts[OUTCOME_SKIPPED]);
}

static double seconds_of(const json_t *object)
{
    double seconds = field_number(object, "seconds", NULL);
    return isfinite(seconds) && seconds > 0 ? seconds : 0;
}

static void write_case(FILE *out, const json_t *record, const char *name, bool counts, const char *verdict, const char *sentence,
                       double seconds)
{
    static const char *const elements[] = {NULL, "failure", "error", "skipped"};
    enum outcome outcome = outcome_of(counts, verdict);
    write_markup(out, "<testcase classname=\"attest.%s\" name=\"%s\" time=\"%.3f\">", field_text(record, "kernel"), name, seconds);
    if (outcome == OUTCOME_SKIPPED)
        write_markup(out, "<skipped message=\"%s: %s\"/>", verdict, sentence);
    else if (outcome != OUTCOME_PASS)
        write_markup(out, "<%s type=\"%s\" message=\"%s\">%s</%s>", elements[outcome], *verdict ? verdict : "NO VERDICT", sentence,
                     sentence, elements[outcome]);
    else
        write_markup(out, "<system-out>%s</system-out>", sentence);
    fputs("</testcase>\n", out);
}

static void write_suite(FILE *out, const json_t *record)
{
    int counts[OUTCOME_COUNT] = {0};
    size_t number;
    json_t *result;
    count_outcomes(record, counts);
    write_markup(out, "<testsuite name=\"%s\"", field_text(record, "kernel"));
    write_counts(out, counts);
    write_markup(out, " time=\"%.3f\"", seconds_of(record));
    if (*field_text(record, "started"))
        write_markup(out, " timestamp=\"%s\"", field_text(record, "started"));
    fputs(">\n", out);
    json_array_foreach(field_array(record, "gates"), number, result)
        write_case(out, record, gate_name(result), gate_counts(result), field_text(result, "verdict"),
                   field_text(result, "sentence"), seconds_of(result));
    write_case(out, record, "verdict", true, field_text(record, "verdict"), field_text(record, "decision"), 0);
    fputs("</testsuite>\n", out);
}

bool render_junit(FILE *out, const struct matter *matter)
{
    int counts[OUTCOME_COUNT] = {0};
    size_t index;
    json_t *record;
    json_array_foreach(matter->records, index, record) count_outcomes(record, counts);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attest\"", out);
    write_counts(out, counts);
    fputs(">\n", out);
    json_array_foreach(matter->records, index, record) write_suite(out, record);
    fputs("</testsuites>\n", out);
    return true;
}
