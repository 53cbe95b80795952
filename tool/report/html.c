/*
 * html.c - the HTML page: summary, verdicts, the gate table, one chapter a kernel, champions, machines.
 *
 * One file that needs nothing else: no script, no font, no picture from elsewhere, and a content security policy that forbids them,
 * so that a string which slipped through could load nothing either. What is long is in <details>, which needs no script, is opened
 * by a link into it, and is opened by the style sheet on paper.
 */
#include "html.h"

#include <string.h>

#include "base/embedded.h"
#include "render_formats.h"

/* The identifier of the chapter of a record. */
#define CHAPTER "kernel-%zu"

static const char *kernel_of(const json_t *record)
{
    return *field_text(record, "kernel") ? field_text(record, "kernel") : "(a kernel without a name)";
}

/* Whether the kernel of a record reigns on its device class; with `out`, in which problem classes. */
static bool reigns(FILE *out, const struct matter *matter, const json_t *record)
{
    size_t index;
    json_t *entry;
    bool found = false;
    json_array_foreach(matter->champions, index, entry)
    {
        if (strcmp(field_text(entry, "kernel"), field_text(record, "kernel")) != 0 ||
            strcmp(field_text(entry, "device"), field_text(field_object(record, "device"), "class")) != 0)
            continue;
        if (out)
            write_markup(out, found ? ", %s" : " <small>reigns in %s", field_text(entry, "problem_class"));
        found = true;
    }
    if (out && found)
        fputs("</small>", out);
    return found;
}

/* ---- the head ------------------------------------------------------------------------------------------------------------ */

struct totals {
    size_t kernels;
    size_t by_tone[TONE_NONE + 1];
    size_t reigning;
    const char *first, *last; /* times of the first and the last proof */
};

static struct totals count_totals(const struct matter *matter)
{
    struct totals totals = {.kernels = json_array_size(matter->records), .first = "", .last = ""};
    size_t index;
    json_t *record;
    json_array_foreach(matter->records, index, record)
    {
        const char *when = field_text(record, "started");
        totals.by_tone[tone_of(field_text(record, "verdict"))]++;
        totals.reigning += reigns(NULL, matter, record);
        if (*when && (!*totals.first || strcmp(when, totals.first) < 0))
            totals.first = when;
        if (strcmp(when, totals.last) > 0)
            totals.last = when;
    }
    return totals;
}

/* What the page is about, in one line: the verdict of one kernel, or how many are proven. */
static void write_headline(FILE *out, const struct matter *matter, const struct totals *totals)
{
    static const char *const words[] = {"is proven", "is rejected", "is inconclusive", "has no verdict"};
    const json_t *record = json_array_get(matter->records, 0);
    if (totals->kernels == 1)
        write_markup(out, "%s %s", kernel_of(record), words[tone_of(field_text(record, "verdict"))]);
    else
        write_markup(out, "%zu of %zu kernels are proven", totals->by_tone[TONE_PASS], totals->kernels);
}

static const char *plural(size_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

/* "AMD EPYC (2 cores, cpu-avx512bf16)", for each machine of the records. */
static void write_machines(FILE *out, const json_t *records)
{
    size_t index, before;
    json_t *record, *other;
    const char *separator = "";
    json_array_foreach(records, index, record)
    {
        json_t *device = field_object(record, "device");
        bool seen = !device;
        json_array_foreach(records, before, other)
        {
            if (before >= index)
                break;
            json_t *twin = field_object(other, "device");
            seen = seen || (strcmp(field_text(twin, "class"), field_text(device, "class")) == 0 &&
                            strcmp(field_text(twin, "model"), field_text(device, "model")) == 0);
        }
        if (seen)
            continue;
        write_markup(out, "%s<b>%s</b> (", separator,
                     *field_text(device, "model") ? field_text(device, "model") : "an unnamed machine");
        if (json_is_integer(json_object_get(device, "cores")))
            write_markup(out, "%lld %s, ", (long long)json_integer_value(json_object_get(device, "cores")),
                         json_integer_value(json_object_get(device, "cores")) == 1 ? "core" : "cores");
        write_markup(out, "%s)", field_text(device, "class"));
        separator = ", ";
    }
    if (!*separator)
        fputs("a machine that the records do not name", out);
}

static void write_tile(FILE *out, const char *class, size_t count, const char *text)
{
    if (count > 0)
        write_markup(out, "<li class=\"%s\"><b>%zu</b> %s</li>", class, count, text);
}

static void write_summary(FILE *out, const struct matter *matter)
{
    struct totals totals = count_totals(matter);
    size_t proven = totals.by_tone[TONE_PASS], index;
    figure from, to;
    json_t *notice;
    fputs("<header>\n<p class=\"eyebrow\">attest report</p>\n<h1>", out);
    write_headline(out, matter, &totals);
    fputs("</h1>\n<p class=\"lead\">", out);
    write_markup(out, "%zu %s through the gates on ", totals.kernels, plural(totals.kernels, "kernel went", "kernels went"));
    write_machines(out, matter->records);
    figure_time(from, totals.first);
    figure_time(to, totals.last);
    if (*totals.first && strcmp(from, to) != 0)
        write_markup(out, ", between %s and %s", from, to);
    else if (*totals.first)
        write_markup(out, " at %s", from);
    fputs(". A kernel is <b>proven</b> if every gate that applies passed, speed aside; and a <b>champion</b> if it is also "
          "faster than the one that reigned.</p>\n<ul class=\"tiles\">",
          out);
    write_tile(out, "pass", proven, "proven");
    write_tile(out, "crown", totals.reigning, plural(totals.reigning, "reigns", "reign"));
    write_tile(out, "fail", totals.by_tone[TONE_FAIL], "rejected");
    write_tile(out, "open", totals.by_tone[TONE_OPEN], "inconclusive");
    write_tile(out, "none", totals.by_tone[TONE_NONE], "without a verdict");
    fputs("</ul>\n", out);
    json_array_foreach(matter->notices, index, notice)
        write_markup(out, "<p class=\"notice\">%s</p>\n", json_is_string(notice) ? json_string_value(notice) : "");
    fputs("<nav aria-label=\"Parts of this page\"><a href=\"#verdicts\">Verdicts</a> <a href=\"#gates\">Gates</a> <a "
          "href=\"#kernels\">Kernels</a> <a href=\"#champions\">Champions</a> ",
          out);
    if (json_array_size(matter->searches) > 0)
        fputs("<a href=\"#searches\">Searches</a> ", out);
    fputs("<a href=\"#machine\">Machine</a></nav>\n</header>"
          "\n",
          out);
}

/* ---- verdicts ------------------------------------------------------------------------------------------------------------ */

static void write_kernel_link(FILE *out, const json_t *record, size_t index)
{
    write_markup(out, "<a href=\"#" CHAPTER "\">", index);
    write_breakable(out, kernel_of(record));
    fputs("</a>", out);
}

static void write_verdicts(FILE *out, const struct matter *matter)
{
    double low = 1, high = 1;
    size_t index;
    json_t *record;
    json_array_foreach(matter->records, index, record)
    {
        json_t *suite = field_object(details_of(record, "speed"), "suite");
        range_add(&low, &high, field_number(suite, "low", NULL));
        range_add(&low, &high, field_number(suite, "ratio", NULL));
        range_add(&low, &high, field_number(suite, "high", NULL));
    }
    struct axis axis = axis_over(low, high);
    fputs("<section id=\"verdicts\"><h2>Verdicts</h2>\n<table class=\"verdicts\"><thead><tr><th scope=\"col\">kernel</th><th "
          "scope=\"col\">verdict</th><th scope=\"col\">champion</th><th scope=\"col\" class=\"plot\"><span class=\"over\">"
          "times as fast as its opponent</span>",
          out);
    chart_ticks(out, &axis);
    fputs("</th><th scope=\"col\">decision</th></tr></thead><tbody>\n", out);
    json_array_foreach(matter->records, index, record)
    {
        json_t *suite = field_object(details_of(record, "speed"), "suite");
        figure text;
        bool timed;
        double ratio = field_number(suite, "ratio", &timed);
        fputs("<tr><th scope=\"row\">", out);
        write_kernel_link(out, record, index);
        write_markup(out, "<small>%s%s%s</small></th><td data-name=\"verdict\">", field_text(record, "problem_class"),
                     *field_text(field_object(record, "device"), "class") ? " on " : "",
                     field_text(field_object(record, "device"), "class"));
        html_badge(out, field_text(record, "verdict"));
        fputs("</td><td data-name=\"champion\">", out);
        if (*field_text(record, "champion"))
            html_badge(out, field_text(record, "champion"));
        reigns(out, matter, record);
        fputs("</td><td class=\"plot\" data-name=\"speed\">", out);
        if (timed) {
            chart_interval(out, &axis, field_number(suite, "low", NULL), ratio, field_number(suite, "high", NULL), 0,
                           strcmp(field_text(suite, "speed"), "FASTER") == 0 ? TONE_PASS : TONE_NONE);
            write_markup(out, "<small>%s × %s%s</small>", figure_of(text, ratio), field_text(record, "opponent"),
                         strcmp(field_text(details_of(record, "speed"), "clock"), "simulated") == 0 ? " by a simulated clock" : "");
        } else {
            fputs("<small>not timed</small>", out);
        }
        write_markup(out, "</td><td data-name=\"decision\">%s</td></tr>\n", field_text(record, "decision"));
    }
    fputs("</tbody></table></section>\n", out);
}

/* ---- the gate table ------------------------------------------------------------------------------------------------------ */

static void write_gate_cell(FILE *out, const json_t *record, const char *gate)
{
    json_t *result = record_gate(record, gate);
    const char *verdict = result ? field_text(result, "verdict") : "NOT RUN";
    enum tone tone = tone_of(verdict);
    /* A slower kernel can be proven: then the speed gate is no failure of the proof. */
    bool lenient = tone == TONE_FAIL && !gate_counts(result);
    write_markup(out,
                 "<td class=\"gate %s\" title=\"%s\"><span class=\"symbol\" aria-hidden=\"true\">%s</span><span class=\"word\">"
                 "%s</span></td>",
                 !result   ? "absent"
                 : lenient ? "open"
                           : tone_class(tone),
                 result ? field_text(result, "sentence") : "the proof ended before this gate, or it was not asked for",
                 !result ? "·" : tone_symbol(tone), strcmp(verdict, "NOT APPLICABLE") == 0 ? "N/A" : verdict);
}

static void write_gates(FILE *out, const struct matter *matter)
{
    size_t index, number;
    json_t *record, *result;
    fputs("<section id=\"gates\"><h2>Gates</h2>\n<p>From cheap to costly; the first failure ends a proof unless it was told to "
          "go on. Speed is not needed to be proven.</p>\n<table class=\"matrix\"><thead><tr><th scope=\"col\">kernel</th>",
          out);
    for (int i = 0; i < gate_row_count; i++)
        write_markup(out, "<th scope=\"col\" title=\"%s\"><span>%s</span></th>", gate_rows[i].claim, gate_rows[i].name);
    fputs("</tr></thead>\n", out);
    json_array_foreach(matter->records, index, record)
    {
        fputs("<tbody><tr><th scope=\"row\">", out);
        write_kernel_link(out, record, index);
        fputs("</th>", out);
        for (int i = 0; i < gate_row_count; i++)
            write_gate_cell(out, record, gate_rows[i].name);
        write_markup(out, "</tr><tr class=\"sentences\"><td colspan=\"%d\"><details><summary>what the gates said</summary><dl>",
                     gate_row_count + 1);
        json_array_foreach(field_array(record, "gates"), number, result)
        {
            write_markup(out, "<div><dt>%s</dt><dd>", gate_name(result));
            html_badge(out, field_text(result, "verdict"));
            write_markup(out, " %s</dd></div>", field_text(result, "sentence"));
        }
        fputs("</dl></details></td></tr></tbody>\n", out);
    }
    fputs("</table>\n<dl class=\"claims\">", out);
    for (int i = 0; i < gate_row_count; i++)
        write_markup(out, "<div><dt>%s</dt><dd>%s</dd></div>", gate_rows[i].name, gate_rows[i].claim);
    fputs("</dl></section>\n", out);
}

/* ---- a chapter for each kernel ------------------------------------------------------------------------------------------- */

static void write_artefacts(FILE *out, const json_t *record)
{
    size_t index;
    json_t *result, *digest;
    const char *name;
    json_array_foreach(field_array(record, "gates"), index, result)
    {
        json_object_foreach(field_object(result, "artefacts"), name, digest)
        {
            char title[160];
            snprintf(title, sizeof title, "%s: %s", gate_name(result), name);
            if (json_is_string(digest))
                html_fact_digest(out, title, json_string_value(digest));
        }
    }
}

static void write_digests(FILE *out, const json_t *record)
{
    json_t *candidate = field_object(record, "candidate"), *evidence = field_object(record, "evidence");
    json_t *sources = field_object(candidate, "sources"), *digest;
    const char *path;
    fputs("<details class=\"more\"><summary>Digests and seed: what to re-check</summary>", out);
    html_facts_begin(out);
    if (evidence) {
        write_markup(out, "<div><dt>recorded in</dt><dd>%s, line %lld, %s</dd></div>\n", field_text(evidence, "file"),
                     (long long)json_integer_value(json_object_get(evidence, "line")),
                     json_is_true(json_object_get(evidence, "signed")) ? "signed" : "not signed");
        html_fact_digest(out, "statement", field_text(evidence, "digest"));
    } else {
        html_fact_text(out, "recorded in", "the run database only, not in the evidence");
    }
    html_fact(out, "seed", json_object_get(record, "seed"));
    html_fact_digest(out, "image", field_text(candidate, "image"));
    html_fact_digest(out, "closure of sources and flags", field_text(candidate, "closure"));
    html_fact(out, "policy number", json_object_get(record, "policy_number"));
    html_fact(out, "generator", json_object_get(record, "generator"));
    html_fact_digest(out, "continues", field_text(record, "continues"));
    html_fact_digest(out, "policy", field_text(record, "policy_digest"));
    html_fact_digest(out, "suite", field_text(record, "suite_digest"));
    json_object_foreach(sources, path, digest) html_fact_digest(out, path, json_is_string(digest) ? json_string_value(digest) : "");
    write_artefacts(out, record);
    html_facts_end(out);
    fputs("</details>\n<details class=\"more\"><summary>Policy: the numbers this proof was bound by</summary>", out);
    html_facts_rest(out, field_object(record, "policy"), (const char *const[]){NULL});
    fputs("</details>\n", out);
}

static void write_chapter(FILE *out, const struct matter *matter, const json_t *record, size_t index)
{
    json_t *candidate = field_object(record, "candidate"), *device = field_object(record, "device"), *result;
    const char *verdict = field_text(record, "verdict");
    figure text;
    size_t number;
    bool found;
    double seconds = field_number(record, "seconds", &found);
    write_markup(out, "<details class=\"chapter %s\"%s><summary><h3>", tone_class(tone_of(verdict)),
                 tone_of(verdict) == TONE_FAIL ? " open" : "");
    write_breakable(out, kernel_of(record));
    fputs("</h3> ", out);
    html_badge(out, verdict);
    if (*field_text(record, "champion") && strncmp(field_text(record, "champion"), "NOT", 3) != 0) {
        fputs(" ", out);
        html_badge(out, field_text(record, "champion"));
    }
    write_markup(out, "</summary>\n<div id=\"" CHAPTER "\" class=\"body\"><p class=\"decision\">%s</p>\n", index,
                 field_text(record, "decision"));
    if (*field_text(record, "behind"))
        write_markup(out, "<p>Of an older policy: %s.</p>\n", field_text(record, "behind"));
    html_facts_begin(out);
    html_fact(out, "summary", json_object_get(candidate, "summary"));
    html_fact(out, "problem class", json_object_get(record, "problem_class"));
    html_fact(out, "asked for as", json_object_get(record, "word"));
    html_fact(out, "kind", json_object_get(record, "kind"));
    html_fact(out, "opponent", json_object_get(record, "opponent"));
    html_fact(out, "promoted in", json_object_get(record, "promoted"));
    if (device)
        write_markup(out, "<div><dt>machine</dt><dd>%s, %s</dd></div>\n", field_text(device, "model"), field_text(device, "class"));
    html_fact(out, "threads", json_object_get(record, "threads"));
    html_fact_text(out, "started", figure_time(text, field_text(record, "started")));
    if (found)
        html_fact_text(out, "took", figure_seconds(text, seconds));
    html_facts_end(out);
    json_array_foreach(field_array(record, "gates"), number, result)
    {
        const char *gate = gate_name(result);
        fputs("<section class=\"gate\"><h4>", out);
        write_markup(out, "%s ", gate);
        html_badge(out, field_text(result, "verdict"));
        seconds = field_number(result, "seconds", &found);
        if (found)
            write_markup(out, " <small>%s</small>", figure_seconds(text, seconds));
        write_markup(out, "</h4>\n<p>%s</p>\n", field_text(result, "sentence"));
        html_gate_details(out, matter, record, gate, field_object(result, "details"));
        fputs("</section>\n", out);
    }
    write_digests(out, record);
    fputs("</div></details>\n", out);
}

/* ---- champions and the machine ------------------------------------------------------------------------------------------- */

static void write_champions(FILE *out, const struct matter *matter)
{
    size_t index, number;
    json_t *entry, *step;
    figure text;
    fputs("<section id=\"champions\"><h2>Champions</h2>\n", out);
    if (json_array_size(matter->champions) == 0)
        fputs("<p>There is no champion in the evidence yet. <code>attest prove --record</code> promotes a kernel that is "
              "proven and faster.</p>\n",
              out);
    fputs("<div class=\"reigns\">\n", out);
    json_array_foreach(matter->champions, index, entry)
    {
        json_t *history = field_array(entry, "history");
        write_markup(out, "<article><h3>%s <small>on %s</small></h3><ol class=\"history\">\n", field_text(entry, "problem_class"),
                     field_text(entry, "device"));
        for (number = json_array_size(history); number-- > 0;) {
            step = json_array_get(history, number);
            write_markup(out, "<li class=\"%s\"><time>%s</time> ", number + 1 == json_array_size(history) ? "now" : "before",
                         figure_time(text, field_text(step, "since")));
            write_breakable(out, field_text(step, "kernel"));
            write_markup(out, "<span>%s</span></li>\n", field_text(step, "decision"));
        }
        fputs("</ol></article>\n", out);
    }
    fputs("</div></section>\n", out);
}

static void write_machine(FILE *out, const struct matter *matter)
{
    static const char *const none[] = {NULL};
    fputs("<section id=\"machine\"><h2>Machine</h2>\n", out);
    size_t index, before;
    json_t *record, *other;
    json_array_foreach(matter->records, index, record)
    {
        json_t *device = field_object(record, "device");
        bool seen = !device;
        json_array_foreach(matter->records, before, other)
        {
            if (before >= index)
                break;
            seen = seen || json_equal(field_object(other, "device"), device);
        }
        if (seen)
            continue;
        fputs("<article>", out);
        html_facts_rest(out, device, none);
        write_markup(out, "<p class=\"aside\">attest %s, build %s</p></article>\n",
                     field_text(field_object(record, "tool"), "version"), field_text(field_object(record, "tool"), "build"));
    }
    fputs("</section>\n", out);
}

bool render_html(FILE *out, const struct matter *matter)
{
    struct totals totals = count_totals(matter);
    size_t index;
    json_t *record;
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
          "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta "
          "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
          "\n<link rel=\"icon\" href=\"data:,\">\n",
          out);
    fputs("<title>attest: ", out);
    write_headline(out, matter, &totals);
    fputs("</title>\n<style>\n", out);
    fputs(embedded_report_style.data, out);
    fputs("</style></head>\n<body>\n", out);
    write_summary(out, matter);
    fputs("<main>\n", out);
    write_verdicts(out, matter);
    write_gates(out, matter);
    fputs("<section id=\"kernels\"><h2>Kernels</h2>\n", out);
    json_array_foreach(matter->records, index, record) write_chapter(out, matter, record, index);
    fputs("</section>\n", out);
    write_champions(out, matter);
    html_searches(out, matter);
    write_machine(out, matter);
    fputs("</main>\n<footer><p>Written by <code>attest report</code> from records alone. To re-check them: <code>attest "
          "verify</code>; to run one again: <code>attest reproduce KERNEL</code>.</p></footer>\n</body></html>\n",
          out);
    return true;
}
