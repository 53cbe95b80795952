/*
 * render_tap.c - records as TAP: one line for each gate of each kernel, and one for its verdict.
 *
 * A gate that does not apply is skipped with its reason. A no from a gate that is not needed for PROVEN (speed, unless it found a
 * cheat) is "not ok" with a TODO directive, which TAP does not count as a failure: a slower kernel can be proven. What is
 * inconclusive is not ok.
 */
#include <string.h>

#include "fields.h"
#include "render_formats.h"

/* A description or a comment: one line, without control characters, and without the # that would begin a directive. */
static void write_line_text(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f || *text == '#' ? ' ' : *text, out);
}

static void write_point(FILE *out, int number, const json_t *record, const char *name, bool counts, const char *verdict,
                        const char *sentence)
{
    enum tone tone = tone_of(verdict);
    bool skipped = strcmp(verdict, "NOT APPLICABLE") == 0;
    fprintf(out, "%s %d - ", tone == TONE_PASS || skipped ? "ok" : "not ok", number);
    write_line_text(out, field_text(record, "kernel"));
    fputs(": ", out);
    write_line_text(out, name);
    if (skipped || (tone != TONE_PASS && !counts)) {
        fputs(skipped ? " # SKIP " : " # TODO not needed to be proven: ", out);
        write_line_text(out, sentence);
        fputc('\n', out);
        return;
    }
    fprintf(out, "\n# ");
    write_line_text(out, *verdict ? verdict : "no verdict");
    if (*sentence)
        fputs(": ", out);
    write_line_text(out, sentence);
    fputc('\n', out);
}

bool render_tap(FILE *out, const struct matter *matter)
{
    size_t index, number;
    json_t *record, *result;
    int count = 0;
    json_array_foreach(matter->records, index, record) count += (int)json_array_size(field_array(record, "gates")) + 1;
    fprintf(out, "TAP version 13\n1..%d%s\n", count, count == 0 ? " # SKIP there are no records" : "");
    count = 0;
    json_array_foreach(matter->records, index, record)
    {
        json_array_foreach(field_array(record, "gates"), number, result)
            write_point(out, ++count, record, gate_name(result), gate_counts(result), field_text(result, "verdict"),
                        field_text(result, "sentence"));
        write_point(out, ++count, record, "verdict", true, field_text(record, "verdict"), field_text(record, "decision"));
    }
    return true;
}
