/*
 * html_gates.c - what each gate found, as it is shown below the gate's sentence. What a gate says beyond what is expected here is
 * shown too, as a list of facts.
 */
#include "html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "theory/stages.h"

enum { ROWS_SHOWN = 8 };

/* ---- build --------------------------------------------------------------------------------------------------------------- */

static void write_log(FILE *out, const char *title, const char *log)
{
    if (*log)
        write_markup(out, "<details class=\"more\"><summary>%s</summary><pre>%s</pre></details>\n", title, log);
}

/* The columns of the resource table: members of a row, of its "predicted" or of its "measured". */
static const struct {
    const char *title, *group, *key;
} resources[] = {
    {"architecture", NULL, "arch"},
    {"dtype", NULL, "dtype"},
    {"dim", NULL, "dim"},
    {"registers, predicted", "predicted", "registers"},
    {"registers", "measured", "registers"},
    {"shared bytes, predicted", "predicted", "shared"},
    {"shared bytes", "measured", "shared"},
    {"limit", NULL, "limit_shared"},
    {"spill stores", "measured", "spill_stores"},
    {"spill loads", "measured", "spill_loads"},
    {"stack", "measured", "stack"},
    {"blocks an SM, predicted", "predicted", "blocks_per_sm"},
    {"blocks an SM", NULL, "blocks_per_sm"},
    {"limited by", NULL, "limiter"},
    {"verdict", NULL, "fits"},
};
enum { RESOURCE_COUNT = sizeof resources / sizeof resources[0] };

static json_t *resource_of(const json_t *row, int column)
{
    return json_object_get(resources[column].group ? field_object(row, resources[column].group) : row, resources[column].key);
}

static void write_resources(FILE *out, json_t *rows)
{
    bool shown[RESOURCE_COUNT] = {false};
    const char *titles[RESOURCE_COUNT + 1];
    int count = 0;
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        for (int i = 0; i < RESOURCE_COUNT; i++)
            shown[i] = shown[i] || resource_of(row, i);
    }
    for (int i = 0; i < RESOURCE_COUNT; i++)
        if (shown[i])
            titles[count++] = resources[i].title;
    titles[count] = NULL;
    html_table_begin(out, "Resources, predicted from the manifest and measured in the image", titles);
    json_array_foreach(rows, index, row)
    {
        write_markup(out, "<tr title=\"%s\">", field_text(row, "sentence"));
        for (int i = 0; i < RESOURCE_COUNT; i++) {
            json_t *value = resource_of(row, i);
            if (!shown[i])
                continue;
            fputs(json_is_number(value) ? "<td class=\"figure\">" : "<td>", out);
            if (json_is_boolean(value))
                write_markup(out, "<b class=\"word %s\">%s</b>", json_is_true(value) ? "pass" : "fail",
                             json_is_true(value) ? "fits" : "does not fit");
            else
                html_value(out, value);
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    html_table_end(out);
}

static void write_build(FILE *out, const json_t *record, json_t *details)
{
    static const char *const known[] = {"log", "resources", "exports", "imports", "stack", NULL};
    json_t *facts = field_object(record, "candidate");
    figure text;
    bool found;
    double bytes = field_number(facts, "image_bytes", &found);
    html_facts_begin(out);
    html_fact(out, "source", json_object_get(facts, "source"));
    html_fact(out, "compiler", json_object_get(facts, "compiler"));
    html_fact(out, "flags", json_object_get(facts, "flags"));
    html_fact(out, "needs", json_object_get(facts, "needs"));
    html_fact(out, "dtypes", json_object_get(facts, "dtypes"));
    html_fact(out, "refuses", json_object_get(facts, "refuses"));
    if (found)
        html_fact_text(out, "image", figure_bytes(text, bytes));
    if (json_is_integer(json_object_get(details, "stack")))
        html_fact_text(out, "stack", figure_bytes(text, field_number(details, "stack", NULL)));
    html_fact(out, "exports", json_object_get(details, "exports"));
    html_fact(out, "imports", json_object_get(details, "imports"));
    html_facts_end(out);
    if (json_array_size(field_array(details, "resources")) > 0)
        write_resources(out, field_array(details, "resources"));
    html_facts_rest(out, details, known);
    write_log(out, "What the compiler said", field_text(details, "log"));
}

/* ---- oracle -------------------------------------------------------------------------------------------------------------- */

static bool names(const json_t *list, const char *name)
{
    size_t index;
    json_t *item;
    json_array_foreach(list, index, item) if (json_is_string(item) && strcmp(json_string_value(item), name) == 0) return true;
    return false;
}

/* The stages in their order: right up to the first wrong one, and not judged behind it. */
static void write_stages(FILE *out, const json_t *wrong)
{
    bool after = false;
    fputs("<ol class=\"stages\" aria-label=\"Stages of the computation\">", out);
    for (int i = 0; i < STAGE_COUNT; i++) {
        const char *name = stage_name((enum stage)(1 << i));
        bool bad = names(wrong, name);
        const char *wrongly = json_array_size(wrong) > 1 ? "one of these is wrong" : "first wrong";
        write_markup(out, "<li class=\"%s\"><b>%s</b> <span>%s</span></li>",
                     bad     ? "fail"
                     : after ? "none"
                             : "pass",
                     name,
                     bad     ? wrongly
                     : after ? "not judged"
                             : "right");
        after = after || bad;
    }
    fputs("</ol>\n", out);
}

/* Places are numbers from 0 on; -1 is a place that is not known, and is left out. */
static void write_place(FILE *out, const char *name, const json_t *diagnosis)
{
    json_t *value = json_object_get(diagnosis, name);
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        html_fact(out, name, value);
}

static void write_oracle(FILE *out, json_t *details)
{
    static const char *const known[] = {"problems", "diagnosis", "probes", NULL};
    static const char *const known_diagnosis[] = {"stages",  "tile",  "batch", "head", "row",    "column",
                                                  "pattern", "cause", "error", "heat", "probes", NULL};
    json_t *diagnosis = field_object(details, "diagnosis"), *problems = field_array(details, "problems");
    json_t *probes = field_array(details, "probes") ? field_array(details, "probes") : field_array(diagnosis, "probes");
    if (diagnosis) {
        json_t *stages = field_array(diagnosis, "stages");
        if (json_array_size(stages) > 0)
            write_stages(out, stages);
        fputs("<div class=\"diagnosis\"><div>", out);
        if (*field_text(diagnosis, "cause"))
            write_markup(out, "<p class=\"cause\"><b>Likely cause.</b> %s</p>", field_text(diagnosis, "cause"));
        html_facts_begin(out);
        html_fact(out, "pattern", json_object_get(diagnosis, "pattern"));
        html_fact(out, "error", json_object_get(diagnosis, "error"));
        write_place(out, "batch", diagnosis);
        write_place(out, "head", diagnosis);
        write_place(out, "row", diagnosis);
        write_place(out, "column", diagnosis);
        if (json_integer_value(json_object_get(diagnosis, "tile")) > 0)
            html_fact(out, "tile", json_object_get(diagnosis, "tile"));
        html_facts_end(out);
        html_facts_rest(out, diagnosis, known_diagnosis);
        fputs("</div>", out);
        chart_heat(out, diagnosis);
        fputs("</div>\n", out);
    }
    if (json_array_size(problems) > 0) {
        fputs("<details class=\"more\"><summary>Problems it was asked</summary>", out);
        html_value(out, problems);
        fputs("</details>\n", out);
    }
    if (json_array_size(probes) > 0) {
        fputs("<details class=\"more\"><summary>Probes and their answers</summary>", out);
        html_value(out, probes);
        fputs("</details>\n", out);
    }
    html_facts_rest(out, details, known);
}

/* ---- correctness --------------------------------------------------------------------------------------------------------- */

/* Failures first, then what is open, then by how much of the bound is used; NaN is worst. */
static double row_badness(const json_t *row)
{
    static const double weights[] = {0, 2e300, 1e300, -1};
    double ratio = field_number(row, "ratio", NULL);
    enum tone tone = tone_of(field_text(row, "verdict"));
    return weights[tone] + (tone == TONE_NONE ? 0 : isfinite(ratio) ? fabs(ratio) : tone == TONE_PASS ? 0 : 1e299);
}

static int compare_rows(const void *a, const void *b)
{
    double x = row_badness(*(json_t *const *)a), y = row_badness(*(json_t *const *)b);
    return (x < y) - (x > y);
}

static json_t *note_of(const json_t *row)
{
    json_t *note = json_object_get(row, "note") ? json_object_get(row, "note") : json_object_get(row, "notes");
    return json_string_length(note) > 0 || json_array_size(note) > 0 ? note : NULL;
}

static void write_correctness_rows(FILE *out, json_t *const *rows, size_t count)
{
    bool noted = false;
    for (size_t i = 0; i < count; i++)
        noted = noted || note_of(rows[i]);
    html_table_begin(out, NULL,
                     (const char *const[]){"problem", "verdict", ">largest error", ">of its bound", noted ? "note" : NULL, NULL});
    for (size_t i = 0; i < count; i++) {
        figure texts[2];
        bool found_error, found_ratio;
        double error = field_number(rows[i], "max_error", &found_error), ratio = field_number(rows[i], "ratio", &found_ratio);
        fputs("<tr><th scope=\"row\">", out);
        html_code(out, field_text(rows[i], "problem"));
        fputs("</th><td>", out);
        html_badge(out, field_text(rows[i], "verdict"));
        write_markup(out, "</td><td class=\"figure\">%s</td><td class=\"figure\">%s</td>",
                     found_error ? figure_of(texts[0], error) : "–", found_ratio ? figure_of(texts[1], ratio) : "–");
        if (noted)
            fputs("<td>", out);
        if (note_of(rows[i]))
            html_value(out, note_of(rows[i]));
        fputs(noted ? "</td></tr>\n" : "</tr>\n", out);
    }
    html_table_end(out);
}

/* One chip for each relation or set of values, with how many problems it held on. */
static void write_chips(FILE *out, const char *title, json_t *list, const char *key)
{
    size_t index, other;
    json_t *item, *twin;
    if (json_array_size(list) == 0)
        return;
    write_markup(out, "<h5>%s</h5><ul class=\"chips\">", title);
    json_array_foreach(list, index, item)
    {
        const char *name = field_text(item, key), *worst_note = "";
        int count = 0, first = -1;
        enum tone worst = TONE_NONE;
        json_array_foreach(list, other, twin)
        {
            enum tone tone = tone_of(field_text(twin, "verdict"));
            if (strcmp(field_text(twin, key), name) != 0)
                continue;
            first = first < 0 ? (int)other : first;
            count += tone != TONE_NONE;
            if (worst == TONE_NONE || tone == TONE_FAIL || (tone == TONE_OPEN && worst == TONE_PASS)) {
                worst = tone;
                worst_note = field_text(twin, "note");
            }
        }
        if (first != (int)index)
            continue;
        write_markup(out, "<li class=\"%s\" title=\"%s\"><span aria-hidden=\"true\">%s</span> <span class=\"hidden\">%s: </span>%s",
                     tone_class(worst), worst_note, tone_symbol(worst),
                     worst == TONE_PASS   ? "holds"
                     : worst == TONE_FAIL ? "fails"
                     : worst == TONE_OPEN ? "inconclusive"
                                          : "not applicable",
                     name);
        if (count > 1)
            write_markup(out, " <small>×%d</small>", count);
        if (worst == TONE_FAIL && *worst_note)
            write_markup(out, " <small>%s</small>", worst_note);
        fputs("</li>", out);
    }
    fputs("</ul>\n", out);
}

static void write_correctness(FILE *out, json_t *details)
{
    static const char *const known[] = {"rows", "relations", "values", "error", NULL};
    json_t *list = field_array(details, "rows"), *row, *error = field_object(details, "error");
    size_t count = 0, index, shown;
    json_t **rows = calloc(json_array_size(list) + 1, sizeof(json_t *));
    if (!rows)
        return;
    json_array_foreach(list, index, row) if (json_is_object(row)) rows[count++] = row;
    qsort(rows, count, sizeof(json_t *), compare_rows);
    shown = count > ROWS_SHOWN + 2 ? ROWS_SHOWN : count;
    if (shown > 0) {
        fputs("<h5>Problems, worst first</h5>", out);
        write_correctness_rows(out, rows, shown);
    }
    if (count > shown) {
        write_markup(out, "<details class=\"more\"><summary>%zu more problems</summary>", count - shown);
        write_correctness_rows(out, rows + shown, count - shown);
        fputs("</details>\n", out);
    }
    write_chips(out, "Relations that must hold", field_array(details, "relations"), "relation");
    write_chips(out, "Adversarial values", field_array(details, "values"), "set");
    if (error) {
        static const char *const titled[] = {"p999", "champion_p999", "bias", NULL};
        figure text;
        fputs("<h5>Error beside the champion’s</h5>", out);
        html_facts_begin(out);
        html_fact_text(out, "p99.9 of the scaled error", figure_of(text, field_number(error, "p999", NULL)));
        if (json_is_number(json_object_get(error, "champion_p999")))
            html_fact_text(out, "the champion’s", figure_of(text, field_number(error, "champion_p999", NULL)));
        html_fact(out, "signed mean (bias)", json_object_get(error, "bias"));
        html_facts_end(out);
        html_facts_rest(out, error, titled);
    }
    html_facts_rest(out, details, known);
    free(rows);
}

/* ---- all of them --------------------------------------------------------------------------------------------------------- */

void html_gate_details(FILE *out, const struct matter *matter, const json_t *record, const char *gate, json_t *details)
{
    static const char *const none[] = {NULL};
    if (strcmp(gate, "build") == 0)
        write_build(out, record, details);
    else if (strcmp(gate, "oracle") == 0 || strcmp(gate, "emulation") == 0) /* the same diagnosis, on another device */
        write_oracle(out, details);
    else if (strcmp(gate, "correctness") == 0)
        write_correctness(out, details);
    else if (strcmp(gate, "speed") == 0)
        html_speed(out, matter, record, details);
    else
        html_facts_rest(out, details, none);
}
