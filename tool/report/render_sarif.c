/*
 * render_sarif.c - records as SARIF 2.1.0: one rule for each gate, one result for each gate of a kernel that did not pass.
 *
 * FAIL is an error, INCONCLUSIVE a warning, and a no from a gate that is not needed for PROVEN a note. The location is the kernel's
 * source, or what was asked for. A kernel whose proof was interrupted is a warning of the rule "verdict".
 */
#include <attest.h>
#include <string.h>

#include "fields.h"
#include "render_formats.h"
#include "base/report.h"

static const char schema[] = "https://json.schemastore.org/sarif-2.1.0.json";
static const char verdict_claim[] = "the proof came to an end, and the kernel is proven";

static json_t *make_rule(const char *name, const char *claim)
{
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:s}}", "id", name, "name", name, "shortDescription", "text", claim,
                     "defaultConfiguration", "level", gate_needed(name) ? "error" : "note");
}

static json_t *make_rules(void)
{
    json_t *rules = json_array();
    for (int i = 0; i < gate_row_count; i++)
        json_add(rules, make_rule(gate_rows[i].name, gate_rows[i].claim));
    json_add(rules, make_rule("verdict", verdict_claim));
    return rules;
}

/* A path as a relative or absolute URI: every byte that is not plain is written as %XX. */
static json_t *make_uri(const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    char uri[1024];
    size_t at = 0;
    if (path[0] == '/')
        at = (size_t)snprintf(uri, sizeof uri, "file://");
    for (; *path && at + 4 < sizeof uri; path++) {
        if (strchr(plain, *path))
            uri[at++] = *path;
        else
            at += (size_t)snprintf(uri + at, sizeof uri - at, "%%%02X", (unsigned)(unsigned char)*path);
    }
    uri[at] = '\0';
    return json_string(uri);
}

static json_t *make_result(const json_t *record, const char *rule, bool counts, const char *verdict, const char *sentence)
{
    const char *kernel = field_text(record, "kernel"), *source = field_text(field_object(record, "candidate"), "source");
    const char *level = !counts ? "note" : tone_of(verdict) == TONE_FAIL ? "error" : "warning";
    const char *place = *source ? source : field_text(record, "word");
    json_t *result = json_pack("{s:s, s:s, s:{s:o}, s:{s:o}}", "ruleId", rule, "level", level, "message", "text",
                               json_sprintf("%s: %s: %s: %s", kernel, rule, *verdict ? verdict : "no verdict", sentence),
                               "partialFingerprints", "attest/v1", json_sprintf("%s/%s", kernel, rule));
    json_put(result, "properties",
             json_pack("{s:s, s:s, s:s}", "kernel", kernel, "verdict", verdict, "device",
                       field_text(field_object(record, "device"), "class")));
    if (*place)
        json_put(result, "locations",
                 json_pack("[{s:{s:{s:o}, s:{s:i}}}]", "physicalLocation", "artifactLocation", "uri", make_uri(place), "region",
                           "startLine", 1));
    return result;
}

static void add_results(json_t *results, const json_t *record)
{
    size_t number, before = json_array_size(results);
    json_t *result;
    json_array_foreach(field_array(record, "gates"), number, result)
    {
        const char *verdict = field_text(result, "verdict");
        if (tone_of(verdict) != TONE_PASS && strcmp(verdict, "NOT APPLICABLE") != 0)
            json_add(results, make_result(record, gate_name(result), gate_counts(result), verdict, field_text(result, "sentence")));
    }
    /* A verdict that no gate accounts for. */
    if (tone_of(field_text(record, "verdict")) != TONE_PASS && json_array_size(results) == before)
        json_add(results, make_result(record, "verdict", true, field_text(record, "verdict"), field_text(record, "decision")));
}

bool render_sarif(FILE *out, const struct matter *matter)
{
    json_t *results = json_array(), *record;
    size_t index;
    json_array_foreach(matter->records, index, record) add_results(results, record);
    json_t *document = json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:s, s:o}}, s:s, s:o}]}", "$schema", schema, "version", "2.1.0",
                                 "runs", "tool", "driver", "name", "attest", "version", attest_version(), "semanticVersion",
                                 attest_version(), "rules", make_rules(), "columnKind", "utf16CodeUnits", "results", results);
    bool done = document && json_dumpf(document, out, JSON_INDENT(2)) == 0;
    fputc('\n', out);
    json_decref(document);
    return done;
}
